/* Actors that have children and fail when told to; tests/house/kin.h tells more. */
#include "tests/house/kin.h"
#include "tests/house/steps.h"

#include "house/dispatch/dispatch.h"
#include "house/family/life.h"
#include "tests/support/suite.h"

#include <domus/conversation.h>
#include <domus/timer.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DAY_NS UINT64_C(86400000000000)

domt_world domt_kin_world;
domt_kin_record domt_kin_of[DOMT_KIN_MAX];
unsigned domt_kin_releases;

static char trail[DOMT_TRAIL_MAX];
static size_t trail_bytes;

static void count_release_of_note(void *payload)
{
    domt_kin_releases++;
}

const domus_type domt_kin_note = {.name = "note", .size = 8, .release = count_release_of_note};
const domus_type domt_kin_fail = {.name = "fail", .size = sizeof(int)};
const domus_type domt_kin_tick = {.name = "tick"};

static domt_kin_record *write_letter_and_number_to_trail(char what, const domt_kin *self)
{
    if (trail_bytes + 8 < sizeof trail)
        trail_bytes += (size_t)snprintf(trail + trail_bytes, sizeof trail - trail_bytes, "%c%u ",
                                        what, self->number);
    return &domt_kin_of[self->number];
}

/* --- handlers -------------------------------------------------------------------------------- */

static int on_note_write_trail(domus_stack *stack, void *self_, const void *payload)
{
    const domt_kin *self = self_;
    domt_kin_record *mine = write_letter_and_number_to_trail('n', self);

    (void)domus_take(stack);
    mine->notes++;
    mine->worth = self->worth;
    return 0;
}

static int on_fail_return_error(domus_stack *stack, void *self, const void *error)
{
    return *(const int *)error;
}

static int on_tick_write_trail(domus_stack *stack, void *self, const void *payload)
{
    write_letter_and_number_to_trail('e', self)->ticks++;
    return 0;
}

static int on_down_record_end(domus_stack *stack, void *self, const void *down)
{
    domt_kin_record *mine = write_letter_and_number_to_trail('d', self);

    mine->downs++;
    mine->down = *(const domus_down *)down;
    return 0;
}

static int on_room_record_room(domus_stack *stack, void *self, const void *room)
{
    domt_kin_record *mine = write_letter_and_number_to_trail('o', self);

    mine->rooms++;
    mine->down = *(const domus_down *)room;
    return 0;
}

static int record_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    domt_kin_record *mine = &domt_kin_of[((domt_kin *)self)->number];

    if (answer->error != 0)
        (void)write_letter_and_number_to_trail('x', self);
    mine->answer = answer->error;
    return mine->resuming != NULL ? mine->resuming(stack, self) : 0;
}

static int record_or_fail_mount_or_restart(domus_stack *stack, void *self, char what)
{
    domt_kin_record *mine = &domt_kin_of[((domt_kin *)self)->number];
    int result = mine->mounting != NULL ? mine->mounting(stack, self) : 0;

    if (mine->fails != 0) {
        mine->fails--;
        mine->bad_mounts += what == 'm';
        return mine->error;
    }
    (void)write_letter_and_number_to_trail(what, self);
    mine->mounts += what == 'm';
    mine->restarts += what == 'r';
    return result;
}

static int on_mount_of_kin(domus_stack *stack, void *self)
{
    domt_kin_of[((domt_kin *)self)->number].address = domus_self(stack);
    return record_or_fail_mount_or_restart(stack, self, 'm');
}

static void on_stop_of_kin(domus_stack *stack, void *self)
{
    domt_kin_record *mine = write_letter_and_number_to_trail('s', self);

    mine->stops++;
    if (mine->stopping != NULL)
        (void)mine->stopping(stack, self);
}

static int on_restart_of_kin(domus_stack *stack, void *self, int error)
{
    domt_kin_of[((domt_kin *)self)->number].cause = error;
    ((domt_kin *)self)->worth = DOMT_WORTH;
    return record_or_fail_mount_or_restart(stack, self, 'r');
}

static const domus_on hearing_rows[] = {{&domt_call_type, domt_on_call_run_function, 0},
                                        {&domt_kin_note, on_note_write_trail, 0},
                                        {&domt_kin_fail, on_fail_return_error, 0},
                                        {&domt_kin_tick, on_tick_write_trail, 0},
                                        {&domus_room_type, on_room_record_room, 0},
                                        {&domus_down_type, on_down_record_end, 0},
                                        {0}};
