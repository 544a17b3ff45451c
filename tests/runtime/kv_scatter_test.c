/* Commands of kv for several shards: what the shards answer becomes one answer, and an answer that
 * is none, which may come from another node, is passed on as it is. */
#include "tests/support/suite.h"

#include "examples/kv/kv.h"

#include <domus/testkit.h>

#include <stdio.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)
#define SHARDS 2u

/* The globals that start.c would define. */
struct kv_settings kv_settings = {.answer_max_bytes = 1 << 20};
domus_address kv_shards[KV_SHARDS_MAX];
uint32_t kv_shard_count = SHARDS;

static struct {
    domus_testkit *kit;
    domus_probe *client, *shards[SHARDS];
    domus_address session;
    char keys[SHARDS][8]; /* a key of each shard */
} world;

static int scatter(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;

    return kv_scatter(stack, command, kv_command_find(domus_resp_argument(command, 0)));
}

static const domus_behaviour session = {
    .name = "session",
    .on = (const domus_on[]){{&domus_resp_command_type, scatter, sizeof(struct kv_scatter)},
                             {NULL, NULL, 0}},
};

static void find_keys(void)
{
    for (unsigned i = 0; world.keys[0][0] == '\0' || world.keys[1][0] == '\0'; i++) {
        char name[8];
        domus_slice key;
        snprintf(name, sizeof name, "k%u", i % 1000);
        ck_assert_int_eq(domus_slice_copy(name, strlen(name), &key), 0);
        memcpy(world.keys[kv_shard_of(key)], name, sizeof name);
        domus_slice_free(key);
    }
}

/* Ask for the keys of both shards. */
static void begin(const char *name)
{
    domus_resp_bytes words[1 + SHARDS] = {{name, strlen(name)}};
    domus_resp_command command, got;

    memset(&world, 0, sizeof world);
    kv_commands_begin();
    find_keys();
    ck_assert_int_eq(domus_testkit_new(NULL, 1, NULL, 0, &world.kit), 0);
    ck_assert_int_eq(domus_probe_new(world.kit, &world.client), 0);
    for (uint32_t i = 0; i < SHARDS; i++) {
        ck_assert_int_eq(domus_probe_new(world.kit, &world.shards[i]), 0);
        kv_shards[i] = domus_probe_address(world.shards[i]);
        words[1 + i] = (domus_resp_bytes){world.keys[i], strlen(world.keys[i])};
    }
    ck_assert_int_eq(
        domus_outside_spawn(domus_testkit_system(world.kit), &session, NULL, &world.session), 0);
    ck_assert_int_eq(domus_resp_command_make(words, 1 + SHARDS, &command), 0);
    ck_assert_int_eq(
        domus_probe_ask(world.client, world.session, &domus_resp_command_type, &command), 0);
    for (uint32_t i = 0; i < SHARDS; i++) {
        ck_assert_int_eq(
            domus_probe_expect(world.shards[i], &domus_resp_command_type, SECOND, &got), 0);
        domus_resp_command_type.release(&got);
    }
}

static void reply(uint32_t shard, const char *text)
{
    domus_resp_reply reply = {.values = 1};

    ck_assert_int_eq(domus_slice_copy(text, strlen(text), &reply.bytes), 0);
    ck_assert_int_eq(domus_probe_reply(world.shards[shard], &domus_resp_reply_type, &reply), 0);
}

/* The client gets this, and that is all. */
static void end(const char *text)
{
    domus_resp_reply reply;

    ck_assert_int_eq(domus_probe_expect(world.client, &domus_resp_reply_type, SECOND, &reply), 0);
    ck_assert_msg(domus_slice_equals(reply.bytes, text, strlen(text)), "%.*s",
                  (int)reply.bytes.size, domus_slice_data(reply.bytes));
    domus_slice_free(reply.bytes);
    domus_testkit_free(world.kit);
}

DOMT_TEST(elements_come_in_the_order_of_the_keys)
{
    begin("MGET");
    reply(1, "*1\r\n$1\r\nb\r\n");
    reply(0, "*1\r\n$-1\r\n");
    end("*2\r\n$-1\r\n$1\r\nb\r\n");
}

/* Else a key that is there would be null. */
DOMT_TEST(answer_that_could_not_travel_is_an_error_of_the_whole)
{
    begin("MGET");
    reply(0, "*1\r\n$1\r\na\r\n");
    reply(1, "-ERR it is too large\r\n");
    end("-ERR it is too large\r\n");
    begin("KEYS");
    reply(0, "$1\r\na\r\n");
    reply(1, "-ERR it is too large\r\n");
    end("-ERR it is too large\r\n");
}

/* Another node may be wrong. */
DOMT_TEST(answer_of_another_type_is_passed_on_once)
{
    static const char *const names[] = {"MGET", "KEYS", "DEL"};

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        domus_slice slice;
        begin(names[i]);
        ck_assert_int_eq(domus_slice_copy("other", 5, &slice), 0);
        ck_assert_int_eq(domus_probe_reply(world.shards[0], &domus_slice_type, &slice), 0);
        ck_assert_int_eq(
            domus_probe_reply(world.shards[1], &domus_resp_integer_type, &(domus_resp_integer){1}),
            0);
        ck_assert_int_eq(domus_testkit_run(world.kit), 0);
        ck_assert_int_eq(domus_probe_expect(world.client, &domus_slice_type, SECOND, &slice), 0);
        ck_assert(domus_slice_equals(slice, "other", 5));
        domus_slice_free(slice);
        domus_testkit_free(world.kit);
    }
}

DOMT_SUITE(20)
