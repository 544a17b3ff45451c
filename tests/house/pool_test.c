/* The memory of messages. house/message/pool.c: envelopes of every size class, and how envelopes
 * that other threads free come home. house/message/trim.c: memory that a trim leaves with a slab is
 * counted as spare until it is used. The memory of belts between 64 threads that all send to all:
 * while the belts are used, and when their rings were given back; and that of a full belt. The
 * figures are in decisions/lanes. */
#include "base/memory.h"
#include "house/dispatch/dispatch.h"
#include "house/dispatch/incoming.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "house/message/trim.h"
#include "tests/house/belt_world.h"
#include "tests/house/steps.h"
#include "tests/support/death.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

static domt_world world;

static uint32_t count_nodes(const domi_node *node)
{
    uint32_t count = 0;

    for (; node != NULL; node = node->next)
        count++;
    return count;
}

DOMT_TEST(envelopes_come_from_the_smallest_class_that_holds_them)
{
    static const struct {
        size_t bytes;
        uint8_t slab;
        size_t room;
    } cases[] = {
        {40, DOMI_SLAB_64, 64},       {64, DOMI_SLAB_64, 64},    {65, DOMI_SLAB_128, 128},
        {128, DOMI_SLAB_128, 128},    {129, DOMI_SLAB_256, 256}, {256, DOMI_SLAB_256, 256},
        {257, DOMI_SLAB_512, 512},    {512, DOMI_SLAB_512, 512}, {513, DOMI_SLAB_1088, 1088},
        {1088, DOMI_SLAB_1088, 1088}, {1089, DOMI_SLAB_HEAP, 0}, {65600, DOMI_SLAB_HEAP, 0},
    };

    domt_world_open(&world, 2);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        domi_envelope *envelope = domi_envelope_new(world.managers[1], cases[i].bytes);
        ck_assert_uint_eq(envelope->node.slab, cases[i].slab);
        ck_assert_uint_eq(envelope->node.owner, 1);
        ck_assert_uint_eq(domi_envelope_bytes_in_all(world.managers[0], envelope), cases[i].room);
        memset(envelope->payload, 1, cases[i].bytes - DOMI_ENVELOPE_HEAD);
        domi_pool_free_object(world.managers[i % 3], &envelope->node);
    }
    domt_end_clean_world(&world);
}

DOMT_TEST(object_freed_by_its_owner_is_taken_next)
{
    domt_world_open(&world, 1);
    domi_envelope *first = domi_envelope_new(world.managers[0], 64);
    domi_envelope *second = domi_envelope_new(world.managers[0], 64);
    domi_pool_free_object(world.managers[0], &first->node);
    domi_pool_free_object(world.managers[0], &second->node);
    ck_assert_ptr_eq(domi_envelope_new(world.managers[0], 64), second);
    ck_assert_ptr_eq(domi_envelope_new(world.managers[0], 64), first);
    ck_assert_uint_eq(world.managers[0]->pool.chained, 0);
    domt_world_end(&world);
}

DOMT_TEST(objects_freed_by_others_go_home_in_one_chain)
{
    enum { COUNT = 30 };
    domi_envelope *envelopes[COUNT];

    domt_world_open(&world, 3);
    for (int i = 0; i < COUNT; i++) /* the objects belong to manager 0 and manager 1 in turn */
        envelopes[i] = domi_envelope_new(world.managers[i % 2], i % 3 == 0 ? 64 : 200);
    for (int i = 0; i < COUNT; i++)
        domi_pool_free_object(world.managers[2], &envelopes[i]->node);
    ck_assert_uint_eq(world.managers[2]->pool.chained, COUNT);
    /* the freed objects are still in a private list of manager 2 */
    ck_assert_ptr_null(atomic_load(&world.managers[0]->pool.remote));
    domi_pool_push_chains_to_owners(world.managers[2]);
    ck_assert_uint_eq(world.managers[2]->pool.chained, 0);
    ck_assert_uint_eq(count_nodes(atomic_load(&world.managers[0]->pool.remote)), COUNT / 2);
    ck_assert_uint_eq(count_nodes(atomic_load(&world.managers[1]->pool.remote)), COUNT / 2);

    domi_pool_free_object(world.managers[1], &domi_envelope_new(world.managers[0], 64)->node);
    /* this chain is put before the one that manager 2 has flushed */
    domi_pool_push_chains_to_owners(world.managers[1]);
    domt_end_clean_world(&world);
}

/* --- no growth ------------------------------------------------------------------------------- */

#define ACTORS 6

