/* Parts that the tests of outsiders have in common: types, an actor that answers and echoes, and
 * sends that must succeed. */
#ifndef DOMT_OUTSIDERS_H
#define DOMT_OUTSIDERS_H

#include "tests/runtime/running.h"

#include <pthread.h>

extern const domus_type domt_number_type; /* a uint32_t; an ask is answered with the next number */
extern const domus_type domt_other_type;  /* a uint32_t; an ask is forwarded to nobody and fails */
extern const domus_type domt_owner_type;  /* a pointer to a domt_owned */
extern const domus_type domt_poke_type;   /* a domt_poke */

/* Number of payloads of domt_owner_type that were released. */
extern _Atomic uint64_t domt_released;

/* An order to a peer: send `count` numbers from `first` on to `to`, as notices, or as asks. */
typedef struct domt_poke {
    domus_address to;
    uint32_t first;
    uint32_t count;
    bool asks;
} domt_poke;

/* Counts of what peers have seen: answers to their asks, the sum of these, and the last error. */
extern _Atomic uint64_t domt_answers, domt_answer_sum;
extern _Atomic int domt_answer_error;
extern _Atomic uint64_t domt_stale_answers; /* errors among them that were -ESTALE */
extern _Atomic uint64_t domt_downs;         /* events of watches */

/* An actor that answers numbers, sends them back by a notice to their sender, and obeys pokes. A
 * poke with `count` 0 makes it watch `to`. */
extern const domus_behaviour domt_peer;

/* Attach an outsider, and send a poke; both must succeed. */
domus_outsider *domt_attach(domus_system *system);
void domt_poke_peer(domus_system *system, domus_address peer, domus_address to, uint32_t first,
                    uint32_t count, bool asks);

/* Receive a message that must come within 10 s. Returns its payload as a number. */
uint32_t domt_receive_number(domus_outsider *outsider, const domus_type *type,
                             domus_outside_message *ret_message);

#endif