static const domus_on deaf_rows[] = {
    {&domt_call_type, domt_on_call_run_function, 0}, {&domt_kin_note, on_note_write_trail, 0},
    {&domt_kin_fail, on_fail_return_error, 0},       {&domt_kin_tick, on_tick_write_trail, 0},
    {&domus_room_type, on_room_record_room, 0},      {0}};

const domus_behaviour domt_kin_hearing = {.name = "hearing",
                                          .state_size = sizeof(domt_kin),
                                          .on = hearing_rows,
                                          .on_mount = on_mount_of_kin,
                                          .on_stop = on_stop_of_kin};

const domus_behaviour domt_kin_deaf = {.name = "deaf",
                                       .state_size = sizeof(domt_kin),
                                       .on = deaf_rows,
                                       .on_mount = on_mount_of_kin,
                                       .on_stop = on_stop_of_kin};

domus_behaviour domt_kin_behaviour_of_boss(const domus_supervision *supervision)
{
    domus_behaviour boss = domt_kin_hearing;

    boss.name = "boss";
    boss.supervision = supervision;
    return boss;
}

domus_behaviour domt_kin_behaviour_with_restart(const domus_supervision *supervision)
{
    domus_behaviour boss = domt_kin_behaviour_of_boss(supervision);

    boss.name = "restarting";
    boss.on_restart = on_restart_of_kin;
    return boss;
}

/* --- the world ------------------------------------------------------------------------------- */

void domt_kin_open_world(uint32_t homes)
{
    memset(domt_kin_of, 0, sizeof domt_kin_of);
    domt_kin_releases = 0;
    trail_bytes = 0;
    trail[0] = '\0';
    for (uint32_t i = 0; i < DOMT_KIN_MAX; i++)
        domt_kin_of[i].answer = 1;
    domt_world_open(&domt_kin_world, homes);
}

void domt_kin_open_world_with_boss(uint32_t homes, const domus_supervision *supervision)
{
    static domus_behaviour boss;

    boss = domt_kin_behaviour_of_boss(supervision);
    domt_kin_open_world(homes);
    (void)domt_kin_spawn_root(1, 0, &boss);
}

void domt_kin_close_clean_world(void)
{
    ck_assert_uint_eq(domt_count_all_objects_in_use(&domt_kin_world), 0);
    domt_kin_close_world();
}

void domt_kin_close_world(void)
{
    domt_world_end(&domt_kin_world);
    for (uint32_t i = 0; i < DOMT_KIN_MAX; i++)
        ck_assert_msg(domt_kin_of[i].mounts == domt_kin_of[i].stops,
                      "number %u: %u mounts, %u stops", i, domt_kin_of[i].mounts,
                      domt_kin_of[i].stops);
}

domus_address domt_kin_spawn_root(uint32_t number, uint32_t home, const domus_behaviour *behaviour)
{
    const domt_kin state = {number, DOMT_WORTH};
    domus_address address = domt_spawn(domt_outside_manager(&domt_kin_world),
                                       domt_kin_world.managers[home], behaviour, &state);

    domt_kin_of[number].address = address;
    domt_settle_world(&domt_kin_world);
    return address;
}

void domt_kin_spawn_root_with_options(uint32_t number, uint32_t home,
                                      const domus_spawn_options *options)
{
    const domt_kin state = {number, DOMT_WORTH};

    ck_assert_int_eq(domi_house_spawn_child(domt_outside_manager(&domt_kin_world), NULL,
                                            domt_kin_world.managers[home], &domt_kin_hearing,
                                            &state, options, &domt_kin_of[number].address),
                     0);
}

int domt_kin_spawn_in_handler(domus_stack *stack, uint32_t number, const domus_behaviour *behaviour,
                              const domus_spawn_options *options)
{
    const domt_kin state = {number, DOMT_WORTH};

    return domus_spawn_with(stack, behaviour, &state, options, &domt_kin_of[number].address);
}

typedef struct birth {
    uint32_t number;
    const domus_behaviour *behaviour;
    const domus_spawn_options *options;
    int result;
} birth;

static int spawn_kin_as_ordered(domus_stack *stack, void *birth_)
{
    birth *now = birth_;

    now->result = domt_kin_spawn_in_handler(stack, now->number, now->behaviour, now->options);
    return 0;
}

