/* runtime/outside/outside.c: foreign threads spawn, send notices and stop, many at once, and also
 * before and after a system runs. */
#include "tests/runtime/running.h"

#include <errno.h>
#include <pthread.h>

static _Atomic uint64_t handled, released, refused, late;

static void count_released_message(void *payload)
{
    atomic_fetch_add(&released, 1);
}

static const domus_type note_type = {.name = "note", .size = 8, .release = count_released_message};

static int take_and_count_notice(domus_stack *stack, void *self, const void *payload)
{
    (void)domus_take(stack);
    atomic_fetch_add(&handled, domus_sender(stack).house == NULL);
    return 0;
}

static const domus_behaviour noter = {
    .name = "noter",
    .on = (const domus_on[]){{&note_type, take_and_count_notice, 0}, {0}},
    .on_mount = domt_count_mount,
    .on_stop = domt_count_stop};

DOMT_TEST(outside_calls_hold_before_and_after_a_system_runs)
{
    domus_config config = domt_config_of_threads(2);
    domus_system *system = NULL;
    domus_address address = {NULL, 0};
    uint64_t payload = 0;

    ck_assert_int_eq(domus_system_new(&config, NULL, 0, &system), 0);
    ck_assert_int_eq(domus_outside_spawn(system, &noter, NULL, &address), -ESHUTDOWN);
    ck_assert_int_eq(domus_outside_spawn_on(system, 0, &noter, NULL, &address), -ESHUTDOWN);
    ck_assert_int_eq(domus_outside_notice(system, address, &note_type, &payload), -ESHUTDOWN);
    ck_assert_int_eq(domus_outside_stop(system, address), -ESHUTDOWN);
    ck_assert_int_eq(domus_system_start(system), 0);
    ck_assert_int_eq(domus_outside_spawn_on(system, 2, &noter, NULL, &address), -EINVAL);
    ck_assert_int_eq(domus_outside_spawn(system, NULL, NULL, &address), -EINVAL);
    ck_assert_int_eq(domus_outside_notice(system, address, &note_type, &payload), -ESTALE);
    ck_assert_int_eq(domus_outside_stop(system, address), -ESTALE);
    ck_assert_int_eq(domus_outside_spawn(system, &noter, NULL, &address), 0);
    const domus_type huge = {.name = "huge", .size = DOMUS_PAYLOAD_MAX + 1};
    ck_assert_int_eq(domus_outside_notice(system, address, &huge, NULL), -EMSGSIZE);
    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert_int_eq(domus_outside_spawn(system, &noter, NULL, &address), -ESHUTDOWN);
    ck_assert_int_eq(domus_outside_notice(system, address, &note_type, &payload), -ESHUTDOWN);
    ck_assert_int_eq(domus_outside_stop(system, address), -ESHUTDOWN);
    domus_system_free(system);
}

DOMT_TEST(outside_spawns_go_round_robin)
{
    enum { THREADS = 3, EACH = 7 };
    domus_system *system = domt_start_system_of_threads(THREADS);
    domus_address address;

    for (int i = 0; i < THREADS * EACH; i++)
        ck_assert_int_eq(domus_outside_spawn(system, &noter, NULL, &address), 0);
    DOMT_WAIT_FOR(10, atomic_load(&domt_mounted) == THREADS * EACH);
    for (uint32_t i = 0; i < THREADS; i++)
        DOMT_WAIT_FOR(10, domt_profile_of_thread(system, i).spawns == EACH);
    domt_end_system(system);
}

#define FOREIGN 4
#define ROUNDS  (DOMT_SANITIZED ? 300 : 2000)
#define NOTES   5

struct foreigner {
    domus_system *system;
    domus_address common; /* the actor to which all foreign threads send */
    uint64_t failures;
    uint64_t sent;
};

/* Spawn an actor, send it notices, and stop it. The stop may overtake notices: a notice is handled,
 * dropped, or refused as stale. */
static void *spawn_notify_and_stop_actors(void *self_)
{
    struct foreigner *self = self_;
    uint64_t payload = 0;

    for (int round = 0; round < ROUNDS; round++) {
        domus_address address;

        if (domus_outside_spawn(self->system, &noter, NULL, &address) != 0) {
            self->failures++;
            continue;
        }
        for (int i = 0; i < NOTES; i++) {
            self->failures +=
                domus_outside_notice(self->system, address, &note_type, &payload) != 0;
            self->sent++;
        }
        int result = domus_outside_notice(self->system, self->common, &note_type, &payload);
        self->sent++;
        if (result == -ENOBUFS)
            atomic_fetch_add(&refused, 1);
        else
            self->failures += result != 0;
        self->failures += domus_outside_stop(self->system, address) != 0;
        result = domus_outside_notice(self->system, address, &note_type, &payload);
        self->failures += result != -ESTALE;
        result = domus_outside_stop(self->system, address);
        self->failures += result != 0 && result != -ESTALE;
        atomic_fetch_add(&late, 1);
    }
    return NULL;
}

DOMT_TEST(many_foreign_threads_spawn_notice_and_stop_at_once)
{
    domus_system *system = domt_start_system_of_threads(2);
    domus_address common = domt_spawn(system, 1, &noter, NULL);
    struct foreigner foreigners[FOREIGN];
    pthread_t threads[FOREIGN];
    uint64_t sent = 0;

    for (int i = 0; i < FOREIGN; i++) {
        foreigners[i] = (struct foreigner){.system = system, .common = common};
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, spawn_notify_and_stop_actors, &foreigners[i]), 0);
    }
    for (int i = 0; i < FOREIGN; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_uint_eq(foreigners[i].failures, 0);
        sent += foreigners[i].sent;
    }
    ck_assert_uint_eq(atomic_load(&late), FOREIGN * ROUNDS);
    DOMT_WAIT_FOR(20,
                  atomic_load(&handled) + atomic_load(&released) + atomic_load(&refused) == sent);
    /* An actor that is stopped before it was mounted counts as a stop, but neither its on_mount nor
     * its on_stop is called. */
    DOMT_WAIT_FOR(20, domt_profile_of_all_threads(system).stops == FOREIGN * ROUNDS);
    ck_assert_uint_eq(domt_profile_of_all_threads(system).dead_letters, atomic_load(&released));
    ck_assert_uint_eq(atomic_load(&domt_mounted), atomic_load(&domt_stopped) + 1);
    ck_assert_int_eq(domus_outside_stop(system, common), 0);
    DOMT_WAIT_FOR(20, atomic_load(&domt_mounted) == atomic_load(&domt_stopped));
    domt_end_system(system);
}

DOMT_SUITE(60)