typedef struct packet {
    uint32_t hops;
    unsigned char ballast[20];
} packet;

static const uint32_t sizes[] = {24, 100, 300, 900, 3000};
static domus_type types[sizeof sizes / sizeof sizes[0]];
static domus_on rows[sizeof sizes / sizeof sizes[0] + 1];
static domus_behaviour passing;
static domus_address actors[ACTORS];
static uint64_t handled;

/* Pass the packet on to the next actor, which lives on another thread, in an envelope of the next
 * size. */
static int pass_packet_to_next_actor(domus_stack *stack, void *self, const void *packet_)
{
    static unsigned char next[4096];
    const packet *now = packet_;
    uint32_t left = now->hops - 1;

    handled++;
    if (left == 0)
        return 0;
    memcpy(next, &left, sizeof left);
    return domus_notice(stack, actors[left % ACTORS], &types[left % 5], next);
}

DOMT_TEST(pools_do_not_grow_while_messages_go_round)
{
    enum { ROUNDS = 60, PACKETS = 300, HOPS = 12 };
    static unsigned char first[4096];
    uint64_t mapped = 0;
    uint32_t hops = HOPS;

    for (int i = 0; i < 5; i++) {
        types[i] = (domus_type){.name = "packet", .size = sizes[i]};
        rows[i] = (domus_on){&types[i], pass_packet_to_next_actor, 0};
    }
    passing = (domus_behaviour){.name = "passing", .on = rows};
    domt_world_open(&world, 3);
    for (uint32_t i = 0; i < ACTORS; i++)
        actors[i] = domt_spawn(domt_outside_manager(&world), world.managers[i % 3], &passing, NULL);
    memcpy(first, &hops, sizeof hops);
    for (int round = 0; round < ROUNDS; round++) {
        /* some packets are also sent from outside, whose pools are refilled, too */
        for (uint32_t i = 0; i < PACKETS; i++)
            ck_assert_int_eq(
                domt_send_notice(world.managers[i % 4], actors[i % ACTORS], &types[i % 5], first),
                0);
        domt_settle_world(&world);
        if (round == 4)
            mapped = domt_world_mapped_bytes(&world);
    }
    ck_assert_uint_eq(handled, (uint64_t)ROUNDS * PACKETS * HOPS);
    ck_assert_uint_eq(domt_world_mapped_bytes(&world), mapped);
    domt_end_clean_world(&world);
}

/* One thread only allocates and the other one only frees: the freed objects must come back to the
 * first. */
DOMT_TEST(pools_do_not_grow_when_one_sends_and_another_frees)
{
    uint64_t mapped = 0;

    domt_world_open(&world, 2);
    domus_address sink =
        domt_spawn(domt_outside_manager(&world), world.managers[0], &domt_agent, NULL);
    domt_settle_world(&world);
    types[0] = (domus_type){.name = "lost", .size = 8};
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 5000; i++)
            ck_assert_int_eq(domt_send_notice(world.managers[1], sink, &types[0], "payload"), 0);
        (void)domt_iterate_home(world.managers[0]);
        domt_settle_world(&world);
        if (round == 1)
            mapped = domt_world_mapped_bytes(&world);
    }
    ck_assert_uint_eq(domt_world_mapped_bytes(&world), mapped);
    ck_assert_uint_eq(DOMT_SUM(&world, dead_letters), 250000);
    domt_world_end(&world);
}

/* --- trims ------------------------------------------------------------------------------------ */

enum { COUNT = 20000 }; /* objects of 64 bytes that fill more than four chunks */

static domt_world world;
static domi_node *nodes[COUNT];

static uint64_t read_spare_bytes(const domi_manager *manager)
{
    return atomic_load(&manager->memory.spare_bytes);
}

DOMT_TEST(spare_bytes_that_are_used_again_are_not_spare_any_more)
{
    uint64_t now_ns = 0;

    domt_world_open(&world, 1);
    domi_manager *home = world.managers[0];
    for (int i = 0; i < COUNT; i++)
        nodes[i] = domi_pool_take_object(home, DOMI_SLAB_64);
    for (int i = 0; i < COUNT; i += 2)
        domi_pool_free_object(home, nodes[i]);
    for (int i = 0; i < 10000 && read_spare_bytes(home) == 0; i++)
        (void)domi_pool_take_trim_step(home, now_ns += UINT64_C(100000000), 4096);
    while (domi_pool_take_trim_step(home, now_ns, 4096))
        ;
    ck_assert_uint_gt(read_spare_bytes(home), 0);
    ck_assert_uint_eq(read_spare_bytes(home), home->pool.slabs[DOMI_SLAB_64].spare_bytes);
    for (int i = 0; i < COUNT; i++) /* takes all objects that are free, and then new ones */
        ck_assert_ptr_nonnull(domi_pool_take_object(home, DOMI_SLAB_64));
    ck_assert_uint_eq(home->pool.slabs[DOMI_SLAB_64].spare_bytes, 0);
    ck_assert_uint_eq(read_spare_bytes(home), 0);
    domt_world_end(&world);
}

