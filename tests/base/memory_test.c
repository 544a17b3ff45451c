/* base/memory.c and the budgets of domus/budget.h: allocations that fail on purpose, and what
 * counts against the bound of a budget. */
#include "base/memory.h"
#include "tests/support/suite.h"

#include <domus/budget.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* base/memory.c: memory comes from the heap or is mapped, and a countdown makes the n-th allocation
 * fail, from whichever it is. */

static bool allocate_and_free_block(bool mapped)
{
    void *memory = mapped ? domi_memory_map_pages(100) : domi_memory_new(100);

    if (memory == NULL)
        return false;
    if (mapped)
        domi_memory_unmap_pages(memory, 100);
    else
        domi_memory_free(memory);
    return true;
}

/* Make `count` allocations, by turns from the heap and of pages. Returns a word in which bit i is
 * set if allocation i succeeded. */
static unsigned allocate_and_tell_successes(unsigned count)
{
    unsigned bits = 0;

    for (unsigned i = 0; i < count; i++)
        bits |= (unsigned)allocate_and_free_block(i % 2 != 0) << i;
    return bits;
}

DOMT_TEST(new_memory_is_zeroed)
{
    static const unsigned char zeros[10000];
    unsigned char *heap = domi_memory_new(sizeof zeros);
    unsigned char *pages = domi_memory_map_pages(sizeof zeros);

    ck_assert(heap != NULL && pages != NULL);
    ck_assert_mem_eq(heap, zeros, sizeof zeros);
    ck_assert_mem_eq(pages, zeros, sizeof zeros);
    memset(heap, 1, sizeof zeros);
    domi_memory_free(heap);
    domi_memory_unmap_pages(pages, sizeof zeros);

    heap = domi_memory_new(sizeof zeros);
    ck_assert_mem_eq(heap, zeros, sizeof zeros);
    domi_memory_free(heap);
}

/* --- blocks that grow ------------------------------------------------------------------------- */

static void *allocate_block_and_count(void *context, size_t bytes)
{
    (*(int *)context)++;
    return calloc(1, bytes);
}

static void free_block_and_count(void *context, void *memory, size_t bytes)
{
    (*(int *)context)--;
    free(memory);
}

/* Grow a block of memory in small steps and in large ones, because the C library moves these in
 * different ways. */
static void grow_block_in_steps(size_t most)
{
    size_t size = 100;
    char *memory = domi_memory_new_bytes(size);

    ck_assert_ptr_nonnull(memory);
    memset(memory, 'a', size);
    while (size < most) {
        size_t before = size;
        size += size / 2;
        domi_memory_fail_allocation_after(0, 0);
        ck_assert_ptr_null(domi_memory_grow_block(memory, size));
        domi_memory_fail_allocation_after(-1, 0);
        memory = domi_memory_grow_block(memory, size);
        ck_assert_ptr_nonnull(memory);
        ck_assert_uint_eq((uintptr_t)memory % 16, 0);
        ck_assert_uint_eq(domi_memory_bytes_of_block(memory), size + 16);
        for (size_t i = 0; i < before; i += 1 + i / 16)
            ck_assert_int_eq(memory[i], 'a');
        memset(memory + before, 'a', size - before);
    }
    domi_memory_free(memory);
}

DOMT_TEST(growing_memory_keeps_its_bytes)
{
    int blocks = 0;
    const domus_allocator own = {
        .context = &blocks, .allocate = allocate_block_and_count, .free = free_block_and_count};
    domi_meter meter = {.look_at = INT64_MAX};

    grow_block_in_steps(3000000);
    (void)domi_memory_set_meter(&meter);
    grow_block_in_steps(3000000);
    char *memory = domi_memory_new_bytes(100);
    memory = domi_memory_grow_block(memory, 10000000);
    ck_assert_ptr_nonnull(memory);
    (void)domi_memory_set_meter(NULL);
    ck_assert_int_eq(meter.held, 10000016);
    ck_assert_ptr_null(domi_memory_grow_block(memory, SIZE_MAX / 2));
    domi_memory_free(memory);

    const domus_allocator *before = domi_memory_set_allocator(&own);
    grow_block_in_steps(30000);
    memory = domi_memory_new_bytes(100);
    ck_assert_int_eq(blocks, 1);
    /* The block grows while another allocator than its own is set. */
    (void)domi_memory_set_allocator(before);
    memset(memory, 'b', 100);
    memory = domi_memory_grow_block(memory, 200);
    ck_assert_int_eq(memory[99], 'b');
    ck_assert_int_eq(blocks, 0);
    domi_memory_free(memory);
}

DOMT_TEST(freeing_null_memory_does_nothing)
{
    domi_memory_free(NULL);
    domi_memory_unmap_pages(NULL, 4096);
}

