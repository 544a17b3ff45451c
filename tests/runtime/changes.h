/* A service whose pipeline changes, in a test kit.
 *
 * A request is a packet "HOW MS TEXT", in lines before the change, and in stuffed packets with a
 * length behind it. It is answered with TEXT:
 *
 *   up      at once, and then the pipeline is changed
 *   pre     at once, but the pipeline is changed before that; `clean` with DOMUS_PIPELINE_CLEAN
 *   fwd     by an actor to which it is forwarded, when the pipeline was changed
 *   later   MS later, when the pipeline was changed; `lclean` with DOMUS_PIPELINE_CLEAN; `behind`
 *           likewise, for one behind which more was decoded
 *   slow    MS later
 *   wrong   at once, behind three changes that are wrong
 *   twice   at once, behind two changes
 *
 * or at once, if HOW is none of these. A line that begins with "!" is alone. */
#ifndef DOMT_CHANGES_H
#define DOMT_CHANGES_H

#include "tests/runtime/pipes.h"

typedef struct domt_changes {
    /* how many stages of domt_counted_stage were opened, and how many closed */
    int opened, closed;
    int open_error;      /* result of the stage's `open` */
    int results[4];      /* results of the changes of the last request that made some */
    domus_channel *last; /* the channel that opened last */
} domt_changes;

extern domt_changes domt_changes_now;

extern const domus_stage domt_counted_stage; /* a byte stage that changes nothing */
extern const domus_type *const domt_change_packets[];
extern const domus_pipeline domt_change_before, domt_change_after;
extern const domus_behaviour domt_change_service;

int domt_change_on_close(domus_stack *stack, void *self, const void *payload);

typedef struct domt_bytes {
    char bytes[4096];
    size_t size;
} domt_bytes;

/* Add the bytes of a packet: domt_add_line() for the pipeline before the change, the other function
 * for the pipeline behind it. */
void domt_add_line(domt_bytes *to, const char *words);
void domt_add_coded(domt_bytes *to, const char *words);

/* Begin a kit with the service and a peer, and end the kit; the end checks that each stage that was
 * opened is closed. */
domus_testkit *domt_change_begin(uint64_t seed, domus_peer **ret_peer);
void domt_change_end(domus_testkit *kit);

void domt_change_send(domus_peer *peer, const domt_bytes *what, size_t from, size_t to);
void domt_change_expect(domus_testkit *kit, domus_peer *peer, const domt_bytes *what);
void domt_change_expect_reset(domus_testkit *kit, domus_peer *peer);

#endif
