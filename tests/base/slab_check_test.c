/* base/slab_check.c: a slab whose counts, free list or trim are broken ends the process. */
#include "base/slab.h"

#include "tests/support/death.h"
#include "tests/support/suite.h"

#include <stdalign.h>

#define ALL 1000u

/* OBJECTS fill ten chunks of 63; STEP objects are one step of a trim */
enum { OBJECTS = 600, STEP = 100 };

static domi_slab slab;
static void *objects[OBJECTS];

static void break_slab_and_check_it(void *breaks)
{
    (*(void (**)(void))breaks)();
    (void)domi_slab_is_sound(&slab, ALL);
}

static void break_count_of_mapped_bytes(void)
{
    slab.mapped_bytes++;
}

static void break_count_of_spare_bytes(void)
{
    slab.spare_bytes = slab.mapped_bytes + 1;
}

static void break_end_of_carving(void)
{
    slab.carve_end += slab.chunks->bytes;
}

static void break_with_free_object_outside_slab(void)
{
    static alignas(64) void *elsewhere[8];

    slab.free = elsewhere;
}

static void break_with_misaligned_free_object(void)
{
    slab.free = (char *)slab.free + 8;
}

static void break_with_uncarved_free_object(void)
{
    slab.free = slab.carve;
}

DOMT_TEST(each_invariant_of_a_slab_is_checked)
{
    struct {
        void (*breaks)(void);
        const char *text;
    } rows[] = {
        {break_count_of_mapped_bytes, "bytes == slab->mapped_bytes"},
        {break_count_of_spare_bytes, "slab->spare_bytes"},
        {break_end_of_carving, "slab->carve_end"},
        {break_with_free_object_outside_slab, "chunk != NULL"},
        {break_with_misaligned_free_object, "slab->object_bytes"},
        {break_with_uncarved_free_object, "count_carved"},
    };

    domi_slab_init(&slab, 64, 64, 4096);
    for (int i = 0; i < 3; i++)
        ck_assert_ptr_nonnull(objects[i] = domi_slab_take_object(&slab));
    domi_slab_put_object(&slab, objects[0]);
    domi_slab_put_object(&slab, objects[2]);
    ck_assert(domi_slab_is_sound(&slab, ALL));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        domt_check_child_aborts(break_slab_and_check_it, &rows[i].breaks, rows[i].text);
    domi_slab_fini(&slab);
}

/* --- a trim ----------------------------------------------------------------------------------- */

static void break_with_sorted_object_in_free_list(void)
{
    slab.free = slab.trim->last->free;
}

static void break_by_putting_sorted_object(void)
{
    domi_slab_put_object(&slab, slab.trim->last->free);
}

static void break_by_sorting_object_again(void)
{
    slab.trim->rest = slab.trim->last->free;
}

static void break_by_putting_object_twice(void)
{
    void *object = slab.trim->last->free;

    slab.trim->last->free = *(void **)object;
    slab.trim->last->free_count--;
    domi_slab_put_object(&slab, object);
    domi_slab_put_object(&slab, object);
}

static void break_count_of_linked_objects(void)
{
    slab.trim->last->free_count++;
}

static void break_count_of_carved_objects(void)
{
    slab.trim->last->free_count = OBJECTS;
}

static void break_last_object_of_chunk_list(void)
{
    slab.trim->last->free_last = slab.trim->last->free;
}

static void break_by_sorting_into_wrong_chunk(void)
{
    domi_slab_chunk *chunk = slab.trim->last;

    *(void **)chunk->free_last = slab.trim->rest;
}

static void break_by_giving_back_too_early(void)
{
    slab.trim->going = slab.chunks->next;
}

static void break_count_of_chunks_in_table(void)
{
    slab.trim->count++;
}

static void break_free_list_of_chunk(void)
{
    slab.chunks->next->free = NULL;
}

static void break_free_count_of_full_chunk(void)
{
    slab.chunks->free_count++;
}

static void break_by_sorting_after_chunks_parted(void)
{
    slab.trim->rest = slab.trim->going->free;
}

static void break_with_no_chunk_left_to_give_back(void)
{
    for (; slab.trim->going != NULL; slab.trim->going = slab.trim->going->next)
        slab.mapped_bytes -= slab.trim->going->bytes;
}

static void break_by_trimming_lasting_slab(void)
{
    slab.lasts = true;
}

static void break_with_list_in_staying_chunk(void)
{
    slab.chunks->free = slab.free;
}

