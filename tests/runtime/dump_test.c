/* runtime/control/dump.c: a dump says the right things of each actor, fits into its buffer, and
 * does not wait for a thread that is stuck. */
#include "house/family/slots.h"
#include "tests/runtime/running.h"
#include "tests/support/crowd.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const domus_type begin_type = {.name = "begin"};
static const domus_type question_type = {.name = "question"};
static const domus_type note_type = {.name = "note"};
static const domus_type tick_type = {.name = "tick"};
static const domus_type vain_type = {.name = "vain", .size = sizeof(int)};
static const domus_type spawn_type = {.name = "spawn"};
static const domus_type address_type = {.name = "address", .size = sizeof(domus_address)};
static const domus_type dump_type = {.name = "dump"};

static atomic_int held;
static atomic_int begun;
static atomic_bool stuck_may_go;
static atomic_int from_inside;
static domus_system *the_system;
static domus_address silent_address;
static char text[1 << 20];

static int keep_ask_for_ever(domus_stack *stack, void *self, const void *payload)
{
    domus_kept ask;

    atomic_fetch_add(&held, 1);
    return domus_keep(stack, &ask);
}

static int stay_in_handler_until_allowed(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&begun, 1);
    while (!atomic_load(&stuck_may_go))
        domt_pause_ns(DOMT_MS);
    return 0;
}

static int dump_system_from_handler(domus_stack *stack, void *self, const void *payload)
{
    atomic_store(&from_inside, domus_dump(the_system, text, sizeof text));
    ck_assert_int_eq(domus_dump_actor(the_system, domus_self(stack), text, sizeof text), -EDEADLK);
    atomic_fetch_add(&begun, 1);
    return 0;
}

static const domus_behaviour idle = {.name = "idle"};

static int spawn_idle_child_and_reply(domus_stack *stack, void *self, const void *payload)
{
    domus_address address;

    ck_assert_int_eq(domus_spawn(stack, &idle, NULL, &address), 0);
    return domus_reply(stack, &address_type, &address);
}

static const domus_behaviour silent = {
    .name = "silent",
    .on = (const domus_on[]){{&question_type, keep_ask_for_ever, 0},
                             {&note_type, stay_in_handler_until_allowed, 0},
                             {&dump_type, dump_system_from_handler, 0},
                             {&spawn_type, spawn_idle_child_and_reply, 0},
                             {0}}};

/* Begin many things for which the dumped actor waits: a barrier, two asks (one with a time-out), a
 * timer, a child, and a watch. */
static int begin_waits_of_each_kind(domus_stack *stack, void *self, const void *payload)
{
    domus_address child;

    ck_assert_int_eq(domus_barrier(stack), 0);
    ck_assert_int_eq(domus_after(stack, 60000 * DOMT_MS, &tick_type, NULL, NULL), 0);
    ck_assert_int_eq(domus_spawn(stack, &silent, NULL, &child), 0);
    ck_assert_int_eq(domus_watch_actor(stack, silent_address, NULL), 0);
    ck_assert_int_eq(domus_ask_add(stack, silent_address, &question_type, NULL, 0, 1), 0);
    ck_assert_int_eq(domus_ask_add(stack, silent_address, &question_type, NULL, 60000 * DOMT_MS, 2),
                     0);
    atomic_fetch_add(&begun, 1);
    return domus_wait_all(stack, domt_ignore_answer);
}

static int receive_within_a_minute(domus_stack *stack, void *self, const void *payload)
{
    static const domus_type *const types[] = {&begin_type, NULL};
    static const domus_pattern pattern = {.types = types};

    atomic_fetch_add(&begun, 1);
    return domus_receive_within(stack, &pattern, 60000 * DOMT_MS, domt_ignore_answer);
}

/* Check an ask that fails: its answer must not show the records that were made for a dump while it
 * waited. */
static int expect_answer_is_failure(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_lt(answer->error, 0);
    ck_assert(answer->type == NULL && answer->payload == NULL);
    ck_assert_uint_eq(answer->tag, 0);
    atomic_fetch_add(&begun, 1);
    return 0;
}

