/* Legacies of kv: what expires while it is carried is gone where it comes to, and a legacy is kept
 * until it is old. */
#include "tests/support/suite.h"

#include "examples/kv/legacy.h"
#include "examples/kv/list.h"

#include <domus/testkit.h>

#include <errno.h>
#include <string.h>

#define SECOND   UINT64_C(1000000000)
#define ELEMENT  1000u
#define ELEMENTS 400u /* more than one piece has */

/* The globals that start.c would define. */
struct kv_settings kv_settings;
domus_address kv_shards[KV_SHARDS_MAX];
uint32_t kv_shard_count = 1;

static struct {
    domus_testkit *kit;
    domus_probe *probe;
    domus_address porter;
    struct kv_piece_of_legacy piece; /* the last one */
} world;

/* Add a list that is longer than a piece. */
static void add_list(struct kv_store *store, const char *name, uint64_t expires_ms)
{
    char element[ELEMENT];
    domus_slice key;

    memset(element, 'e', sizeof element);
    ck_assert_int_eq(domus_slice_copy(name, strlen(name), &key), 0);
    struct kv_item *item =
        kv_table_add(&store->table, &store->memory, kv_hash(name, (uint32_t)strlen(name)), key, 0);
    ck_assert_ptr_nonnull(item);
    domus_slice_free(key);
    item->list = kv_list_new(&store->memory);
    ck_assert_ptr_nonnull(item->list);
    item->kind = KV_LIST;
    item->expires_ms = expires_ms;
    for (uint32_t i = 0; i < ELEMENTS; i++)
        ck_assert_int_eq(kv_list_push(&store->memory, item->list, KV_TAIL, element, sizeof element),
                         0);
}

static void fetch(bool looks)
{
    const struct kv_fetch next = {.shard = 0, .looks = looks};

    domus_slice_free(world.piece.bytes);
    world.piece = (struct kv_piece_of_legacy){.fence = 0};
    ck_assert_int_eq(domus_probe_ask(world.probe, world.porter, &kv_fetch_type, &next), 0);
    ck_assert_int_eq(domus_probe_expect(world.probe, &kv_legacy_piece_type, SECOND, &world.piece),
                     0);
}

/* Leave a list that expires at second 1, and let a porter look at it. */
static void begin(void)
{
    struct kv_store store = {.memory = {.bytes_max = UINT64_MAX}};

    memset(&world, 0, sizeof world);
    ck_assert_int_eq(domus_testkit_new(NULL, 1, NULL, 0, &world.kit), 0);
    ck_assert_int_eq(domus_probe_new(world.kit, &world.probe), 0);
    add_list(&store, "late", domus_testkit_now_ns(world.kit) / 1000000 + 1000);
    ck_assert(kv_legacy_put(&store, 7, 0));
    ck_assert_int_eq(
        domus_outside_spawn(domus_testkit_system(world.kit), &kv_porter, NULL, &world.porter), 0);
    fetch(true);
    ck_assert_uint_eq(world.piece.fence, 7);
}

static void end(void)
{
    domus_slice_free(world.piece.bytes);
    ck_assert_int_eq(domus_probe_send(world.probe, world.porter, &kv_drop_type, NULL), 0);
    ck_assert_int_eq(domus_testkit_run(world.kit), 0);
    domus_testkit_free(world.kit);
}

/* Count how often the piece has this text. */
static uint32_t count(const char *text)
{
    const char *at = domus_slice_data(world.piece.bytes);
    const char *last = at + world.piece.bytes.size;
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

    begin();
    do {
        fetch(false);
        elements += count("RPUSH");
        ck_assert_uint_eq(count("PEXPIRE"), world.piece.ends_all ? 1 : 0);
    } while (!world.piece.ends_all);
    ck_assert_uint_eq(elements, ELEMENTS);
    ck_assert_uint_eq(count("PEXPIRE\r\n$4\r\nlate\r\n$4\r\n1000\r\n"), 1);
    end();
}

