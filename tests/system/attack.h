/* Attacks on an echo service: many connections of one kind, which a thread of this process makes
 * and keeps at their deeds, and a good client beside them that times its round trips.
 *
 * Each attack has a harmless twin: as many connections, which come and go as often and cost the
 * load about as much, but behave. The connections come from many addresses of 127.0.0.0/8. */
#ifndef DOMT_ATTACK_H
#define DOMT_ATTACK_H

#include "tests/support/service.h"

#include <pthread.h>
#include <stdatomic.h>

typedef enum domt_attack_kind {
    DOMT_ATTACK_NONE,  /* no connections at all */
    DOMT_ATTACK_IDLE,  /* connections that never say a word */
    DOMT_ATTACK_SAID,  /* their twin: each gets a message echoed, then it is silent */
    DOMT_ATTACK_DRIP,  /* connections that send a byte of a message now and then */
    DOMT_ATTACK_TALK,  /* their twin: a whole message as often */
    DOMT_ATTACK_DROP,  /* connections that are reset as soon as they are there */
    DOMT_ATTACK_HALF,  /* connections that are reset within a message */
    DOMT_ATTACK_VISIT, /* their twin: connections that get a message echoed, and close */
    DOMT_ATTACK_FLOOD, /* connections that send all they can and read nothing */
} domt_attack_kind;

#define DOMT_ATTACK_MESSAGE 64u /* bytes of a message */

typedef struct domt_attack {
    domt_attack_kind kind;
    uint16_t port;
    uint32_t count;   /* connections that stay; of kinds that come and go, connects in all */
    uint32_t rate;    /* deeds in a second: bytes, messages or connects; 0: as many as it can */
    bool is_fast;     /* connections that stay are made without a pause */
    const char *says; /* the message; NULL: DOMT_ATTACK_MESSAGE bytes for an echo */
    int *fds;         /* the connections that stay; -1: none */
    uint32_t next;    /* the connection that has the next deed */
    uint32_t waiting; /* of a visit: the oldest connection that waits for its echo */
    pthread_t thread;
    _Atomic uint64_t made;    /* connections made */
    _Atomic uint64_t refused; /* connects that failed */
    _Atomic uint64_t deeds;
    _Atomic bool over;       /* the thread is to end */
    _Atomic uint64_t cpu_ns; /* CPU time of the thread, once it has ended */
} domt_attack;

/* Begin an attack; the fields `kind`, `port`, `count`, `rate`, `is_fast` and `says` are set.
 * Returns when the connections that stay are made. */
void domt_attack_begin(domt_attack *attack);

/* Whether all connects of an attack that comes and goes were made. */
bool domt_attack_is_done(const domt_attack *attack);

/* End the attack, and close what it has open: by FIN, or by RST. */
void domt_attack_end(domt_attack *attack, bool reset);

/* A non-blocking connection from an address that `number` chooses; -1 with errno. */
int domt_attack_connect(uint16_t port, uint32_t number);

/* Round trips of a good client. */
typedef struct domt_good {
    double p50_ms;
    double p99_ms;
    double worst_ms;
    double cpu;      /* share of a CPU that the client used */
    uint32_t failed; /* round trips that did not come back whole within 10 s */
} domt_good;

/* Let a good client make `count` round trips on one connection, one each `period_us`. It says `ask`
 * and hears `answer`, or (NULL) messages that are echoed. */
domt_good domt_good_run(int fd, const char *ask, const char *answer, uint32_t count,
                        uint32_t period_us);

/* Connections that the service has now, as its profile tells (SIGUSR1). */
uint64_t domt_service_connections(domt_service *service);

/* Descriptors that the service has open now. */
uint32_t domt_service_descriptors(const domt_service *service);

/* Wait up to `ms` until the service has `connections` connections and `descriptors` descriptors;
 * fail otherwise. */
void domt_service_is_left_with(domt_service *service, uint64_t connections, uint32_t descriptors,
                               uint32_t ms);

#endif
