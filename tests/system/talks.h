/* Requests and answers of examples/kv, examples/lines and examples/web, for tests that attack these
 * services: a good client knows its request and the answer, and attackers repeat a request. */
#ifndef DOMT_TALKS_H
#define DOMT_TALKS_H

#include "tests/support/service.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A service, and the requests that tests send to it. Answers are counted by their line ends. */
typedef struct domt_protocol {
    const char *name;
    const char *const *arguments;
    const char *ask;     /* request of the good client */
    const char *answer;  /* answer to the good client; '?' stands for any byte */
    const char *request; /* request of attackers, with a long answer if possible */
    uint32_t lines;      /* lines of the answer to `request` */
    uint32_t last_lines; /* further lines of a connection's last answer in a drain */
} domt_protocol;

/* Services with small buffers in the kernel, so that a flood is over soon. */
extern const domt_protocol domt_kv;    /* with 2 threads and 3 shards */
extern const domt_protocol domt_lines; /* with 2 threads */
extern const domt_protocol domt_web;   /* with 2 threads */

/* The answer to a line that is too long for a shard is always the same. */
#define DOMT_LONG_LINE "a line that is too long for an entry of the table of a shard"

/* Bytes of the value that the request of kv returns. */
#define DOMT_BIG_BYTES 4000

/* Start the service with further arguments, up to a NULL (NULL: none), and return the connection of
 * the good client. */
int domt_protocol_start(domt_service *service, const domt_protocol *with, const char *const more[]);

/* Returns the number of bytes that domt_protocol_start() has sent. */
uint64_t domt_protocol_start_bytes(const domt_protocol *with);

/* Returns whether the good client gets its answer. */
bool domt_is_answered(int fd, const domt_protocol *with);

/* Returns the longest of `count` round trips of the good client. */
double domt_measure_worst_trip_ms(int fd, const domt_protocol *with, int count);

void domt_send_all(int fd, const char *bytes, size_t size);

/* Returns whether bytes match a pattern, in which '?' stands for any byte. */
bool domt_matches_pattern(const char *bytes, const char *pattern, size_t size);

/* Read bytes, and check that they match this pattern ('?' is any byte). */
bool domt_receives_pattern(int fd, const char *answer);

/* Connect with small socket buffers, so that waiting bytes wait in the service. */
int domt_connect_small(const domt_service *service);

#endif