/* Else the elements that have gone before would be a list without a time. */
DOMT_TEST(list_that_expires_while_it_is_carried_is_removed)
{
    uint32_t elements = 0;

    begin();
    do {
        fetch(false);
        elements += count("RPUSH");
    } while (!world.piece.ends_commands);
    ck_assert(!world.piece.ends_all);
    ck_assert_uint_ne(elements, 0);
    ck_assert_int_eq(domus_testkit_advance(world.kit, 2 * SECOND), 0);
    fetch(false);
    ck_assert_uint_eq(count("RPUSH"), 0);
    ck_assert_uint_eq(count("PEXPIRE\r\n$4\r\nlate\r\n$1\r\n0\r\n"), 1);
    ck_assert(world.piece.ends_all);
    end();
}

DOMT_TEST(list_that_has_expired_before_does_not_come)
{
    begin();
    ck_assert_int_eq(domus_testkit_advance(world.kit, 2 * SECOND), 0);
    fetch(false);
    ck_assert_uint_eq(world.piece.bytes.size, 0);
    ck_assert(world.piece.ends_all);
    end();
}

static int look(domus_stack *stack, void *self, const void *payload)
{
    kv_legacy_look(stack);
    return 0;
}

static const domus_behaviour looker = {
    .name = "looker",
    .on = (const domus_on[]){{&kv_drop_type, look, 0}, {NULL, NULL, 0}},
};

/* Leave nothing but a fence, at `left_ns`, and look at second 60. Returns whether it is there. */
static bool is_kept(uint64_t left_ns)
{
    struct kv_store store = {.memory = {.bytes_max = UINT64_MAX}};
    domus_testkit *kit;
    domus_probe *probe;
    domus_address who;

    ck_assert_int_eq(domus_testkit_new(NULL, 1, NULL, 0, &kit), 0);
    ck_assert_int_eq(domus_probe_new(kit, &probe), 0);
    ck_assert_int_eq(domus_outside_spawn(domus_testkit_system(kit), &looker, NULL, &who), 0);
    ck_assert_int_eq(domus_testkit_advance(kit, 60 * SECOND - domus_testkit_now_ns(kit)), 0);
    ck_assert(kv_legacy_put(&store, 7, left_ns));
    ck_assert_int_eq(domus_probe_send(probe, who, &kv_drop_type, NULL), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    domus_testkit_free(kit);
    ck_assert(!kv_legacy_is_carried(0));
    struct kv_legacy *legacy = kv_legacy_take(0);
    kv_legacy_free(legacy);
    return legacy != NULL;
}

/* The clock of another thread may be ahead. */
DOMT_TEST(legacy_is_kept_for_a_while)
{
    ck_assert(is_kept(60 * SECOND + 1));
    ck_assert(is_kept(60 * SECOND));
    ck_assert(is_kept(30 * SECOND));
    ck_assert(!is_kept(30 * SECOND - 1));
}

static int ask_keeper(domus_address keeper, uint64_t fence)
{
    /* The porter has ended. */
    const struct kv_keep keep = {.shard = 0, .fence = fence, .porter = world.porter};

    ck_assert_int_eq(domus_probe_ask(world.probe, keeper, &kv_keep_type, &keep), 0);
    return domus_probe_expect_error(world.probe, fence != 0 ? -ESTALE : -EINVAL, SECOND);
}

/* Whether the porter was there or not, a keeper has one ask only. */
DOMT_TEST(keeper_ends_when_there_is_nothing_to_keep)
{
    begin();
    ck_assert_int_eq(domus_probe_send(world.probe, world.porter, &kv_drop_type, NULL), 0);
    ck_assert_int_eq(domus_testkit_run(world.kit), 0);
    for (uint64_t fence = 0; fence < 2; fence++) {
        domus_address keeper;
        ck_assert_int_eq(
            domus_outside_spawn(domus_testkit_system(world.kit), &kv_keeper, NULL, &keeper), 0);
        ck_assert_int_eq(ask_keeper(keeper, fence), 0);
        ck_assert_int_eq(domus_testkit_run(world.kit), 0);
        ck_assert_int_eq(domus_probe_send(world.probe, keeper, &kv_drop_type, NULL), -ESTALE);
    }
    domus_testkit_free(world.kit);
}

/* Else all keys that are not there yet would be lost. */
DOMT_TEST(piece_is_asked_for_again_when_there_was_no_room_on_the_way)
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
    struct kv_legacy *legacy = kv_legacy_take(0);
    ck_assert_ptr_nonnull(legacy);
    ck_assert_uint_eq(legacy->fence, 5);
    kv_legacy_free(legacy);
    domus_testkit_free(kit);
}

DOMT_SUITE(20)
