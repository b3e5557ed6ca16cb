// Calls by datagrams at a steady rate, one to each server: the first reply counts.
#define _GNU_SOURCE // ppoll
#include "ledger.h"
#include "udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define SERVERS_MAX 16

// Reads addresses with commas between them.
static int parse_servers(const char *text, struct sockaddr_in *servers)
{
  char *copy = strdup(text), *rest = copy;
  int count = 0;
  for (char *one; copy && (one = strsep(&rest, ",")) != NULL; count++) {
    if (count == SERVERS_MAX)
      die("more than %d servers", SERVERS_MAX);
    servers[count] = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(UDP_PORT)};
    if (inet_pton(AF_INET, one, &servers[count].sin_addr) != 1)
      die("%s is not an IPv4 address", one);
  }
  free(copy);
  if (count == 0)
    die("no servers");
  return count;
}

static void take_replies(int fd, struct ledger *l)
{
  static uint8_t data[UDP_MAX];
  ssize_t n;
  while ((n = recv(fd, data, sizeof data, MSG_DONTWAIT)) > 0) {
    int64_t number;
    char by[NAME_MAX_LEN + 1];
    if (n <= UDP_HEADER)
      continue;
    memcpy(&number, data, UDP_HEADER);
    reply_name(data + UDP_HEADER, (size_t)n - UDP_HEADER, by);
    ledger_reply(l, number, by);
  }
}

int main(int argc, char **argv)
{
  struct client_options o = {.rate = 30, .count = 600, .size = 64, .reply_size = 64, .deadline_ms = 200, .lost_after_ms = 5000, .linger_ms = 500};
  const char *to = "";
  const struct option_spec specs[] = {
    {"to", OPTION_TEXT, &to, "the servers' addresses, with commas"},
    {"rate", OPTION_NUMBER, &o.rate, "requests per second"},
    {"count", OPTION_INTEGER, &o.count, "requests; 0: until SIGTERM"},
    {"size", OPTION_INTEGER, &o.size, "bytes in a request"},
    {"reply-size", OPTION_INTEGER, &o.reply_size, "bytes in a reply"},
    {"deadline-ms", OPTION_NUMBER, &o.deadline_ms, "replies after this count as missed"},
    {"lost-after-ms", OPTION_NUMBER, &o.lost_after_ms, "requests without a reply after this count as lost"},
    {"linger-ms", OPTION_NUMBER, &o.linger_ms, "listen for further replies this long at the end"},
  };
  parse_options(argc, argv, "call servers by plain datagrams at a steady rate", specs, sizeof specs / sizeof specs[0]);
  if (o.rate <= 0 || o.size < REQUEST_MIN || o.size > UDP_MAX - UDP_HEADER || o.reply_size < 1 || o.reply_size > UDP_MAX - UDP_HEADER)
    die("the rate must be above 0 and the sizes %d to %d and 1 to %d", REQUEST_MIN, UDP_MAX - UDP_HEADER, UDP_MAX - UDP_HEADER);
  struct sockaddr_in servers[SERVERS_MAX];
  int count = parse_servers(to, servers);
  setup_program();
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0)
    die("open a socket: %s", strerror(errno));
  static uint8_t data[UDP_MAX];
  put_request(data + UDP_HEADER, (size_t)o.size, (uint32_t)o.reply_size);

  struct ledger *l = ledger_open(&o);
  int64_t next = monotonic_ns(), sent = 0, listen_until = 0;
  while (!stopping() && (listen_until == 0 || monotonic_ns() < listen_until)) {
    bool sending = o.count == 0 || sent < o.count;
    int64_t now = monotonic_ns();
    if (sending && now >= next) {
      int64_t number = ledger_send(l);
      memcpy(data, &number, UDP_HEADER);
      for (int i = 0; i < count; i++) // what cannot be sent is lost
        sendto(fd, data, (size_t)o.size + UDP_HEADER, 0, (struct sockaddr *)&servers[i], sizeof servers[i]);
      sent++;
      next += (int64_t)(1e9 / o.rate);
      continue;
    }
    int64_t pause = sending && next - now < 20000000 ? next - now : 20000000;
    struct timespec limit = {0, pause};
    ppoll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, &limit, NULL);
    take_replies(fd, l);
    ledger_expire(l);
    if (!sending && listen_until == 0 && ledger_settled(l))
      listen_until = monotonic_ns() + (int64_t)(o.linger_ms * 1e6);
  }
  return ledger_close(l);
}