DOMT_TEST(memory_for_huge_page_is_aligned_to_it)
{
    char *memory = domi_memory_map_huge_page();

    ck_assert_ptr_nonnull(memory);
    ck_assert_uint_eq((uintptr_t)memory % DOMI_MEMORY_HUGE, 0);
    ck_assert_int_eq(memory[0] | memory[DOMI_MEMORY_HUGE - 1], 0);
    memset(memory, 1, DOMI_MEMORY_HUGE);
    domi_memory_unmap_pages(memory, DOMI_MEMORY_HUGE);
    domi_memory_fail_allocation_after(0, 0);
    ck_assert_ptr_null(domi_memory_map_huge_page());
}

DOMT_TEST(mapped_memory_is_whole_pages)
{
    char *pages = domi_memory_map_pages(1);

    ck_assert_uint_eq((uintptr_t)pages % 4096, 0);
    pages[4095] = 1;
    domi_memory_unmap_pages(pages, 1);
}

DOMT_TEST(failed_allocation_returns_null)
{
    /* A program of 64 bits cannot map half of its addresses, and one of 32 bits cannot map seven
     * eighths. */
    ck_assert_ptr_null(
        domi_memory_map_pages(SIZE_MAX == UINT64_MAX ? SIZE_MAX / 2 : SIZE_MAX / 8 * 7));
}

DOMT_TEST(countdown_fails_only_the_nth_allocation)
{
    for (int n = 0; n < 8; n++) {
        domi_memory_fail_allocation_after(n, 0);
        ck_assert_uint_eq(allocate_and_tell_successes(8), 0xffu & ~(1u << n));
    }
    ck_assert_uint_eq(allocate_and_tell_successes(8),
                      0xff); /* The countdown is used up, so no further allocation fails. */
}

DOMT_TEST(countdown_fails_all_from_the_nth_allocation)
{
    for (unsigned n = 0; n < 8; n++) {
        domi_memory_fail_allocation_after(n, 1);
        ck_assert_uint_eq(allocate_and_tell_successes(8), (1u << n) - 1);
        ck_assert_uint_eq(allocate_and_tell_successes(8), 0);
    }
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_uint_eq(allocate_and_tell_successes(8), 0xff);
}

DOMT_TEST(allocations_before_countdown_end_succeed)
{
    domi_memory_fail_allocation_after(1000, 0);
    for (int i = 0; i < 1000; i++)
        ck_assert(allocate_and_free_block(false));
    ck_assert(!allocate_and_free_block(false));
    ck_assert(allocate_and_free_block(false));
}

/* --- budget ----------------------------------------------------------------------------------- */

/* Budgets: what counts, what is refused, and that a refusal changes nothing. */

DOMT_TEST(charged_bytes_count_until_discharged)
{
    domus_budget budget = {.bytes_max = 100};
    uint64_t first = 0, second = 0;

    ck_assert_int_eq(domus_budget_charge(&budget, &first, 60), 0);
    ck_assert_int_eq(domus_budget_charge(&budget, &second, 40), 0);
    ck_assert_uint_eq(budget.used_bytes, 100);
    ck_assert_int_eq(domus_budget_charge(&budget, &first, 10), 0);
    ck_assert_uint_eq(first, 10);
    ck_assert_uint_eq(budget.used_bytes, 50);
    ck_assert_int_eq(domus_budget_charge(&budget, &second, 0), 0);
    ck_assert_int_eq(domus_budget_charge(&budget, &first, 0), 0);
    ck_assert_uint_eq(first + second + budget.used_bytes, 0);
}

DOMT_TEST(refused_charge_changes_no_budget)
{
    domus_budget budget = {.bytes_max = 100};
    uint64_t first = 0, second = 0;

    ck_assert_int_eq(domus_budget_charge(&budget, &first, 101), -ENOMEM);
    ck_assert_uint_eq(first, 0);
    ck_assert_uint_eq(budget.used_bytes, 0);
    ck_assert_int_eq(domus_budget_charge(&budget, &first, 90), 0);
    ck_assert_int_eq(domus_budget_charge(&budget, &second, 11), -ENOMEM);
    ck_assert_int_eq(domus_budget_charge(&budget, &first, 101), -ENOMEM);
    ck_assert_uint_eq(first, 90);
    ck_assert_uint_eq(budget.used_bytes, 90);
}

/* The bound of a budget may be lowered below the bytes that count against it. */
DOMT_TEST(smaller_charge_is_never_refused)
{
    domus_budget budget = {.bytes_max = 100};
    uint64_t charged = 0;

    ck_assert_int_eq(domus_budget_charge(&budget, &charged, 100), 0);
    budget.bytes_max = 10;
    ck_assert_int_eq(domus_budget_charge(&budget, &charged, 50), 0);
    ck_assert_int_eq(domus_budget_charge(&budget, &charged, 50), 0);
    ck_assert_int_eq(domus_budget_charge(&budget, &charged, 51), -ENOMEM);
    ck_assert_uint_eq(budget.used_bytes, 50);
}

DOMT_TEST(charges_without_a_budget_count_nowhere)
{
    uint64_t charged = 0;

    ck_assert_int_eq(domus_budget_charge(NULL, &charged, UINT64_MAX), 0);
    ck_assert_uint_eq(charged, 0);
}

DOMT_SUITE(20)
