/* Grains on real threads: one life of a grain at a time over two loops, a pool of two runners and
 * foreign threads, while lives end all the time; no message is lost or doubled, and each sender's
 * messages come in order. */
#include "tests/runtime/pooled.h"

#include <domus/grain.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- streams over lives ----------------------------------------------------------------------- */

/* kinds of grains: spread over the loops; in the pool; near their first sender */
#define KINDS   3u
#define KEYS    6u
#define GRAINS  (KINDS * KEYS)
#define SENDERS 6u /* two senders on the loops, two in the pool, two foreign threads */
#define NUMBERS (uint32_t) domt_more_if_long(DOMT_SCALE(3000, 400))
#define CHUNK   20u
#define TOTAL   ((uint64_t)NUMBERS * GRAINS * SENDERS)

typedef struct parcel {
    uint32_t sender, number;
} parcel;

static void release_parcel(void *payload);

static const domus_type parcel_type = {
    .name = "parcel", .size = sizeof(parcel), .release = release_parcel};
static const domus_type question_type = {.name = "question", .size = sizeof(parcel)};
static const domus_type go_type = {.name = "go"};
static domus_grains kinds[KINDS];

/* The data of a grain that outlasts its lives. Only the present life uses it, and no lock guards
 * it: ThreadSanitizer reports if one life does not happen before the next. */
typedef struct store {
    uint32_t expected[SENDERS]; /* number of the next parcel of each sender */
    uint32_t asked[SENDERS];    /* number of the next question of each sender */
    uint64_t handled;
} store;

static store stores[GRAINS];
static _Atomic uint32_t living[GRAINS];
static _Atomic uint64_t made, ended, crowded, out_of_order, received, answered, released, lost;

static void release_parcel(void *payload)
{
    atomic_fetch_add(&released, 1);
}

typedef struct life {
    store *store;
    uint32_t grain;
    uint32_t handled; /* messages that this life has handled */
} life;

static int begin_life(void *context, const char *key, void *self)
{
    life *mine = self;

    mine->grain = (uint32_t)(uintptr_t)context * KEYS + (uint32_t)(key[1] - '0');
    mine->store = &stores[mine->grain];
    if (atomic_fetch_add(&living[mine->grain], 1) != 0)
        atomic_fetch_add(&crowded, 1);
    atomic_fetch_add(&made, 1);
    return 0;
}

static void end_life(const life *mine)
{
    atomic_fetch_add(&ended, 1);
    atomic_fetch_sub(&living[mine->grain], 1);
}

static void unmake_life(void *context, const char *key, void *self)
{
    end_life(self);
}

static void stop_life(domus_stack *stack, void *self)
{
    end_life(self);
}

/* Handle a message; now and then a life stops itself or fails, after a number of messages that
 * differs for each store. */
static int go_on(domus_stack *stack, life *mine)
{
    uint64_t all = ++mine->store->handled;

    if (++mine->handled >= 3 && all % (61 + mine->grain) == 0)
        return domus_stop(stack, domus_self(stack));
    return all % (97 + mine->grain) == 0 ? -EIO : 0;
}

static int on_parcel(domus_stack *stack, void *self, const void *payload)
{
    life *mine = self;
    const parcel *got = payload;

    if (mine->store->expected[got->sender]++ != got->number)
        atomic_fetch_add(&out_of_order, 1);
    atomic_fetch_add(&received, 1);
    return go_on(stack, mine);
}

static int on_question(domus_stack *stack, void *self, const void *payload)
{
    life *mine = self;
    const parcel *got = payload;

    if (mine->store->asked[got->sender]++ != got->number)
        atomic_fetch_add(&out_of_order, 1);
    int error = domus_reply(stack, &question_type, payload);
    (void)go_on(stack, mine);
    return error;
}

static const domus_behaviour living_one = {
    .name = "life",
    .state_size = sizeof(life),
    .on = (const domus_on[]){{&parcel_type, on_parcel, 0}, {&question_type, on_question, 0}, {0}},
    .on_stop = stop_life};

