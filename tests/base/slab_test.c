/* base/slab.c: a slab's objects of one size are aligned, the last one that was freed is taken next,
 * and none ever moves. */
#include "base/slab.h"

#include "base/memory.h"
#include "tests/support/suite.h"

#include <stdbool.h>
#include <string.h>

#define CHUNK (64u * 1024)

static bool are_bytes_zero(const char *bytes, size_t count)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0;
}

static void add_object_to_sum(void *object, void *sum)
{
    *(uint64_t *)sum += *(uint64_t *)((char *)object + 8);
}

static void count_object(void *object, void *number)
{
    ++*(unsigned *)number;
}

DOMT_TEST(slab_objects_are_aligned_zeroed_and_disjoint)
{
    static const uint32_t sizes[] = {64, 128, 192, 960, 1088, 1216};
    enum { OBJECTS = 500 };
    static char *objects[OBJECTS];

    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        domi_slab slab;
        unsigned wrong = 0;

        domi_slab_init(&slab, sizes[s], 16, CHUNK);
        for (int i = 0; i < OBJECTS; i++) {
            objects[i] = domi_slab_take_object(&slab);
            wrong += (uintptr_t)objects[i] % 64 != 0 || !are_bytes_zero(objects[i], sizes[s]);
            memset(objects[i], i % 100 + 1, sizes[s]);
        }
        /* no object of the slab was written into by its neighbour */
        for (int i = 0; i < OBJECTS; i++) {
            wrong += objects[i][0] != i % 100 + 1 ||
                     memcmp(objects[i], objects[i] + 1, sizes[s] - 1) != 0;
        }
        ck_assert_uint_eq(wrong, 0);
        domi_slab_fini(&slab);
    }
}

DOMT_TEST(slab_gives_last_freed_object_first)
{
    domi_slab slab;
    void *objects[4];

    domi_slab_init(&slab, 64, 16, CHUNK);
    for (int i = 0; i < 4; i++)
        objects[i] = domi_slab_take_object(&slab);
    domi_slab_put_object(&slab, objects[2]);
    domi_slab_put_object(&slab, objects[0]);
    ck_assert_ptr_eq(domi_slab_take_object(&slab), objects[0]);
    ck_assert_ptr_eq(domi_slab_take_object(&slab), objects[2]);
    void *fresh = domi_slab_take_object(&slab);
    for (int i = 0; i < 4; i++)
        ck_assert_ptr_ne(fresh, objects[i]);
    domi_slab_fini(&slab);
}

DOMT_TEST(slab_maps_no_memory_before_first_take)
{
    domi_slab slab;

    domi_slab_init(&slab, 64, 16, CHUNK);
    ck_assert_uint_eq(slab.mapped_bytes, 0);
    (void)domi_slab_take_object(&slab);
    ck_assert_uint_eq(slab.mapped_bytes, CHUNK);
    domi_slab_fini(&slab);
    ck_assert_uint_eq(slab.mapped_bytes, 0);
}

DOMT_TEST(slab_does_not_grow_while_objects_are_returned)
{
    domi_slab slab;
    void *objects[100];

    domi_slab_init(&slab, 192, 16, CHUNK);
    for (int round = 0; round < 1000; round++) {
        for (int i = 0; i < 100; i++)
            objects[i] = domi_slab_take_object(&slab);
        for (int i = 0; i < 100; i++)
            domi_slab_put_object(&slab, objects[i * 37 % 100]);
    }
    ck_assert_uint_eq(slab.mapped_bytes, CHUNK);
    domi_slab_fini(&slab);
}

DOMT_TEST(slab_chunk_holds_at_least_eight_objects)
{
    domi_slab slab;

    domi_slab_init(&slab, 1216, 16, 1);
    for (int i = 0; i < 8; i++)
        ck_assert_ptr_nonnull(domi_slab_take_object(&slab));
    ck_assert_uint_eq(slab.mapped_bytes, slab.chunk_bytes);
    ck_assert_uint_eq(slab.chunk_bytes % 4096, 0);
    domi_slab_fini(&slab);
}

DOMT_TEST(slab_walks_used_and_free_objects_of_all_chunks)
{
    /* OBJECTS need several chunks, and the last chunk is not carved to its end. */
    enum { OBJECTS = 300 };
    domi_slab slab;
    uint64_t sum = 0;
    unsigned visited = 0;
    static void *objects[OBJECTS];

    domi_slab_init(&slab, 1088, 16, CHUNK);
    domi_slab_visit_objects(&slab, count_object, &visited);
    ck_assert_uint_eq(visited, 0);
    for (uint64_t i = 0; i < OBJECTS; i++) {
        objects[i] = domi_slab_take_object(&slab);
        *(uint64_t *)(void *)((char *)objects[i] + 8) = i;
    }
    for (int i = 0; i < OBJECTS; i += 3)
        domi_slab_put_object(&slab, objects[i]);
    ck_assert_uint_gt(slab.mapped_bytes, CHUNK);
    domi_slab_visit_objects(&slab, count_object, &visited);
    domi_slab_visit_objects(&slab, add_object_to_sum, &sum);
    ck_assert_uint_eq(visited, OBJECTS);
    ck_assert_uint_eq(sum, (uint64_t)OBJECTS * (OBJECTS - 1) / 2);
    domi_slab_fini(&slab);
}

