/* Many foreign threads at once: they spawn, send and stop from outside, and outsiders and actors
 * ask each other while others come and go. */
#include "tests/runtime/outsiders.h"
#include "tests/runtime/running.h"

#include <errno.h>
#include <pthread.h>

/* runtime/outside/outside.c: foreign threads spawn, send notices and stop, many at once, and also
 * before and after a system runs. */

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

DOMT_TEST(outside_calls_fail_before_and_after_a_system_runs)
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

/* --- outsider storm --------------------------------------------------------------------------- */

/* runtime/outside/seat.c: outsiders and actors ask each other very often, and outsiders attach,
 * detach and are stopped while others send to them. */

#define OUTSIDERS 4
#define ACTORS    4
/* number of asks that each side of a pair sends */
#define STORM_ROUNDS (DOMT_SCALE(2500u, 400u) * (domt_tests_are_long() ? 5 : 1))

static domus_system *system_;
static domus_address actors[ACTORS];
static domus_address outsiders[OUTSIDERS];
static _Atomic uint32_t attached, served;
static _Atomic uint64_t asked;

/* --- both sides ask ----------------------------------------------------------------------------
 */

typedef struct asker {
    uint32_t left;
    uint32_t number;
} asker;

static const domus_type go_type = {.name = "go", .size = sizeof(domus_address)};

/* Ask the outsider whose address the frame has, until no ask is left. */
static int ask_outsider_next(domus_stack *stack, void *self, const domus_answer *answer)
{
    asker *state = self;

    if (answer != NULL) {
        ck_assert_int_eq(answer->error, 0);
        ck_assert_uint_eq(*(const uint32_t *)answer->payload, state->number + 1);
        atomic_fetch_add(&domt_answers, 1);
    }
    if (state->left-- == 0)
        return 0;
    state->number++;
    return domus_ask(stack, *(domus_address *)domus_frame(stack), &domt_number_type, &state->number,
                     ask_outsider_next);
}

static int begin_asks_to_outsider(domus_stack *stack, void *self, const void *to)
{
    *(domus_address *)domus_frame(stack) = *(const domus_address *)to;
    return ask_outsider_next(stack, self, NULL);
}

static int reply_number_plus_one(domus_stack *stack, void *self, const void *number)
{
    uint32_t next = *(const uint32_t *)number + 1;
    return domus_reply(stack, &domt_number_type, &next);
}

static const domus_behaviour asking = {
    .name = "asking",
    .state_size = sizeof(asker),
    .on = (const domus_on[]){{&go_type, begin_asks_to_outsider, sizeof(domus_address)},
                             {&domt_number_type, reply_number_plus_one, 0},
                             {0}}};

static void reply_to_ask_of_actor(domus_outsider *outsider, const domus_outside_message *message)
{
    uint32_t next = *(const uint32_t *)message->payload + 1;
    ck_assert_int_eq(message->kind, DOMUS_OUTSIDE_ASK);
    ck_assert_int_eq(domus_outsider_reply(outsider, &domt_number_type, &next), 0);
    atomic_fetch_add(&served, 1);
}

/* Keep one ask to the outsider's own actor under way until ROUNDS asks are answered, and answer the
 * asks that come from the actor meanwhile. */
static void *ask_and_answer_as_outsider(void *place)
{
    uint32_t me = (uint32_t)(uintptr_t)place;
    domus_outsider *outsider = domt_attach_outsider(system_);
    domus_outside_message message;
    uint32_t sent = 0, got = 0, others = 0;

    outsiders[me] = domus_outsider_address(outsider);
    atomic_fetch_add(&attached, 1);
    DOMT_WAIT_FOR(60, atomic_load(&attached) == OUTSIDERS);
    domus_address to = actors[me];
    while (got < STORM_ROUNDS || others < STORM_ROUNDS) {
        if (got == sent && sent < STORM_ROUNDS) {
            sent++;
            ck_assert_int_eq(
                domus_outsider_ask_add(outsider, to, &domt_number_type, &sent, 0, sent), 0);
        }
        ck_assert_int_eq(domus_outside_receive(outsider, NULL, 60 * 1000 * DOMT_MS, &message), 0);
        if (message.kind == DOMUS_OUTSIDE_ASK) {
            reply_to_ask_of_actor(outsider, &message);
            others++;
            continue;
        }
        ck_assert_uint_eq(message.tag, sent);
        ck_assert_uint_eq(*(const uint32_t *)message.payload, sent + 1);
        got++;
        atomic_fetch_add(&asked, 1);
        /* Its asks do not block this thread, so it can answer an ask that comes back from the
         * actor. */
    }
    ck_assert_int_eq(domus_outside_receive(outsider, NULL, 0, &message), -ETIMEDOUT);
    ck_assert_int_eq(domus_outside_detach(outsider), 0);
    return NULL;
}

DOMT_TEST(outsiders_and_actors_ask_each_other_a_hundred_thousand_times)
{
    pthread_t threads[OUTSIDERS];
    const asker state = {.left = STORM_ROUNDS};
    system_ = domt_start_system_of_threads(2);
    for (uint32_t i = 0; i < ACTORS; i++)
        actors[i] = domt_spawn(system_, i % 2, &asking, &state);
    for (uintptr_t i = 0; i < OUTSIDERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_and_answer_as_outsider, (void *)i),
                         0);
    DOMT_WAIT_FOR(60, atomic_load(&attached) == OUTSIDERS);
    for (uint32_t i = 0; i < OUTSIDERS; i++)
        domt_send_notice(system_, actors[i], &go_type, &outsiders[i]);
    for (int i = 0; i < OUTSIDERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(atomic_load(&asked), (uint64_t)OUTSIDERS * STORM_ROUNDS);
    ck_assert_uint_eq(atomic_load(&served), (uint64_t)OUTSIDERS * STORM_ROUNDS);
    DOMT_WAIT_FOR(10, atomic_load(&domt_answers) == (uint64_t)OUTSIDERS * STORM_ROUNDS);
    domt_end_system(system_);
}

