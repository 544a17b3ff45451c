/* A channel of a line protocol with a scripted peer, in a test kit; tests/runtime/clients.h has the
 * contract. */
#include "tests/runtime/clients.h"
#include "tests/runtime/running.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

static const domus_line_options as_client = {.role = DOMUS_ROLE_CLIENT};
const domus_pipeline_stage domt_line_stages[] = {{&domus_line_stage, &as_client}, {NULL, NULL}};
const domus_type *const domt_packets[] = {&domus_packet_type, NULL};
const domus_pipeline domt_line_pipeline = {.stages = domt_line_stages, .encodes = domt_packets};

static const domus_type order_type = {.name = "order"};
static domus_behaviour line_behaviour;
static const domus_channel_options *line_options;
static domus_connected connected;
static int result;

static int on_connected_record_channel(domus_stack *stack, void *self, const domus_answer *answer)
{
    result = answer->error;
    if (answer->error == 0)
        memcpy(&connected, answer->payload, sizeof connected);
    return 0;
}

static int on_order_connect(domus_stack *stack, void *self, const void *payload)
{
    const domus_connect_options options = {.behaviour = &line_behaviour, .channel = line_options};

    return domus_connect(stack, "10.0.0.9:6000", &options, on_connected_record_channel);
}

static const domus_on rows[] = {{&order_type, on_order_connect, 0}, {0}};
static const domus_behaviour dialler = {.name = "dialler", .kind = DOMUS_CHANNELS, .on = rows};

/* Make a test kit, and connect a channel with the behaviour `line_behaviour` to a peer. */
static void begin_client_with_options(domt_line_client *client,
                                      const domus_channel_options *options)
{
    domus_address address;

    line_options = options;
    result = 1;
    client->kit = domt_net_new_echo_kit("10.0.0.3:80", 7);
    domt_net_check_ok(client->kit,
                      domus_peer_listen(client->kit, "10.0.0.9:6000", 0, &client->listener));
    domus_system *system = domus_testkit_system(client->kit);
    ck_assert_int_eq(domus_outside_spawn(system, &dialler, NULL, &address), 0);
    ck_assert_int_eq(domus_outside_notice(system, address, &order_type, NULL), 0);
    domt_net_check_ok(client->kit,
                      domus_peer_accept(client->listener, DOMT_NET_SECOND, &client->peer));
    domt_net_check_ok(client->kit, domus_testkit_run(client->kit));
    ck_assert_int_eq(result, 0);
    client->channel = connected.channel;
    client->probe = domt_new_probe(client->kit);
}

void domt_line_client_begin(domt_line_client *client, const domus_pipeline *pipeline,
                            const domus_channel_options *options)
{
    line_behaviour =
        (domus_behaviour){.name = "line", .kind = DOMUS_CHANNELS, .pipeline = pipeline};
    begin_client_with_options(client, options);
}

void domt_line_client_begin_ignoring_fin(domt_line_client *client, const domus_pipeline *pipeline)
{
    line_behaviour = (domus_behaviour){.name = "line",
                                       .kind = DOMUS_CHANNELS,
                                       .pipeline = pipeline,
                                       .on_end = {domt_ignore_message, 0}};
    begin_client_with_options(client, NULL);
}

void domt_line_client_end(domt_line_client *client)
{
    domt_net_check_ok(client->kit, domus_probe_expect_nothing(client->probe, DOMT_NET_SECOND));
    domus_testkit_free(client->kit);
}

domus_probe *domt_new_probe(domus_testkit *kit)
{
    domus_probe *probe = NULL;

    domt_net_check_ok(kit, domus_probe_new(kit, &probe));
    return probe;
}

void domt_ask_line(domus_probe *probe, domus_address to, const char *text)
{
    domt_ask_line_within(probe, to, text, 0);
}

void domt_ask_line_within(domus_probe *probe, domus_address to, const char *text,
                          uint64_t timeout_ns)
{
    domus_packet line;

    ck_assert_int_eq(domus_slice_copy(text, strlen(text), &line.bytes), 0);
    if (timeout_ns == 0)
        ck_assert_int_eq(domus_probe_ask(probe, to, &domus_packet_type, &line), 0);
    else
        ck_assert_int_eq(domus_probe_ask_within(probe, to, &domus_packet_type, &line, timeout_ns),
                         0);
}

void domt_expect_line(domus_testkit *kit, domus_probe *probe, const char *text)
{
    domus_packet line;

    domt_net_check_ok(kit, domus_probe_expect(probe, &domus_packet_type, DOMT_NET_SECOND, &line));
    ck_assert_msg(domus_slice_equals(line.bytes, text, strlen(text)), "%.*s is not %s",
                  (int)line.bytes.size, domus_slice_data(line.bytes), text);
    domus_slice_free(line.bytes);
}

void domt_expect_actor_gone(domus_testkit *kit, domus_address address)
{
    domus_probe *probe = domt_new_probe(kit);

    domt_ask_line(probe, address, "x");
    domt_net_check_ok(kit, domus_probe_expect_error(probe, -ESTALE, DOMT_NET_SECOND));
}

domus_profile domt_profile_of_kit(domus_testkit *kit)
{
    domus_profile sum = {0}, one;
    uint64_t late = 0;

    for (uint32_t thread = 0; domus_system_profile(domus_testkit_system(kit), thread, &one) == 0;
         thread++) {
        late += one.late_replies;
        sum = one;
    }
    sum.late_replies = late;
    return sum;
}