/* The objects' numbers hold over chunks of both sizes, and in a copy of the slab that was made
 * before it grew. */
DOMT_TEST(slab_numbers_objects_in_order_of_carving)
{
    enum { OBJECTS = 60000 };
    static void *objects[OBJECTS];
    domi_slab slab, before;

    domi_slab_init(&slab, 192, 8, CHUNK);
    for (uint32_t i = 0; i < OBJECTS; i++) {
        objects[i] = domi_slab_take_object(&slab);
        ck_assert_ptr_nonnull(objects[i]);
        if (i == OBJECTS / 2)
            before = slab;
    }
    for (uint32_t i = 0; i < OBJECTS; i++)
        ck_assert_uint_eq(domi_slab_number_of_object(&slab, objects[i]), i);
    ck_assert_uint_eq(domi_slab_number_of_object(&before, objects[OBJECTS / 2]), OBJECTS / 2);
    domi_slab_fini(&slab);
}

DOMT_TEST(large_slab_uses_huge_pages)
{
    domi_slab slab;
    unsigned before = 0, wrong = 0, visited = 0;

    domi_slab_init(&slab, 192, 16, CHUNK);
    for (; slab.mapped_bytes <= DOMI_MEMORY_HUGE; before++)
        wrong += domi_slab_take_object(&slab) == NULL;
    ck_assert_uint_eq(slab.mapped_bytes, 2 * DOMI_MEMORY_HUGE);
    for (unsigned i = 0; i < 3 * DOMI_MEMORY_HUGE / 192; i++) {
        char *object = domi_slab_take_object(&slab);
        ck_assert_ptr_nonnull(object);
        wrong += !are_bytes_zero(object, 192);
        memset(object, 1, 192);
        before++;
    }
    ck_assert_uint_eq(slab.mapped_bytes % DOMI_MEMORY_HUGE, 0);
    ck_assert_uint_gt(slab.mapped_bytes, 3 * DOMI_MEMORY_HUGE);
    domi_slab_visit_objects(&slab, count_object, &visited);
    ck_assert_uint_eq(visited, before);
    ck_assert_uint_eq(wrong, 0);
    domi_slab_fini(&slab);
}

DOMT_TEST(slab_keeps_first_bytes_of_free_object)
{
    domi_slab slab;

    domi_slab_init(&slab, 192, 64, CHUNK);
    unsigned char *object = domi_slab_take_object(&slab);
    memset(object, 7, 192);
    domi_slab_put_object(&slab, object);
    /* In a free object the bytes behind the free list's link stay readable, because a house keeps
     * its generation there. */
    for (int i = 8; i < 64; i++)
        ck_assert_uint_eq(object[i], 7);
    domi_slab_fini(&slab);
}

DOMT_TEST(slab_poisons_rest_of_free_object_under_asan)
{
#ifdef DOMI_ASAN
    domi_slab slab;

    domi_slab_init(&slab, 192, 64, CHUNK);
    char *object = domi_slab_take_object(&slab);
    domi_slab_put_object(&slab, object);
    ck_assert_int_eq(__asan_address_is_poisoned(object + 63), 0);
    ck_assert_int_eq(__asan_address_is_poisoned(object + 64), 1);
    ck_assert_int_eq(__asan_address_is_poisoned(object + 191), 1);
    ck_assert_ptr_eq(domi_slab_take_object(&slab), object);
    ck_assert_ptr_null(__asan_region_is_poisoned(object, 192));
    domi_slab_put_object(&slab, object);
    /* domi_slab_fini() unpoisons the memory that it gives back to the kernel. */
    domi_slab_fini(&slab);
#endif
}

DOMT_TEST(slab_without_memory_returns_null_and_recovers)
{
    domi_slab slab;

    domi_slab_init(&slab, 64, 16, CHUNK);
    domi_memory_fail_allocation_after(0, 0);
    ck_assert_ptr_null(domi_slab_take_object(&slab));
    void *object = domi_slab_take_object(&slab);
    ck_assert_ptr_nonnull(object);

    unsigned rest = 1;
    while (slab.carve_end - slab.carve >= 64 && ++rest)
        (void)domi_slab_take_object(&slab);
    domi_memory_fail_allocation_after(0, 1);
    ck_assert_ptr_null(domi_slab_take_object(&slab));
    /* an object that is put into the slab can be taken without memory */
    domi_slab_put_object(&slab, object);
    ck_assert_ptr_eq(domi_slab_take_object(&slab), object);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_uint_eq(rest, CHUNK / 64 - 1); /* the chunk's header took 64 bytes */
    domi_slab_fini(&slab);
}

DOMT_SUITE(30)
