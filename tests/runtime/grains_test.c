/* Grains on real threads (domus/grain.h): over two loops, a pool of two runners and foreign
 * threads, at most one life of a grain exists at a time. Lives end all the time, but no message is
 * lost or doubled, and each sender's messages come in their order. */
#include "tests/runtime/pooled.h"

#include <domus/grain.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- streams over lives ----------------------------------------------------------------------- */

/* kinds of grains, by the place of their lives: spread over the loops, in the pool, or near the
 * first sender */
#define KINDS  3u
#define KEYS   6u
#define GRAINS (KINDS * KEYS)
/* number of senders: two on the loops, two in the pool, and two foreign threads */
#define SENDERS 6u
#define NUMBERS (uint32_t) domt_tenfold_if_tests_are_long(DOMT_SCALE(3000, 400))
#define CHUNK   20u
#define TOTAL   ((uint64_t)NUMBERS * GRAINS * SENDERS)

typedef struct parcel {
    uint32_t sender, number;
} parcel;

static void count_released_parcel(void *payload);

static const domus_type parcel_type = {
    .name = "parcel", .size = sizeof(parcel), .release = count_released_parcel};
static const domus_type question_type = {.name = "question", .size = sizeof(parcel)};
static const domus_type go_type = {.name = "go"};
static domus_grains kinds[KINDS];

/* The data of a grain, which outlasts its lives. Only the present life uses the data, without a
 * lock, so ThreadSanitizer reports if two lives of a grain overlap. */
typedef struct store {
    uint32_t expected[SENDERS]; /* for each sender, the number of the parcel that must come next */
    /* for each sender, the number of the question that must come next */
    uint32_t asked[SENDERS];
    uint64_t handled;
} store;

static store stores[GRAINS];
static _Atomic uint32_t living[GRAINS];
static _Atomic uint64_t made, ended, crowded, out_of_order, received, answered, released, lost;

static void count_released_parcel(void *payload)
{
    atomic_fetch_add(&released, 1);
}

typedef struct life {
    store *store;
    uint32_t grain;
    uint32_t handled; /* number of messages that this life has handled */
} life;

static int begin_life_of_grain(void *context, const char *key, void *self)
{
    life *mine = self;

    mine->grain = (uint32_t)(uintptr_t)context * KEYS + (uint32_t)(key[1] - '0');
    mine->store = &stores[mine->grain];
    if (atomic_fetch_add(&living[mine->grain], 1) != 0)
        atomic_fetch_add(&crowded, 1);
    atomic_fetch_add(&made, 1);
    return 0;
}

static void end_life_of_grain(const life *mine)
{
    atomic_fetch_add(&ended, 1);
    atomic_fetch_sub(&living[mine->grain], 1);
}

static void unmake_state_of_grain(void *context, const char *key, void *self)
{
    end_life_of_grain(self);
}

static void on_stop_end_life(domus_stack *stack, void *self)
{
    end_life_of_grain(self);
}

/* Count a handled message. Now and then, after a number of messages that differs for each grain,
 * the life stops itself or fails. */
static int count_message_and_end_at_times(domus_stack *stack, life *mine)
{
    uint64_t all = ++mine->store->handled;

    if (++mine->handled >= 3 && all % (61 + mine->grain) == 0)
        return domus_stop(stack, domus_self(stack));
    return all % (97 + mine->grain) == 0 ? -EIO : 0;
}

static int check_order_of_parcel(domus_stack *stack, void *self, const void *payload)
{
    life *mine = self;
    const parcel *got = payload;

    if (mine->store->expected[got->sender]++ != got->number)
        atomic_fetch_add(&out_of_order, 1);
    atomic_fetch_add(&received, 1);
    return count_message_and_end_at_times(stack, mine);
}

static int reply_and_check_order(domus_stack *stack, void *self, const void *payload)
{
    life *mine = self;
    const parcel *got = payload;

    if (mine->store->asked[got->sender]++ != got->number)
        atomic_fetch_add(&out_of_order, 1);
    int error = domus_reply(stack, &question_type, payload);
    (void)count_message_and_end_at_times(stack, mine);
    return error;
}

