/* include/domus/await.h: sequences have the right answer and frame after each await, and end as
 * documented. Receives are awaited together with sleeps, without a wait, or beside a stop that
 * comes after the waiting messages. */
#include "house/family/life.h"
#include "tests/house/steps.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <errno.h>

#define MS UINT64_C(1000000)

static const domus_type begin_type = {.name = "begin", .size = 8};
static const domus_type twice_type = {.name = "twice", .size = 8};
static const domus_type slow_type = {.name = "slow", .size = 8};
static const domus_type odd_type = {.name = "odd", .size = 8};
static const domus_type end_type = {.name = "end"};
static const domus_type huge_type = {.name = "huge", .size = DOMUS_PAYLOAD_MAX + 1};

static domt_world world;
static domus_address one;    /* an actor on home 0 that runs the sequence under test */
static domus_address server; /* an actor on home 1 that answers */
static domus_address agents[2];
static uint64_t steps; /* a decimal digit for each place that the sequence has passed, in order */
static uint64_t sum;
static int error;
static domus_conversation running;

static void record_place_in_sequence(uint64_t place)
{
    steps = steps * 10 + place;
}

/* --- a server that doubles, now or after 5 ms ------------------------------------------------ */

static int reply_with_double(domus_stack *stack, void *self, const void *number)
{
    return domus_reply(stack, &twice_type, &(uint64_t){*(const uint64_t *)number * 2});
}

DOMUS_SEQUENCE(twice_later, uint64_t)
{
    DOMUS_BEGIN;
    *frame = *(const uint64_t *)message * 2;
    DOMUS_SLEEP(5 * MS);
    return domus_reply(stack, &twice_type, frame);
    DOMUS_END;
}

static const domus_behaviour serving = {
    .name = "serving",
    .on = (const domus_on[]){
        {&twice_type, reply_with_double, 0}, DOMUS_ON(&slow_type, twice_later), {0}}};

static void open_world_with_sequence(const domus_behaviour *behaviour)
{
    domt_world_open(&world, 2);
    steps = sum = 0;
    error = 1;
    server = domt_spawn(domt_outside_manager(&world), world.managers[1], &serving, NULL);
    one = domt_spawn(domt_outside_manager(&world), world.managers[0], behaviour, NULL);
    for (int i = 0; i < 2; i++)
        agents[i] = domt_spawn(domt_outside_manager(&world), world.managers[i], &domt_agent, NULL);
    domt_settle_world(&world);
}

static void send_notice(const domus_type *type, uint64_t number)
{
    ck_assert_int_eq(domt_send_notice(domt_outside_manager(&world), one, type, &number), 0);
    domt_settle_world(&world);
}

/* Let so many ms pass, and check that the sequence has reached this place. */
static void expect_place_in_sequence_after(uint64_t pass_ns, uint64_t expected)
{
    domt_pass_time(&world, pass_ns);
    ck_assert_uint_eq(steps, expected);
}

static void close_world(void)
{
    domt_end_clean_world(&world);
}

static const domus_type *asked_type;

static int record_error_of_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    error = answer->error;
    return 0;
}

static int ask_sequence(domus_stack *stack, void *number)
{
    return domus_ask(stack, one, asked_type, number, record_error_of_answer);
}

/* Let the agent on home 1 ask; `error` gets the error of the answer, and is 1 until then. */
static void let_agent_ask_sequence(const domus_type *type, uint64_t number)
{
    asked_type = type;
    domt_run_as_actor(&world, agents[1], ask_sequence, &number);
}

/* --- what is at hand ------------------------------------------------------------------------- */

static const domus_pattern odd_only = {.types = (const domus_type *const[]){&odd_type, NULL}};

struct trip {
    uint64_t number;
    uint64_t began_ns;
};

DOMUS_SEQUENCE(trip, struct trip)
{
    uint64_t *visits = self;

    DOMUS_BEGIN;
    ck_assert(frame->number == 0 && frame->began_ns == 0);
    ck_assert(answer->error == 0 && answer->type == NULL && answer->payload == NULL);
    frame->number = *(const uint64_t *)message;
    record_place_in_sequence(1);
    DOMUS_ASK(server, &twice_type, &frame->number);
    ck_assert(message == NULL && answer->error == 0 && answer->type == &twice_type);
    frame->number = *(const uint64_t *)answer->payload;
    frame->began_ns = domus_now_ns(stack);
    record_place_in_sequence(2);
    DOMUS_SLEEP(3 * MS);
    ck_assert(answer->error == 0 && answer->type == NULL);
    ck_assert_uint_ge(domus_now_ns(stack), frame->began_ns + 3 * MS);
    record_place_in_sequence(3);
    DOMUS_RECEIVE(&odd_only);
    ck_assert(answer->error == 0 && answer->type == &odd_type);
    frame->number += *(const uint64_t *)answer->payload;
    record_place_in_sequence(4);
    DOMUS_ASK_WITHIN(server, &slow_type, &frame->number, 2 * MS);
    ck_assert(answer->error == -ETIMEDOUT && answer->payload == NULL);
    record_place_in_sequence(5);
    DOMUS_RECEIVE_WITHIN(&odd_only, 0);
    ck_assert_int_eq(answer->error, -ETIMEDOUT);
    record_place_in_sequence(6);
    sum = frame->number;
    ++*visits;
    DOMUS_END;
}

