/* Actors that do what they should not, and systems that begin badly: nobody else
 * suffers from it. */
#include "base/memory.h"
#include "tests/runtime/running.h"

#include <domus/detached.h>
#include <domus/letters.h>

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

static const domus_type go_type = {.name = "go"};

static atomic_int wrong, forked;

/* --- the outside's asker ---------------------------------------------------------------------- */

static int attack(domus_stack *stack, void *self, const void *payload)
{
    domus_address sender = domus_sender(stack);

    if (sender.house != NULL || domus_stop(stack, sender) != -ESTALE ||
        domus_link_actor(stack, sender, NULL) != -EINVAL)
        atomic_fetch_add(&wrong, 1);
    return domus_reply(stack, &go_type, NULL);
}

static const domus_behaviour attacker = {
    .name = "attacker", .on = (const domus_on[]){{&go_type, attack, 0}, {NULL, NULL, 0}}};

DOMT_TEST(who_asks_from_outside_is_nobody_and_nobody_stops_him)
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

/* --- others ----------------------------------------------------------------------------------- */

static int divide(domus_stack *stack, void *self, const void *payload)
{
    int child = fork();
    if (child > 0)
        atomic_store(&forked, child);
    return 0;
}

static const domus_behaviour divider = {
    .name = "divider", .on = (const domus_on[]){{&go_type, divide, 0}, {NULL, NULL, 0}}};

DOMT_TEST(a_detached_handler_that_returns_in_a_child_ends_it)
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

DOMT_TEST(after_a_failed_start_detached_actors_can_be_made)
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

DOMT_TEST(subscribers_that_have_gone_hold_no_place)
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

DOMT_SUITE(60)
