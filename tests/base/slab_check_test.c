/* base/slab_check.c: a slab whose figures, free list or trim are broken ends the process. */
#include "base/slab.h"

#include "tests/support/death.h"
#include "tests/support/suite.h"

#include <stdalign.h>

#define ALL 1000u

enum { OBJECTS = 600, STEP = 100 }; /* ten chunks of 63 objects */

static domi_slab slab;
static void *objects[OBJECTS];

static void check_slab(void *breaks)
{
    (*(void (**)(void))breaks)();
    (void)domi_slab_is_sound(&slab, ALL);
}

static void counts_bytes_that_are_not_there(void)
{
    slab.mapped_bytes++;
}

static void spares_more_than_there_is(void)
{
    slab.spare_bytes = slab.mapped_bytes + 1;
}

static void carves_behind_its_chunk(void)
{
    slab.carve_end += slab.chunks->bytes;
}

static void break_with_a_free_object_elsewhere(void)
{
    static alignas(64) void *elsewhere[8];

    slab.free = elsewhere;
}

static void break_with_a_free_object_between_two(void)
{
    slab.free = (char *)slab.free + 8;
}

static void break_with_a_free_object_that_was_never_carved(void)
{
    slab.free = slab.carve;
}

DOMT_TEST(each_invariant_of_a_slab_is_checked)
{
    struct {
        void (*breaks)(void);
        const char *text;
    } rows[] = {
        {counts_bytes_that_are_not_there, "bytes == slab->mapped_bytes"},
        {spares_more_than_there_is, "slab->spare_bytes"},
        {carves_behind_its_chunk, "slab->carve_end"},
        {break_with_a_free_object_elsewhere, "chunk != NULL"},
        {break_with_a_free_object_between_two, "slab->object_bytes"},
        {break_with_a_free_object_that_was_never_carved, "count_carved"},
    };

    domi_slab_init(&slab, 64, 64, 4096);
    for (int i = 0; i < 3; i++)
        ck_assert_ptr_nonnull(objects[i] = domi_slab_take_object(&slab));
    domi_slab_put_object(&slab, objects[0]);
    domi_slab_put_object(&slab, objects[2]);
    ck_assert(domi_slab_is_sound(&slab, ALL));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        domt_check_aborts(check_slab, &rows[i].breaks, rows[i].text);
    domi_slab_fini(&slab);
}

/* --- a trim ----------------------------------------------------------------------------------- */

static void break_with_what_is_sorted_in_the_free_list(void)
{
    slab.free = slab.trim->last->free;
}

static void puts_what_is_sorted(void)
{
    domi_slab_put_object(&slab, slab.trim->last->free);
}

static void sorts_what_is_sorted(void)
{
    slab.trim->rest = slab.trim->last->free;
}

static void puts_twice(void)
{
    void *object = slab.trim->last->free;

    slab.trim->last->free = *(void **)object;
    slab.trim->last->free_count--;
    domi_slab_put_object(&slab, object);
    domi_slab_put_object(&slab, object);
}

static void counts_more_than_it_links(void)
{
    slab.trim->last->free_count++;
}

static void counts_more_than_there_are(void)
{
    slab.trim->last->free_count = OBJECTS;
}

static void break_with_another_last_object(void)
{
    slab.trim->last->free_last = slab.trim->last->free;
}

static void sorts_into_the_wrong_chunk(void)
{
    domi_slab_chunk *chunk = slab.trim->last;

    *(void **)chunk->free_last = slab.trim->rest;
}

static void gives_back_before_all_is_sorted(void)
{
    slab.trim->going = slab.chunks->next;
}

static void loses_a_chunk_of_its_table(void)
{
    slab.trim->count++;
}

static void loses_the_list_of_a_chunk(void)
{
    slab.chunks->next->free = NULL;
}

static void counts_the_free_of_a_full_chunk(void)
{
    slab.chunks->free_count++;
}

static void sorts_after_the_parting(void)
{
    slab.trim->rest = slab.trim->going->free;
}

static void break_with_nothing_left_to_give_back(void)
{
    for (; slab.trim->going != NULL; slab.trim->going = slab.trim->going->next)
        slab.mapped_bytes -= slab.trim->going->bytes;
}

static void gives_back_what_should_last(void)
{
    slab.lasts = true;
}

