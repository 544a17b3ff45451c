/* The meter of base/memory.h: a thread reports in steps how much memory it has taken; the report
 * may ask it to look at the level, or refuse the memory. */
#include "base/memory.h"
#include "tests/support/suite.h"

#include <pthread.h>

#define KIB 1024

static domi_meter meter;
static size_t wanted; /* bytes that the last call of record_reported_growth() was told of */
static int calls;
static int fill_at_call; /* number of the call of record_reported_growth() that finds memory full;
                            0: none */

static void record_reported_growth(domi_meter *of, size_t bytes)
{
    ck_assert_ptr_eq(of, &meter);
    wanted = bytes;
    if (++calls == fill_at_call)
        atomic_store(&of->full, 1);
}

static void set_meter_of_test(int64_t look_at)
{
    atomic_store(&meter.look_at, look_at);
    meter.grown = record_reported_growth;
    ck_assert_ptr_null(domi_memory_set_meter(&meter));
}

DOMT_TEST(meter_counts_memory_taken_and_given_back)
{
    set_meter_of_test(INT64_MAX);
    void *pages = domi_memory_map_pages(1000 * KIB);
    void *huge = domi_memory_map_huge_page();
    void *block = domi_memory_new(500 * KIB);
    ck_assert_int_ge(atomic_load(&meter.held), 3548 * KIB);
    ck_assert_int_le(atomic_load(&meter.held), 3560 * KIB);
    domi_memory_unmap_pages(pages, 1000 * KIB);
    domi_memory_unmap_pages(huge, DOMI_MEMORY_HUGE);
    domi_memory_free(block);
    /* Removing the meter reports the bytes that the thread has not reported yet. */
    ck_assert_ptr_eq(domi_memory_set_meter(NULL), &meter);
    ck_assert_int_eq(atomic_load(&meter.held), 0);
    domi_memory_free(domi_memory_new(500 * KIB));
    ck_assert_int_eq(atomic_load(&meter.held), 0);
    ck_assert_int_eq(calls, 0);
}

DOMT_TEST(changing_the_meter_reports_remaining_bytes)
{
    set_meter_of_test(INT64_MAX);
    void *block = domi_memory_new(KIB);
    ck_assert_int_eq(atomic_load(&meter.held), 0);
    ck_assert_ptr_eq(domi_memory_set_meter(NULL), &meter);
    int64_t held = atomic_load(&meter.held);
    ck_assert_int_ge(held, KIB);
    set_meter_of_test(INT64_MAX);
    domi_memory_free(block);
    ck_assert_int_eq(atomic_load(&meter.held), held);
    (void)domi_memory_set_meter(NULL);
    ck_assert_int_eq(atomic_load(&meter.held), 0);
}

/* --- allocators of others --------------------------------------------------------------------- */

static int given, taken_back;
static bool has_none;

static void *allocate_block_of_foreign_allocator(void *context, size_t bytes)
{
    given++;
    return has_none ? NULL : calloc(1, bytes);
}

static void free_block_of_foreign_allocator(void *context, void *memory, size_t bytes)
{
    taken_back++;
    free(memory);
}

static void *refuse_to_allocate(void *context, size_t bytes)
{
    return NULL;
}

static void free_nothing(void *context, void *memory, size_t bytes)
{
}

static const domus_allocator foreign = {.allocate = allocate_block_of_foreign_allocator,
                                        .free = free_block_of_foreign_allocator,
                                        .map = refuse_to_allocate,
                                        .unmap = free_nothing};

DOMT_TEST(meter_does_not_count_refused_allocations)
{
    set_meter_of_test(INT64_MAX);
    const domus_allocator *before = domi_memory_set_allocator(&foreign);
    has_none = true;
    ck_assert_ptr_null(domi_memory_new(500 * KIB));
    ck_assert_ptr_null(domi_memory_map_pages(500 * KIB));
    ck_assert_ptr_null(domi_memory_map_huge_page());
    ck_assert_int_eq(given, 1);
    (void)domi_memory_set_allocator(before);
    (void)domi_memory_set_meter(NULL);
    ck_assert_int_eq(atomic_load(&meter.held), 0);
}

DOMT_TEST(memory_is_freed_by_its_own_allocator)
{
    const domus_allocator *before = domi_memory_set_allocator(&foreign);
    void *theirs = domi_memory_new(KIB);
    (void)domi_memory_set_allocator(before);
    void *ours = domi_memory_new(KIB);
    ck_assert_int_eq(given, 1);
    domi_memory_free(theirs);
    ck_assert_int_eq(taken_back, 1);
    (void)domi_memory_set_allocator(&foreign);
    domi_memory_free(ours);
    (void)domi_memory_set_allocator(before);
    ck_assert_int_eq(taken_back, 1);
}

