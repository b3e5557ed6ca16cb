// A service as rmw_cyclonedds makes it: it answers each request with the bytes
// that the request asks for.
#include "cyclone.h"
#include "ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READERS_MAX 64

enum client_present { CLIENT_THERE, CLIENT_MAYBE, CLIENT_GONE };

// Tells whether the reply reader of the client with this request writer is
// matched, as check_for_response_reader of rmw_cyclonedds does.
static enum client_present find_client(const struct service_end *end, dds_instance_handle_t request_writer)
{
  dds_builtintopic_endpoint_t *writer = dds_get_matched_publication_data(end->reader, request_writer);
  if (!writer)
    return CLIENT_GONE;
  char client[ID_SIZE], other[ID_SIZE];
  bool known = user_data_value(writer->qos, "clientid", client);
  dds_builtintopic_free_endpoint(writer);
  if (!known)
    return CLIENT_THERE;
  dds_instance_handle_t readers[READERS_MAX];
  int count = checked(dds_get_matched_subscriptions(end->writer, readers, READERS_MAX), "matched readers");
  bool found = false;
  for (int i = 0; i < count && i < READERS_MAX && !found; i++) {
    dds_builtintopic_endpoint_t *reader = dds_get_matched_subscription_data(end->writer, readers[i]);
    if (!reader)
      continue;
    found = user_data_value(reader->qos, "clientid", other) && strcmp(client, other) == 0;
    dds_builtintopic_free_endpoint(reader);
  }
  return found ? CLIENT_THERE : CLIENT_MAYBE;
}

// Waits up to 100 ms for the client's reply reader.
static enum client_present await_client(const struct service_end *end, dds_instance_handle_t request_writer)
{
  int64_t until = monotonic_ns() + 100 * 1000000;
  enum client_present present;
  while ((present = find_client(end, request_writer)) == CLIENT_MAYBE && monotonic_ns() < until)
    dds_sleepfor(DDS_MSECS(10));
  return present;
}

struct counts {
  int64_t requests, replies, dropped;
};

static void answer(const struct service_end *end, const struct server_options *o, const echo_request *request,
  dds_instance_handle_t from, struct counts *counts)
{
  counts->requests++;
  if (o->delay_ms > 0)
    dds_sleepfor((dds_duration_t)(o->delay_ms * 1e6));
  enum client_present present = await_client(end, from);
  if (present != CLIENT_THERE) {
    counts->dropped++;
    fprintf(stderr, "dropped the reply to request %lld: its client %s\n", (long long)request->number,
      present == CLIENT_GONE ? "is gone" : "has no known reader");
    return;
  }
  uint32_t size = wanted_reply_size(request->data._buffer, request->data._length, o->name);
  echo_response response = {.client = request->client, .number = request->number,
    .data = {._length = size, ._maximum = size, ._buffer = malloc(size)}};
  if (!response.data._buffer)
    die("out of memory");
  put_reply(response.data._buffer, size, o->name);
  checked(dds_write(end->writer, &response), "write a reply");
  free(response.data._buffer);
  counts->replies++;
}

int main(int argc, char **argv)
{
  struct server_options o;
  parse_server_options(argc, argv, &o);
  setup_program();
  struct service_end end = new_service_end(o.service, o.domain, SERVICE_SERVER);
  dds_entity_t waitset = new_waitset(end.participant, end.reader);
  printf("{\"ready\":true,\"name\":\"%s\"}\n", o.name);
  struct counts counts = {0, 0, 0};
  while (!stopping()) {
    dds_waitset_wait(waitset, NULL, 0, DDS_MSECS(100));
    void *sample = NULL;
    dds_sample_info_t info;
    while (!stopping() && dds_take(end.reader, &sample, &info, 1, 1) == 1) {
      if (info.valid_data)
        answer(&end, &o, sample, info.publication_handle, &counts);
      dds_return_loan(end.reader, &sample, 1);
      sample = NULL;
    }
  }
  printf("{\"summary\":true,\"name\":\"%s\",\"requests\":%lld,\"replies\":%lld,\"dropped\":%lld}\n", o.name,
    (long long)counts.requests, (long long)counts.replies, (long long)counts.dropped);
  finish(0, delete_participant, &end.participant);
}
