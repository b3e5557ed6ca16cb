// What all test programs share: options, time, signals, payload and the end.
#ifndef COMMON_H
#define COMMON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum option_kind { OPTION_INTEGER, OPTION_NUMBER, OPTION_TEXT, OPTION_FLAG };

// One option of a program. value points to int64_t, double, const char * or
// int, by kind, and holds the default.
struct option_spec {
  const char *name;
  enum option_kind kind;
  void *value;
  const char *help;
};

// Reads --name value, --name=value and --flag. Prints help and ends the program
// with --help (status 0) or on an error (status 2).
void parse_options(int argc, char **argv, const char *about, const struct option_spec *specs, size_t count);

// Nanoseconds of the monotonic clock.
int64_t monotonic_ns(void);

// Seconds since 1970.
double wall_seconds(void);

// Makes SIGTERM and SIGINT set what stopping() returns. Output is buffered by
// line from then on, so that a reader sees every event at once.
void setup_program(void);
int stopping(void);

// Prints what went wrong and ends the program with status 1.
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

// Runs close(argument), which may hang, for at most a second, then ends the
// program without further ado. A DDS library can wait for ever for its own
// multicast when that is filtered.
void finish(int status, void (*close)(void *), void *argument) __attribute__((noreturn));

// Fills size bytes with PAYLOAD_TEXT, again and again: something to look for in
// captures that should be encrypted.
#define PAYLOAD_TEXT "fogplr test payload "
void fill_payload(uint8_t *data, size_t size);

// A request's data begins with the wanted size of the reply (4 bytes, little
// endian), a reply's data with the name of the server, ended by a zero byte.
#define REQUEST_MIN 4
#define NAME_MAX_LEN 31
void put_request(uint8_t *data, size_t size, uint32_t reply_size);
uint32_t wanted_reply_size(const uint8_t *data, size_t size, const char *name);
void put_reply(uint8_t *data, size_t size, const char *name);
// Copies the server's name out of a reply into name (NAME_MAX_LEN + 1 bytes).
void reply_name(const uint8_t *data, size_t size, char *name);

#ifdef __cplusplus
}
#endif
#endif
