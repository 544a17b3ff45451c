/* Clients of a line protocol in a test kit: a channel whose peer is a script of the test, and
 * probes that ask it. */
#ifndef DOMT_CLIENTS_H
#define DOMT_CLIENTS_H

#include "tests/runtime/network.h"

/* A protocol of lines whose peer answers each line; and the types of messages for its channel. */
extern const domus_pipeline_stage domt_line_stages[];
extern const domus_type *const domt_packets[];
extern const domus_pipeline domt_line_pipeline;

/* A channel that is connected to a peer of the test. */
typedef struct domt_line_client {
    domus_testkit *kit;
    domus_peer_listener *listener;
    domus_peer *peer;
    domus_address channel;
    domus_probe *probe;
} domt_line_client;

/* Make a kit, and connect a channel to a peer of the test. `options` may be NULL. */
void domt_line_client_begin(domt_line_client *client, const domus_pipeline *pipeline,
                            const domus_channel_options *options);

/* Make a kit with a channel that stays when its peer has finished. */
void domt_line_client_begin_staying(domt_line_client *client, const domus_pipeline *pipeline);

/* Check that the channel still works, or has ended, and end the kit. */
void domt_line_client_end(domt_line_client *client);

domus_probe *domt_new_probe(domus_testkit *kit);
void domt_ask_line(domus_probe *probe, domus_address to, const char *text);
void domt_ask_line_within(domus_probe *probe, domus_address to, const char *text,
                          uint64_t timeout_ns);
void domt_expect_line(domus_testkit *kit, domus_probe *probe, const char *text);

/* Check that no actor lives at this address. */
void domt_expect_gone(domus_testkit *kit, domus_address address);

domus_profile domt_profile_of(domus_testkit *kit);

#endif
