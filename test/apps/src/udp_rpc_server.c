// Answers datagrams of udp_rpc_client.
#include "ledger.h"
#include "udp.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

int main(int argc, char **argv)
{
  struct server_options o;
  parse_server_options(argc, argv, &o);
  setup_program();
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(UDP_PORT)};
  struct timeval wait = {.tv_usec = 100000};
  if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof here) != 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) != 0)
    die("listen on UDP port %d: %s", UDP_PORT, strerror(errno));
  printf("{\"ready\":true,\"name\":\"%s\"}\n", o.name);
  static uint8_t data[UDP_MAX];
  int64_t requests = 0;
  while (!stopping()) {
    struct sockaddr_in from;
    socklen_t from_size = sizeof from;
    ssize_t n = recvfrom(fd, data, sizeof data, 0, (struct sockaddr *)&from, &from_size);
    if (n < UDP_HEADER + REQUEST_MIN)
      continue;
    requests++;
    if (o.delay_ms > 0)
      nanosleep(&(struct timespec){(time_t)(o.delay_ms / 1e3), (long)((int64_t)(o.delay_ms * 1e6) % 1000000000)}, NULL);
    uint32_t size = wanted_reply_size(data + UDP_HEADER, (size_t)n - UDP_HEADER, o.name);
    if (size > UDP_MAX - UDP_HEADER)
      continue;
    put_reply(data + UDP_HEADER, size, o.name);
    sendto(fd, data, UDP_HEADER + size, 0, (struct sockaddr *)&from, from_size);
  }
  printf("{\"summary\":true,\"name\":\"%s\",\"requests\":%lld}\n", o.name, (long long)requests);
}
