/* Test kits (domus_testkit) and peers for tests in which each step must succeed. */
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <string.h>

#define SECOND UINT64_C(1000000000)
#define SHOWN  2000u /* bytes of a wrong answer that are shown in the message of a failed test */

domus_testkit *domt_kit_new(const domus_config *config, uint64_t seed)
{
    domus_testkit *kit = NULL;
    char error[256] = "";

    ck_assert_msg(domus_testkit_new(config, seed, error, sizeof error, &kit) == 0, "%s", error);
    return kit;
}

domus_testkit *domt_kit_new_listening(const domus_config *config, const char *name,
                                      const char *address, uint64_t seed)
{
    domus_listener_config listener = {.name = name, .address = address, .backlog = 128};
    domus_config copy = *config;

    copy.listeners = &listener;
    copy.listener_count = 1;
    return domt_kit_new(&copy, seed);
}

domus_peer *domt_kit_connect_peer(domus_testkit *kit, const char *address)
{
    domus_peer *peer;

    ck_assert_int_eq(domus_peer_connect(kit, address, NULL, &peer), 0);
    ck_assert_int_eq(domus_peer_expect_connected(peer, SECOND), 0);
    return peer;
}

void domt_kit_peer_send(domus_peer *peer, const char *text)
{
    ck_assert_int_eq(domus_peer_send(peer, text, strlen(text)), 0);
}

void domt_kit_peer_expect(domus_testkit *kit, domus_peer *peer, const char *text)
{
    int error = domus_peer_expect(peer, text, strlen(text), 60 * SECOND);
    size_t size;
    const char *got = domus_peer_got(peer, &size);

    ck_assert_msg(error == 0, "%s, instead of: %s\ngot: %.*s", domus_testkit_error(kit), text,
                  (int)(size < SHOWN ? size : SHOWN), got);
}