static const domus_behaviour living_one = {
    .name = "life",
    .state_size = sizeof(life),
    .on = (const domus_on[]){{&parcel_type, check_order_of_parcel, 0},
                             {&question_type, reply_and_check_order, 0},
                             {0}},
    .on_stop = on_stop_end_life};

static void open_kinds_of_grains(void)
{
    for (uint32_t i = 0; i < KINDS; i++) {
        char name[] = "kind-0";
        name[5] = (char)('0' + i);
        domus_grain_kind kind = {
            .name = name,
            .behaviour = &living_one,
            .make = begin_life_of_grain,
            .unmake = unmake_state_of_grain,
            .context = (void *)(uintptr_t)i,
            .options = {.placement = i == 0 ? DOMUS_SPREAD : DOMUS_NEAR,
                        .pool = i == 1 ? domt_pooled.pool : NULL,
                        /* a small mailbox, because each end of a life moves the messages that wait
                         * there */
                        .mailbox_max = 128,
                        .passivate_after_ns = DOMT_MS},
            .living_max = KEYS,
            .ends_on_failure = true,
        };
        ck_assert_int_eq(domus_outside_grain_open(domt_pooled.system, &kind, &kinds[i]), 0);
    }
}

static const char *key_text_of_grain(uint32_t grain, char text[4])
{
    snprintf(text, 4, "k%u", grain % KEYS);
    return text;
}

typedef struct sender {
    uint32_t id;
    /* for each grain, the number of the parcel that this sender sends next */
    uint32_t next[GRAINS];
    /* for each grain, the number of the question that this sender sends next */
    uint32_t asks[GRAINS];
    uint32_t turn;
} sender;

static int send_parcels_and_ask_grain(domus_stack *stack, void *self, const void *nothing);

static int send_on_or_stop(domus_stack *stack, const sender *mine)
{
    for (uint32_t i = 0; i < GRAINS; i++) {
        if (mine->next[i] < NUMBERS)
            return domus_notice(stack, domus_self(stack), &go_type, NULL);
    }
    return domus_stop(stack, domus_self(stack));
}

static int check_answer_of_grain(domus_stack *stack, void *self, const domus_answer *answer)
{
    sender *mine = self;
    uint32_t grain = mine->turn++ % GRAINS;

    if (answer->error == -ENOBUFS)
        /* the mailbox was full, so the question was not sent and its number is used again */
        mine->asks[grain]--;
    else if (answer->error != 0)
        atomic_fetch_add(&lost, 1);
    else
        atomic_fetch_add(&answered, 1);
    return send_on_or_stop(stack, mine);
}

/* Send some parcels to each grain, or fewer if its mailbox is full; then ask one of the grains, and
 * go on when its answer has come. */
static int send_parcels_and_ask_grain(domus_stack *stack, void *self, const void *nothing)
{
    sender *mine = self;
    char key[4];

    for (uint32_t i = 0; i < GRAINS; i++) {
        for (uint32_t j = 0; j < CHUNK && mine->next[i] < NUMBERS; j++) {
            const parcel it = {mine->id, mine->next[i]};
            if (domus_grain_notice(stack, kinds[i / KEYS], key_text_of_grain(i, key), &parcel_type,
                                   &it) != 0)
                break;
            mine->next[i]++;
        }
    }
    uint32_t asked = mine->turn % GRAINS;
    const parcel it = {mine->id, mine->asks[asked]++};
    return domus_grain_ask(stack, kinds[asked / KEYS], key_text_of_grain(asked, key),
                           &question_type, &it, check_answer_of_grain);
}

static const domus_behaviour sending = {
    .name = "sending",
    .state_size = sizeof(sender),
    .on = (const domus_on[]){{&go_type, send_parcels_and_ask_grain, 0}, {0}}};

