// Receives what stream_pub publishes and tells what was missing. Every second
// it prints how many samples it has, at the end a summary.
#include "cyclone.h"

#include <stdio.h>
#include <stdlib.h>

#define SOURCES_MAX 16
#define NUMBERS_MAX 10000000

struct source {
  uint64_t id;
  uint8_t *seen; // one bit per number
  int64_t first, last, received, duplicates, out_of_order;
};

struct totals {
  int64_t sources, received, lost, duplicates, out_of_order, longest_hole;
};

static struct source sources[SOURCES_MAX];

static struct source *find_source(uint64_t id)
{
  for (int i = 0; i < SOURCES_MAX; i++) {
    if (!sources[i].seen) {
      sources[i].id = id;
      sources[i].seen = calloc(NUMBERS_MAX / 8 + 1, 1);
      if (!sources[i].seen)
        die("out of memory");
    }
    if (sources[i].id == id)
      return &sources[i];
  }
  die("more than %d publishers", SOURCES_MAX);
}

static bool is_seen(const struct source *s, int64_t n) { return s->seen[n / 8] >> (n % 8) & 1; }

// Notes a sample; returns whether it is new.
static bool note(const stream_sample *sample)
{
  int64_t n = sample->number;
  if (n < 1 || n > NUMBERS_MAX)
    die("sample number %lld is out of range", (long long)n);
  struct source *s = find_source(sample->source);
  if (is_seen(s, n)) {
    s->duplicates++;
    return false;
  }
  s->seen[n / 8] |= (uint8_t)(1 << (n % 8));
  s->received++;
  s->out_of_order += n < s->last;
  s->first = s->first == 0 || n < s->first ? n : s->first;
  s->last = n > s->last ? n : s->last;
  return true;
}

static struct totals sum(void)
{
  struct totals t = {0, 0, 0, 0, 0, 0};
  for (int i = 0; i < SOURCES_MAX && sources[i].seen; i++) {
    const struct source *s = &sources[i];
    t.sources++;
    t.received += s->received;
    t.duplicates += s->duplicates;
    t.out_of_order += s->out_of_order;
    int64_t hole = 0;
    for (int64_t n = s->first; n > 0 && n <= s->last; n++) {
      hole = is_seen(s, n) ? 0 : hole + 1;
      t.lost += hole > 0;
      t.longest_hole = hole > t.longest_hole ? hole : t.longest_hole;
    }
  }
  return t;
}

int main(int argc, char **argv)
{
  const char *topic_name = "stream";
  double seconds = 0;
  int64_t count = 0, domain = 0, depth = 10;
  int reliable = 0;
  const struct option_spec specs[] = {
    {"topic", OPTION_TEXT, &topic_name, "name of the topic"},
    {"count", OPTION_INTEGER, &count, "end after this many different samples; status 1 when they do not come"},
    {"seconds", OPTION_NUMBER, &seconds, "end after this time; 0: at SIGTERM"},
    {"reliable", OPTION_FLAG, &reliable, "reliable instead of best effort"},
    {"depth", OPTION_INTEGER, &depth, "history kept, in samples; 0: all"},
    {"domain", OPTION_INTEGER, &domain, "DDS domain"},
  };
  parse_options(argc, argv, "receive numbered samples", specs, sizeof specs / sizeof specs[0]);
  setup_program();
  dds_entity_t participant = new_participant(domain);
  struct stream_end end = new_stream_end(participant, topic_name, reliable, depth);
  dds_entity_t reader = checked(dds_create_reader(participant, end.topic, end.qos, NULL), "reader");
  dds_entity_t waitset = new_waitset(participant, reader);
  printf("{\"ready\":true}\n");

  int64_t start = monotonic_ns(), last = 0, longest_gap = 0, report = start + DDS_SECS(1), received = 0;
  while (!stopping() && (seconds == 0 || monotonic_ns() < start + (int64_t)(seconds * 1e9)) && (count == 0 || received < count)) {
    dds_waitset_wait(waitset, NULL, 0, DDS_MSECS(20));
    void *sample = NULL;
    dds_sample_info_t info;
    while (dds_take(reader, &sample, &info, 1, 1) == 1) {
      if (info.valid_data && note(sample)) {
        int64_t now = monotonic_ns();
        longest_gap = last > 0 && now - last > longest_gap ? now - last : longest_gap;
        last = now;
        received++;
      }
      dds_return_loan(reader, &sample, 1);
      sample = NULL;
    }
    if (monotonic_ns() >= report) {
      printf("{\"t\":%.6f,\"received\":%lld}\n", wall_seconds(), (long long)received);
      report += DDS_SECS(1);
    }
  }
  struct totals t = sum();
  printf("{\"summary\":true,\"sources\":%lld,\"received\":%lld,\"lost\":%lld,\"duplicates\":%lld,\"out_of_order\":%lld,"
         "\"longest_hole\":%lld,\"longest_gap_ms\":%.3f}\n",
    (long long)t.sources, (long long)t.received, (long long)t.lost, (long long)t.duplicates, (long long)t.out_of_order,
    (long long)t.longest_hole, (double)longest_gap / 1e6);
  finish(received == 0 || received < count, delete_participant, &participant);
}
