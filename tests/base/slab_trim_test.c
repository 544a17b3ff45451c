/* base/slab_trim.c: a trim gives back chunks that are free as a whole, and everything else stays as
 * it was, wherever the trim is stopped. */
#include "base/memory.h"
#include "base/random.h"
#include "base/slab.h"
#include "tests/support/suite.h"

#include <string.h>

#define CHUNK   (16u * 1024)
#define OBJECTS 2000

static domi_slab slab;
static uint64_t *objects[OBJECTS];

static void fill_slab_of_object_size(uint32_t object_bytes)
{
    domi_slab_init(&slab, object_bytes, 16, CHUNK);
    for (uint64_t i = 0; i < OBJECTS; i++) {
        objects[i] = domi_slab_take_object(&slab);
        objects[i][1] = i;
    }
}

static void put_object_back(uint32_t index)
{
    domi_slab_put_object(&slab, objects[index]);
    objects[index] = NULL;
}

static void trim_slab_in_steps(uint32_t per_step)
{
    uint32_t steps = 0;

    if (!domi_slab_trim_begin(&slab))
        return;
    while (!domi_slab_trim_step(&slab, per_step))
        ck_assert_uint_lt(steps++, 1000000);
    ck_assert_ptr_null(slab.trim);
}

static uint32_t count_free_objects(void)
{
    uint32_t count = 0;

    for (void *object = slab.free; object != NULL; object = *(void **)object)
        count++;
    return count;
}

static void count_walked_object(void *object, void *count)
{
    ++*(uint32_t *)count;
}

static uint32_t count_all_objects(void)
{
    uint32_t count = 0;

    domi_slab_visit_objects(&slab, count_walked_object, &count);
    return count;
}

/* Returns how many objects are in use and still hold the number that was written into them. */
static uint32_t count_unchanged_objects_in_use(void)
{
    uint32_t kept = 0;

    for (uint64_t i = 0; i < OBJECTS; i++)
        kept += objects[i] != NULL && objects[i][1] == i;
    return kept;
}

DOMT_TEST(trim_of_unused_slab_keeps_newest_chunk)
{
    static const uint32_t sizes[] = {64, 128, 1088};

    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        fill_slab_of_object_size(sizes[s]);
        ck_assert_uint_gt(slab.mapped_bytes, 4 * slab.chunk_bytes);
        for (uint32_t i = 0; i < OBJECTS; i++)
            put_object_back(i * 7 % OBJECTS);
        trim_slab_in_steps(100);
        ck_assert_uint_eq(slab.mapped_bytes, slab.chunks->bytes);
        ck_assert_uint_eq(count_free_objects(), count_all_objects());
        domi_slab_fini(&slab);
    }
}

DOMT_TEST(trim_keeps_chunks_with_objects_in_use)
{
    fill_slab_of_object_size(128);
    uint64_t before = slab.mapped_bytes;
    uint32_t in_use = 0;
    for (uint32_t i = 0; i < OBJECTS; i++) {
        if (i % 500 != 250)
            put_object_back(i);
        else
            in_use++;
    }
    trim_slab_in_steps(64);
    ck_assert_uint_eq(count_unchanged_objects_in_use(), in_use);
    ck_assert_uint_lt(slab.mapped_bytes, before / 2);
    ck_assert_uint_ge(slab.mapped_bytes, slab.chunk_bytes * in_use);
    ck_assert_uint_eq(count_free_objects() + in_use, count_all_objects());
    /* Free objects outside of the newest chunk count as spare. */
    ck_assert_uint_eq(slab.spare_bytes, (uint64_t)count_free_objects() * 128);
    domi_slab_fini(&slab);
}