static void *send_parcels_from_outside(void *id)
{
    domus_system *system = domt_pooled.system;
    sender mine = {.id = (uint32_t)(uintptr_t)id};
    char key[4];

    for (uint32_t left = GRAINS; left != 0; mine.turn++) {
        left = 0;
        for (uint32_t i = 0; i < GRAINS; i++) {
            const parcel it = {mine.id, mine.next[i]};
            if (mine.next[i] < NUMBERS &&
                domus_outside_grain_notice(system, kinds[i / KEYS], key_text_of_grain(i, key),
                                           &parcel_type, &it) == 0)
                mine.next[i]++;
            left += mine.next[i] < NUMBERS;
        }
        if (mine.turn % 16 != 0)
            continue;
        uint32_t asked = mine.turn / 16 % GRAINS;
        const parcel it = {mine.id, mine.asks[asked]};
        parcel back = {0};
        domus_outside_reply reply = {.buffer = &back, .size = sizeof back};
        int error =
            domus_outside_grain_ask(system, kinds[asked / KEYS], key_text_of_grain(asked, key),
                                    &question_type, &it, 0, &reply);
        mine.asks[asked] += error == 0;
        if (error != -ENOBUFS && (error != 0 || back.number != it.number))
            atomic_fetch_add(&lost, 1);
    }
    return NULL;
}

DOMT_TEST(one_life_of_a_grain_at_a_time_and_no_message_is_lost_or_doubled)
{
    pthread_t foreign[2];

    domt_pooled_start_with_policy("deques", 2, 2);
    open_kinds_of_grains();
    for (uint32_t i = 0; i < 4; i++) {
        const sender state = {.id = i};
        domt_send_notice(domt_pooled.system,
                         domt_pooled_spawn(i < 2 ? NULL : domt_pooled.pool, &sending, &state),
                         &go_type, NULL);
    }
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&foreign[i], NULL, send_parcels_from_outside,
                                        (void *)(uintptr_t)(4 + i)),
                         0);
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_join(foreign[i], NULL), 0);
    DOMT_WAIT_FOR(150, atomic_load(&received) == TOTAL);
    ck_assert_uint_eq(atomic_load(&out_of_order), 0);
    ck_assert_uint_eq(atomic_load(&crowded), 0);
    ck_assert_uint_eq(atomic_load(&lost), 0);
    ck_assert_uint_gt(atomic_load(&answered), 0);
    ck_assert_uint_gt(atomic_load(&made), TOTAL / 500);
    for (uint32_t i = 0; i < KINDS; i++)
        /* wait until all grains have been idle and have ended */
        DOMT_WAIT_FOR(20, domus_grain_count(kinds[i]) == 0);
    ck_assert_uint_eq(atomic_load(&made), atomic_load(&ended));
    ck_assert_uint_eq(atomic_load(&released), TOTAL);
    ck_assert_uint_ge(domt_profile_of_all_threads(domt_pooled.system).passivations, 1);
    domt_end_system(domt_pooled.system);
    ck_assert_uint_eq(atomic_load(&received), TOTAL);
}

/* --- lives that cannot be made ---------------------------------------------------------------- */

#define QUESTIONS (uint32_t) domt_tenfold_if_tests_are_long(DOMT_SCALE(6000, 800))
#define ASKERS    4u

static _Atomic uint64_t tries, good, refused, odd;

static int fail_each_second_mount(domus_stack *stack, void *self)
{
    return atomic_fetch_add(&tries, 1) % 2 == 0 ? -EACCES : 0;
}

/* Answer one question and stop, so that each life handles only one question. */
static int reply_once_and_stop(domus_stack *stack, void *self, const void *payload)
{
    if (((const life *)self)->grain % KEYS != ((const parcel *)payload)->number)
        atomic_fetch_add(&odd, 1); /* the life belongs to another grain than the question */
    (void)domus_stop(stack, domus_self(stack));
    return domus_reply(stack, &question_type, payload);
}

static const domus_behaviour flaky = {
    .name = "flaky",
    .state_size = sizeof(life),
    .on = (const domus_on[]){{&question_type, reply_once_and_stop, 0}, {0}},
    .on_mount = fail_each_second_mount,
    .on_stop = on_stop_end_life};