DOMT_TEST(small_allocations_are_reported_together)
{
    void *blocks[200];

    set_meter_of_test(0);
    for (int i = 0; i < 200; i++)
        blocks[i] = domi_memory_new(KIB);
    ck_assert_int_eq(calls, 3); /* the thread reports its 203 KiB in steps of 64 KiB */
    for (int i = 0; i < 200; i++)
        domi_memory_free(blocks[i]);
    ck_assert_int_eq(calls, 3); /* memory that is given back is not reported by a call */
    (void)domi_memory_set_meter(NULL);
    ck_assert_int_eq(atomic_load(&meter.held), 0);
}

DOMT_TEST(growth_is_reported_from_a_level_on)
{
    set_meter_of_test(1000 * KIB);
    void *first = domi_memory_map_pages(900 * KIB);
    ck_assert_int_eq(calls, 0);
    void *second = domi_memory_map_pages(200 * KIB);
    ck_assert_int_eq(calls, 1);
    ck_assert_uint_eq(wanted, 200 * KIB);
    domi_memory_unmap_pages(first, 900 * KIB);
    domi_memory_unmap_pages(second, 200 * KIB);
    atomic_store(&meter.tight, 1);
    /* memory is tight, so each step of 64 KiB is reported by a call */
    first = domi_memory_map_pages(100 * KIB);
    ck_assert_int_eq(calls, 2);
    ck_assert_ptr_null(domi_memory_map_huge_page());
    domi_memory_unmap_pages(first, 100 * KIB);
}

DOMT_TEST(growth_handler_may_refuse_an_allocation)
{
    set_meter_of_test(0);
    fill_at_call = 2;
    void *first = domi_memory_map_pages(100 * KIB);
    int64_t held = atomic_load(&meter.held);
    ck_assert(!domi_memory_is_full());
    ck_assert_ptr_null(domi_memory_map_pages(100 * KIB));
    ck_assert(domi_memory_is_full());
    ck_assert_int_eq(atomic_load(&meter.held), held);
    ck_assert_ptr_null(domi_memory_new(1)); /* while memory is full, not even one byte is given */
    ck_assert_ptr_null(domi_memory_map_huge_page());
    ck_assert_ptr_null(domi_memory_map_pages(4096));
    (void)domi_memory_set_meter(NULL); /* memory is full only for threads that count with a meter */
    ck_assert(!domi_memory_is_full());
    domi_memory_free(domi_memory_new(1));
    (void)domi_memory_set_meter(&meter);
    atomic_store(&meter.full, 0);
    void *second = domi_memory_map_pages(100 * KIB);
    ck_assert_ptr_nonnull(second);
    domi_memory_unmap_pages(first, 100 * KIB);
    domi_memory_unmap_pages(second, 100 * KIB);
    (void)domi_memory_set_meter(NULL);
    ck_assert_int_eq(atomic_load(&meter.held), 0);
}

DOMT_TEST(meter_does_not_count_failed_allocation)
{
    set_meter_of_test(INT64_MAX);
    domi_memory_fail_allocation_after(0, 1);
    ck_assert_ptr_null(domi_memory_new(500 * KIB));
    ck_assert_ptr_null(domi_memory_map_pages(500 * KIB));
    ck_assert_ptr_null(domi_memory_map_huge_page());
    domi_memory_fail_allocation_after(-1, 0);
    /* A program of 64 bits cannot map half of its addresses, and one of 32 bits cannot map seven
     * eighths. */
    ck_assert_ptr_null(
        domi_memory_map_pages(SIZE_MAX == UINT64_MAX ? SIZE_MAX / 2 : SIZE_MAX / 8 * 7));
    (void)domi_memory_set_meter(NULL);
    ck_assert_int_eq(atomic_load(&meter.held), 0);
}

#define ROUNDS 20000

static void *exchange_blocks_between_threads(void *blocks_)
{
    void **blocks = blocks_;

    (void)domi_memory_set_meter(&meter);
    for (int i = 0; i < ROUNDS; i++) {
        /* Memory that one thread has taken is given back by another one, which counts it. */
        void *other =
            __atomic_exchange_n(&blocks[i % 7], domi_memory_new(3 * KIB), __ATOMIC_ACQ_REL);
        domi_memory_free(other);
    }
    (void)domi_memory_set_meter(NULL);
    return NULL;
}

DOMT_TEST(memory_counts_of_threads_add_up)
{
    pthread_t threads[3];
    void *blocks[7] = {NULL};

    set_meter_of_test(INT64_MAX);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, exchange_blocks_between_threads, blocks),
                         0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 7; i++)
        domi_memory_free(blocks[i]);
    (void)domi_memory_set_meter(NULL);
    ck_assert_int_eq(atomic_load(&meter.held), 0);
}

DOMT_SUITE(30)