DOMT_TEST(trim_of_lasting_slab_only_counts_free_objects)
{
    domi_meter meter = {.look_at = INT64_MAX};

    fill_slab_of_object_size(128);
    slab.lasts = true;
    uint64_t before = slab.mapped_bytes;
    for (uint32_t i = 0; i < OBJECTS; i++)
        put_object_back(i);
    trim_slab_in_steps(64);
    ck_assert_uint_eq(slab.mapped_bytes, before);
    ck_assert_uint_eq(slab.spare_bytes, (uint64_t)count_free_objects() * 128);
    ck_assert_uint_eq(count_free_objects(), count_all_objects());

    /* While memory is scarce the slab gives the free objects that it has, and maps no further
     * chunk. */
    (void)domi_memory_set_meter(&meter);
    atomic_store(&meter.scarce, 1);
    for (uint32_t i = count_free_objects(); i != 0; i--)
        ck_assert_ptr_nonnull(domi_slab_take_object(&slab));
    while (!domi_slab_needs_new_chunk(&slab))
        ck_assert_ptr_nonnull(domi_slab_take_object(&slab));
    ck_assert_ptr_null(domi_slab_take_object(&slab));
    ck_assert_uint_eq(slab.mapped_bytes, before);
    atomic_store(&meter.scarce, 0);
    ck_assert_ptr_nonnull(domi_slab_take_object(&slab));
    domi_slab_fini(&slab);
    (void)domi_memory_set_meter(NULL);
}

DOMT_TEST(trimmed_slab_uses_free_objects_then_grows)
{
    fill_slab_of_object_size(64);
    for (uint32_t i = 0; i < OBJECTS; i++) {
        if (i % 300 != 0)
            put_object_back(i);
    }
    trim_slab_in_steps(1000);
    uint64_t mapped = slab.mapped_bytes;
    uint32_t spare = count_free_objects();
    uint32_t left_to_carve = (uint32_t)((slab.carve_end - slab.carve) / 64);
    for (uint32_t i = 0; i < spare + left_to_carve; i++)
        ck_assert_ptr_nonnull(domi_slab_take_object(&slab));
    ck_assert_uint_eq(slab.mapped_bytes, mapped);
    ck_assert_ptr_nonnull(domi_slab_take_object(&slab));
    ck_assert_uint_eq(slab.mapped_bytes, mapped + slab.chunk_bytes);
    /* all objects of the slab are in use, so none is spare */
    ck_assert_uint_eq(slab.spare_bytes, 0);
    domi_slab_fini(&slab);
}

DOMT_TEST(trim_without_gain_does_not_begin)
{
    domi_slab_init(&slab, 64, 16, CHUNK);
    ck_assert(!domi_slab_trim_begin(&slab));
    domi_slab_put_object(&slab, domi_slab_take_object(&slab));
    /* the slab's only chunk stays, so there is nothing to trim */
    ck_assert(!domi_slab_trim_begin(&slab));
    domi_slab_fini(&slab);
    fill_slab_of_object_size(64);
    /* a trim of a slab without a free object does not begin */
    ck_assert(!domi_slab_trim_begin(&slab));
    put_object_back(5);
    domi_memory_fail_allocation_after(0, 0);
    ck_assert(!domi_slab_trim_begin(&slab)); /* there is no memory for the trim's table of chunks */
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_uint_eq(count_free_objects(), 1);
    domi_slab_fini(&slab);
}

DOMT_TEST(trim_ends_with_all_objects_when_slab_runs_dry)
{
    for (uint32_t steps = 0; steps < 40; steps++) {
        fill_slab_of_object_size(128);
        for (uint32_t i = 0; i < OBJECTS - 1; i++)
            put_object_back(i);
        uint32_t all = count_all_objects();
        bool ended = false;
        ck_assert(domi_slab_trim_begin(&slab));
        ck_assert_ptr_null(slab.free);
        for (uint32_t i = 0; i < steps && !ended; i++)
            ended = domi_slab_trim_step(&slab, 150);
        ck_assert(ended || domi_slab_carve_object(&slab) != NULL);
        ck_assert_ptr_null(slab.trim);
        ck_assert_uint_le(count_all_objects(), all);
        /* All objects of the chunks that stay are there: one is in use, and one was just taken. */
        ck_assert_uint_eq(count_free_objects() + 1 + !ended, count_all_objects());
        ck_assert_uint_eq(count_unchanged_objects_in_use(), 1);
        ck_assert(steps != 0 || slab.mapped_bytes > 10 * CHUNK);
        domi_slab_fini(&slab);
    }
}