static int begin_ask_that_fails(domus_stack *stack, void *self, const void *payload)
{
    if (*(const int *)payload == -ETIMEDOUT)
        return domus_ask_within(stack, silent_address, &question_type, NULL, DOMT_MS,
                                expect_answer_is_failure);
    return domus_ask(stack,
                     *(const int *)payload == -ESTALE ? (domus_address){NULL, 0} : silent_address,
                     &tick_type, NULL, expect_answer_is_failure);
}

static const domus_behaviour busy = {
    .name = "busy",
    .on = (const domus_on[]){{&begin_type, begin_waits_of_each_kind, 0},
                             {&note_type, receive_within_a_minute, 0},
                             {&vain_type, begin_ask_that_fails, 0},
                             {0}}};

static void expect_text_in_dump(const char *wanted)
{
    ck_assert_msg(strstr(text, wanted) != NULL, "\"%s\" is not in:\n%s", wanted, text);
}

/* Dump an actor again and again until the dump shows it waiting, because it may still handle a
 * message at first. */
static void dump_actor_until_it_waits(domus_system *system, domus_address address)
{
    DOMT_WAIT_FOR(10, domus_dump_actor(system, address, text, sizeof text) == 0 &&
                          strstr(text, ": WAITING") != NULL);
}

static const char *format_line_with_address(const char *format, domus_address address)
{
    static char line[256];
    char name[64];

    snprintf(name, sizeof name, "%u/%u.%u", address.house->home->index,
             domi_slots_number_of_house(address.house), address.lease);
    snprintf(line, sizeof line, "%s%s", format, name);
    return line;
}

DOMT_TEST(an_actors_dump_says_what_it_waits_for)
{
    domus_system *system = domt_start_system_of_threads(2);
    domus_spawn_options options = {
        .placement = DOMUS_ON_THREAD, .thread = 1, .name = "the-busy-one", .pinned = true};
    domus_address address = {NULL, 0};

    silent_address = domt_spawn(system, 0, &silent, NULL);
    ck_assert_int_eq(domus_outside_spawn_with(system, &busy, NULL, &options, &address), 0);
    domt_send_notice(system, address, &begin_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&held) == 2);
    for (int i = 0; i < 3; i++) /* the actor's barrier holds these three asks back */
        domt_send_notice(system, address, &note_type, NULL);

    dump_actor_until_it_waits(system, address);
    expect_text_in_dump(format_line_with_address("actor ", address));
    expect_text_in_dump(" busy \"the-busy-one\": WAITING, barrier, pinned");
    expect_text_in_dump("0 asks, 3 notices");
    expect_text_in_dump(
        "  parent nobody, 1 children, 1 timers, 0 descriptors, 0 watchers, 1 watches");
    expect_text_in_dump(
        "  1 conversations:\n    begun by begin, holds the barrier, waits for all of 2\n");
    expect_text_in_dump(format_line_with_address("      ask question to ", silent_address));
    expect_text_in_dump(" ms left\n");
    expect_text_in_dump("since ");

    dump_actor_until_it_waits(system, silent_address);
    expect_text_in_dump("1 watchers");
    expect_text_in_dump(
        "2 conversations:\n    begun by question is an ask that is kept, to answer ");
    expect_text_in_dump(format_line_with_address("to answer ", address));
    domt_end_system(system);
}

/* A dump with addresses of memory names actors on other threads, parents, and actors that are
 * asked; without the request it contains none. */
DOMT_TEST(addresses_of_memory_appear_only_on_request)
{
    domus_config config = domt_config_of_threads(2);
    domus_system *system = domt_start_system(&config);
    char address_text[32];
    domus_address first = domt_spawn(system, 1, &silent, NULL);
    domus_address second = domt_spawn(system, 1, &silent, NULL);

    ck_assert_int_eq(domus_dump(system, text, sizeof text), 0);
    ck_assert_ptr_null(strstr(text, "0x"));
    ck_assert_uint_ne(domi_slots_number_of_house(first.house),
                      domi_slots_number_of_house(second.house));
    domt_end_system(system);

    config.log.addresses = true;
    system = domt_start_system(&config);
    first = domt_spawn(system, 1, &silent, NULL);
    snprintf(address_text, sizeof address_text, " (%p)", (void *)first.house);
    dump_actor_until_it_waits(system, first);
    expect_text_in_dump(format_line_with_address("actor ", first));
    expect_text_in_dump(address_text);
    domt_end_system(system);
}

