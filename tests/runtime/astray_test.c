/* Actors that do what they should not, and systems that begin badly: nobody else suffers from it.
 */
#include "base/memory.h"
#include "tests/runtime/running.h"

#include <domus/detached.h>
#include <domus/letters.h>

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

static const domus_type go_type = {.name = "go"};
static const domus_type note_type = {.name = "note", .size = sizeof(uint64_t)};

static atomic_int begun, taken, wrong, forked;
static atomic_bool hold;

/* --- the outside's asker ---------------------------------------------------------------------- */

static int attack(domus_stack *stack, void *self, const void *payload)
{
    domus_address sender = domus_sender(stack);

    (void)self, (void)payload;
    if (sender.house != NULL || domus_stop(stack, sender) != -ESTALE ||
        domus_link_actor(stack, sender, NULL) != -EINVAL)
        atomic_fetch_add(&wrong, 1);
    return domus_reply(stack, &go_type, NULL);
}

static const domus_behaviour attacker = {
    .name = "attacker", .on = (const domus_on[]){{&go_type, attack, 0}, {NULL, NULL, 0}}};

START_TEST(who_asks_from_outside_is_nobody_and_nobody_stops_him)
{
    domus_config config = domt_config(1);
    domus_system *system = domt_start(&config);
    domus_address address = domt_spawn(system, 0, &attacker, NULL);

    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(domus_outside_ask(system, address, &go_type, NULL, 5000 * DOMT_MS, NULL),
                         0);
    ck_assert_int_eq(atomic_load(&wrong), 0);
    domt_end(system);
}
END_TEST

/* --- a receive that returns ------------------------------------------------------------------- */

static int receive(domus_stack *stack, void *self, const void *payload)
{
    static const domus_type *const notes[] = {&note_type, NULL};
    const domus_pattern pattern = {.types = notes};
    domus_received got;
    int result = 0;

    (void)self, (void)payload;
    while (atomic_load(&hold))
        domt_pause_ns(DOMT_MS);
    if (atomic_load(&wrong) != 0)
        (void)domus_escalate(stack, -EIO);
    while (result == 0 || result == -ETIMEDOUT) {
        result = domus_receive_now(stack, &pattern, 20 * DOMT_MS, &got);
        if (result == 0)
            atomic_fetch_add(&taken, 1);
    }
    return 0;
}

static int mounted(domus_stack *stack, void *self)
{
    (void)stack, (void)self;
    atomic_fetch_add(&begun, 1);
    return 0;
}

static const domus_behaviour receiver = {
    .name = "receiver",
    .on = (const domus_on[]){{&go_type, receive, 0}, {NULL, NULL, 0}},
    .on_mount = mounted,
};

START_TEST(what_a_receive_that_returns_takes_makes_room)
{
    const domus_spawn_options options = {.detached = true};
    domus_config config = domt_config(1);
    config.scheduler.mailbox_max = 64;
    domus_system *system = domt_start(&config);
    domus_address address;
    uint64_t number = 0;

    atomic_store(&hold, true);
    ck_assert_int_eq(domus_outside_spawn_with(system, &receiver, NULL, &options, &address), 0);
    domt_notice(system, address, &go_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&begun) == 1);
    while (domus_outside_notice(system, address, &note_type, &number) == 0)
        number++;
    atomic_store(&hold, false);
    DOMT_WAIT_FOR(10, domus_outside_notice(system, address, &note_type, &number) == 0);
    DOMT_WAIT_FOR(10, (uint64_t)atomic_load(&taken) == number + 1);
    domt_end(system);
}
END_TEST

static int make(domus_stack *stack, void *self, const void *payload)
{
    const domus_spawn_options options = {.detached = true};
    domus_address child;

    (void)self, (void)payload;
    int result = domus_spawn_with(stack, &receiver, NULL, &options, &child);
    return result == 0 ? domus_notice(stack, child, &go_type, NULL) : result;
}

static const domus_supervision restarts = {.otherwise = DOMUS_RESTART};
static const domus_behaviour parent = {
    .name = "parent",
    .supervision = &restarts,
    .on = (const domus_on[]){{&go_type, make, 0}, {NULL, NULL, 0}},
};

START_TEST(a_restart_ends_a_receive_that_returns)
{
    domus_config config = domt_config(1);
    domus_system *system = domt_start(&config);

    atomic_store(&wrong, 1);
    domt_notice(system, domt_spawn(system, 0, &parent, NULL), &go_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&begun) == 2);
    domt_end(system);
}
END_TEST

/* --- others ----------------------------------------------------------------------------------- */

static int divide(domus_stack *stack, void *self, const void *payload)
{
    (void)stack, (void)self, (void)payload;
    int child = fork();
    if (child > 0)
        atomic_store(&forked, child);
    return 0;
}

static const domus_behaviour divider = {
    .name = "divider", .on = (const domus_on[]){{&go_type, divide, 0}, {NULL, NULL, 0}}};

START_TEST(a_detached_handler_that_returns_in_a_child_ends_it)
{
    const domus_spawn_options options = {.detached = true};
    domus_config config = domt_config(1);
    domus_system *system = domt_start(&config);
    domus_address address;
    int status = 0;

    ck_assert_int_eq(domus_outside_spawn_with(system, &divider, NULL, &options, &address), 0);
    domt_notice(system, address, &go_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&forked) != 0);
    DOMT_WAIT_FOR(10, waitpid(atomic_load(&forked), &status, WNOHANG) != 0);
    ck_assert(WIFSIGNALED(status));
    domt_end(system);
}
END_TEST

START_TEST(after_a_failed_start_detached_actors_can_be_made)
{
    const domus_spawn_options options = {.detached = true};
    domus_config config = domt_config(2);
    config.system.cpus = "auto"; /* a pinned thread wants memory when it is made */
    domus_address address;
    int result = -1;

    for (int64_t count = 0; result != 0; count++) {
        domus_system *system = NULL;
        ck_assert_int_eq(domus_system_new(&config, NULL, 0, &system), 0);
        domi_memory_fail_after(count, 0);
        result = domus_system_start(system);
        domi_memory_fail_after(-1, 0);
        if (result != 0)
            ck_assert_int_eq(domus_system_start(system), 0);
        ck_assert_int_eq(domus_outside_spawn_with(system, &divider, NULL, &options, &address), 0);
        domt_end(system);
    }
}
END_TEST

START_TEST(subscribers_that_have_gone_hold_no_place)
{
    domus_config config = domt_config(1);
    domus_system *system = domt_start(&config);

    for (uint32_t i = 0; i < 2 * DOMUS_LETTERS_SUBSCRIBERS_MAX; i++) {
        domus_address address = domt_spawn(system, 0, &divider, NULL);
        ck_assert_int_eq(domus_outside_letters(system, address, DOMUS_LETTERS_DEAD), 0);
        ck_assert_int_eq(domus_outside_stop(system, address), 0);
        DOMT_WAIT_FOR(10, domus_outside_stop(system, address) == -ESTALE);
    }
    domt_end(system);
}
END_TEST

DOMT_MAIN("astray", 60, who_asks_from_outside_is_nobody_and_nobody_stops_him,
          what_a_receive_that_returns_takes_makes_room, a_restart_ends_a_receive_that_returns,
          a_detached_handler_that_returns_in_a_child_ends_it,
          after_a_failed_start_detached_actors_can_be_made,
          subscribers_that_have_gone_hold_no_place)