DOMT_TEST(objects_freed_during_a_trim_are_not_lost)
{
    fill_slab_of_object_size(64);
    for (uint32_t i = 0; i < OBJECTS / 2; i++)
        put_object_back(i);
    ck_assert(domi_slab_trim_begin(&slab));
    uint32_t next = OBJECTS / 2;
    while (!domi_slab_trim_step(&slab, 50)) {
        if (next < OBJECTS)
            put_object_back(next++);
    }
    ck_assert_uint_eq(count_free_objects() + (OBJECTS - next), count_all_objects());
    ck_assert_uint_eq(count_unchanged_objects_in_use(), OBJECTS - next);
    while (next < OBJECTS)
        put_object_back(next++);
    trim_slab_in_steps(1000);
    ck_assert_uint_eq(slab.mapped_bytes, slab.chunk_bytes);
    domi_slab_fini(&slab);
}

DOMT_TEST(slab_may_be_freed_during_a_trim)
{
    for (uint32_t steps = 0; steps < 30; steps += 3) {
        fill_slab_of_object_size(64);
        for (uint32_t i = 0; i < OBJECTS; i++)
            put_object_back(i);
        ck_assert(domi_slab_trim_begin(&slab));
        for (uint32_t i = 0; i < steps; i++)
            (void)domi_slab_trim_step(&slab, 200);
        /* If the trim's table were not freed, AddressSanitizer would report a leak of it. */
        domi_slab_fini(&slab);
        ck_assert_uint_eq(slab.mapped_bytes, 0);
    }
}

DOMT_TEST(trim_gives_large_chunks_back)
{
    enum { MANY = 200000 };
    static void *many[MANY];

    domi_slab_init(&slab, 64, 16, 256 * 1024);
    for (int i = 0; i < MANY; i++)
        many[i] = domi_slab_take_object(&slab);
    ck_assert_uint_gt(slab.mapped_bytes, 5 * DOMI_MEMORY_HUGE);
    for (int i = 0; i < MANY; i++)
        domi_slab_put_object(&slab, many[i]);
    trim_slab_in_steps(5000);
    ck_assert_uint_eq(slab.mapped_bytes, DOMI_MEMORY_HUGE);
    domi_slab_fini(&slab);
}

/* Objects are taken, put and trimmed in random order, and compared with a model that only
 * counts. */
DOMT_TEST(random_use_between_trim_steps_keeps_every_object)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        domi_random random;
        uint32_t in_use = OBJECTS;
        uint64_t wrong = 0;

        domi_random_init(&random, seed);
        fill_slab_of_object_size(192);
        for (uint32_t round = 0; round < 20000; round++) {
            uint32_t i = (uint32_t)domi_random_below(&random, OBJECTS);
            bool puts = objects[i] != NULL;
            if (puts) {
                wrong += objects[i][1] != i;
                put_object_back(i);
            } else if (domi_random_below(&random, 100) < 20 + round % 5000 / 100) {
                objects[i] = domi_slab_take_object(&slab);
                objects[i][1] = i;
            } else {
                (void)(domi_slab_trim_begin(&slab) &&
                       domi_slab_trim_step(&slab, (uint32_t)domi_random_below(&random, 100)));
                continue;
            }
            in_use += puts ? UINT32_MAX : 1;
        }
        domi_slab_trim_stop(&slab);
        ck_assert_uint_eq(wrong, 0);
        ck_assert_uint_eq(count_unchanged_objects_in_use(), in_use);
        ck_assert_msg(count_free_objects() + in_use == count_all_objects(), "seed %u",
                      (unsigned)seed);
        domi_slab_fini(&slab);
    }
}

DOMT_SUITE(30)
