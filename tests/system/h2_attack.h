/* Attacks on a server of HTTP/2: a thread of this process keeps connections busy, and makes new
 * ones when the server ends them. A good client beside them measures its requests. */
#ifndef DOMT_H2_ATTACK_H
#define DOMT_H2_ATTACK_H

#include "tests/system/h2.h"

#include <pthread.h>
#include <stdatomic.h>

#define DOMT_H2_ATTACKERS_MAX 64u

/* One connection of an attack. */
typedef struct domt_h2_attacker {
    domt_h2 h2;
    bool is_open;
    uint32_t stream;  /* number of the next unused stream */
    uint32_t round;   /* number of the present round on this connection, from 0 */
    size_t sent;      /* bytes of `out` that were already sent */
    uint64_t next_ns; /* if the connection is closed: time of the next connect */
    domt_h2_bytes out;
} domt_h2_attacker;

typedef struct domt_h2_attack {
    const char *name;
    /* adds the frames of one round to the attacker's `out` */
    void (*add)(domt_h2_attacker *attacker);
    uint32_t connections; /* number of the attack's connections; 0: 2 */
    uint32_t rounds;      /* rounds of each connection in a second; 0: 100 */
    bool is_deaf;         /* true: reads nothing after the settings */
    bool is_ended;        /* true: the server has to end the attack's connections */
} domt_h2_attack;

/* An attack that runs, and its results. */
typedef struct domt_h2_fight {
    const domt_h2_attack *attack;
    uint16_t port;
    domt_h2_attacker *attackers;
    uint32_t count;
    pthread_t thread;
    _Atomic bool is_over;
    uint64_t bytes;        /* bytes that the attack has sent */
    _Atomic uint32_t ends; /* connections that the server has ended, by GOAWAY or by closing */
    uint32_t resets;       /* number of RST_STREAM frames that the attack has received */
    uint32_t code;         /* error code of the last GOAWAY; UINT32_MAX: none came */
    /* time from the begin to the first end of a connection; 0: none has ended */
    uint64_t first_end_ns;
} domt_h2_fight;

/* Begin an attack; the fields `attack` and `port` are set. domt_h2_end_attack() resets all its
 * connections; the figures may be read afterwards. */
void domt_h2_begin_attack(domt_h2_fight *fight);
void domt_h2_end_attack(domt_h2_fight *fight);

typedef struct domt_h2_good {
    double p50_ms, p99_ms, worst_ms;
    uint32_t failed; /* requests that were not answered within 10 s; none are made after that */
} domt_h2_good;

/* Let a good client make `count` requests on its own connection, one each millisecond. `stream` is
 * the number of the next stream there. */
domt_h2_good domt_h2_measure_good_client(domt_h2 *h2, uint32_t *stream, uint32_t count);

#endif