/* --- coming and going --------------------------------------------------------------------------
 */

static const domus_type shown_type = {.name = "shown", .size = sizeof(domus_address)};
/* number of asks to outsiders that were answered, and number of those that failed */
static _Atomic uint64_t ends[2];
static _Atomic bool over;

/* Ask the outsider that was shown to this actor, again when an ask has ended. */
static int count_end_of_ask(domus_stack *stack, void *self, const domus_answer *answer);

static int use_shown_outsider(domus_stack *stack, void *self, const void *who)
{
    uint32_t number = 1;
    domus_address to = *(const domus_address *)who;

    (void)domus_watch_actor(stack, to, NULL);
    (void)domus_notice(stack, to, &domt_owner_type, &number);
    (void)domus_ask_add(stack, to, &domt_number_type, &number, 0, 0);
    (void)domus_ask_add(stack, to, &domt_number_type, &number, 50 * DOMT_MS, 0);
    return domus_wait_all(stack, count_end_of_ask);
}

static int count_end_of_ask(domus_stack *stack, void *self, const domus_answer *answer)
{
    for (; answer != NULL; answer = answer->next)
        atomic_fetch_add(&ends[answer->error != 0], 1);
    return 0;
}

static int count_down_of_outsider(domus_stack *stack, void *self, const void *down)
{
    atomic_fetch_add(&domt_downs, 1);
    return 0;
}

static const domus_behaviour sending = {
    .name = "sending",
    .on = (const domus_on[]){
        {&shown_type, use_shown_outsider, 0}, {&domus_down_type, count_down_of_outsider, 0}, {0}}};

static _Atomic uint64_t shown;

/* Attach, show the outsider's address to all actors, receive some of what they send, and detach;
 * again and again. */
static void *attach_and_detach_until_over(void *seed)
{
    uint32_t number = (uint32_t)(uintptr_t)seed;
    domus_outside_message message;
    domus_outsider *outsider;

    while (!atomic_load(&over)) {
        int result = domus_outside_attach(system_, NULL, &outsider);
        if (result == -EAGAIN || result == -ESHUTDOWN)
            continue;
        ck_assert_int_eq(result, 0);
        domus_address here = domus_outsider_address(outsider);
        for (uint32_t i = 0; i < ACTORS; i++)
            if (domus_outsider_notice(outsider, actors[i], &shown_type, &here) == 0)
                atomic_fetch_add(&shown, 1);
        number = number * 1103515245 + 12345;
        for (uint32_t left = number >> 16 & 7; left != 0; left--) {
            if (domus_outside_receive(outsider, NULL, DOMT_MS, &message) == 0 &&
                message.kind == DOMUS_OUTSIDE_ASK && left % 2 != 0)
                (void)domus_outsider_reply(outsider, &domt_number_type, &number);
        }
        if ((number >> 20 & 3) == 0)
            (void)domus_outside_stop(system_, here);
        ck_assert_int_eq(domus_outside_detach(outsider), 0);
    }
    return NULL;
}

static void start_storm_of_outsiders(pthread_t threads[OUTSIDERS])
{
    domus_config config = domt_config_of_threads(2);

    config.detached.threads_max = 3;
    config.shutdown.actor_timeout_ns = 10 * 1000 * DOMT_MS;
    atomic_store(&over, false);
    system_ = domt_start_system(&config);
    for (uint32_t i = 0; i < ACTORS; i++)
        actors[i] = domt_spawn(system_, i % 2, &sending, NULL);
    for (uintptr_t i = 0; i < OUTSIDERS; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, attach_and_detach_until_over, (void *)(i + 1)), 0);
}

static void end_storm_of_outsiders(pthread_t threads[OUTSIDERS])
{
    atomic_store(&over, true);
    for (int i = 0; i < OUTSIDERS; i++)
        pthread_join(threads[i], NULL);
}

DOMT_TEST(outsiders_come_and_go_and_nothing_is_lost)
{
    pthread_t threads[OUTSIDERS];

    start_storm_of_outsiders(threads);
    domt_pause_ns(DOMT_SCALE(1000, 1500) * DOMT_MS);
    end_storm_of_outsiders(threads);
    /* Each time an actor was shown an outsider, it has asked that outsider twice and watched it
     * once. */
    uint64_t count = atomic_load(&shown);
    ck_assert_uint_gt(count, 100);
    DOMT_WAIT_FOR(30, atomic_load(&domt_downs) == count);
    DOMT_WAIT_FOR(30, atomic_load(&ends[0]) + atomic_load(&ends[1]) == 2 * count);
    ck_assert_uint_gt(atomic_load(&ends[0]), 0);
    ck_assert_uint_gt(atomic_load(&ends[1]), 0);
    domt_end_system(system_);
    ck_assert_uint_le(atomic_load(&domt_released), count);
}

DOMT_TEST(system_stops_while_outsiders_come_and_go)
{
    for (int round = 0; round < DOMT_SCALE(30, 15); round++) {
        pthread_t threads[OUTSIDERS];

        start_storm_of_outsiders(threads);
        domt_pause_ns((uint64_t)(round % 7) * DOMT_MS);
        ck_assert_int_eq(domus_system_stop(system_), 0);
        ck_assert_str_eq(domus_system_left(system_), "");
        end_storm_of_outsiders(threads);
        domus_system_free(system_);
    }
}

DOMT_SUITE(200)
