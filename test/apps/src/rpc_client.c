// A client as rmw_cyclonedds makes it, calling at a steady rate. Several servers
// may answer the same request: the first reply counts.
#include "cyclone.h"
#include "ledger.h"

#include <stdlib.h>

// Waits until enough servers are there, both their readers and their writers.
static void await_servers(const struct service_end *end, const struct client_options *o)
{
  int64_t until = monotonic_ns() + (int64_t)(o->match_timeout_s * 1e9);
  for (;;) {
    int readers = matched_readers(end->writer), writers = matched_writers(end->reader);
    if (readers >= o->servers && writers >= o->servers)
      break;
    if (stopping() || monotonic_ns() > until)
      die("found %d readers and %d writers of the service, wanted %lld servers", readers, writers, (long long)o->servers);
    dds_sleepfor(DDS_MSECS(10));
  }
  dds_sleepfor((dds_duration_t)(o->settle_ms * 1e6));
}

static void send_request(const struct service_end *end, const struct client_options *o, uint64_t id, struct ledger *l, uint8_t *data)
{
  echo_request request = {.client = id, .data = {._length = (uint32_t)o->size, ._maximum = (uint32_t)o->size, ._buffer = data}};
  request.number = ledger_send(l);
  checked(dds_write(end->writer, &request), "write a request");
}

static void take_replies(dds_entity_t reader, uint64_t id, struct ledger *l)
{
  void *sample = NULL;
  dds_sample_info_t info;
  while (dds_take(reader, &sample, &info, 1, 1) == 1) {
    const echo_response *response = sample;
    if (info.valid_data && response->client == id) {
      char by[NAME_MAX_LEN + 1];
      reply_name(response->data._buffer, response->data._length, by);
      ledger_reply(l, response->number, by);
    }
    dds_return_loan(reader, &sample, 1);
    sample = NULL;
  }
}

int main(int argc, char **argv)
{
  struct client_options o;
  parse_client_options(argc, argv, &o);
  setup_program();
  struct service_end end = new_service_end(o.service, o.domain, SERVICE_CLIENT);
  dds_entity_t waitset = new_waitset(end.participant, end.reader);
  dds_instance_handle_t id; // what rmw_cyclonedds puts into the header
  checked(dds_get_instance_handle(end.writer, &id), "instance handle");
  uint8_t *data = malloc((size_t)o.size);
  if (!data)
    die("out of memory");
  put_request(data, (size_t)o.size, (uint32_t)o.reply_size);
  await_servers(&end, &o);

  struct ledger *l = ledger_open(&o);
  int64_t next = monotonic_ns(), sent = 0, listen_until = 0;
  while (!stopping() && (listen_until == 0 || monotonic_ns() < listen_until)) {
    bool sending = o.count == 0 || sent < o.count;
    int64_t now = monotonic_ns();
    if (sending && now >= next) {
      send_request(&end, &o, id, l, data);
      sent++;
      next += (int64_t)(1e9 / o.rate);
      continue;
    }
    int64_t pause = sending && next - now < DDS_MSECS(20) ? next - now : DDS_MSECS(20);
    dds_waitset_wait(waitset, NULL, 0, pause);
    take_replies(end.reader, id, l);
    ledger_expire(l);
    if (!sending && listen_until == 0 && ledger_settled(l))
      listen_until = monotonic_ns() + (int64_t)(o.linger_ms * 1e6);
  }
  finish(ledger_close(l), delete_participant, &end.participant);
}