static void open_kinds(void)
{
    for (uint32_t i = 0; i < KINDS; i++) {
        char name[] = "kind-0";
        name[5] = (char)('0' + i);
        domus_grain_kind kind = {
            .name = name,
            .behaviour = &living_one,
            .make = begin_life,
            .unmake = unmake_life,
            .context = (void *)(uintptr_t)i,
            .options = {.placement = i == 0 ? DOMUS_SPREAD : DOMUS_NEAR,
                        .pool = i == 1 ? domt_pooled.pool : NULL,
                        /* small, because each end of a life moves the messages that wait */
                        .mailbox_max = 128,
                        .passivate_after_ns = DOMT_MS},
            .living_max = KEYS,
            .ends_on_failure = true,
        };
        ck_assert_int_eq(domus_outside_grain_open(domt_pooled.system, &kind, &kinds[i]), 0);
    }
}

static const char *key_of(uint32_t grain, char text[4])
{
    snprintf(text, 4, "k%u", grain % KEYS);
    return text;
}

typedef struct sender {
    uint32_t id;
    uint32_t next[GRAINS]; /* number of the next parcel to each grain */
    uint32_t asks[GRAINS]; /* number of the next question to each grain */
    uint32_t turn;
} sender;

static int on_go(domus_stack *stack, void *self, const void *nothing);

static int go_again(domus_stack *stack, const sender *mine)
{
    for (uint32_t i = 0; i < GRAINS; i++) {
        if (mine->next[i] < NUMBERS)
            return domus_notice(stack, domus_self(stack), &go_type, NULL);
    }
    return domus_stop(stack, domus_self(stack));
}

static int on_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    sender *mine = self;
    uint32_t grain = mine->turn++ % GRAINS;

    if (answer->error == -ENOBUFS)
        mine->asks[grain]--; /* the question was not sent */
    else if (answer->error != 0)
        atomic_fetch_add(&lost, 1);
    else
        atomic_fetch_add(&answered, 1);
    return go_again(stack, mine);
}

/* Send some parcels to each grain, until its mailbox is full; then ask one grain, and go on with
 * its answer. */
static int on_go(domus_stack *stack, void *self, const void *nothing)
{
    sender *mine = self;
    char key[4];

    for (uint32_t i = 0; i < GRAINS; i++) {
        for (uint32_t j = 0; j < CHUNK && mine->next[i] < NUMBERS; j++) {
            const parcel it = {mine->id, mine->next[i]};
            if (domus_grain_notice(stack, kinds[i / KEYS], key_of(i, key), &parcel_type, &it) != 0)
                break;
            mine->next[i]++;
        }
    }
    uint32_t asked = mine->turn % GRAINS;
    const parcel it = {mine->id, mine->asks[asked]++};
    return domus_grain_ask(stack, kinds[asked / KEYS], key_of(asked, key), &question_type, &it,
                           on_answer);
}

static const domus_behaviour sending = {.name = "sending",
                                        .state_size = sizeof(sender),
                                        .on = (const domus_on[]){{&go_type, on_go, 0}, {0}}};