DOMT_TEST(dump_shows_a_waiting_receive_and_a_stop)
{
    domus_system *system = domt_start_system_of_threads(1);
    domus_address address = domt_spawn(system, 0, &busy, NULL);

    domt_send_notice(system, address, &note_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&begun) == 1);
    domt_send_notice(system, address, &note_type, NULL);
    dump_actor_until_it_waits(system, address);
    expect_text_in_dump("WAITING, receiving");
    expect_text_in_dump("1 notices");
    expect_text_in_dump("    begun by note waits for one of 1\n      receive begin, since ");
    expect_text_in_dump(" ms left");
    ck_assert_int_eq(domus_outside_stop(system, address), 0);
    DOMT_WAIT_FOR(10, domus_dump_actor(system, address, text, sizeof text) == -ESTALE);
    /* Only a spawn on its own thread gets the freed slot, so an actor of that thread spawns until
     * the slot is used again. */
    domus_address next = {NULL, 0};
    domus_address near = domt_spawn(system, 0, &silent, NULL);
    domus_outside_reply reply = {.buffer = &next, .size = sizeof next};
    for (int i = 0; i < 1000 && next.house != address.house; i++)
        ck_assert_int_eq(domus_outside_ask(system, near, &spawn_type, NULL, 0, &reply), 0);
    ck_assert_ptr_eq(next.house, address.house);
    ck_assert_int_eq(domus_dump_actor(system, address, text, sizeof text), -ESTALE);
    ck_assert_int_eq(domus_dump_actor(system, next, text, sizeof text), 0);
    domt_end_system(system);
}

DOMT_TEST(failed_answer_shows_no_records_made_for_a_dump)
{
    static const int errors[] = {-ETIMEDOUT, -ESTALE, -EOPNOTSUPP};
    domus_system *system = domt_start_system_of_threads(1);
    domus_address address = domt_spawn(system, 0, &busy, NULL);

    silent_address = domt_spawn(system, 0, &silent, NULL);
    for (int i = 0; i < 3; i++)
        domt_send_notice(system, address, &vain_type, &errors[i]);
    DOMT_WAIT_FOR(10, atomic_load(&begun) == 3);
    domt_end_system(system);
}

static unsigned count_actors_in_dump(void)
{
    unsigned count = 0;

    for (const char *p = text; (p = strstr(p, "\nactor ")) != NULL; p++)
        count++;
    return count;
}

#define MANY 1000

DOMT_TEST(a_dump_of_all_fits_and_says_how_many_were_left_out)
{
    domus_system *system = domt_start_system_of_threads(3);
    domus_address address;
    unsigned left = 0;

    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(domus_outside_spawn(system, &silent, NULL, &address), 0);
    ck_assert_int_eq(domus_dump(system, text, sizeof text), 0);
    ck_assert_uint_eq(count_actors_in_dump(), MANY);
    expect_text_in_dump("thread 0: 334 actors\n");
    expect_text_in_dump("thread 1: 333 actors\n");
    expect_text_in_dump("thread 2: 333 actors\n");
    ck_assert_ptr_null(strstr(text, "left out"));

    memset(text, 'x', sizeof text);
    ck_assert_int_eq(domus_dump(system, text, 3 * DOMUS_DUMP_BYTES_MIN), 0);
    ck_assert_uint_lt(strlen(text), 3 * DOMUS_DUMP_BYTES_MIN);
    ck_assert_int_eq(text[3 * DOMUS_DUMP_BYTES_MIN], 'x');
    for (const char *p = text; (p = strstr(p, " actors were left out\n")) != NULL; p++) {
        const char *number = p;
        while (number[-1] != '\n')
            number--;
        left += (unsigned)strtoul(number, NULL, 10);
    }
    ck_assert_uint_gt(count_actors_in_dump(), 3);
    ck_assert_uint_eq(count_actors_in_dump() + left, MANY);
    ck_assert_int_eq(domus_dump(system, text, 3 * DOMUS_DUMP_BYTES_MIN - 1), -EINVAL);
    ck_assert_int_eq(domus_dump_actor(system, address, text, DOMUS_DUMP_BYTES_MIN), 0);
    ck_assert_int_eq(domus_dump_actor(system, address, text, DOMUS_DUMP_BYTES_MIN - 1), -EINVAL);
    domt_end_system(system);
}