static const domus_behaviour travelling = {
    .name = "travelling",
    .state_size = 8,
    .on = (const domus_on[]){DOMUS_ON(&begin_type, trip), {0}}};

DOMT_TEST(sequence_goes_on_behind_each_await_with_its_answer_and_its_frame)
{
    open_world_with_sequence(&travelling);
    send_notice(&begin_type, 20);
    ck_assert_uint_eq(steps, 12);
    expect_place_in_sequence_after(2 * MS, 12);
    expect_place_in_sequence_after(2 * MS, 123);
    send_notice(&odd_type, 7);
    ck_assert_uint_eq(steps, 1234);
    expect_place_in_sequence_after(10 * MS, 123456);
    ck_assert_uint_eq(sum, 47);
    ck_assert_uint_eq(*(uint64_t *)one.house->self, 1);
    send_notice(&begin_type, 1); /* a second conversation begins with a new frame */
    ck_assert_uint_eq(steps, 12345612);
    domt_pass_time(&world, 4 * MS);
    send_notice(&odd_type, 1);
    domt_pass_time(&world, 10 * MS);
    ck_assert_uint_eq(sum, 3);
    close_world();
}

/* --- several --------------------------------------------------------------------------------- */

DOMUS_SEQUENCE(several, uint64_t)
{
    DOMUS_BEGIN;
    for (uint64_t i = 1; i <= 3; i++)
        (void)domus_ask_add(stack, server, &twice_type, &i, 0, i);
    DOMUS_WAIT_ALL();
    for (; answer != NULL; answer = answer->next)
        *frame += answer->tag * 100 + *(const uint64_t *)answer->payload;
    sum = *frame;
    (void)domus_ask_add(stack, server, &slow_type, frame, 0, 1);
    (void)domus_receive_add(stack, &odd_only, DOMUS_FOR_EVER, 2);
    (void)domus_sleep_add(stack, 3 * MS, 3);
    while (domus_pending(stack) != 0) {
        DOMUS_WAIT_FIRST();
        ck_assert_int_eq(answer->error, 0);
        record_place_in_sequence(answer->tag);
    }
    DOMUS_END;
}

static const domus_behaviour gathering = {
    .name = "gathering", .on = (const domus_on[]){DOMUS_ON(&begin_type, several), {0}}};

DOMT_TEST(sequence_waits_for_several_of_each_kind_told_apart_by_their_tags)
{
    open_world_with_sequence(&gathering);
    send_notice(&begin_type, 0);
    ck_assert_uint_eq(sum, 612);
    ck_assert_uint_eq(steps, 0);
    expect_place_in_sequence_after(4 * MS, 3);
    expect_place_in_sequence_after(2 * MS, 31);
    send_notice(&odd_type, 1);
    ck_assert_uint_eq(steps, 312);
    close_world();
}

/* --- many ------------------------------------------------------------------------------------ */

struct hops {
    uint64_t id;
    uint64_t value;
    uint32_t left;
};

DOMUS_SEQUENCE(hops, struct hops)
{
    DOMUS_BEGIN;
    frame->id = frame->value = *(const uint64_t *)message;
    for (frame->left = 3; frame->left != 0; frame->left--)
        if (frame->id % 2 == 0)
            DOMUS_SLEEP(frame->id % 7 * MS);
        else {
            DOMUS_ASK(server, frame->id % 3 == 0 ? &slow_type : &twice_type, &frame->value);
            frame->value = *(const uint64_t *)answer->payload;
        }
    sum += frame->id % 2 == 0 ? frame->value : frame->value / 8;
    record_place_in_sequence(0);
    DOMUS_END;
}

static const domus_behaviour hopping = {.name = "hopping",
                                        .on = (const domus_on[]){DOMUS_ON(&begin_type, hops), {0}}};

DOMT_TEST(sequences_of_one_actor_interleave_and_keep_apart)
{
    enum { COUNT = 3000 };

    open_world_with_sequence(&hopping);
    for (uint64_t id = 1; id <= COUNT; id++)
        ck_assert_int_eq(domt_send_notice(domt_outside_manager(&world), one, &begin_type, &id), 0);
    domt_pass_time(&world, 40 * MS);
    ck_assert_uint_eq(sum, (uint64_t)COUNT * (COUNT + 1) / 2);
    close_world();
}

