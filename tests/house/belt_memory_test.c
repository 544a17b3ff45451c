/* The memory of the belts between 64 threads that all talk to all, while they are used and when
 * their rings were given back, and that of a full belt. The figures stand in decisions/lanes. */
#include "base/memory.h"
#include "house/dispatch/carry.h"
#include "tests/house/belt_world.h"
#include "tests/support/suite.h"

#include <stdio.h>

#define THREADS 64u
#define PAIRS   (THREADS * (THREADS - 1))
#define SLOTS   1024u
#define SLOT    sizeof(domi_belt_slot)
#define MIB     (UINT64_C(1) << 20)
#define LONG_NS UINT64_C(20000000000) /* rings are given back after 5 to 10 s without use */

static domt_world world;
static domt_log heard; /* of all actors */
static domus_address actors[THREADS];

static void open_world(void)
{
    domt_world_init(&world, THREADS);
    world.config.scheduler.belt_slots = SLOTS;
    ck_assert_int_eq(domt_world_start(&world), 0);
    for (uint32_t i = 0; i < THREADS; i++)
        actors[i] = domt_recorder_new(&world, i, &heard);
}

static void all_talk_to_all(void)
{
    for (uint32_t from = 0; from < THREADS; from++) {
        for (uint32_t to = 0; to < THREADS; to++) {
            if (from != to)
                ck_assert_int_eq(domt_belts_note_by(world.managers[from], actors[to], 1), 0);
        }
    }
}

static uint64_t bytes_of_ring(domi_belt_ring ring)
{
    return ring.slots != NULL ? domi_memory_bytes(ring.slots) : 0;
}

/* The bytes of all belts, with what the allocator rounds up. */
static uint64_t bytes_of_belts(void)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < THREADS; i++) {
        if (world.managers[i]->belts.to == NULL)
            continue;
        bytes += domi_memory_bytes(world.managers[i]->belts.to);
        for (uint32_t j = 0; j < THREADS; j++) {
            const domi_belt *belt = world.managers[i]->belts.to[j];
            if (belt != NULL)
                bytes += domi_memory_bytes(belt) + bytes_of_ring(belt->filled);
        }
    }
    return bytes;
}

/* The bytes that the receivers are charged for. */
static int64_t bytes_charged(void)
{
    int64_t bytes = 0;

    for (uint32_t i = 0; i < THREADS; i++)
        bytes += atomic_load(&world.managers[i]->pool.heap_bytes);
    return bytes;
}

DOMT_TEST(pairs_that_never_talked_take_a_pointer)
{
    open_world();
    ck_assert_uint_ge(bytes_of_belts(), THREADS * THREADS * sizeof(void *));
    ck_assert_uint_lt(bytes_of_belts(), THREADS * (THREADS * sizeof(void *) + 64));
    ck_assert_int_eq(bytes_charged(), 0);
    domt_world_end(&world);
}

DOMT_TEST(threads_that_all_talk_to_all_take_little_and_give_it_back)
{
    open_world();
    all_talk_to_all();
    uint64_t talking = bytes_of_belts();
    ck_assert_int_ge(bytes_charged(), (int64_t)(PAIRS * DOMI_BELT_SLOTS * SLOT));
    domt_settle(&world);
    ck_assert_uint_eq(heard.count, PAIRS);
    for (uint32_t i = 0; i < THREADS; i++)
        ck_assert(domi_belts_rest(world.managers[i])); /* as before a park */
    for (int look = 0; look < 2; look++) {
        domt_jump(&world, LONG_NS);
        for (uint32_t i = 0; i < THREADS; i++)
            domi_belts_trim(world.managers[i]);
    }
    uint64_t idle = bytes_of_belts();
    fprintf(stderr, "belts of %u pairs: %.1f MiB while they talk, %.1f MiB given back\n", PAIRS,
            (double)talking / (double)MIB, (double)idle / (double)MIB);
    ck_assert_uint_lt(talking, 20 * MIB);
    ck_assert_uint_lt(idle, 2 * MIB);
    ck_assert_int_eq(bytes_charged(), 0);
    domt_world_end(&world);
}

/* One pair is enough: each is full by itself. */
DOMT_TEST(full_belt_takes_all_slots_and_no_more)
{
    open_world();
    uint64_t before = bytes_of_belts();
    for (uint32_t i = 0; i < 4 * SLOTS; i++)
        ck_assert_int_eq(domt_belts_note_by(world.managers[1], actors[0], 1), 0);
    uint64_t full = (uint64_t)bytes_charged();
    fprintf(stderr, "a full belt: %.1f KiB, so %u: %.0f MiB\n", (double)full / 1024, PAIRS,
            (double)(full * PAIRS) / (double)MIB);
    ck_assert_uint_ge(full, SLOTS * SLOT);
    /* the rings that it has outgrown are there until the receiver has read them */
    ck_assert_uint_lt(full, 2 * SLOTS * SLOT + 1024);
    domt_settle(&world);
    ck_assert_uint_eq(heard.count, 4 * SLOTS);
    ck_assert_uint_lt(bytes_of_belts() - before, SLOTS * SLOT + 1024);
    domt_world_end(&world);
}

DOMT_SUITE(60)