/* The pages of a dump by name, put together, have each actor of that name exactly once. */
DOMT_TEST(pages_of_a_dump_have_the_actors_of_a_name)
{
    domus_system *system = domt_start_system_of_threads(2);
    domus_dump_filter filter = {.behaviour = "idle", .count = 3};
    char rows[10][64];
    unsigned seen = 0;

    for (int i = 0; i < 20; i++)
        (void)domt_spawn(system, (uint32_t)i % 2, i < 10 ? &idle : &silent, NULL);
    for (; filter.from < 6; filter.from += 3) {
        ck_assert_int_eq(domus_dump_some(system, &filter, text, sizeof text), 0);
        expect_text_in_dump("thread 0: 5 actors\n");
        expect_text_in_dump("thread 1: 5 actors\n");
        ck_assert_ptr_null(strstr(text, " silent: "));
        ck_assert_ptr_null(strstr(text, "left out"));
        ck_assert_uint_eq(count_actors_in_dump(), filter.from == 0 ? 6 : 4);
        for (const char *p = text; (p = strstr(p, "\nactor ")) != NULL; p++) {
            ck_assert_uint_lt(seen, 10);
            snprintf(rows[seen], sizeof rows[0], "%.*s", (int)strcspn(p + 1, ":"), p + 1);
            for (unsigned i = 0; i < seen; i++)
                ck_assert_str_ne(rows[i], rows[seen]);
            seen++;
        }
    }
    ck_assert_uint_eq(seen, 10);
    filter = (domus_dump_filter){.behaviour = "idl"};
    ck_assert_int_eq(domus_dump_some(system, &filter, text, sizeof text), 0);
    ck_assert_uint_eq(count_actors_in_dump(), 0);
    filter = (domus_dump_filter){.behaviour = "nobody"};
    ck_assert_int_eq(domus_dump_some(system, &filter, text, sizeof text), 0);
    expect_text_in_dump("thread 0: 0 actors\n");
    ck_assert_int_eq(domus_dump_some(system, NULL, text, sizeof text), 0);
    expect_text_in_dump("thread 0: 10 actors\n");
    ck_assert_uint_eq(count_actors_in_dump(), 20);
    domt_end_system(system);
}

/* The texts of 64 channels fill the dump, and another actor must still have room behind them. */
DOMT_TEST(many_channels_leave_room_in_a_dump_for_other_actors)
{
    static const domus_behaviour line = {.name = "line", .kind = DOMUS_CHANNELS};
    static const domus_behaviour service = {
        .name = "service", .kind = DOMUS_CHANNELS, .channel = &line};
    domus_listener_config listener = {.name = "line", .address = "127.0.0.1:0", .backlog = 64};
    domus_config config = domt_config_of_threads(1);
    static char small[4096];
    int fds[64];
    uint16_t port;

    config.listeners = &listener;
    config.listener_count = 1;
    domus_system *system = domt_start_system(&config);
    ck_assert_int_eq(domus_serve(system, "line", &service, NULL, &port), 0);
    for (int i = 0; i < 64; i++)
        fds[i] = domt_connect_to_port(port);
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).channels_opened == 64);
    (void)domt_spawn(system, 0, &idle, NULL);
    ck_assert_int_eq(domus_dump(system, small, sizeof small), 0);
    ck_assert_ptr_nonnull(strstr(small, " idle: "));
    ck_assert_ptr_nonnull(strstr(small, " line: "));
    ck_assert_ptr_nonnull(strstr(small, " actors were left out\n"));
    for (int i = 0; i < 64; i++)
        close(fds[i]);
    domt_end_system(system);
}

