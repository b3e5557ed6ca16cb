// Publishes numbered samples on a ROS 2 topic at a steady rate.
#include "cyclone.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
  const char *topic_name = "stream";
  double rate = 30, match_timeout_s = 30, settle_ms = 0, linger_ms = 1000;
  int64_t count = 600, size = 64, subscribers = 1, domain = 0, depth = 10;
  int reliable = 0;
  const struct option_spec specs[] = {
    {"topic", OPTION_TEXT, &topic_name, "name of the topic"},
    {"rate", OPTION_NUMBER, &rate, "samples per second"},
    {"count", OPTION_INTEGER, &count, "samples; 0: until SIGTERM"},
    {"size", OPTION_INTEGER, &size, "bytes in a sample"},
    {"reliable", OPTION_FLAG, &reliable, "reliable instead of best effort"},
    {"depth", OPTION_INTEGER, &depth, "history kept, in samples; 0: all"},
    {"subscribers", OPTION_INTEGER, &subscribers, "wait for this many first"},
    {"match-timeout-s", OPTION_NUMBER, &match_timeout_s, "give up waiting for them after this"},
    {"settle-ms", OPTION_NUMBER, &settle_ms, "pause between finding them and the first sample"},
    {"linger-ms", OPTION_NUMBER, &linger_ms, "stay this long at the end, for retransmissions"},
    {"domain", OPTION_INTEGER, &domain, "DDS domain"},
  };
  parse_options(argc, argv, "publish numbered samples", specs, sizeof specs / sizeof specs[0]);
  if (rate <= 0 || size < 0 || size > UINT32_MAX)
    die("the rate must be above 0 and the size 0 to 4294967295");
  setup_program();
  dds_entity_t participant = new_participant(domain);
  struct stream_end end = new_stream_end(participant, topic_name, reliable, depth);
  dds_entity_t writer = checked(dds_create_writer(participant, end.topic, end.qos, NULL), "writer");
  dds_instance_handle_t source;
  checked(dds_get_instance_handle(writer, &source), "instance handle");
  stream_sample sample = {.source = source,
    .data = {._length = (uint32_t)size, ._maximum = (uint32_t)size, ._buffer = malloc((size_t)size + 1)}};
  if (!sample.data._buffer)
    die("out of memory");
  fill_payload(sample.data._buffer, (size_t)size);

  int64_t until = monotonic_ns() + (int64_t)(match_timeout_s * 1e9);
  while (matched_readers(writer) < subscribers) {
    if (stopping() || monotonic_ns() > until)
      die("found %d subscribers, wanted %lld", matched_readers(writer), (long long)subscribers);
    dds_sleepfor(DDS_MSECS(10));
  }
  dds_sleepfor((dds_duration_t)(settle_ms * 1e6));
  int64_t start = monotonic_ns();
  while (!stopping() && (count == 0 || sample.number < count)) {
    int64_t due = start + (int64_t)((double)sample.number * 1e9 / rate), now = monotonic_ns();
    if (now < due) {
      dds_sleepfor(due - now);
      continue;
    }
    sample.number++;
    checked(dds_write(writer, &sample), "write a sample");
  }
  dds_sleepfor((dds_duration_t)(linger_ms * 1e6));
  printf("{\"summary\":true,\"published\":%lld}\n", (long long)sample.number);
  finish(0, delete_participant, &participant);
}