typedef struct asker {
    uint32_t asked;
} asker;

static int ask_next_grain(domus_stack *stack, void *self, const void *nothing);

static int count_answer_and_ask_next(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error == 0)
        atomic_fetch_add(&good, 1);
    else if (answer->error == -EACCES)
        atomic_fetch_add(&refused, 1);
    else
        atomic_fetch_add(&odd, 1);
    return ask_next_grain(stack, self, NULL);
}

static int ask_next_grain(domus_stack *stack, void *self, const void *nothing)
{
    asker *mine = self;
    const parcel it = {.number = (mine->asked + 1) % 3};
    char key[4];

    if (mine->asked++ == QUESTIONS)
        return domus_stop(stack, domus_self(stack));
    return domus_grain_ask(stack, kinds[mine->asked % 2], key_text_of_grain(mine->asked % 3, key),
                           &question_type, &it, count_answer_and_ask_next);
}

static const domus_behaviour asking = {.name = "asking",
                                       .state_size = sizeof(asker),
                                       .on =
                                           (const domus_on[]){{&go_type, ask_next_grain, 0}, {0}}};

DOMT_TEST(each_ask_is_answered_once_though_lives_fail_as_they_begin)
{
    domt_pooled_start_with_policy("rings", 2, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const domus_grain_kind kind = {
            .name = i == 0 ? "loop" : "pool",
            .behaviour = &flaky,
            .make = begin_life_of_grain,
            .unmake = unmake_state_of_grain,
            .context = (void *)(uintptr_t)i,
            .options = {.placement = DOMUS_SPREAD, .pool = i == 0 ? NULL : domt_pooled.pool},
        };
        ck_assert_int_eq(domus_outside_grain_open(domt_pooled.system, &kind, &kinds[i]), 0);
    }
    for (uint32_t i = 0; i < ASKERS; i++)
        domt_send_notice(domt_pooled.system,
                         domt_pooled_spawn(i % 2 == 0 ? NULL : domt_pooled.pool, &asking, NULL),
                         &go_type, NULL);
    DOMT_WAIT_FOR(100, atomic_load(&good) + atomic_load(&refused) + atomic_load(&odd) ==
                           (uint64_t)QUESTIONS * ASKERS);
    ck_assert_uint_eq(atomic_load(&odd), 0);
    ck_assert_uint_eq(atomic_load(&crowded), 0);
    ck_assert_uint_gt(atomic_load(&good), 0);
    ck_assert_uint_gt(atomic_load(&refused), 0);
    for (uint32_t i = 0; i < 2; i++)
        DOMT_WAIT_FOR(20, domus_grain_count(kinds[i]) == 0);
    domt_end_system(domt_pooled.system);
    ck_assert_uint_eq(atomic_load(&made), atomic_load(&ended));
}

/* --- the end of the system -------------------------------------------------------------------- */

static _Atomic uint64_t taken;
static _Atomic bool over;

static void *send_parcels_outside_until_over(void *id)
{
    char key[4];

    for (uint32_t i = 0; !atomic_load(&over); i++) {
        const parcel it = {(uint32_t)(uintptr_t)id, i};
        int error = domus_outside_grain_notice(domt_pooled.system, kinds[i % KINDS],
                                               key_text_of_grain(i % KEYS, key), &parcel_type, &it);
        if (error == 0)
            atomic_fetch_add(&taken, 1);
        else if (error != -ENOBUFS && error != -ESHUTDOWN)
            atomic_fetch_add(&odd, 1);
    }
    return NULL;
}

/* Send parcels to the grains again and again, until the system stops. */
static int send_parcels_until_stop(domus_stack *stack, void *self, const void *nothing)
{
    sender *mine = self;
    char key[4];

    for (uint32_t i = 0; i < GRAINS; i++) {
        const parcel it = {mine->id, mine->turn++};
        if (domus_grain_notice(stack, kinds[i / KEYS], key_text_of_grain(i, key), &parcel_type,
                               &it) == 0)
            atomic_fetch_add(&taken, 1);
    }
    return domus_notice(stack, domus_self(stack), &go_type, NULL);
}