DOMT_TEST(dump_names_a_stuck_thread_and_shows_the_rest)
{
    domus_system *system = domt_start_system_of_threads(2);
    domus_address stuck = domt_spawn(system, 0, &silent, NULL);
    domus_address other = domt_spawn(system, 1, &busy, NULL);

    ck_assert_int_eq(domus_dump(system, text, sizeof text), 0);
    domt_send_notice(system, stuck, &note_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&begun) == 1);
    uint64_t before_ns = domt_now_ns();
    ck_assert_int_eq(domus_dump(system, text, sizeof text), 0);
    ck_assert_uint_ge(domt_now_ns() - before_ns, DOMUS_DUMP_WAIT_NS);
    expect_text_in_dump("thread 0: stuck: no answer within 1000 ms, in a handler of silent\n");
    expect_text_in_dump("thread 1: 1 actors\n");
    expect_text_in_dump(format_line_with_address("actor ", other));
    ck_assert_int_eq(domus_dump_actor(system, stuck, text, sizeof text), -ETIMEDOUT);
    atomic_store(&stuck_may_go, true);
    DOMT_WAIT_FOR(10, domus_dump_actor(system, stuck, text, sizeof text) == 0);
    dump_actor_until_it_waits(system, stuck);
    domt_end_system(system);
}

DOMT_TEST(a_dump_is_refused_where_it_cannot_be_had)
{
    domus_config config = domt_config_of_threads(1);
    domus_system *system = NULL;

    ck_assert_int_eq(domus_system_new(&config, NULL, 0, &system), 0);
    ck_assert_int_eq(domus_dump(system, text, sizeof text), -ESHUTDOWN);
    ck_assert_int_eq(domus_system_start(system), 0);
    the_system = system;
    domus_address address = domt_spawn(system, 0, &silent, NULL);
    ck_assert_int_eq(domus_dump_actor(system, (domus_address){NULL, 0}, text, sizeof text),
                     -ESTALE);
    domt_send_notice(system, address, &dump_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&begun) == 1);
    ck_assert_int_eq(atomic_load(&from_inside), -EDEADLK);
    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert_int_eq(domus_dump(system, text, sizeof text), -ESHUTDOWN);
    domus_system_free(system);
}

struct spawner {
    domus_system *system;
    atomic_bool ends;
    uint64_t failures;
};

static void *spawn_and_stop_until_over(void *self_)
{
    struct spawner *self = self_;

    for (int i = 1; !atomic_load(&self->ends); i++) {
        domus_address address;
        if (i % 32 == 0)
            domt_pause_ns(DOMT_MS); /* without this pause, stopped actors would pile up */
        if (domus_outside_spawn(self->system, &busy, NULL, &address) != 0) {
            self->failures++;
            continue;
        }
        self->failures += domus_outside_notice(self->system, address, &note_type, NULL) != 0;
        self->failures += domus_outside_stop(self->system, address) != 0;
    }
    return NULL;
}

/* Actors are spawned and stopped while a dump walks over the slots. */
DOMT_TEST(dumps_go_on_while_actors_come_and_go)
{
    domus_system *system = domt_start_system_of_threads(2);
    struct spawner spawners[3];
    pthread_t threads[3];

    for (int i = 0; i < 3; i++) {
        spawners[i].system = system;
        spawners[i].failures = 0;
        atomic_init(&spawners[i].ends, false);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, spawn_and_stop_until_over, &spawners[i]),
                         0);
    }
    for (int i = 0; i < DOMT_SCALE(100, 10); i++)
        ck_assert_int_eq(domus_dump(system, text, sizeof text), 0);
    for (int i = 0; i < 3; i++) {
        atomic_store(&spawners[i].ends, true);
        pthread_join(threads[i], NULL);
        ck_assert_uint_eq(spawners[i].failures, 0);
    }
    domt_end_system(system);
}

DOMT_SUITE(60)
