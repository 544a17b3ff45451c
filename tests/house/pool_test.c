/* house/message/pool.c: envelopes of every size class, and the way home for envelopes that other
 * threads free. */
#include "house/message/pool.h"

#include "house/dispatch/dispatch.h"
#include "house/message/mailbox.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <string.h>

static domt_world world;

static uint32_t length(const domi_node *node)
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
        ck_assert_uint_eq(domi_envelope_room(world.managers[0], envelope), cases[i].room);
        memset(envelope->payload, 1, cases[i].bytes - DOMI_ENVELOPE_HEAD);
        domi_pool_free(world.managers[i % 3], &envelope->node);
    }
    ck_assert_uint_eq(domt_in_use_all(&world), 0);
    domt_world_end(&world);
}

DOMT_TEST(what_its_owner_frees_is_taken_next)
{
    domt_world_open(&world, 1);
    domi_envelope *first = domi_envelope_new(world.managers[0], 64);
    domi_envelope *second = domi_envelope_new(world.managers[0], 64);
    domi_pool_free(world.managers[0], &first->node);
    domi_pool_free(world.managers[0], &second->node);
    ck_assert_ptr_eq(domi_envelope_new(world.managers[0], 64), second);
    ck_assert_ptr_eq(domi_envelope_new(world.managers[0], 64), first);
    ck_assert_uint_eq(world.managers[0]->pool.chained, 0);
    domt_world_end(&world);
}

DOMT_TEST(what_others_free_goes_home_in_one_chain)
{
    enum { COUNT = 30 };
    domi_envelope *envelopes[COUNT];

    domt_world_open(&world, 3);
    for (int i = 0; i < COUNT; i++) /* two owners in turn */
        envelopes[i] = domi_envelope_new(world.managers[i % 2], i % 3 == 0 ? 64 : 200);
    for (int i = 0; i < COUNT; i++)
        domi_pool_free(world.managers[2], &envelopes[i]->node);
    ck_assert_uint_eq(world.managers[2]->pool.chained, COUNT);
    ck_assert_ptr_null(atomic_load(&world.managers[0]->pool.remote)); /* nothing shared yet */
    domi_pool_flush_returns(world.managers[2]);
    ck_assert_uint_eq(world.managers[2]->pool.chained, 0);
    ck_assert_uint_eq(length(atomic_load(&world.managers[0]->pool.remote)), COUNT / 2);
    ck_assert_uint_eq(length(atomic_load(&world.managers[1]->pool.remote)), COUNT / 2);

    domi_pool_free(world.managers[1], &domi_envelope_new(world.managers[0], 64)->node);
    domi_pool_flush_returns(world.managers[1]); /* behind another one's chain */
    ck_assert_uint_eq(domt_in_use_all(&world), 0);
    domt_world_end(&world);
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

/* Pass the packet on to the next actor, which lives elsewhere, in the next size. */
static int pass(domus_stack *stack, void *self, const void *packet_)
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
        rows[i] = (domus_on){&types[i], pass, 0};
    }
    passing = (domus_behaviour){.name = "passing", .on = rows};
    domt_world_open(&world, 3);
    for (uint32_t i = 0; i < ACTORS; i++)
        actors[i] = domt_spawn(domt_outside(&world), world.managers[i % 3], &passing, NULL);
    memcpy(first, &hops, sizeof hops);
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < PACKETS; i++) /* also from outside: its pools are refilled too */
            ck_assert_int_eq(
                domt_notice(world.managers[i % 4], actors[i % ACTORS], &types[i % 5], first), 0);
        domt_settle(&world);
        if (round == 4)
            mapped = domt_mapped_bytes(&world);
    }
    ck_assert_uint_eq(handled, (uint64_t)ROUNDS * PACKETS * HOPS);
    ck_assert_uint_eq(domt_mapped_bytes(&world), mapped);
    ck_assert_uint_eq(domt_in_use_all(&world), 0);
    domt_world_end(&world);
}

/* One side only allocates, the other only frees: what is freed has to come back. */
DOMT_TEST(pools_do_not_grow_when_one_sends_and_another_frees)
{
    uint64_t mapped = 0;

    domt_world_open(&world, 2);
    domus_address sink = domt_spawn(domt_outside(&world), world.managers[0], &domt_agent, NULL);
    domt_settle(&world);
    types[0] = (domus_type){.name = "lost", .size = 8};
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 5000; i++)
            ck_assert_int_eq(domt_notice(world.managers[1], sink, &types[0], "payload"), 0);
        (void)domt_iterate(world.managers[0]);
        domt_settle(&world);
        if (round == 1)
            mapped = domt_mapped_bytes(&world);
    }
    ck_assert_uint_eq(domt_mapped_bytes(&world), mapped);
    ck_assert_uint_eq(DOMT_SUM(&world, dead_letters), 250000);
    domt_world_end(&world);
}

DOMT_SUITE(60)
