/* The envoy of a node in kv: it ends with the exchange that it works for, whether anything was
 * published or not. */
#include "tests/support/suite.h"

#include "examples/kv/nodes.h"

#include <domus/testkit.h>

#include <errno.h>

/* The globals that start.c would define. */
struct kv_settings kv_settings;
domus_address kv_shards[KV_SHARDS_MAX];
uint32_t kv_shard_count = 1;

DOMT_TEST(envoy_ends_with_the_exchange_that_has_greeted_it)
{
    domus_testkit *kit;
    domus_probe *exchange, *other;
    domus_address envoy;

    ck_assert_int_eq(domus_testkit_new(NULL, 1, NULL, 0, &kit), 0);
    ck_assert_int_eq(domus_probe_new(kit, &exchange), 0);
    ck_assert_int_eq(domus_probe_new(kit, &other), 0);
    ck_assert_int_eq(domus_outside_spawn(domus_testkit_system(kit), &kv_envoy, NULL, &envoy), 0);
    ck_assert_int_eq(domus_probe_send(exchange, envoy, &kv_greeting_type, NULL), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_int_eq(domus_probe_send(other, envoy, &kv_greeting_type, NULL), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_int_eq(domus_outside_stop(domus_testkit_system(kit), domus_probe_address(exchange)),
                     0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_int_eq(domus_probe_send(other, envoy, &kv_greeting_type, NULL), -ESTALE);
    domus_testkit_free(kit);
}

DOMT_SUITE(20)
