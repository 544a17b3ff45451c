/* A thread ends its actors one after the other, on a stepped system (tests/runtime/stepped.h).
 * on_stop may send to actors that have ended and to others, and still no slot is ever linked into
 * two lists. */
#include "runtime/loop/steps.h"
#include "tests/runtime/running.h"
#include "tests/runtime/stepped.h"

#include "base/random.h"
#include "house/dispatch/manage.h"
#include "house/family/slots.h"

#define ACTORS 2000u

static uint64_t stopped, sent, released;

static void count_released_message(void *payload)
{
    released++;
}

static const domus_type word_type = {.name = "word", .release = count_released_message};

struct whisperer {
    domus_address *to;    /* actor to which on_stop sends; NULL: to nobody */
    domus_address *stops; /* actor that on_stop stops; NULL: nobody */
};

static void send_and_stop_in_stop(domus_stack *stack, void *self_)
{
    const struct whisperer *self = self_;
    stopped++;
    if (self->to != NULL)
        sent += domus_notice(stack, *self->to, &word_type, NULL) == 0;
    if (self->stops != NULL)
        (void)domus_stop(stack, *self->stops);
}

static const domus_behaviour whisperer = {
    .name = "whisperer", .state_size = sizeof(struct whisperer), .on_stop = send_and_stop_in_stop};

static void count_slot_of_ended_actor(void *house_, void *count)
{
    const domi_house *house = house_;
    ck_assert_uint_ne(atomic_load(&((domi_house *)house_)->life) & DOMI_LIFE_CLOSED, 0);
    ck_assert_int_eq(house->state, DOMI_CREATED);
    ++*(uint32_t *)count;
}

static uint32_t length_of_list_of_slots(const domi_house *house, uint32_t most)
{
    uint32_t length = 0;
    for (; house != NULL && length <= most; house = house->next)
        length++;
    return length;
}

/* Check that all slots are closed, and that none of them is in two of the lists of free slots: that
 * of home, that of home's surplus, and that of the spawner. */
static void check_no_slot_twice(domt_stepped *stepped)
{
    domi_manager *home = &domt_stepped_thread(stepped, 0)->manager;
    uint32_t slots = 0;
    uint32_t linked = 0;

    domi_slots_visit_all(home, count_slot_of_ended_actor, &slots);
    ck_assert_uint_ge(slots, ACTORS);
    for (uint32_t i = 0; i < DOMI_HOUSE_CLASSES; i++) {
        uint32_t kept = length_of_list_of_slots(home->births.slots_of[0].free[i], slots);
        ck_assert_uint_eq(kept, home->births.slots_of[0].count[i]);
        linked +=
            kept + length_of_list_of_slots(home->births.slots.slabs[i].free, slots) +
            length_of_list_of_slots(stepped->system->outside.births.slots_of[0].free[i], slots);
    }
    ck_assert_uint_le(linked, slots);
    ck_assert_uint_eq(home->births.houses, 0);
}

static void end_actors_in_every_way(uint64_t seed, uint64_t one_of)
{
    static domus_address addresses[ACTORS];
    domt_stepped stepped;
    domi_random dice;

    stopped = sent = released = 0;
    domi_random_init(&dice, seed);
    domt_stepped_init_default(&stepped, 1);
    for (uint32_t i = 0; i < ACTORS; i++) {
        struct whisperer state = {NULL, NULL};
        if (domi_random_below(&dice, one_of) == 0)
            state.to = &addresses[domi_random_below(&dice, ACTORS)];
        if (domi_random_below(&dice, one_of) == 0)
            state.stops =
                &addresses[domi_random_below(&dice, 2) == 0 ? i : domi_random_below(&dice, ACTORS)];
        addresses[i] = domt_spawn(stepped.system, 0, &whisperer, &state);
    }
    domt_stepped_iterate(&stepped, 0, false);
    domi_manager_end_actors(&domt_stepped_thread(&stepped, 0)->manager);
    ck_assert_uint_eq(stopped, ACTORS);
    ck_assert_uint_eq(released, sent);
    ck_assert_uint_gt(sent, 0);
    check_no_slot_twice(&stepped);
    domt_stepped_fini(&stepped);
}

DOMT_TEST(on_stop_may_send_to_those_that_have_ended_and_those_that_have_not)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        end_actors_in_every_way(seed, 1);
        end_actors_in_every_way(seed, 8);
        end_actors_in_every_way(seed, 100);
    }
}

static int send_three_notices(domus_stack *stack, void *self)
{
    for (int i = 0; i < 3; i++)
        (void)domus_notice(stack, domus_self(stack), &word_type, NULL);
    return 0;
}

static const domus_behaviour late = {.name = "late",
                                     .state_size = sizeof(struct whisperer),
                                     .on_mount = send_three_notices,
                                     .on_stop = send_and_stop_in_stop};

/* When the thread ends, its houses are in every state that a house can have. */
DOMT_TEST(end_of_a_thread_ends_actors_in_every_state)
{
    domt_stepped stepped;
    domus_address address;

    domt_stepped_init_default(&stepped, 1);
    for (uint32_t i = 0; i < ACTORS; i++) {
        address = domt_spawn(stepped.system, 0, &late, &(struct whisperer){NULL, NULL});
        if (i == ACTORS / 3)
            /* the houses that were spawned so far are now waiting */
            domt_stepped_iterate(&stepped, 0, true);
        if (i == ACTORS / 3 * 2) {
            domi_thread_run_phase_io(domt_stepped_thread(&stepped, 0));
            /* the houses that were spawned since then are now ready */
            domi_thread_run_phase_channels(domt_stepped_thread(&stepped, 0));
        }
        if (i % 7 == 0)
            ck_assert_int_eq(domus_outside_stop(stepped.system, address), 0);
    } /* the houses that were spawned last lie in the arrivals only */
    domi_manager_end_actors(&domt_stepped_thread(&stepped, 0)->manager);
    domus_profile profile = domt_profile_of_thread(stepped.system, 0);
    ck_assert_uint_le(stopped, profile.spawns);
    ck_assert_uint_ge(stopped, profile.spawns / 7 * 6 - 7);
    ck_assert_uint_eq(released, 3 * stopped);
    check_no_slot_twice(&stepped);
    domt_stepped_fini(&stepped);
}

DOMT_SUITE(30)