static void break_with_list_of_a_chunk_that_stays(void)
{
    slab.chunks->free = slab.free;
}

static void spares_another_number_of_bytes(void)
{
    slab.spare_bytes += 64;
}

static void loses_a_chunk_that_goes(void)
{
    slab.trim->going = slab.trim->going->next;
}

static void gives_a_chunk_in_use_back(void)
{
    slab.trim->going->next->free_count--;
}

static void frees_an_object_of_a_chunk_that_goes(void)
{
    domi_slab_put_object(&slab, slab.trim->going->free);
}

static void check_trim(void *breaks)
{
    (*(void (**)(void))breaks)();
    (void)domi_slab_trim_is_sound(&slab, ALL);
}

static void begin_trim(void)
{
    domi_slab_init(&slab, 64, 64, 4096);
    for (int i = 0; i < OBJECTS; i++)
        ck_assert_ptr_nonnull(objects[i] = domi_slab_take_object(&slab));
    for (int i = 0; i < OBJECTS; i++)
        if (i % 300 != 50) /* two chunks keep objects, beside the newest chunk */
            domi_slab_put_object(&slab, objects[i]);
    ck_assert(domi_slab_trim_begin(&slab));
}

static void end_trim(void)
{
    while (!domi_slab_trim_step(&slab, STEP))
        continue;
    domi_slab_fini(&slab);
}

typedef struct row {
    void (*breaks)(void);
    const char *text;
} row;

static void each_dies(row *rows, size_t count)
{
    ck_assert(domi_slab_trim_is_sound(&slab, ALL));
    for (size_t i = 0; i < count; i++)
        domt_check_aborts(check_trim, &rows[i].breaks, rows[i].text);
}

DOMT_TEST(each_invariant_of_a_trim_that_sorts_is_checked)
{
    row rows[] = {
        {break_with_what_is_sorted_in_the_free_list, "*word & bit"},
        {puts_what_is_sorted, "count == chunk->free_count"},
        {puts_twice, "*word & bit"},
        {sorts_what_is_sorted, "*word & bit"},
        {counts_more_than_it_links, "count == chunk->free_count"},
        {counts_more_than_there_are, "chunk->free_count <= count_carved"},
        {break_with_another_last_object, "last == chunk->free_last"},
        {sorts_into_the_wrong_chunk, "lies_in_chunk(chunk, object)"},
        {gives_back_before_all_is_sorted, "bytes == slab->mapped_bytes"},
    };

    begin_trim();
    ck_assert(!domi_slab_trim_step(&slab, STEP));
    ck_assert_ptr_nonnull(slab.trim->rest);
    each_dies(rows, sizeof rows / sizeof rows[0]);
    end_trim();
}

DOMT_TEST(each_invariant_of_a_trim_that_has_sorted_is_checked)
{
    row rows[] = {
        {loses_a_chunk_of_its_table, "count == now->count"},
        {loses_the_list_of_a_chunk, "chunk->free_count == 0"},
        {counts_the_free_of_a_full_chunk, "free_count"},
    };

    begin_trim();
    while (slab.trim->rest != NULL)
        ck_assert(!domi_slab_trim_step(&slab, STEP));
    each_dies(rows, sizeof rows / sizeof rows[0]);
    end_trim();
}

DOMT_TEST(each_invariant_of_a_trim_that_gives_back_is_checked)
{
    row rows[] = {
        {sorts_after_the_parting, "now->rest == NULL"},
        {break_with_nothing_left_to_give_back, "now->going != NULL"},
        {gives_back_what_should_last, "!slab->lasts"},
        {break_with_list_of_a_chunk_that_stays, "chunk->free == NULL"},
        {spares_another_number_of_bytes, "slab->spare_bytes == spare"},
        {loses_a_chunk_that_goes, "bytes == slab->mapped_bytes"},
        {gives_a_chunk_in_use_back, "chunk->free_count == count_carved"},
        {frees_an_object_of_a_chunk_that_goes, "chunk != NULL"},
    };

    begin_trim();
    while (!slab.trim->parted)
        ck_assert(!domi_slab_trim_step(&slab, STEP));
    ck_assert_ptr_nonnull(slab.trim->going->next);
    each_dies(rows, sizeof rows / sizeof rows[0]);
    end_trim();
}

DOMT_SUITE(60)
