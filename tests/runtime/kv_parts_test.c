/* Parts of examples/kv, each tested alone. The answers of shards to a command for several shards
 * become one answer, and an answer of a wrong type, which may come from another node, is passed on
 * unchanged. Keys that differ in few bytes share buckets and shards no more often than by chance,
 * for any seed. The envoy of a node ends with the exchange for which it works, whether a message
 * was published or not. A list that expires while it is carried to another node is removed there,
 * and a legacy (the keys that a shard leaves on its node when it moves to another one) is kept for
 * a limited time. */
#include "tests/support/suite.h"

#include "examples/kv/kv.h"
#include "examples/kv/legacy.h"
#include "examples/kv/list.h"
#include "examples/kv/nodes.h"
#include "examples/kv/store.h"
#include "examples/kv/wide.h"

#include <domus/testkit.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)
#define SHARDS 2u

/* The global variables of kv that examples/kv/start.c would define. */
struct kv_settings kv_settings = {.answer_max_bytes = 1 << 20};
domus_address kv_shards[KV_SHARDS_MAX];
uint32_t kv_shard_count = SHARDS;

static struct {
    domus_testkit *kit;
    domus_probe *client, *shards[SHARDS];
    domus_address session;
    char keys[SHARDS][8]; /* for each shard, a key that lies on it */
} world;

static int scatter_command_over_shards(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;

    return kv_ask_all_shards_of_command(stack, command,
                                        kv_command_find(domus_resp_argument(command, 0)));
}

static const domus_behaviour session = {
    .name = "session",
    .on = (const domus_on[]){
        {&domus_resp_command_type, scatter_command_over_shards, sizeof(struct kv_scatter)}, {0}}};

static void find_one_key_for_each_shard(void)
{
    for (unsigned i = 0; world.keys[0][0] == '\0' || world.keys[1][0] == '\0'; i++) {
        char name[8];
        domus_slice key;
        snprintf(name, sizeof name, "k%u", i % 1000);
        ck_assert_int_eq(domus_slice_copy(name, strlen(name), &key), 0);
        memcpy(world.keys[kv_shard_of_key(key)], name, sizeof name);
        domus_slice_free(key);
    }
}

/* Begin a command for one key of each shard. */
static void begin_command_for_each_shard(const char *name)
{
    domus_resp_bytes words[1 + SHARDS] = {{name, strlen(name)}};
    domus_resp_command command, got;

    memset(&world, 0, sizeof world);
    kv_shard_count = SHARDS;
    kv_make_index_of_command_names();
    find_one_key_for_each_shard();
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

static void reply_as_shard(uint32_t shard, const char *text)
{
    domus_resp_reply reply = {.values = 1};

    ck_assert_int_eq(domus_slice_copy(text, strlen(text), &reply.bytes), 0);
    ck_assert_int_eq(domus_probe_reply(world.shards[shard], &domus_resp_reply_type, &reply), 0);
}

/* Check that the client gets exactly this text as its reply. */
static void expect_client_got_reply(const char *text)
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
    begin_command_for_each_shard("MGET");
    reply_as_shard(1, "*1\r\n$1\r\nb\r\n");
    reply_as_shard(0, "*1\r\n$-1\r\n");
    expect_client_got_reply("*2\r\n$-1\r\n$1\r\nb\r\n");
}

/* An answer that could not travel comes as an error, which is then the answer to the whole command.
 * If it counted as null, a key that exists would seem to be missing. */
DOMT_TEST(error_of_one_shard_is_answer_to_the_whole_command)
{
    begin_command_for_each_shard("MGET");
    reply_as_shard(0, "*1\r\n$1\r\na\r\n");
    reply_as_shard(1, "-ERR it is too large\r\n");
    expect_client_got_reply("-ERR it is too large\r\n");
    begin_command_for_each_shard("KEYS");
    reply_as_shard(0, "$1\r\na\r\n");
    reply_as_shard(1, "-ERR it is too large\r\n");
    expect_client_got_reply("-ERR it is too large\r\n");
}