/* --- patterns, mount ------------------------------------------------------------------------- */

static bool is_number_in_frame(const void *self, const void *frame, const domus_type *type,
                               const void *payload)
{
    return type == &odd_type && *(const uint64_t *)payload == *(const uint64_t *)frame;
}

static const domus_pattern wanted = {.types = NULL, .matches = is_number_in_frame};

/* Receive the numbers 1, 2, 3 ... in this order, in whatever order the notices come. */
DOMUS_SEQUENCE(in_order, uint64_t)
{
    DOMUS_BEGIN;
    ck_assert(message == NULL && *frame == 0);
    record_place_in_sequence(9);
    for (;;) {
        ++*frame;
        DOMUS_RECEIVE(&wanted);
        if (answer->error != 0)
            return answer->error;
        record_place_in_sequence(*(const uint64_t *)answer->payload);
    }
    DOMUS_END;
}

static const domus_behaviour sorting = {.name = "sorting", DOMUS_ON_MOUNT(in_order)};

DOMT_TEST(sequence_begins_with_its_actor_and_its_patterns_see_its_frame)
{
    open_world_with_sequence(&sorting);
    ck_assert_uint_eq(steps, 9);
    send_notice(&odd_type, 3);
    send_notice(&odd_type, 2);
    ck_assert_uint_eq(steps, 9);
    send_notice(&odd_type, 1);
    ck_assert_uint_eq(steps, 9123);
    domt_stop_actor_and_settle(&world, world.managers[0], one);
    ck_assert_uint_eq(DOMT_SUM(&world, stops), 1);
    /* the cancel of a sequence does not count as a failure of its actor */
    ck_assert_uint_eq(DOMT_SUM(&world, failures), 0);
    close_world();
}

DOMT_TEST(behaviour_with_too_large_a_frame_for_on_mount_is_refused)
{
    static domus_behaviour huge;
    domus_address address;

    huge = sorting;
    huge.mount_frame_size = DOMUS_FRAME_MAX + 1;
    open_world_with_sequence(&sorting);
    ck_assert_int_eq(domi_house_spawn_without_parent(world.managers[0], world.managers[0], &huge,
                                                     NULL, &address),
                     -EINVAL);
    domt_world_end(&world);
}

/* --- ends ------------------------------------------------------------------------------------ */

DOMUS_SEQUENCE(cancellable, char)
{
    DOMUS_BEGIN;
    ck_assert_int_eq(domus_conversation_of(stack, &running), 0);
    DOMUS_SLEEP(1000 * MS);
    record_place_in_sequence(1);
    error = answer->error;
    DOMUS_SLEEP(1);
    record_place_in_sequence(2);
    DOMUS_END;
}

static int cancel_running_sequence(domus_stack *stack, void *self, const void *payload)
{
    return domus_cancel(stack, running);
}

/* The switch over 64 bits in this sequence takes the await away from the switch of the sequence
 * itself. */
DOMUS_SEQUENCE(misplaced, char)
{
    DOMUS_BEGIN;
    switch (*(const int64_t *)message) {
    case 1:
        DOMUS_SLEEP(MS);
        record_place_in_sequence(1);
        break;
    default:
        record_place_in_sequence(2);
    }
    DOMUS_END;
}

DOMUS_SEQUENCE(asks_too_much, char)
{
    DOMUS_BEGIN;
    DOMUS_ASK(server, &huge_type, "");
    record_place_in_sequence(1);
    DOMUS_END;
}

/* This sequence answers its ask with the error of an await that cannot begin, and then waits for
 * other messages. */
DOMUS_SEQUENCE(tries, char)
{
    DOMUS_BEGIN;
    DOMUS_TRY_AWAIT(domus_ask(stack, server, &huge_type, "", then));
    record_place_in_sequence(answer->error == -EMSGSIZE ? 1 : 9);
    DOMUS_TRY_AWAIT(domus_ask(stack, server, &twice_type, &(uint64_t){7}, then));
    ck_assert_int_eq(answer->error, 0);
    record_place_in_sequence(*(const uint64_t *)answer->payload == 14 ? 2 : 9);
    DOMUS_TRY_AWAIT(-ENOSPC);
    record_place_in_sequence(answer->error == -ENOSPC && answer->type == NULL ? 3 : 9);
    return domus_reply(stack, &twice_type, &(uint64_t){1});
    DOMUS_END;
}

static const domus_behaviour ending = {
    .name = "ending",
    .on = (const domus_on[]){DOMUS_ON(&begin_type, cancellable),
                             {&end_type, cancel_running_sequence, 0},
                             DOMUS_ON(&slow_type, misplaced),
                             DOMUS_ON(&odd_type, asks_too_much),
                             DOMUS_ON(&twice_type, tries),
                             {0}}};

