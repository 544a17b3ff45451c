/* A pool of connections in a test kit; tests/runtime/pools.h has the contract. */
#include "tests/runtime/pools.h"

#include <stdio.h>
#include <string.h>

domus_testkit *domt_pool_kit;
domus_probe *domt_pool_probe;
domus_address domt_pool;

static const domus_pipeline one_under_way = {
    .stages = domt_line_stages, .encodes = domt_packets, .inflight_max = 1};
const domus_behaviour domt_pool_narrow = {
    .name = "line", .kind = DOMUS_CHANNELS, .pipeline = &one_under_way};

domus_peer_listener *domt_pool_listen_as_service(const char *at)
{
    domus_peer_listener *listener;
    domt_net_check_ok(domt_pool_kit, domus_peer_listen(domt_pool_kit, at, 0, &listener));
    return listener;
}

domus_peer *domt_pool_accept_connection(domus_peer_listener *listener)
{
    domus_peer *peer;
    domt_net_check_ok(domt_pool_kit, domus_peer_accept(listener, 20 * DOMT_NET_SECOND, &peer));
    domt_pool_run_kit();
    return peer;
}

void domt_pool_begin_kit(void)
{
    domt_pool_kit = domt_net_new_echo_kit("10.0.0.3:80", 7);
    domt_pool_probe = domt_new_probe(domt_pool_kit);
}

void domt_pool_open(const char *to, const domus_pool_options *options)
{
    ck_assert_int_eq(
        domus_outside_pool_open(domus_testkit_system(domt_pool_kit), to, options, &domt_pool), 0);
    domt_net_check_ok(domt_pool_kit, domus_testkit_run(domt_pool_kit));
}

/* Begin with a service at 10.0.0.9:1 and a pool of connections to it. Returns the listener of the
 * service. */
domus_peer_listener *domt_pool_begin_with_service(const domus_pool_options *options)
{
    domt_pool_begin_kit();
    domus_peer_listener *listener = domt_pool_listen_as_service("10.0.0.9:1");
    domt_pool_open("10.0.0.9:1", options);
    return listener;
}

void domt_pool_end_kit(void)
{
    domt_net_check_ok(domt_pool_kit, domus_probe_expect_nothing(domt_pool_probe, DOMT_NET_SECOND));
    domus_testkit_free(domt_pool_kit);
}

void domt_pool_ask_line(const char *text)
{
    domt_ask_line(domt_pool_probe, domt_pool, text);
    domt_net_check_ok(domt_pool_kit, domus_testkit_run(domt_pool_kit));
}

void domt_pool_expect_service_got(domus_peer *peer, const char *text)
{
    domt_net_check_ok(domt_pool_kit, domus_peer_expect(peer, text, strlen(text), DOMT_NET_SECOND));
}

void domt_pool_service_send(domus_peer *peer, const char *text)
{
    domt_net_check_ok(domt_pool_kit, domus_peer_send(peer, text, strlen(text)));
}

void domt_pool_expect_error(int error)
{
    domt_net_check_ok(domt_pool_kit,
                      domus_probe_expect_error(domt_pool_probe, error, 5 * DOMT_NET_SECOND));
}

void domt_pool_expect_answer(const char *text)
{
    domt_expect_line(domt_pool_kit, domt_pool_probe, text);
}

void domt_pool_answer_and_expect(domus_peer *peer, const char *answer)
{
    char line[64];
    (void)snprintf(line, sizeof line, "%s\n", answer);
    domt_pool_service_send(peer, line);
    domt_pool_expect_answer(answer);
}

void domt_pool_serve_ask(domus_peer *peer, const char *asked, const char *answer)
{
    char line[64];
    (void)snprintf(line, sizeof line, "%s\n", asked);
    domt_pool_expect_service_got(peer, line);
    domt_pool_answer_and_expect(peer, answer);
}

void domt_pool_run_kit(void)
{
    domt_net_check_ok(domt_pool_kit, domus_testkit_run(domt_pool_kit));
}

void domt_pool_pass_time(uint64_t ns)
{
    domt_net_check_ok(domt_pool_kit, domus_testkit_advance(domt_pool_kit, ns));
}

domus_pool_status domt_pool_ask_status(void)
{
    domus_pool_status status;
    domus_probe *other = domt_new_probe(domt_pool_kit);
    ck_assert_int_eq(domus_probe_ask(other, domt_pool, &domus_pool_look_type, NULL), 0);
    domt_net_check_ok(domt_pool_kit,
                      domus_probe_expect(other, &domus_pool_status_type, DOMT_NET_SECOND, &status));
    return status;
}
