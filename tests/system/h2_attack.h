/* Attacks on a server of HTTP/2: a thread of this process keeps connections at their deeds, and
 * makes them anew when the server ends them. A good client beside them times its requests. */
#ifndef DOMT_H2_ATTACK_H
#define DOMT_H2_ATTACK_H

#include "tests/system/h2.h"

#include <pthread.h>
#include <stdatomic.h>

#define DOMT_H2_ATTACKERS_MAX 64u

/* A connection of an attack. */
typedef struct domt_h2_attacker {
    domt_h2 h2;
    bool is_open;
    uint32_t stream;  /* the next one that is not used yet */
    uint32_t round;   /* of this connection, from 0 */
    size_t sent;      /* bytes of `out` that are sent */
    uint64_t next_ns; /* when it connects again */
    domt_h2_bytes out;
} domt_h2_attacker;

typedef struct domt_h2_attack {
    const char *name;
    void (*add)(domt_h2_attacker *attacker); /* adds the frames of a round to `out` */
    uint32_t connections;                    /* 0: 2 */
    uint32_t rounds;                         /* in a second, of each connection; 0: 100 */
    bool is_deaf;                            /* reads nothing behind the settings */
    bool is_ended;                           /* the server has to end the connections */
} domt_h2_attack;

/* An attack that runs, and what came of it. */
typedef struct domt_h2_fight {
    const domt_h2_attack *attack;
    uint16_t port;
    domt_h2_attacker *attackers;
    uint32_t count;
    pthread_t thread;
    _Atomic bool is_over;
    uint64_t bytes;        /* sent */
    _Atomic uint32_t ends; /* connections that the server has ended, by GOAWAY or at once */
    uint32_t resets;       /* RST_STREAM that came */
    uint32_t code;         /* of the last GOAWAY; UINT32_MAX: none came */
    uint64_t first_end_ns; /* from the begin to the first end; 0: there was none */
} domt_h2_fight;

/* Begin an attack; the fields `attack` and `port` are set. End it by the reset of all its
 * connections. The figures may be read from then on. */
void domt_h2_fight_begin(domt_h2_fight *fight);
void domt_h2_fight_end(domt_h2_fight *fight);

typedef struct domt_h2_good {
    double p50_ms, p99_ms, worst_ms;
    uint32_t failed; /* requests that were not answered within 10 s; no more are made then */
} domt_h2_good;

/* Let a good client make `count` requests on its connection, one each millisecond. `stream` is the
 * number of its next one. */
domt_h2_good domt_h2_good_run(domt_h2 *h2, uint32_t *stream, uint32_t count);

#endif