static void *send_from_outside(void *id)
{
    domus_system *system = domt_pooled.system;
    sender mine = {.id = (uint32_t)(uintptr_t)id};
    char key[4];

    for (uint32_t left = GRAINS; left != 0; mine.turn++) {
        left = 0;
        for (uint32_t i = 0; i < GRAINS; i++) {
            const parcel it = {mine.id, mine.next[i]};
            if (mine.next[i] < NUMBERS &&
                domus_outside_grain_notice(system, kinds[i / KEYS], key_of(i, key), &parcel_type,
                                           &it) == 0)
                mine.next[i]++;
            left += mine.next[i] < NUMBERS;
        }
        if (mine.turn % 16 != 0)
            continue;
        uint32_t asked = mine.turn / 16 % GRAINS;
        const parcel it = {mine.id, mine.asks[asked]};
        parcel back = {0};
        domus_outside_reply reply = {.buffer = &back, .size = sizeof back};
        int error = domus_outside_grain_ask(system, kinds[asked / KEYS], key_of(asked, key),
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

    domt_pooled_begin("deques", 2, 2);
    open_kinds();
    for (uint32_t i = 0; i < 4; i++) {
        const sender state = {.id = i};
        domt_notice(domt_pooled.system,
                    domt_pooled_spawn(i < 2 ? NULL : domt_pooled.pool, &sending, &state), &go_type,
                    NULL);
    }
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_int_eq(
            pthread_create(&foreign[i], NULL, send_from_outside, (void *)(uintptr_t)(4 + i)), 0);
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_join(foreign[i], NULL), 0);
    DOMT_WAIT_FOR(150, atomic_load(&received) == TOTAL);
    ck_assert_uint_eq(atomic_load(&out_of_order), 0);
    ck_assert_uint_eq(atomic_load(&crowded), 0);
    ck_assert_uint_eq(atomic_load(&lost), 0);
    ck_assert_uint_gt(atomic_load(&answered), 0);
    ck_assert_uint_gt(atomic_load(&made), TOTAL / 500);
    for (uint32_t i = 0; i < KINDS; i++)
        /* all grains have become idle and ended */
        DOMT_WAIT_FOR(20, domus_grain_count(kinds[i]) == 0);
    ck_assert_uint_eq(atomic_load(&made), atomic_load(&ended));
    ck_assert_uint_eq(atomic_load(&released), TOTAL);
    ck_assert_uint_ge(domt_profile_all(domt_pooled.system).passivations, 1);
    domt_end(domt_pooled.system);
    ck_assert_uint_eq(atomic_load(&received), TOTAL);
}

/* --- lives that cannot be made ---------------------------------------------------------------- */

#define QUESTIONS (uint32_t) domt_more_if_long(DOMT_SCALE(6000, 800))
#define ASKERS    4u

static _Atomic uint64_t tries, good, refused, odd;

static int mount_or_fail(domus_stack *stack, void *self)
{
    return atomic_fetch_add(&tries, 1) % 2 == 0 ? -EACCES : 0;
}

/* Answer one question; a life handles only one. */
static int answer_once(domus_stack *stack, void *self, const void *payload)
{
    if (((const life *)self)->grain % KEYS != ((const parcel *)payload)->number)
        atomic_fetch_add(&odd, 1); /* the question was for another grain */
    (void)domus_stop(stack, domus_self(stack));
    return domus_reply(stack, &question_type, payload);
}

static const domus_behaviour flaky = {.name = "flaky",
                                      .state_size = sizeof(life),
                                      .on =
                                          (const domus_on[]){{&question_type, answer_once, 0}, {0}},
                                      .on_mount = mount_or_fail,
                                      .on_stop = stop_life};

typedef struct asker {
    uint32_t asked;
} asker;

static int ask_next(domus_stack *stack, void *self, const void *nothing);

static int count_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error == 0)
        atomic_fetch_add(&good, 1);
    else if (answer->error == -EACCES)
        atomic_fetch_add(&refused, 1);
    else
        atomic_fetch_add(&odd, 1);
    return ask_next(stack, self, NULL);
}

static int ask_next(domus_stack *stack, void *self, const void *nothing)
{
    asker *mine = self;
    const parcel it = {.number = (mine->asked + 1) % 3};
    char key[4];

    if (mine->asked++ == QUESTIONS)
        return domus_stop(stack, domus_self(stack));
    return domus_grain_ask(stack, kinds[mine->asked % 2], key_of(mine->asked % 3, key),
                           &question_type, &it, count_answer);
}

static const domus_behaviour asking = {.name = "asking",
                                       .state_size = sizeof(asker),
                                       .on = (const domus_on[]){{&go_type, ask_next, 0}, {0}}};

