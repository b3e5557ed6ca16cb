#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop_flag;

static __attribute__((noreturn)) void usage(FILE *to, const char *program, const char *about, const struct option_spec *specs, size_t count)
{
  fprintf(to, "%s: %s\n", program, about);
  for (size_t i = 0; i < count; i++) {
    fprintf(to, "  --%-16s %s", specs[i].name, specs[i].help);
    switch (specs[i].kind) {
    case OPTION_INTEGER: fprintf(to, " (%lld)\n", (long long)*(int64_t *)specs[i].value); break;
    case OPTION_NUMBER: fprintf(to, " (%g)\n", *(double *)specs[i].value); break;
    case OPTION_TEXT: fprintf(to, " (%s)\n", *(const char **)specs[i].value); break;
    case OPTION_FLAG: fprintf(to, "\n"); break;
    }
  }
  exit(to == stdout ? 0 : 2);
}

// Stores text as the value of an option; returns 0 when it is malformed.
static int store(const struct option_spec *spec, const char *text)
{
  char *end = NULL;
  errno = 0;
  switch (spec->kind) {
  case OPTION_INTEGER: *(int64_t *)spec->value = strtoll(text, &end, 10); break;
  case OPTION_NUMBER: *(double *)spec->value = strtod(text, &end); break;
  case OPTION_TEXT: *(const char **)spec->value = text; return 1;
  case OPTION_FLAG: return 0;
  }
  return errno == 0 && end != text && *end == '\0';
}

void parse_options(int argc, char **argv, const char *about, const struct option_spec *specs, size_t count)
{
  for (int i = 1; i < argc; i++) {
    const char *name = argv[i];
    if (strcmp(name, "--help") == 0)
      usage(stdout, argv[0], about, specs, count);
    const char *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const struct option_spec *spec = NULL;
    for (size_t k = 0; k < count; k++)
      if (length == strlen(specs[k].name) + 2 && strncmp(name, "--", 2) == 0 && strncmp(name + 2, specs[k].name, length - 2) == 0)
        spec = &specs[k];
    if (spec && spec->kind == OPTION_FLAG && !equals) {
      *(int *)spec->value = 1;
      continue;
    }
    const char *value = equals ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
    if (!spec || !value || !store(spec, value)) {
      fprintf(stderr, "%s: cannot understand %s\n", argv[0], name);
      usage(stderr, argv[0], about, specs, count);
    }
  }
}

static int64_t clock_ns(clockid_t clock)
{
  struct timespec t;
  clock_gettime(clock, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t monotonic_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

double wall_seconds(void) { return (double)clock_ns(CLOCK_REALTIME) / 1e9; }

static void on_signal(int sig)
{
  (void)sig;
  stop_flag = 1;
}

void setup_program(void)
{
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  setvbuf(stdout, NULL, _IOLBF, 0);
}

int stopping(void) { return stop_flag; }

void die(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
  fflush(NULL);
  _exit(1);
}

struct closing {
  void (*close)(void *);
  void *argument;
};

static void *run_close(void *argument)
{
  struct closing *c = argument;
  c->close(c->argument);
  return NULL;
}

void finish(int status, void (*close)(void *), void *argument)
{
  fflush(NULL);
  struct closing c = {close, argument};
  pthread_t thread;
  if (pthread_create(&thread, NULL, run_close, &c) == 0) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    pthread_timedjoin_np(thread, NULL, &until);
  }
  _exit(status);
}

void fill_payload(uint8_t *data, size_t size)
{
  for (size_t i = 0; i < size; i++)
    data[i] = (uint8_t)PAYLOAD_TEXT[i % (sizeof PAYLOAD_TEXT - 1)];
}

void put_request(uint8_t *data, size_t size, uint32_t reply_size)
{
  for (int i = 0; i < REQUEST_MIN; i++)
    data[i] = (uint8_t)(reply_size >> (8 * i));
  fill_payload(data + REQUEST_MIN, size - REQUEST_MIN);
}

uint32_t wanted_reply_size(const uint8_t *data, size_t size, const char *name)
{
  uint32_t wanted = 0, least = (uint32_t)strlen(name) + 1;
  for (int i = 0; i < REQUEST_MIN && size >= REQUEST_MIN; i++)
    wanted |= (uint32_t)data[i] << (8 * i);
  return wanted > least ? wanted : least;
}

void put_reply(uint8_t *data, size_t size, const char *name)
{
  size_t length = strlen(name) + 1;
  memcpy(data, name, length);
  fill_payload(data + length, size - length);
}

void reply_name(const uint8_t *data, size_t size, char *name)
{
  size_t i = 0;
  for (; i < size && i < NAME_MAX_LEN && data[i] != 0; i++) {
    int plain = data[i] >= ' ' && data[i] < 127 && data[i] != '"' && data[i] != '\\';
    name[i] = plain ? (char)data[i] : '?';
  }
  name[i] = '\0';
}
