/* The echo service in a test kit, and peers that connect to it; tests/runtime/network.h has the
 * contract. */
#include "tests/runtime/network.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

static int on_read_echo(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    return domus_channel_write(stack, event->channel, event->bytes);
}

static int on_mount_listen(domus_stack *stack, void *self)
{
    const domus_endpoint *at = self;
    return domus_listen(stack, at, NULL, NULL, NULL);
}

const domus_behaviour domt_net_echo = {.name = "echo",
                                       .kind = DOMUS_CHANNELS,
                                       .state_size = sizeof(domus_endpoint),
                                       .on_mount = on_mount_listen,
                                       .on_read = {on_read_echo, 0}};

void domt_net_make_config(domus_config *ret_config)
{
    domus_config_init(ret_config);
    ret_config->system.threads = 3;
    ret_config->channel.idle_timeout_ns = 0;
    ret_config->channel.send_timeout_ns = 0;
    ret_config->connection.first_byte_timeout_ns = 0;
    ret_config->connection.address_percent = ret_config->connection.loopback_percent = 100;
}

domus_testkit *domt_net_new_echo_kit(const char *at, uint64_t seed)
{
    domus_endpoint endpoint;
    domus_address address;

    ck_assert_int_eq(domus_endpoint_parse(at, &endpoint), 0);
    domus_testkit *kit = domt_kit_new(NULL, seed);
    ck_assert_int_eq(
        domus_outside_spawn_on(domus_testkit_system(kit), 1, &domt_net_echo, &endpoint, &address),
        0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    return kit;
}

domus_peer *domt_net_connect_peer(domus_testkit *kit, const char *to)
{
    domus_peer *peer;
    domt_net_check_ok(kit, domus_peer_connect(kit, to, NULL, &peer));
    return peer;
}

void domt_net_check_ok(domus_testkit *kit, int result)
{
    ck_assert_msg(result == 0, "%d: %s\n%s", result, domus_testkit_error(kit),
                  domus_testkit_trace(kit));
}
