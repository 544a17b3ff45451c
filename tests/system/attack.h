/* Attacks on an echo service: many connections of one kind, which a thread of this process makes
 * and keeps busy, and a good client beside them that measures its round trips.
 *
 * Each attack has a harmless twin: as many connections, which come and go as often and cost the
 * load about as much, but behave normally. The connections come from many addresses of
 * 127.0.0.0/8. */
#ifndef DOMT_ATTACK_H
#define DOMT_ATTACK_H

#include "tests/support/service.h"

#include <pthread.h>
#include <stdatomic.h>

typedef enum domt_attack_kind {
    DOMT_ATTACK_NONE,  /* no connections at all */
    DOMT_ATTACK_IDLE,  /* connections that never send a byte */
    DOMT_ATTACK_SAID,  /* the twin of IDLE: each gets a message echoed, and is then silent */
    DOMT_ATTACK_DRIP,  /* connections that send one byte of a message now and then */
    DOMT_ATTACK_TALK,  /* the twin of DRIP: connections that send whole messages as often */
    DOMT_ATTACK_DROP,  /* connections that are reset as soon as they are there */
    DOMT_ATTACK_HALF,  /* connections that are reset within a message */
    DOMT_ATTACK_VISIT, /* the twin of HALF: connections that get a message echoed, and close */
    DOMT_ATTACK_FLOOD, /* connections that send all they can and read nothing */
} domt_attack_kind;

#define DOMT_ATTACK_MESSAGE 64u /* bytes of a message that is echoed */

typedef struct domt_attack {
    domt_attack_kind kind;
    uint16_t port;
    /* connections that stay; or the number of connects, for kinds that come and go */
    uint32_t count;
    uint32_t rate; /* actions (bytes, messages or connects) in a second; 0: as many as possible */
    bool is_fast;  /* true: connections that stay are made without a pause */
    /* the message of each connection; NULL: DOMT_ATTACK_MESSAGE bytes, which are echoed */
    const char *says;
    int *fds;         /* descriptors of the connections that stay; -1: closed */
    uint32_t next;    /* index of the connection that acts next */
    uint32_t waiting; /* index of the oldest visit that waits for its echo */
    pthread_t thread;
    _Atomic uint64_t made;    /* number of connections that were made */
    _Atomic uint64_t refused; /* connects that failed */
    _Atomic uint64_t deeds;
    _Atomic bool over;       /* true: the attack's thread shall end */
    _Atomic uint64_t cpu_ns; /* CPU time that the thread has used, valid once it has ended */
} domt_attack;

/* Begin an attack; the fields `kind`, `port`, `count`, `rate`, `is_fast` and `says` are set.
 * Returns when the connections that stay are made. */
void domt_attack_begin(domt_attack *attack);

/* Returns whether an attack of a kind that comes and goes has made all its connects. */
bool domt_attack_is_done(const domt_attack *attack);

/* End the attack, and close what it has open: by FIN, or by RST. */
void domt_attack_end(domt_attack *attack, bool reset);

/* Make a non-blocking connection from an address that `number` chooses. Returns -1 with errno if
 * that fails. */
int domt_attack_connect_from_address(uint16_t port, uint32_t number);

/* The round trips of a good client, as domt_measure_good_client() has measured them. */
typedef struct domt_good {
    double p50_ms;
    double p99_ms;
    double worst_ms;
    double cpu;      /* share of a CPU that the good client's thread used */
    uint32_t failed; /* round trips that did not end within 10 s */
} domt_good;

/* Let a good client make `count` round trips on one connection, one each `period_us`. It sends
 * `ask` and expects `answer`, or, if these are NULL, messages that are echoed. */
domt_good domt_measure_good_client(int fd, const char *ask, const char *answer, uint32_t count,
                                   uint32_t period_us);

/* Returns the connections that the service has now, by its profile (SIGUSR1). */
uint64_t domt_service_count_connections(domt_service *service);

/* Returns the descriptors that the service has open now. */
uint32_t domt_service_count_descriptors(const domt_service *service);

/* Wait up to `ms` until the service has `connections` connections and `descriptors` descriptors;
 * fail otherwise. */
void domt_service_wait_until_counts_fall_to(domt_service *service, uint64_t connections,
                                            uint32_t descriptors, uint32_t ms);

#endif