DOMT_TEST(each_ask_is_answered_once_though_lives_fail_as_they_begin)
{
    domt_pooled_begin("rings", 2, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const domus_grain_kind kind = {
            .name = i == 0 ? "loop" : "pool",
            .behaviour = &flaky,
            .make = begin_life,
            .unmake = unmake_life,
            .context = (void *)(uintptr_t)i,
            .options = {.placement = DOMUS_SPREAD, .pool = i == 0 ? NULL : domt_pooled.pool},
        };
        ck_assert_int_eq(domus_outside_grain_open(domt_pooled.system, &kind, &kinds[i]), 0);
    }
    for (uint32_t i = 0; i < ASKERS; i++)
        domt_notice(domt_pooled.system,
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
    domt_end(domt_pooled.system);
    ck_assert_uint_eq(atomic_load(&made), atomic_load(&ended));
}

/* --- the end of the system -------------------------------------------------------------------- */

static _Atomic uint64_t taken;
static _Atomic bool over;

static void *send_until_over(void *id)
{
    char key[4];

    for (uint32_t i = 0; !atomic_load(&over); i++) {
        const parcel it = {(uint32_t)(uintptr_t)id, i};
        int error = domus_outside_grain_notice(domt_pooled.system, kinds[i % KINDS],
                                               key_of(i % KEYS, key), &parcel_type, &it);
        if (error == 0)
            atomic_fetch_add(&taken, 1);
        else if (error != -ENOBUFS && error != -ESHUTDOWN)
            atomic_fetch_add(&odd, 1);
    }
    return NULL;
}

/* Send for ever, until the system stops. */
static int send_for_ever(domus_stack *stack, void *self, const void *nothing)
{
    sender *mine = self;
    char key[4];

    for (uint32_t i = 0; i < GRAINS; i++) {
        const parcel it = {mine->id, mine->turn++};
        if (domus_grain_notice(stack, kinds[i / KEYS], key_of(i, key), &parcel_type, &it) == 0)
            atomic_fetch_add(&taken, 1);
    }
    return domus_notice(stack, domus_self(stack), &go_type, NULL);
}

static const domus_behaviour sending_for_ever = {
    .name = "sending for ever",
    .state_size = sizeof(sender),
    .on = (const domus_on[]){{&go_type, send_for_ever, 0}, {0}}};

static void stop_in_the_midst(void)
{
    pthread_t foreign[2];

    atomic_store(&over, false);
    domt_pooled_begin("stealing", 2, 2);
    open_kinds();
    for (uint32_t i = 0; i < 4; i++) {
        const sender state = {.id = i};
        domt_notice(domt_pooled.system,
                    domt_pooled_spawn(i < 2 ? NULL : domt_pooled.pool, &sending_for_ever, &state),
                    &go_type, NULL);
    }
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_int_eq(
            pthread_create(&foreign[i], NULL, send_until_over, (void *)(uintptr_t)(4 + i)), 0);
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
        stop_in_the_midst();
}

/* --- foreign threads -------------------------------------------------------------------------- */

DOMT_TEST(foreign_threads_hear_of_what_they_did_wrong)
{
    const parcel it = {0};
    const domus_grain_kind wrong = {.name = "wrong"};
    domus_grains grains = {NULL};

    domt_pooled_begin("sharing", 1, 1);
    domus_system *system = domt_pooled.system;
    open_kinds();
    ck_assert_int_eq(domus_outside_grain_open(system, &wrong, &grains), -EINVAL);
    ck_assert_int_eq(domus_outside_grain_notice(system, grains, "k0", &parcel_type, &it), -EINVAL);
    ck_assert_int_eq(domus_outside_grain_ask(system, grains, "k0", &question_type, &it, 0, NULL),
                     -EINVAL);
    for (uint32_t i = 0; i < KEYS; i++) {
        char key[4];
        ck_assert_int_eq(
            domus_outside_grain_notice(system, kinds[0], key_of(i, key), &go_type, NULL), 0);
    }
    ck_assert_int_eq(domus_outside_grain_ask(system, kinds[0], "k0", &go_type, NULL, 0, NULL),
                     -EOPNOTSUPP);
    const domus_grain_kind one = {
        .name = "one", .behaviour = &living_one, .make = begin_life, .living_max = 1};
    ck_assert_int_eq(domus_outside_grain_open(system, &one, &grains), 0);
    ck_assert_int_eq(domus_outside_grain_notice(system, grains, "k0", &parcel_type, &it), 0);
    ck_assert_int_eq(domus_outside_grain_notice(system, grains, "k1", &parcel_type, &it), -EAGAIN);
    ck_assert_int_eq(domus_outside_grain_ask(system, grains, "k1", &question_type, &it, 0, NULL),
                     -EAGAIN);
    ck_assert_uint_eq(domus_grain_count(grains), 1);
    domt_end(system);
}

DOMT_SUITE(200)
