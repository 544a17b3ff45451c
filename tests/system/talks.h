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
    const char *answer;  /* answer that the good client expects; '?' stands for any byte */
    const char *request; /* request that attackers repeat, with a long answer if possible */
    uint32_t lines;      /* number of lines in the answer to `request` */
    /* largest number of further lines behind a connection's last answer in a drain */
    uint32_t last_lines;
} domt_protocol;

/* Services whose small buffers in the kernel end a flood soon. */
extern const domt_protocol domt_kv;    /* examples/kv with 2 threads and 3 shards */
extern const domt_protocol domt_lines; /* examples/lines with 2 threads */
extern const domt_protocol domt_web;   /* examples/web with 2 threads */

/* The answer of `lines` to a line that is too long for a shard: it is always the same. */
#define DOMT_LONG_LINE "a line that is too long for an entry of the table of a shard"

/* Number of bytes of the value that the request of `domt_kv` returns. */
#define DOMT_BIG_BYTES 4000

/* Start the service with further arguments, up to a NULL (NULL: none), and return the connection of
 * the good client. */
int domt_protocol_start_and_connect(domt_service *service, const domt_protocol *with,
                                    const char *const more[]);

/* Returns the number of bytes that domt_protocol_start_and_connect() has sent as the good client.
 */
uint64_t domt_protocol_bytes_sent_at_start(const domt_protocol *with);

/* Returns whether the good client gets its answer. */
bool domt_is_good_client_answered(int fd, const domt_protocol *with);

/* Returns the longest of `count` round trips of the good client. */
double domt_measure_worst_trip_ms(int fd, const domt_protocol *with, int count);

void domt_send_all(int fd, const char *bytes, size_t size);

/* Returns whether bytes match a pattern, in which '?' stands for any byte. */
bool domt_do_bytes_match_pattern(const char *bytes, const char *pattern, size_t size);

/* Read bytes of a connection, and check that they match this pattern ('?' is any byte). */
bool domt_does_answer_match_pattern(int fd, const char *answer);

/* Connect with small socket buffers, so that waiting bytes wait in the service. */
int domt_connect_with_small_buffers(const domt_service *service);

#endif
