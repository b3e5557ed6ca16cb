#include "ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVERS_MAX 16

enum state { WAITING, ANSWERED, LOST };

struct request {
  int64_t sent;  // monotonic
  double wall;   // the same moment, seconds since 1970
  double latency; // ms
  enum state state;
};

struct ledger {
  const struct client_options *options;
  struct request *requests;
  int64_t count, capacity;
  int64_t oldest; // no request before this one is waiting
  int64_t replies, lost, extra, late, missed;
  struct {
    char name[NAME_MAX_LEN + 1];
    int64_t first, all;
  } servers[SERVERS_MAX];
};

void parse_client_options(int argc, char **argv, struct client_options *o)
{
  *o = (struct client_options){.service = "echo", .rate = 30, .count = 600, .size = 64, .reply_size = 64,
    .deadline_ms = 200, .lost_after_ms = 5000, .servers = 1, .match_timeout_s = 30, .linger_ms = 500};
  const struct option_spec specs[] = {
    {"service", OPTION_TEXT, &o->service, "name of the service"},
    {"rate", OPTION_NUMBER, &o->rate, "requests per second"},
    {"count", OPTION_INTEGER, &o->count, "requests; 0: until SIGTERM"},
    {"size", OPTION_INTEGER, &o->size, "bytes in a request"},
    {"reply-size", OPTION_INTEGER, &o->reply_size, "bytes in a reply"},
    {"deadline-ms", OPTION_NUMBER, &o->deadline_ms, "replies after this count as missed"},
    {"lost-after-ms", OPTION_NUMBER, &o->lost_after_ms, "requests without a reply after this count as lost"},
    {"servers", OPTION_INTEGER, &o->servers, "wait for this many servers first"},
    {"match-timeout-s", OPTION_NUMBER, &o->match_timeout_s, "give up waiting for them after this"},
    {"settle-ms", OPTION_NUMBER, &o->settle_ms, "pause between finding the servers and the first request"},
    {"linger-ms", OPTION_NUMBER, &o->linger_ms, "listen for further replies this long at the end"},
    {"domain", OPTION_INTEGER, &o->domain, "DDS domain"},
  };
  parse_options(argc, argv, "call a service at a steady rate, as a ROS 2 client does", specs, sizeof specs / sizeof specs[0]);
  if (o->size < REQUEST_MIN)
    o->size = REQUEST_MIN;
  if (o->rate <= 0 || o->reply_size < 0 || o->reply_size > UINT32_MAX)
    die("the rate must be above 0 and the reply size 0 to 4294967295");
}

void parse_server_options(int argc, char **argv, struct server_options *o)
{
  *o = (struct server_options){.service = "echo", .name = "server"};
  const struct option_spec specs[] = {
    {"service", OPTION_TEXT, &o->service, "name of the service"},
    {"name", OPTION_TEXT, &o->name, "name of this server, at most 31 characters"},
    {"delay-ms", OPTION_NUMBER, &o->delay_ms, "time to work on a request"},
    {"domain", OPTION_INTEGER, &o->domain, "DDS domain"},
  };
  parse_options(argc, argv, "answer calls, as a ROS 2 service does", specs, sizeof specs / sizeof specs[0]);
  if (strlen(o->name) > NAME_MAX_LEN)
    die("the name %s is longer than %d characters", o->name, NAME_MAX_LEN);
}

static void *checked(void *memory)
{
  if (!memory)
    die("out of memory");
  return memory;
}

struct ledger *ledger_open(const struct client_options *o)
{
  struct ledger *l = checked(calloc(1, sizeof *l));
  l->options = o;
  return l;
}

int64_t ledger_send(struct ledger *l)
{
  if (l->count == l->capacity) {
    l->capacity = l->capacity ? 2 * l->capacity : 1024;
    l->requests = checked(realloc(l->requests, (size_t)l->capacity * sizeof *l->requests));
  }
  l->requests[l->count] = (struct request){.sent = monotonic_ns(), .wall = wall_seconds()};
  return ++l->count;
}

static void count_server(struct ledger *l, const char *name, bool first)
{
  for (int i = 0; i < SERVERS_MAX; i++) {
    if (!l->servers[i].name[0])
      snprintf(l->servers[i].name, sizeof l->servers[i].name, "%s", name);
    if (strcmp(l->servers[i].name, name) == 0) {
      l->servers[i].all++;
      l->servers[i].first += first;
      return;
    }
  }
}

void ledger_reply(struct ledger *l, int64_t number, const char *by)
{
  if (number < 1 || number > l->count)
    return;
  struct request *r = &l->requests[number - 1];
  double latency = (double)(monotonic_ns() - r->sent) / 1e6;
  const char *mark = "";
  switch (r->state) {
  case WAITING:
    r->state = ANSWERED;
    r->latency = latency;
    l->replies++;
    l->missed += latency > l->options->deadline_ms;
    break;
  case ANSWERED:
    l->extra++;
    mark = ",\"extra\":true";
    break;
  case LOST:
    l->late++;
    mark = ",\"late\":true";
    break;
  }
  count_server(l, by, mark[0] == '\0');
  printf("{\"seq\":%lld,\"t\":%.6f,\"latency_ms\":%.3f,\"by\":\"%s\"%s}\n", (long long)number, r->wall, latency, by, mark);
}

void ledger_expire(struct ledger *l)
{
  int64_t before = monotonic_ns() - (int64_t)(l->options->lost_after_ms * 1e6);
  for (; l->oldest < l->count; l->oldest++) {
    struct request *r = &l->requests[l->oldest];
    if (r->state != WAITING)
      continue;
    if (r->sent > before)
      return;
    r->state = LOST;
    l->lost++;
    l->missed++;
    printf("{\"seq\":%lld,\"t\":%.6f,\"lost\":true}\n", (long long)l->oldest + 1, r->wall);
  }
}

bool ledger_settled(const struct ledger *l) { return l->replies + l->lost == l->count; }

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int ledger_close(struct ledger *l)
{
  double *sorted = checked(calloc((size_t)l->replies + 1, sizeof *sorted)), sum = 0;
  int64_t n = 0;
  for (int64_t i = 0; i < l->count; i++)
    if (l->requests[i].state == ANSWERED)
      sum += sorted[n++] = l->requests[i].latency;
  qsort(sorted, (size_t)n, sizeof *sorted, by_value);
  double p50 = 0, p99 = 0, most = 0;
  if (n > 0) {
    p50 = sorted[n / 2];
    p99 = sorted[n * 99 / 100];
    most = sorted[n - 1];
    sum /= (double)n;
  }
  free(sorted);
  printf("{\"summary\":true,\"requests\":%lld,\"replies\":%lld,\"lost\":%lld,\"pending\":%lld,\"extra\":%lld,\"late\":%lld,"
         "\"missed\":%lld,\"deadline_ms\":%g,\"mean_ms\":%.3f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f,\"by\":{",
    (long long)l->count, (long long)l->replies, (long long)l->lost, (long long)(l->count - l->replies - l->lost),
    (long long)l->extra, (long long)l->late, (long long)l->missed, l->options->deadline_ms, sum, p50, p99, most);
  for (int i = 0; i < SERVERS_MAX && l->servers[i].name[0]; i++)
    printf("%s\"%s\":{\"first\":%lld,\"all\":%lld}", i ? "," : "", l->servers[i].name,
      (long long)l->servers[i].first, (long long)l->servers[i].all);
  printf("}}\n");
  int status = l->lost > 0 || l->count == 0;
  free(l->requests);
  free(l);
  return status;
}
