// What an RPC client knows about its requests; shared by all DDS vendors, so
// that their output is the same.
#ifndef LEDGER_H
#define LEDGER_H

#include "common.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

// Options of a client.
struct client_options {
  const char *service;
  double rate;              // requests per second
  int64_t count;            // 0: until SIGTERM
  int64_t size, reply_size; // bytes
  double deadline_ms;
  double lost_after_ms;
  int64_t servers;
  double match_timeout_s;
  double settle_ms;
  double linger_ms;
  int64_t domain;
};

void parse_client_options(int argc, char **argv, struct client_options *o);

// Options of a server.
struct server_options {
  const char *service;
  const char *name;
  double delay_ms; // time to work on a request
  int64_t domain;
};

void parse_server_options(int argc, char **argv, struct server_options *o);

struct ledger;

// ledger_reply and ledger_expire print each event as one line of JSON:
//   {"seq":7,"t":1700000000.123456,"latency_ms":41.207,"by":"west"}
//   {"seq":7,"t":1700000000.123456,"latency_ms":57.411,"by":"east","extra":true}
//   {"seq":8,"t":1700000000.156789,"lost":true}
// t is the time of sending in seconds since 1970. A reply that comes after its
// request was counted as lost is marked "late"; the request stays lost.
struct ledger *ledger_open(const struct client_options *o);

// Notes that a request is sent now and returns its number, from 1.
int64_t ledger_send(struct ledger *l);

// Notes a reply. Numbers that were never sent are ignored.
void ledger_reply(struct ledger *l, int64_t number, const char *by);

// Counts as lost what was sent too long ago.
void ledger_expire(struct ledger *l);

// Reports whether every request sent was answered or lost.
bool ledger_settled(const struct ledger *l);

// Prints the summary and returns the exit status: 1 when a request was lost or
// none was sent, else 0.
int ledger_close(struct ledger *l);

#ifdef __cplusplus
}
#endif
#endif
