/* Helpers for tests of outsiders (domus/outsider.h): types of messages, an actor that answers and
 * sends back numbers, and sends that must succeed. */
#ifndef DOMT_OUTSIDERS_H
#define DOMT_OUTSIDERS_H

#include "tests/runtime/running.h"

#include <pthread.h>

/* a number (uint32_t); an ask of this type is answered with the next number */
extern const domus_type domt_number_type;
/* a number (uint32_t); an ask fails, or is answered with a domt_owner_type if it is 0 */
extern const domus_type domt_other_type;
extern const domus_type domt_owner_type; /* payload: a pointer to a domt_owned */
extern const domus_type domt_poke_type;  /* payload: a domt_poke */

/* Number of payloads of domt_owner_type that the library has released. */
extern _Atomic uint64_t domt_released;

/* Tells a peer to send `count` numbers from `first` on to the address `to`: as notices, or as asks
 * if `asks` is true. */
typedef struct domt_poke {
    domus_address to;
    uint32_t first;
    uint32_t count;
    bool asks;
} domt_poke;

/* Counts of all peers: answers to their asks, and the sum of the numbers in these answers.
 * `domt_answer_error` is the last error. */
extern _Atomic uint64_t domt_answers, domt_answer_sum;
extern _Atomic int domt_answer_error;
extern _Atomic uint64_t domt_stale_answers; /* number of answers that were the error -ESTALE */
/* number of events by which peers heard that a watched actor has ended */
extern _Atomic uint64_t domt_downs;

/* Behaviour of the peers of outsiders: a peer answers an ask with a number, sends a number in a
 * notice back to its sender, and obeys a domt_poke. A poke with a `count` of 0 makes the peer watch
 * `to`. */
extern const domus_behaviour domt_peer;

/* Attach an outsider to a system, or send a domt_poke to a peer; both must succeed. */
domus_outsider *domt_attach_outsider(domus_system *system);
void domt_send_poke_to_peer(domus_system *system, domus_address peer, domus_address to,
                            uint32_t first, uint32_t count, bool asks);

/* Receive a message of this type, which must come within 10 s. Returns its payload as a number. */
uint32_t domt_receive_number(domus_outsider *outsider, const domus_type *type,
                             domus_outside_message *ret_message);

#endif