static const domus_behaviour sending_for_ever = {
    .name = "sending for ever",
    .state_size = sizeof(sender),
    .on = (const domus_on[]){{&go_type, send_parcels_until_stop, 0}, {0}}};

static void stop_system_while_grains_work(void)
{
    pthread_t foreign[2];

    atomic_store(&over, false);
    domt_pooled_start_with_policy("stealing", 2, 2);
    open_kinds_of_grains();
    for (uint32_t i = 0; i < 4; i++) {
        const sender state = {.id = i};
        domt_send_notice(
            domt_pooled.system,
            domt_pooled_spawn(i < 2 ? NULL : domt_pooled.pool, &sending_for_ever, &state), &go_type,
            NULL);
    }
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&foreign[i], NULL, send_parcels_outside_until_over,
                                        (void *)(uintptr_t)(4 + i)),
                         0);
    domt_pause_ns(20 * DOMT_MS);
    ck_assert_int_eq(domus_system_stop(domt_pooled.system), 0);
    ck_assert_str_eq(domus_system_left(domt_pooled.system), "");
    atomic_store(&over, true);
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_join(foreign[i], NULL), 0);
    for (uint32_t i = 0; i < KINDS; i++)
        ck_assert_uint_eq(domus_grain_count(kinds[i]), 0);
    domus_system_free(domt_pooled.system);
    ck_assert_uint_eq(atomic_load(&released), atomic_load(&taken));
    ck_assert_uint_eq(atomic_load(&made), atomic_load(&ended));
    ck_assert_uint_eq(atomic_load(&crowded), 0);
    ck_assert_uint_eq(atomic_load(&odd), 0);
}

DOMT_TEST(stop_of_the_system_in_the_midst_leaves_nothing)
{
    for (int i = 0; i < (DOMT_SANITIZED ? 4 : 20); i++)
        stop_system_while_grains_work();
}

/* --- foreign threads -------------------------------------------------------------------------- */

DOMT_TEST(wrong_grain_calls_from_outside_are_refused)
{
    const parcel it = {0};
    const domus_grain_kind wrong = {.name = "wrong"};
    domus_grains grains = {NULL};

    domt_pooled_start_with_policy("sharing", 1, 1);
    domus_system *system = domt_pooled.system;
    open_kinds_of_grains();
    ck_assert_int_eq(domus_outside_grain_open(system, &wrong, &grains), -EINVAL);
    ck_assert_int_eq(domus_outside_grain_notice(system, grains, "k0", &parcel_type, &it), -EINVAL);
    ck_assert_int_eq(domus_outside_grain_ask(system, grains, "k0", &question_type, &it, 0, NULL),
                     -EINVAL);
    for (uint32_t i = 0; i < KEYS; i++) {
        char key[4];
        ck_assert_int_eq(
            domus_outside_grain_notice(system, kinds[0], key_text_of_grain(i, key), &go_type, NULL),
            0);
    }
    ck_assert_int_eq(domus_outside_grain_ask(system, kinds[0], "k0", &go_type, NULL, 0, NULL),
                     -EOPNOTSUPP);
    const domus_grain_kind one = {
        .name = "one", .behaviour = &living_one, .make = begin_life_of_grain, .living_max = 1};
    ck_assert_int_eq(domus_outside_grain_open(system, &one, &grains), 0);
    ck_assert_int_eq(domus_outside_grain_notice(system, grains, "k0", &parcel_type, &it), 0);
    ck_assert_int_eq(domus_outside_grain_notice(system, grains, "k1", &parcel_type, &it), -EAGAIN);
    ck_assert_int_eq(domus_outside_grain_ask(system, grains, "k1", &question_type, &it, 0, NULL),
                     -EAGAIN);
    ck_assert_uint_eq(domus_grain_count(grains), 1);
    domt_end_system(system);
}

DOMT_SUITE(200)