int domt_kin_let_parent_spawn(uint32_t parent, uint32_t number, const domus_behaviour *behaviour,
                              const domus_spawn_options *options)
{
    birth now = {number, behaviour, options, 1};

    domt_kin_run_in_handler(parent, spawn_kin_as_ordered, &now);
    return now.result;
}

domus_address domt_kin_spawn_child(uint32_t parent, uint32_t number, uint32_t home,
                                   const domus_behaviour *behaviour)
{
    const domus_spawn_options there = {.placement = DOMUS_ON_THREAD, .thread = home};

    ck_assert_int_eq(domt_kin_let_parent_spawn(parent, number, behaviour, &there), 0);
    return domt_kin_of[number].address;
}

void domt_kin_send_function_to_run(domi_manager *from, uint32_t number,
                                   int (*function)(domus_stack *, void *), void *context)
{
    domt_send_function_to_call(from, domt_kin_of[number].address, function, context);
}

void domt_kin_run_in_handler(uint32_t number, int (*function)(domus_stack *, void *), void *context)
{
    domt_run_as_actor(&domt_kin_world, domt_kin_of[number].address, function, context);
}

void domt_kin_send_notice(uint32_t number, const domus_type *type, int value)
{
    int payload[2] = {value, 0};

    ck_assert_int_eq(domt_send_notice(domt_outside_manager(&domt_kin_world),
                                      domt_kin_of[number].address, type, payload),
                     0);
}

void domt_kin_send_note(uint32_t number)
{
    domt_kin_send_notice(number, &domt_kin_note, 0);
    domt_settle_world(&domt_kin_world);
}

void domt_kin_stop_actor(uint32_t number)
{
    domt_kin_stop_actor_by_manager(domt_outside_manager(&domt_kin_world), number);
}

void domt_kin_stop_actor_by_manager(domi_manager *from, uint32_t number)
{
    domt_stop_actor_and_settle(&domt_kin_world, from, domt_kin_of[number].address);
}

void domt_kin_let_mounts_fail(uint32_t number, unsigned times, int error)
{
    domt_kin_of[number].fails = times;
    domt_kin_of[number].error = error;
}

void domt_kin_fail_actor(uint32_t number, int error)
{
    domt_kin_send_notice(number, &domt_kin_fail, error);
    domt_settle_world(&domt_kin_world);
}

int domt_kin_stop_given_address(domus_stack *stack, void *address)
{
    return domus_stop(stack, *(domus_address *)address);
}

int domt_kin_ask_address_for_ever(domus_stack *stack, void *address)
{
    static const domt_call question = {domt_keep_ask_for_ever, NULL};

    return domus_ask(stack, *(domus_address *)address, &domt_call_type, &question, record_answer);
}

int domt_kin_watch_given_address(domus_stack *stack, void *address)
{
    return domus_watch_actor(stack, *(domus_address *)address, NULL);
}

int domt_kin_arm_ticks_of_1_ms(domus_stack *stack, void *unused)
{
    return domus_every(stack, 1000000, &domt_kin_tick, NULL, NULL);
}

int domt_kin_escalate_with_eperm(domus_stack *stack, void *unused)
{
    return domus_escalate(stack, -EPERM);
}

int domt_kin_sleep_for_a_day(domus_stack *stack, void *unused)
{
    return domus_sleep(stack, DAY_NS, record_answer);
}

void domt_kin_run_iteration_of_home(uint32_t home)
{
    (void)domt_iterate_home(domt_kin_world.managers[home]);
}

void domt_kin_run_houses_of_home(uint32_t home)
{
    (void)domi_manager_take_arrivals(domt_kin_world.managers[home]);
    (void)domt_run_state_queue(domt_kin_world.managers[home]);
}

bool domt_kin_is_alive(uint32_t number)
{
    domus_address address = domt_kin_of[number].address;
    uint64_t life = atomic_load_explicit(&address.house->life, memory_order_relaxed);

    return DOMI_LIFE_LEASE(life) == address.lease && (life & DOMI_LIFE_CLOSED) == 0;
}

uint32_t domt_kin_count_houses(void)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < domt_kin_world.homes; i++)
        sum += (uint32_t)domt_kin_world.managers[i]->births.houses;
    return sum;
}

const char *domt_kin_read_and_clear_trail(void)
{
    static char text[DOMT_TRAIL_MAX];

    memcpy(text, trail, trail_bytes + 1);
    trail_bytes = 0;
    trail[0] = '\0';
    return text;
}
