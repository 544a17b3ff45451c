/* A payload that owns memory is released once when the await of its ask cannot begin. */
#include "house/family/life.h"
#include "tests/house/owning.h"

#include <domus/await.h>

#define MS UINT64_C(1000000)

static domt_owning *const now = &domt_owned;
static int slept;

DOMUS_SEQUENCE(ask, char)
{
    DOMUS_BEGIN;
    DOMUS_SLEEP(5 * MS);
    slept = answer->error;
    DOMUS_ASK(now->actors[1], &domt_small, domt_own("asked"));
    DOMUS_END;
}

DOMUS_SEQUENCE(ask_within, char)
{
    DOMUS_BEGIN;
    DOMUS_SLEEP(5 * MS);
    slept = answer->error;
    DOMUS_ASK_WITHIN(now->actors[1], &domt_middle, domt_own("asked"), 2 * MS);
    DOMUS_END;
}

static const domus_type ask_type = {.name = "ask"};
static const domus_type ask_within_type = {.name = "ask within"};

static const domus_behaviour behaviour = {
    .name = "sequences",
    .on = (const domus_on[]){DOMUS_ON(&ask_type, ask),
                             DOMUS_ON(&ask_within_type, ask_within),
                             {NULL, NULL, 0}},
};

static domus_address begin(const domus_type *type)
{
    domus_address one =
        domt_spawn(domt_outside(&now->world), now->world.managers[0], &behaviour, NULL);

    slept = 1;
    ck_assert_int_eq(domt_notice(domt_outside(&now->world), one, type, NULL), 0);
    domt_settle(&now->world);
    return one;
}

DOMT_TEST(ask_that_a_sequence_could_not_begin_is_released)
{
    const domus_type *const types[] = {&ask_type, &ask_within_type};

    for (int i = 0; i < 2; i++) {
        domt_owning_open();
        domus_address one = begin(types[i]);
        ck_assert_int_eq(domi_house_stop(now->world.managers[0], one), 0);
        domt_settle(&now->world);
        ck_assert_int_eq(slept, -ECANCELED);
        ck_assert_uint_eq(now->made, 1);
        ck_assert_uint_eq(now->released, 1);
        ck_assert_uint_eq(now->handled, 0);
        domt_owning_close();
    }
}

DOMT_TEST(ask_that_a_sequence_made_is_released_once)
{
    const domus_type *const types[] = {&ask_type, &ask_within_type};

    for (int i = 0; i < 2; i++) {
        domt_owning_open();
        (void)begin(types[i]);
        domt_pass(&now->world, 10 * MS);
        ck_assert_int_eq(slept, 0);
        ck_assert_uint_eq(now->handled, 1);
        ck_assert_uint_eq(now->released, 1);
        domt_owning_close();
    }
}

DOMT_SUITE(60)