/* A thread that gets many of its objects back from others at once must not stand still while it
 * sorts them. */
DOMT_TEST(objects_that_come_back_in_crowds_are_sorted_some_at_a_time)
{
    uint32_t steps = 1;

    domt_world_open(&world, 2);
    domi_manager *home = world.managers[0];
    for (int i = 0; i < COUNT; i++)
        nodes[i] = domi_pool_take_object(home, DOMI_SLAB_64);
    for (int i = 0; i < COUNT; i++)
        domi_pool_free_object(world.managers[1], nodes[i]);
    domi_pool_push_chains_to_owners(world.managers[1]);
    for (; domi_pool_sort_returned_objects(home); steps++)
        ck_assert_uint_lt(steps, COUNT);
    ck_assert_uint_ge(steps, COUNT / 5000);
    ck_assert_uint_eq(domt_count_objects_in_use(&world, DOMI_SLAB_64), 0);
    domt_world_end(&world);
}

/* --- what is true between two steps ----------------------------------------------------------- */

static void break_with_trim_without_a_pass(void)
{
    world.managers[0]->memory.trim.under_way = false;
}

static void break_with_trim_at_no_slab(void)
{
    world.managers[0]->memory.trim.slab = DOMI_SLABS;
}

static void break_with_too_long_a_wait(void)
{
    world.managers[0]->memory.trim.wait_ns = UINT64_MAX;
}

static void break_with_trim_at_next_slab(void)
{
    world.managers[0]->memory.trim.slab++;
}

static void break_with_trim_not_begun(void)
{
    world.managers[0]->memory.trim.begun = false;
}

static void break_with_uncounted_spare_bytes(void)
{
    world.managers[0]->pool.slabs[DOMI_SLAB_64].spare_bytes += 64;
}

static void break_trim_and_check(void *breaks)
{
    (*(void (**)(void))breaks)();
    (void)domi_trim_is_sound(world.managers[0]);
}

DOMT_TEST(each_invariant_of_a_pass_is_checked)
{
    struct {
        void (*breaks)(void);
        const char *text;
    } cases[] = {
        {break_with_trim_without_a_pass, "trim->under_way || !trim->begun"},
        {break_with_trim_at_no_slab, "trim->slab < DOMI_SLABS"},
        {break_with_too_long_a_wait, "trim->wait_ns"},
        {break_with_trim_at_next_slab, "slab->trim == NULL"},
        {break_with_trim_not_begun, "slab->trim == NULL"},
        {break_with_uncounted_spare_bytes, "spare <= told"},
    };
    uint64_t now_ns = 0;

    domt_world_open(&world, 1);
    domi_manager *home = world.managers[0];
    for (int i = 0; i < COUNT; i++)
        nodes[i] = domi_pool_take_object(home, DOMI_SLAB_64);
    for (int i = 0; i < COUNT; i++)
        domi_pool_free_object(home, nodes[i]);
    for (int i = 0; i < 1000 && !home->memory.trim.begun; i++)
        (void)domi_pool_take_trim_step(home, now_ns += UINT64_C(100000000), 64);
    ck_assert(home->pool.slabs[DOMI_SLAB_64].trim != NULL && domi_trim_is_sound(home));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        domt_check_child_aborts(break_trim_and_check, &cases[i].breaks, cases[i].text);
    domt_world_end(&world);
}

/* --- belts ------------------------------------------------------------------------------------ */

#define THREADS 64u
#define PAIRS   (THREADS * (THREADS - 1))
#define SLOTS   1024u
#define SLOT    sizeof(domi_belt_slot)
#define MIB     (UINT64_C(1) << 20)
/* beyond the 5 to 10 s after which an unused ring is given back */
#define LONG_NS UINT64_C(20000000000)

static domt_world world;
static domt_log heard; /* the log of all talkers */
static domus_address talkers[THREADS];

static void open_world_of_talkers(void)
{
    domt_world_init(&world, THREADS);
    world.config.scheduler.belt_slots = SLOTS;
    ck_assert_int_eq(domt_world_start(&world), 0);
    for (uint32_t i = 0; i < THREADS; i++)
        talkers[i] = domt_spawn_recorder(&world, i, &heard);
}

