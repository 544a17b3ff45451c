/* A node of a simulated cluster that hosts no grains, with a user who sends to them, and a stranger
 * beside it, which the test plays: it has parts of grains as the store says so, and may return what
 * comes, confirm late or never, and doubt. */
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
#define DOMT_QUEUED   65536u /* bytes that may be on the way to the stranger */

/* A message to a grain, as it came to the stranger. */
typedef struct domt_parcel_heard {
    domi_wire_envelope envelope;
    unsigned char rest[4096];
    uint32_t number;
} domt_parcel_heard;

/* All that the test knows. There are grains of two keys, which lie in two parts. */
typedef struct domt_holding {
    domus_testkit_cluster *sim;
    uint32_t number; /* of the real node */
    domus_cluster *cluster;
    domus_address user;
    int error; /* of the user's last ask; 1: it has not ended */
    uint32_t parts[2];

    /* The stranger. While it `is_deaf` it confirms nothing more. */
    domt_member stranger;
    domi_link link;
    char subject[64];
    uint64_t confirms;
    bool is_deaf, returns, answers_fences;

    /* Counts of what the stranger has heard, and what the real node has read from the store. */
    domt_parcel_heard heard[DOMT_HEARD]; /* for the first key */
    uint32_t count;
    uint32_t bytes;                  /* of the last message for the other key, with its envelope */
    uint32_t answers[DOMI_TO_KINDS]; /* what else has come, by its kind */
    domi_wire_envelope last;         /* of these */
    uint32_t reads[DOMT_PARTS];      /* of the entry of a part */
} domt_holding;

extern domt_holding domt_holder;

void domt_holder_begin(void);
void domt_holder_end(void);

/* Let time pass, in steps of 10 ms, with which the stranger says what it has to say. */
void domt_holder_pass(uint64_t time_ns);

/* Let the user send `count` notices for a key, or one ask, with numbers from `number` on, and of so
 * many bytes (3000 at most); or cancel its ask. 10 ms pass. */
typedef enum domt_holder_verb { DOMT_NOTICE, DOMT_ASK, DOMT_CANCEL } domt_holder_verb;
void domt_holder_order(domt_holder_verb verb, uint32_t key, uint32_t number, uint32_t count,
                       uint32_t size);

/* The stranger says this, or that it does not take what came, with the next step. */
void domt_holder_add(const domi_wire_envelope *envelope);
void domt_holder_give_back(const domi_wire_envelope *envelope);

/* Let the store say that the stranger has the part of a key. */
void domt_holder_take_part(uint32_t key);

/* Let the stranger be deaf, and as many bytes be on the way to it that one large message more fills
 * it; it needs the part of the second key. */
void domt_holder_fill(void);

/* How many messages wait for their parts. */
uint64_t domt_holder_waiting(void);

/* Hold that messages with these numbers have come for the first key. */
void domt_hold_heard(const uint32_t *numbers, uint32_t count);
#define DOMT_HOLD_HEARD(...)                                                                       \
    domt_hold_heard((const uint32_t[]){__VA_ARGS__},                                               \
                    sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

#endif
