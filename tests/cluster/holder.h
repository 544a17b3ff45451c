/* A node of a simulated cluster that hosts no grains, with a user who sends messages to grains, and
 * a second node, the stranger, which the test plays. The store says which parts the stranger has;
 * the stranger may return messages, confirm them late or never, and doubt parts. */
#ifndef DOMT_CLUSTER_HOLDER_H
#define DOMT_CLUSTER_HOLDER_H

#include "protocols/cluster/link.h"
#include "tests/cluster/broker.h"

#include <domus/cluster.h>

#define DOMT_STRANGER UINT64_C(0x4142434445464748)
#define DOMT_HEARD    64u
#define DOMT_PARTS    256u
#define DOMT_DOWN_NS  (2 * DOMT_SECOND)
#define DOMT_BEAT_NS  (100 * DOMT_MS)
#define DOMT_QUEUED   65536u /* largest number of bytes that may be under way to the stranger */

/* A message to a grain, as the stranger has received it. */
typedef struct domt_parcel_heard {
    domi_wire_envelope envelope;
    unsigned char rest[4096];
    uint32_t number;
} domt_parcel_heard;

/* The state of a test. There are grains of two keys, which lie in two parts. */
typedef struct domt_holding {
    domus_testkit_cluster *sim;
    uint32_t number; /* number of the real node in the simulated cluster */
    domus_cluster *cluster;
    domus_address user;
    int error; /* error of the user's last ask; 1: the ask has not ended */
    uint32_t parts[2];

    /* The stranger; while `is_deaf` is set, it confirms no message. */
    domt_member stranger;
    domi_link link;
    char subject[64];
    uint64_t confirms;
    bool is_deaf, returns, answers_fences;

    /* Messages that the stranger has received, and reads of the store by the real node. */
    domt_parcel_heard heard[DOMT_HEARD]; /* messages for the grain of the first key */
    uint32_t count;
    /* bytes of the last message for the grain of the second key, with its envelope */
    uint32_t bytes;
    /* number of other envelopes that the stranger has received, by kind */
    uint32_t answers[DOMI_TO_KINDS];
    domi_wire_envelope last;    /* the last of these other envelopes */
    uint32_t reads[DOMT_PARTS]; /* number of the real node's reads of each part's entry */
} domt_holding;

extern domt_holding domt_holder;

void domt_holder_begin_world(void);
void domt_holder_end_world(void);

/* Advance the time in steps of 10 ms. In each step the stranger sends the envelopes that are
 * queued. */
void domt_holder_advance_and_send(uint64_t time_ns);

/* Let the user send `count` notices, or one ask, to a key, with numbers from `number` on and `size`
 * bytes each (3000 at most); or cancel its ask. Advances the time by 10 ms. */
typedef enum domt_holder_verb { DOMT_NOTICE, DOMT_ASK, DOMT_CANCEL } domt_holder_verb;
void domt_holder_order_user(domt_holder_verb verb, uint32_t key, uint32_t number, uint32_t count,
                            uint32_t size);

/* Queue an envelope that the stranger sends in the next step; or let it return a message that it
 * has received. */
void domt_holder_queue_envelope(const domi_wire_envelope *envelope);
void domt_holder_queue_returned_message(const domi_wire_envelope *envelope);

/* Write into the store that the stranger has the part of a key. */
void domt_holder_give_part_to_stranger(uint32_t key);

/* Make the stranger deaf, and fill the link to it, so that no further large message fits. The
 * stranger needs the part of the second key for that. */
void domt_holder_fill_link_to_stranger(void);

/* Returns how many messages of the real node wait for their parts. */
uint64_t domt_holder_count_waiting_messages(void);

/* Check that messages with exactly these numbers have come for the first key, in this order. */
void domt_holder_check_heard_numbers(const uint32_t *numbers, uint32_t count);
#define DOMT_HOLD_HEARD(...)                                                                       \
    domt_holder_check_heard_numbers((const uint32_t[]){__VA_ARGS__},                               \
                                    sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

#endif