static void send_note_between_all_threads(void)
{
    for (uint32_t from = 0; from < THREADS; from++) {
        for (uint32_t to = 0; to < THREADS; to++) {
            if (from != to)
                ck_assert_int_eq(
                    domt_belts_send_note_by_manager(world.managers[from], talkers[to], 1), 0);
        }
    }
}

static uint64_t bytes_of_belt_ring(domi_belt_ring ring)
{
    return ring.slots != NULL ? domi_memory_bytes_of_block(ring.slots) : 0;
}

/* Returns the bytes of all rings of belts, with the bytes that malloc adds by rounding up. */
static uint64_t bytes_of_belts(void)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < THREADS; i++) {
        if (world.managers[i]->belts.to == NULL)
            continue;
        bytes += domi_memory_bytes_of_block(world.managers[i]->belts.to);
        for (uint32_t j = 0; j < THREADS; j++) {
            const domi_belt *belt = world.managers[i]->belts.to[j];
            if (belt != NULL)
                bytes += domi_memory_bytes_of_block(belt) + bytes_of_belt_ring(belt->filled);
        }
    }
    return bytes;
}

/* Returns the bytes of belts that count as the receivers' memory. */
static int64_t bytes_charged_to_receivers(void)
{
    int64_t bytes = 0;

    for (uint32_t i = 0; i < THREADS; i++)
        bytes += atomic_load(&world.managers[i]->pool.heap_bytes);
    return bytes;
}

DOMT_TEST(pairs_of_threads_that_never_talked_take_a_pointer)
{
    open_world_of_talkers();
    ck_assert_uint_ge(bytes_of_belts(), THREADS * THREADS * sizeof(void *));
    ck_assert_uint_lt(bytes_of_belts(), THREADS * (THREADS * sizeof(void *) + 64));
    ck_assert_int_eq(bytes_charged_to_receivers(), 0);
    domt_world_end(&world);
}

DOMT_TEST(threads_that_all_talk_to_all_take_little_and_give_it_back)
{
    open_world_of_talkers();
    send_note_between_all_threads();
    uint64_t talking = bytes_of_belts();
    ck_assert_int_ge(bytes_charged_to_receivers(), (int64_t)(PAIRS * DOMI_BELT_SLOTS * SLOT));
    domt_settle_world(&world);
    ck_assert_uint_eq(heard.count, PAIRS);
    for (uint32_t i = 0; i < THREADS; i++)
        /* the test turns off all belts, as a thread does before it parks */
        ck_assert(domi_belts_turn_all_off(world.managers[i]));
    for (int look = 0; look < 2; look++) {
        domt_advance_time_without_runs(&world, LONG_NS);
        for (uint32_t i = 0; i < THREADS; i++)
            domi_belts_free_unused_rings(world.managers[i]);
    }
    uint64_t idle = bytes_of_belts();
    fprintf(stderr, "belts of %u pairs: %.1f MiB while they talk, %.1f MiB given back\n", PAIRS,
            (double)talking / (double)MIB, (double)idle / (double)MIB);
    ck_assert_uint_lt(talking, 20 * MIB);
    ck_assert_uint_lt(idle, 2 * MIB);
    ck_assert_int_eq(bytes_charged_to_receivers(), 0);
    domt_world_end(&world);
}

/* One pair of threads is enough for this test, because each belt fills up by itself. */
DOMT_TEST(full_belt_takes_the_memory_of_all_slots_and_no_more)
{
    open_world_of_talkers();
    uint64_t before = bytes_of_belts();
    for (uint32_t i = 0; i < 4 * SLOTS; i++)
        ck_assert_int_eq(domt_belts_send_note_by_manager(world.managers[1], talkers[0], 1), 0);
    uint64_t full = (uint64_t)bytes_charged_to_receivers();
    fprintf(stderr, "a full belt: %.1f KiB, so %u: %.0f MiB\n", (double)full / 1024, PAIRS,
            (double)(full * PAIRS) / (double)MIB);
    ck_assert_uint_ge(full, SLOTS * SLOT);
    /* The smaller rings that the belt has outgrown stay until the receiver has read them. */
    ck_assert_uint_lt(full, 2 * SLOTS * SLOT + 1024);
    domt_settle_world(&world);
    ck_assert_uint_eq(heard.count, 4 * SLOTS);
    ck_assert_uint_lt(bytes_of_belts() - before, SLOTS * SLOT + 1024);
    domt_world_end(&world);
}

DOMT_SUITE(60)