/* Another node may send an answer of a wrong type, which is passed on to the client. */
DOMT_TEST(answer_of_wrong_type_from_a_shard_is_passed_on_once)
{
    static const char *const names[] = {"MGET", "KEYS", "DEL"};

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        domus_slice slice;
        begin_command_for_each_shard(names[i]);
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

/* --- hashes ----------------------------------------------------------------------------------- */

#define SEEDS 20000u
#define KEYS  64u
#define MOST  14u /* this many keys share a bucket by chance in one of 10^9 seeds */

struct kind {
    const char *of; /* format of the keys, as for printf(3), with a place for the number */
    unsigned shift; /* number of the lowest bit of the hash that is looked at */
};

static uint32_t most_keys_in_one_bucket(const struct kind *kind)
{
    uint32_t counts[KEYS] = {0}, most = 0;
    char key[64];

    for (uint32_t i = 0; i < KEYS; i++) {
        int size = snprintf(key, sizeof key, kind->of, (int)i);
        uint32_t *count =
            &counts[kv_hash_of_bytes(key, (uint32_t)size) >> kind->shift & (KEYS - 1)];
        (*count)++;
        most = *count > most ? *count : most;
    }
    return most;
}

DOMT_TEST(keys_that_differ_in_little_share_few_buckets)
{
    /* The lowest bits of a key's hash choose the bucket, and the highest bits the shard. */
    static const struct kind kinds[] = {{"f%d", 0},
                                        {"f%d", 58},
                                        {"%d:key", 0},
                                        {"%d:key", 58},
                                        {"a key of many bytes %d", 0},
                                        {"a key of many bytes %d", 58},
                                        {"%d is first in this key", 0},
                                        {"%d is first in this key", 58}};

    for (uint32_t seed = 0; seed < SEEDS / (sizeof kinds / sizeof kinds[0]); seed++) {
        kv_seed_hash_at_random();
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
            ck_assert_uint_lt(most_keys_in_one_bucket(&kinds[i]), MOST);
    }
}

DOMT_TEST(product_from_32_bit_halves_is_the_whole_product)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       UINT32_MAX,
                                       UINT64_C(1) << 32,
                                       UINT64_C(0xffffffff00000001),
                                       UINT64_C(0xe7037ed1a0b428db),
                                       INT64_MAX,
                                       UINT64_MAX};
    static const size_t count = sizeof numbers / sizeof numbers[0];

    /* (2^64 - 1)^2 is 2^128 - 2^65 + 1, and (2^64 - 1) * 2^32 is 2^96 - 2^32, so the high halves
     * are these. */
    ck_assert_uint_eq(kv_high_half_of_product(UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
    ck_assert_uint_eq(kv_high_half_of_product(UINT64_MAX, UINT64_C(1) << 32), UINT32_MAX);
    ck_assert_uint_eq(kv_fold_product(UINT64_MAX, UINT64_MAX), UINT64_MAX);
    for (size_t i = 0; i < count * count; i++) {
        uint64_t a = numbers[i / count], b = numbers[i % count];
        ck_assert_uint_eq(kv_fold_product(a, b), a * b ^ kv_high_half_of_product(a, b));
    }
}

/* --- envoys ----------------------------------------------------------------------------------- */

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

/* --- legacies --------------------------------------------------------------------------------- */

#define ELEMENT  1000u
#define ELEMENTS 400u /* elements of a list, more than one piece of a legacy can have */

static struct {
    domus_testkit *kit;
    domus_probe *probe;
    domus_address porter;
    struct kv_piece_of_legacy piece; /* the piece of the legacy that the porter has sent last */
} carried;

/* Add a list to the store that is longer than one piece of a legacy. */
static void add_long_list_to_store(struct kv_store *store, const char *name, uint64_t expires_ms)
{
    char element[ELEMENT];
    domus_slice key;

    memset(element, 'e', sizeof element);
    ck_assert_int_eq(domus_slice_copy(name, strlen(name), &key), 0);
    struct kv_item *item = kv_table_add(&store->table, &store->memory,
                                        kv_hash_of_bytes(name, (uint32_t)strlen(name)), key, 0);
    ck_assert_ptr_nonnull(item);
    domus_slice_free(key);
    item->list = kv_list_new(&store->memory);
    ck_assert_ptr_nonnull(item->list);
    item->kind = KV_LIST;
    item->expires_ms = expires_ms;
    for (uint32_t i = 0; i < ELEMENTS; i++)
        ck_assert_int_eq(kv_list_add_element_at_end(&store->memory, item->list, KV_TAIL, element,
                                                    sizeof element),
                         0);
}

static void fetch_next_piece_of_legacy(bool looks)
{
    const struct kv_fetch next = {.shard = 0, .looks = looks};

    domus_slice_free(carried.piece.bytes);
    carried.piece = (struct kv_piece_of_legacy){.fence = 0};
    ck_assert_int_eq(domus_probe_ask(carried.probe, carried.porter, &kv_fetch_type, &next), 0);
    ck_assert_int_eq(
        domus_probe_expect(carried.probe, &kv_legacy_piece_type, SECOND, &carried.piece), 0);
}

/* Leave the keys of a shard that has moved, a list that expires in 1 s, and fetch their first piece
 * from a porter (examples/kv/legacy.h). */
static void leave_legacy_to_porter(void)
{
    struct kv_store store = {.memory = {.bytes_max = UINT64_MAX}};

    memset(&carried, 0, sizeof carried);
    kv_shard_count = 1;
    ck_assert_int_eq(domus_testkit_new(NULL, 1, NULL, 0, &carried.kit), 0);
    ck_assert_int_eq(domus_probe_new(carried.kit, &carried.probe), 0);
    add_long_list_to_store(&store, "late", domus_testkit_now_ns(carried.kit) / 1000000 + 1000);
    ck_assert(kv_legacy_make_of_store_in_slot(&store, 7, 0));
    ck_assert_int_eq(
        domus_outside_spawn(domus_testkit_system(carried.kit), &kv_porter, NULL, &carried.porter),
        0);
    fetch_next_piece_of_legacy(true);
    ck_assert_uint_eq(carried.piece.fence, 7);
}

static void drop_legacy_and_end_kit(void)
{
    domus_slice_free(carried.piece.bytes);
    ck_assert_int_eq(domus_probe_send(carried.probe, carried.porter, &kv_drop_type, NULL), 0);
    ck_assert_int_eq(domus_testkit_run(carried.kit), 0);
    domus_testkit_free(carried.kit);
}

/* Returns how often the last piece contains this text. */
static uint32_t count_text_in_piece(const char *text)
{
    const char *at = domus_slice_data(carried.piece.bytes);
    const char *last = at + carried.piece.bytes.size;
    uint32_t times = 0;

    while ((at = memmem(at, (size_t)(last - at), text, strlen(text))) != NULL) {
        at += strlen(text);
        times++;
    }
    return times;
}

DOMT_TEST(list_comes_with_what_is_left_of_its_time)
{
    uint32_t elements = 0;

    leave_legacy_to_porter();
    do {
        fetch_next_piece_of_legacy(false);
        elements += count_text_in_piece("RPUSH");
        ck_assert_uint_eq(count_text_in_piece("PEXPIRE"), carried.piece.ends_all ? 1 : 0);
    } while (!carried.piece.ends_all);
    ck_assert_uint_eq(elements, ELEMENTS);
    ck_assert_uint_eq(count_text_in_piece("PEXPIRE\r\n$4\r\nlate\r\n$4\r\n1000\r\n"), 1);
    drop_legacy_and_end_kit();
}

/* A list expires while its pieces are carried. Its elements that were already carried must be
 * removed, or they would become a list that never expires. */
DOMT_TEST(list_that_expires_while_it_is_carried_is_removed)
{
    uint32_t elements = 0;

    leave_legacy_to_porter();
    do {
        fetch_next_piece_of_legacy(false);
        elements += count_text_in_piece("RPUSH");
    } while (!carried.piece.ends_commands);
    ck_assert(!carried.piece.ends_all);
    ck_assert_uint_ne(elements, 0);
    ck_assert_int_eq(domus_testkit_advance(carried.kit, 2 * SECOND), 0);
    fetch_next_piece_of_legacy(false);
    ck_assert_uint_eq(count_text_in_piece("RPUSH"), 0);
    ck_assert_uint_eq(count_text_in_piece("PEXPIRE\r\n$4\r\nlate\r\n$1\r\n0\r\n"), 1);
    ck_assert(carried.piece.ends_all);
    drop_legacy_and_end_kit();
}

DOMT_TEST(list_that_has_expired_before_does_not_come)
{
    leave_legacy_to_porter();
    ck_assert_int_eq(domus_testkit_advance(carried.kit, 2 * SECOND), 0);
    fetch_next_piece_of_legacy(false);
    ck_assert_uint_eq(carried.piece.bytes.size, 0);
    ck_assert(carried.piece.ends_all);
    drop_legacy_and_end_kit();
}

static int look_for_legacy_in_mount(domus_stack *stack, void *self, const void *payload)
{
    kv_legacy_free_old_or_wake_shards(stack);
    return 0;
}

static const domus_behaviour looker = {
    .name = "looker", .on = (const domus_on[]){{&kv_drop_type, look_for_legacy_in_mount, 0}, {0}}};

/* Leave a legacy that has only a fence at `left_ns`, and look for it at second 60. Returns whether
 * it is still kept. */
static bool is_legacy_kept_at_second_60(uint64_t left_ns)
{
    struct kv_store store = {.memory = {.bytes_max = UINT64_MAX}};
    domus_testkit *kit;
    domus_probe *probe;
    domus_address who;

    ck_assert_int_eq(domus_testkit_new(NULL, 1, NULL, 0, &kit), 0);
    ck_assert_int_eq(domus_probe_new(kit, &probe), 0);
    ck_assert_int_eq(domus_outside_spawn(domus_testkit_system(kit), &looker, NULL, &who), 0);
    ck_assert_int_eq(domus_testkit_advance(kit, 60 * SECOND - domus_testkit_now_ns(kit)), 0);
    ck_assert(kv_legacy_make_of_store_in_slot(&store, 7, left_ns));
    ck_assert_int_eq(domus_probe_send(probe, who, &kv_drop_type, NULL), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    domus_testkit_free(kit);
    ck_assert(!kv_legacy_has_any_porter_it(0));
    struct kv_legacy *legacy = kv_legacy_take_out_of_slot(0);
    kv_legacy_free(legacy);
    return legacy != NULL;
}

/* A legacy is kept a little longer than needed, because the clock of another thread may be
 * ahead. */
DOMT_TEST(legacy_is_kept_longer_than_needed_for_late_clocks)
{
    ck_assert(is_legacy_kept_at_second_60(60 * SECOND + 1));
    ck_assert(is_legacy_kept_at_second_60(60 * SECOND));
    ck_assert(is_legacy_kept_at_second_60(30 * SECOND));
    ck_assert(!is_legacy_kept_at_second_60(30 * SECOND - 1));
}

static int ask_keeper_for_ended_porter(domus_address keeper, uint64_t fence)
{
    /* The ask to the keeper names a porter that has ended. */
    const struct kv_keep keep = {.shard = 0, .fence = fence, .porter = carried.porter};

    ck_assert_int_eq(domus_probe_ask(carried.probe, keeper, &kv_keep_type, &keep), 0);
    return domus_probe_expect_error(carried.probe, fence != 0 ? -ESTALE : -EINVAL, SECOND);
}

/* With no legacy to fetch, a keeper sends one ask and ends, whether there was a porter or not. */
DOMT_TEST(keeper_ends_when_there_is_nothing_to_keep)
{
    leave_legacy_to_porter();
    ck_assert_int_eq(domus_probe_send(carried.probe, carried.porter, &kv_drop_type, NULL), 0);
    ck_assert_int_eq(domus_testkit_run(carried.kit), 0);
    for (uint64_t fence = 0; fence < 2; fence++) {
        domus_address keeper;
        ck_assert_int_eq(
            domus_outside_spawn(domus_testkit_system(carried.kit), &kv_keeper, NULL, &keeper), 0);
        ck_assert_int_eq(ask_keeper_for_ended_porter(keeper, fence), 0);
        ck_assert_int_eq(domus_testkit_run(carried.kit), 0);
        ck_assert_int_eq(domus_probe_send(carried.probe, keeper, &kv_drop_type, NULL), -ESTALE);
    }
    domus_testkit_free(carried.kit);
}

/* If the piece were not asked for again, all keys that were not carried yet would be lost. */
DOMT_TEST(piece_of_legacy_that_found_no_room_is_asked_for_again)
{
    struct kv_piece_of_legacy piece = {.fence = 5};
    domus_testkit *kit;
    domus_probe *porter;
    domus_address keeper;
    struct kv_fetch fetch;

    ck_assert_int_eq(domus_testkit_new(NULL, 1, NULL, 0, &kit), 0);
    ck_assert_int_eq(domus_probe_new(kit, &porter), 0);
    ck_assert_int_eq(domus_outside_spawn(domus_testkit_system(kit), &kv_keeper, NULL, &keeper), 0);
    const struct kv_keep keep = {.fence = 5, .porter = domus_probe_address(porter)};
    ck_assert_int_eq(domus_probe_ask(porter, keeper, &kv_keep_type, &keep), 0);
    ck_assert_int_eq(domus_probe_expect(porter, &kv_fetch_type, SECOND, &fetch), 0);
    ck_assert_int_eq(domus_probe_reply(porter, &kv_legacy_piece_type, &piece), 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(domus_probe_expect(porter, &kv_fetch_type, SECOND, &fetch), 0);
        ck_assert_int_eq(domus_probe_fail(porter, -ENOBUFS), 0);
    }
    ck_assert_int_eq(domus_probe_expect(porter, &kv_fetch_type, SECOND, &fetch), 0);
    piece.ends_commands = piece.ends_all = true;
    ck_assert_int_eq(domus_probe_reply(porter, &kv_legacy_piece_type, &piece), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    struct kv_legacy *legacy = kv_legacy_take_out_of_slot(0);
    ck_assert_ptr_nonnull(legacy);
    ck_assert_uint_eq(legacy->fence, 5);
    kv_legacy_free(legacy);
    domus_testkit_free(kit);
}

DOMT_SUITE(60)