DOMT_TEST(cancelled_sequence_hears_it_once_and_its_next_await_ends_it)
{
    open_world_with_sequence(&ending);
    send_notice(&begin_type, 0);
    send_notice(&end_type, 0);
    ck_assert_uint_eq(steps, 1);
    ck_assert_int_eq(error, -ECANCELED);
    ck_assert_uint_eq(domi_house_count_parked_conversations(one.house), 0);
    ck_assert_uint_eq(DOMT_SUM(&world, failures), 0);
    close_world();
}

DOMT_TEST(await_that_cannot_go_on_ends_its_sequence_with_the_error_unless_it_is_tried)
{
    static const struct {
        const domus_type *type;
        uint64_t pass_ns;
        int error;
        uint64_t steps;
    } rows[] = {
        {&slow_type, 2 * MS, -EINVAL, 0}, /* the await lies in an inner switch */
        {&odd_type, 0, -EMSGSIZE, 0},     /* the sequence has an await that cannot begin */
        {&twice_type, 0, 0, 123},         /* DOMUS_TRY_AWAIT() goes on after the error */
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        open_world_with_sequence(&ending);
        let_agent_ask_sequence(rows[i].type, 1);
        ck_assert(rows[i].pass_ns == 0 || error == 1);
        domt_pass_time(&world, rows[i].pass_ns);
        ck_assert_msg(error == rows[i].error && steps == rows[i].steps, "%s: %d, steps %llu",
                      rows[i].type->name, error, (unsigned long long)steps);
        close_world();
    }
}

/* --- receives among other things ------------------------------------------------------------- */

DOMUS_SEQUENCE(receives_among_all, char)
{
    DOMUS_BEGIN;
    (void)domus_receive_add(stack, &odd_only, DOMUS_FOR_EVER, 1);
    (void)domus_sleep_add(stack, MS, 2);
    DOMUS_WAIT_ALL();
    for (; answer != NULL; answer = answer->next)
        record_place_in_sequence(answer->tag);
    DOMUS_END;
}

static const domus_behaviour careless = {
    .name = "careless", .on = (const domus_on[]){DOMUS_ON(&begin_type, receives_among_all), {0}}};

DOMT_TEST(ask_received_among_all_fails_and_is_not_lost)
{
    open_world_with_sequence(&careless);
    send_notice(&begin_type, 0);
    let_agent_ask_sequence(&odd_type, 1);
    ck_assert_int_eq(error, 1);
    expect_place_in_sequence_after(2 * MS, 12);
    ck_assert_int_eq(error, -ENOMSG);
    close_world();
}

/* --- receives that only look, and the last message ------------------------------------------- */

static const domus_pattern anything = {.types = NULL};

DOMUS_SEQUENCE(looks, char)
{
    DOMUS_BEGIN;
    DOMUS_RECEIVE_WITHIN(&anything, 0);
    ck_assert_int_eq(answer->error, -ETIMEDOUT);
    record_place_in_sequence(1);
    DOMUS_RECEIVE_WITHIN(&anything, DOMUS_FOR_EVER);
    ck_assert_int_eq(answer->error, 0);
    record_place_in_sequence(2);
    for (;;) {
        DOMUS_RECEIVE(&odd_only);
        if (answer->error != 0)
            return answer->error;
        record_place_in_sequence(3);
    }
    DOMUS_END;
}

static const domus_behaviour looking = {.name = "looking", DOMUS_ON_MOUNT(looks)};

static int send_three_notices_and_stop_after_mail(domus_stack *stack, void *context)
{
    for (uint64_t i = 0; i < 3; i++)
        ck_assert_int_eq(domus_notice(stack, one, &odd_type, &i), 0);
    return domus_stop_after_mail(stack, one);
}

DOMT_TEST(stop_after_mail_comes_behind_what_a_receive_takes_and_waits_for_what_none_takes)
{
    for (int waits = 0; waits < 2; waits++) {
        open_world_with_sequence(&looking);
        send_notice(&end_type, 0);
        if (waits)
            send_notice(&begin_type, 0); /* no receive of the sequence takes this message */
        domt_run_as_actor(&world, agents[0], send_three_notices_and_stop_after_mail, NULL);
        ck_assert_uint_eq(steps, 12333);
        ck_assert_uint_eq(DOMT_SUM(&world, stops), !waits);
        if (!waits) {
            ck_assert_int_eq(domt_send_notice(domt_outside_manager(&world), one, &end_type, NULL),
                             -ESTALE);
            ck_assert_uint_eq(domt_count_all_objects_in_use(&world), 0);
        }
        domt_world_end(&world);
    }
}

DOMT_SUITE(60)