static void break_number_of_spare_bytes(void)
{
    slab.spare_bytes += 64;
}

static void break_list_of_going_chunks(void)
{
    slab.trim->going = slab.trim->going->next;
}

static void break_by_giving_back_used_chunk(void)
{
    slab.trim->going->next->free_count--;
}

static void break_by_freeing_object_of_going_chunk(void)
{
    domi_slab_put_object(&slab, slab.trim->going->free);
}

static void break_trim_and_check_it(void *breaks)
{
    (*(void (**)(void))breaks)();
    (void)domi_slab_trim_is_sound(&slab, ALL);
}

static void begin_trim_of_slab(void)
{
    domi_slab_init(&slab, 64, 64, 4096);
    for (int i = 0; i < OBJECTS; i++)
        ck_assert_ptr_nonnull(objects[i] = domi_slab_take_object(&slab));
    for (int i = 0; i < OBJECTS; i++)
        if (i % 300 != 50) /* two chunks keep objects in use, beside the newest chunk */
            domi_slab_put_object(&slab, objects[i]);
    ck_assert(domi_slab_trim_begin(&slab));
}

static void end_trim_of_slab(void)
{
    while (!domi_slab_trim_step(&slab, STEP))
        continue;
    domi_slab_fini(&slab);
}

typedef struct row {
    void (*breaks)(void);
    const char *text;
} row;

static void expect_each_break_ends_process(row *rows, size_t count)
{
    ck_assert(domi_slab_trim_is_sound(&slab, ALL));
    for (size_t i = 0; i < count; i++)
        domt_check_child_aborts(break_trim_and_check_it, &rows[i].breaks, rows[i].text);
}

DOMT_TEST(each_invariant_is_checked_while_trim_sorts)
{
    row rows[] = {
        {break_with_sorted_object_in_free_list, "*word & bit"},
        {break_by_putting_sorted_object, "count == chunk->free_count"},
        {break_by_putting_object_twice, "*word & bit"},
        {break_by_sorting_object_again, "*word & bit"},
        {break_count_of_linked_objects, "count == chunk->free_count"},
        {break_count_of_carved_objects, "chunk->free_count <= count_carved"},
        {break_last_object_of_chunk_list, "last == chunk->free_last"},
        {break_by_sorting_into_wrong_chunk, "lies_in_chunk(chunk, object)"},
        {break_by_giving_back_too_early, "bytes == slab->mapped_bytes"},
    };

    begin_trim_of_slab();
    ck_assert(!domi_slab_trim_step(&slab, STEP));
    ck_assert_ptr_nonnull(slab.trim->rest);
    expect_each_break_ends_process(rows, sizeof rows / sizeof rows[0]);
    end_trim_of_slab();
}

DOMT_TEST(each_invariant_is_checked_after_trim_sorted)
{
    row rows[] = {
        {break_count_of_chunks_in_table, "count == now->count"},
        {break_free_list_of_chunk, "chunk->free_count == 0"},
        {break_free_count_of_full_chunk, "free_count"},
    };

    begin_trim_of_slab();
    while (slab.trim->rest != NULL)
        ck_assert(!domi_slab_trim_step(&slab, STEP));
    expect_each_break_ends_process(rows, sizeof rows / sizeof rows[0]);
    end_trim_of_slab();
}

DOMT_TEST(each_invariant_is_checked_while_trim_gives_back)
{
    row rows[] = {
        {break_by_sorting_after_chunks_parted, "now->rest == NULL"},
        {break_with_no_chunk_left_to_give_back, "now->going != NULL"},
        {break_by_trimming_lasting_slab, "!slab->lasts"},
        {break_with_list_in_staying_chunk, "chunk->free == NULL"},
        {break_number_of_spare_bytes, "slab->spare_bytes == spare"},
        {break_list_of_going_chunks, "bytes == slab->mapped_bytes"},
        {break_by_giving_back_used_chunk, "chunk->free_count == count_carved"},
        {break_by_freeing_object_of_going_chunk, "chunk != NULL"},
    };

    begin_trim_of_slab();
    while (!slab.trim->parted)
        ck_assert(!domi_slab_trim_step(&slab, STEP));
    ck_assert_ptr_nonnull(slab.trim->going->next);
    expect_each_break_ends_process(rows, sizeof rows / sizeof rows[0]);
    end_trim_of_slab();
}

DOMT_SUITE(60)
