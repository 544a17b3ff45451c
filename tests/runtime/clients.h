/* A client of a line protocol in a test kit: its channel is connected to a peer that is a script of
 * the test, and probes of the test ask the channel. */
#ifndef DOMT_CLIENTS_H
#define DOMT_CLIENTS_H

#include "tests/runtime/network.h"

/* The stages, the types of messages and the pipeline of a line protocol, for a client whose peer
 * answers each line with a line. */
extern const domus_pipeline_stage domt_line_stages[];
extern const domus_type *const domt_packets[];
extern const domus_pipeline domt_line_pipeline;

/* A test kit with a channel that is connected to a scripted peer of the test. */
typedef struct domt_line_client {
    domus_testkit *kit;
    domus_peer_listener *listener;
    domus_peer *peer;
    domus_address channel;
    domus_probe *probe;
} domt_line_client;

/* Make a test kit, and connect a channel with this pipeline to a scripted peer. `options` may be
 * NULL. */
void domt_line_client_begin(domt_line_client *client, const domus_pipeline *pipeline,
                            const domus_channel_options *options);

/* Make a test kit as domt_line_client_begin() does, with a channel that stays open when its peer
 * has sent FIN. */
void domt_line_client_begin_ignoring_fin(domt_line_client *client, const domus_pipeline *pipeline);

/* Check that the channel either still answers or has ended properly, and free the test kit. */
void domt_line_client_end(domt_line_client *client);

domus_probe *domt_new_probe(domus_testkit *kit);
void domt_ask_line(domus_probe *probe, domus_address to, const char *text);
void domt_ask_line_within(domus_probe *probe, domus_address to, const char *text,
                          uint64_t timeout_ns);
void domt_expect_line(domus_testkit *kit, domus_probe *probe, const char *text);

/* Check that no actor lives at this address: an ask to it fails. */
void domt_expect_actor_gone(domus_testkit *kit, domus_address address);

domus_profile domt_profile_of_kit(domus_testkit *kit);

#endif
