/* A service in a test kit that changes the pipeline of its channel while requests are served.
 *
 * A request is a packet "HOW MS TEXT". Before the change packets are lines; after the change they
 * have a length in front and are stuffed (domt_stuff_stage). The answer is TEXT. HOW says when the
 * answer is sent, and when the pipeline is changed:
 *
 *   up      the answer is sent at once, and then the pipeline is changed
 *   pre     the pipeline is changed, and then the answer is sent at once
 *   clean   the same as `pre`, with the flag DOMUS_PIPELINE_CLEAN
 *   fwd     the pipeline is changed, and then the request is forwarded to an actor that answers
 *   later   MS later the pipeline is changed, and then the answer is sent
 *   lclean  the same as `later`, with the flag DOMUS_PIPELINE_CLEAN
 *   behind  the same as `later`, for a request behind which more requests were decoded
 *   note    the same as `later`, and a notice with TEXT goes to the peer behind the answer
 *   slow    the answer is sent MS later, without a change
 *   wrong   three changes are tried that must fail, and then the answer is sent at once
 *   twice   the pipeline is changed two times, and then the answer is sent at once
 *
 * With any other HOW the answer is sent at once, without a change. A request that begins with "!"
 * is alone (DOMUS_ALONE). */
#ifndef DOMT_CHANGES_H
#define DOMT_CHANGES_H

#include "tests/runtime/pipes.h"

typedef struct domt_changes {
    /* number of times that a domt_counted_stage was opened, and was closed */
    int opened, closed;
    int open_error; /* result that the `open` of domt_counted_stage returns */
    /* results of the changes of the pipeline that the last such request has made */
    int results[4];
    domus_channel *last; /* the channel of the service that opened last */
} domt_changes;

extern domt_changes domt_changes_now;

/* a byte stage that passes bytes on unchanged and counts how often it is opened and closed */
extern const domus_stage domt_counted_stage;
extern const domus_type *const domt_change_packets[];
extern const domus_pipeline domt_change_before, domt_change_after;
extern const domus_behaviour domt_change_service;

int domt_change_on_close_record(domus_stack *stack, void *self, const void *payload);

typedef struct domt_bytes {
    char bytes[4096];
    size_t size;
} domt_bytes;

/* Append the bytes of a packet with `words`: domt_append_line_packet() as the pipeline before the
 * change expects them, domt_append_coded_packet() as the pipeline after the change does. */
void domt_append_line_packet(domt_bytes *to, const char *words);
void domt_append_coded_packet(domt_bytes *to, const char *words);

/* Make a kit with the service, and connect a peer to it. */
domus_testkit *domt_change_begin_kit(uint64_t seed, domus_peer **ret_peer);

/* Stop and free the kit, and check that each domt_counted_stage that was opened is closed. */
void domt_change_end_kit(domus_testkit *kit);

void domt_change_send_bytes(domus_peer *peer, const domt_bytes *what, size_t from, size_t to);
void domt_change_expect_bytes(domus_testkit *kit, domus_peer *peer, const domt_bytes *what);
void domt_change_expect_reset(domus_testkit *kit, domus_peer *peer);

#endif
