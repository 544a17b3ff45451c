/* The protocols of examples/kv, examples/lines and examples/web, as tests talk them that attack
 * these services: a good client knows its question and the answer, and attackers have a request
 * that they repeat. */
#ifndef DOMT_TALKS_H
#define DOMT_TALKS_H

#include "tests/support/service.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A service, and the dialogue that tests have with it. Answers are counted by their line ends. */
typedef struct domt_protocol {
    const char *name;
    const char *const *arguments;
    const char *ask;     /* of the good client, who knows the answer */
    const char *answer;  /* '?' stands for any byte */
    const char *request; /* with a long answer, if there is one */
    uint32_t lines;      /* of its answer */
    uint32_t last_lines; /* lines more that the last answer of a connection may have in a drain */
} domt_protocol;

/* These services have small buffers in the kernel, so that a flood is over soon. */
extern const domt_protocol domt_kv;    /* with 2 threads and 3 shards */
extern const domt_protocol domt_lines; /* with 2 threads */
extern const domt_protocol domt_web;   /* the same */

/* A line that is too long for a shard has always the same answer. */
#define DOMT_LONG_LINE "a line that is too long for an entry of the table of a shard"

/* The value that the request of kv gets. */
#define DOMT_BIG_BYTES 4000

/* Start the service with further arguments, up to a NULL (NULL: none), and return the connection of
 * the good client. */
int domt_protocol_start(domt_service *service, const domt_protocol *with, const char *const more[]);

/* The bytes that domt_protocol_start() has sent. */
uint64_t domt_protocol_start_bytes(const domt_protocol *with);

/* Whether the good client gets its answer. */
bool domt_is_answered(int fd, const domt_protocol *with);

/* The longest of `count` round trips of the good client. */
double domt_worst_trip_ms(int fd, const domt_protocol *with, int count);

void domt_send_all(int fd, const char *bytes, size_t size);

/* Whether bytes are those of a pattern in which '?' stands for any byte. */
bool domt_is_like(const char *bytes, const char *pattern, size_t size);

/* Read exactly these bytes ('?' is any byte). */
bool domt_hears(int fd, const char *answer);

/* A connection whose own buffers are small, so that what waits, waits in the service. */
int domt_connect_small(const domt_service *service);

#endif
