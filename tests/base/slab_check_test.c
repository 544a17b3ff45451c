/* base/slab_check.c: a slab whose figures or free list are broken ends the process. */
#include "base/slab.h"

#include "tests/support/death.h"
#include "tests/support/suite.h"

#include <stdalign.h>

#define ALL 1000u

static domi_slab slab;

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

static void has_a_free_object_elsewhere(void)
{
    static alignas(64) void *elsewhere[8];

    slab.free = elsewhere;
}

static void has_a_free_object_between_two(void)
{
    slab.free = (char *)slab.free + 8;
}

static void has_a_free_object_that_was_never_carved(void)
{
    slab.free = slab.carve;
}

START_TEST(each_invariant_of_a_slab_is_checked)
{
    struct {
        void (*breaks)(void);
        const char *text;
    } rows[] = {
        {counts_bytes_that_are_not_there, "bytes == slab->mapped_bytes"},
        {spares_more_than_there_is, "slab->spare_bytes"},
        {carves_behind_its_chunk, "slab->carve_end"},
        {has_a_free_object_elsewhere, "chunk != NULL"},
        {has_a_free_object_between_two, "slab->object_bytes"},
        {has_a_free_object_that_was_never_carved, "object"},
    };
    void *objects[3];

    domi_slab_init(&slab, 64, 64, 4096);
    for (int i = 0; i < 3; i++)
        ck_assert_ptr_nonnull(objects[i] = domi_slab_take(&slab));
    domi_slab_put(&slab, objects[0]);
    domi_slab_put(&slab, objects[2]);
    ck_assert(domi_slab_is_sound(&slab, ALL));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        domt_dies(check_slab, &rows[i].breaks, rows[i].text);
    domi_slab_fini(&slab);
}
END_TEST

DOMT_MAIN("slab check", 60, each_invariant_of_a_slab_is_checked)
