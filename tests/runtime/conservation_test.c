/* Nothing is lost and nothing comes twice: a random graph of actors on three threads that send,
 * ask, arm timers, are born and stopped, with mailboxes so small that they refuse.
 *
 * Every message is a token. Who handles one passes it on in some way, until a common budget is used
 * up; then the graph falls silent, and the sums have to be equal:
 *
 *     notices sent = handled + dropped        asks made = handled + dropped = resumed
 *
 * What is refused is not sent; what is stale, or left at an end, is dropped. A watchdog prints what
 * there is to know when nothing moves for ten seconds. */
#include "tests/runtime/running.h"

#include "base/random.h"
#include "runtime/system.h"

#include <errno.h>
#include <stdio.h>

#define THREADS    3u
#define NEIGHBOURS 6u
#define FOUNDERS   48u
#define TOKENS     200u /* of each founder, at first */
#define BUDGET     (DOMT_SANITIZED ? INT64_C(100000) : INT64_C(1000000))

static _Atomic int64_t budget;
static _Atomic uint64_t sent, taken, dropped; /* notices */
static _Atomic uint64_t asked, asks_taken, asks_dropped, resumed;
static _Atomic uint64_t refused, stale, armed, rung, mounted, stopped;

static void count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static void drop_notice(void *payload)
{
    (void)payload;
    count(&dropped);
}

static void drop_ask(void *payload)
{
    (void)payload;
    count(&asks_dropped);
}

/* Carries an address, so that the graph changes. */
struct token {
    domus_address somebody;
};

static const domus_type token_type = {"token", sizeof(struct token), drop_notice};
static const domus_type question_type = {"question", sizeof(struct token), drop_ask};
static const domus_type answer_type = {"answer", sizeof(struct token), NULL};
static const domus_type bell_type = {"bell", 0, NULL};

struct node {
    domi_random dice;
    domus_address oracle; /* answers and asks nobody: who asks him may raise a barrier meanwhile */
    domus_address neighbours[NEIGHBOURS];
};

static const domus_behaviour node;

static int pass_on(domus_stack *stack, struct node *self);

static domus_address any_neighbour(struct node *self)
{
    return self->neighbours[domi_random_below(&self->dice, NEIGHBOURS)];
}

static void meet(struct node *self, domus_address somebody)
{
    if (somebody.house != NULL)
        self->neighbours[domi_random_below(&self->dice, NEIGHBOURS)] = somebody;
}

static int pass_on_later(domus_stack *stack, struct node *self)
{
    count(&armed);
    return domus_after(stack, domi_random_below(&self->dice, DOMT_MS), &bell_type, NULL, NULL);
}

static int pass_by_notice(domus_stack *stack, struct node *self)
{
    struct token token = {any_neighbour(self)};
    int result = domus_notice(stack, any_neighbour(self), &token_type, &token);

    if (result == 0)
        count(&sent);
    else
        count(result == -ENOBUFS ? &refused : &stale);
    return result == 0 ? 0 : pass_on_later(stack, self);
}

static int answered(domus_stack *stack, void *self_, const domus_answer *answer)
{
    struct node *self = self_;

    count(&resumed);
    if (answer->error == 0)
        meet(self, ((const struct token *)answer->payload)->somebody);
    return pass_on(stack, self);
}

/* The barrier may still stand, so this conversation asks nobody else: he might ask us. */
static int foretold(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)answer;
    count(&resumed);
    return pass_by_notice(stack, self);
}

static int pass_by_ask(domus_stack *stack, struct node *self)
{
    struct token token = {any_neighbour(self)};
    bool in_barrier = domi_random_below(&self->dice, 8) == 0;
    int result;

    if (in_barrier) {
        (void)domus_barrier(stack); /* -EBUSY when another conversation has one */
        result = domus_ask(stack, self->oracle, &question_type, &token, foretold);
    } else {
        result = domus_ask(stack, any_neighbour(self), &question_type, &token, answered);
    }
    if (result == DOMUS_PARKED)
        count(&asked);
    return result;
}

/* A child that knows the same people; one of those may have to go. */
static int replace_one(domus_stack *stack, struct node *self)
{
    struct node state = *self;
    domus_address born;
    int result = 0;

    domi_random_init(&state.dice, domi_random_next(&self->dice));
    if (domus_spawn(stack, &node, &state, &born) == 0) {
        result = domus_stop(stack, domi_random_below(&self->dice, 2) == 0 ? any_neighbour(self)
                                                                          : domus_self(stack));
        meet(self, born);
    }
    return result == 0 || result == -ESTALE ? pass_on_later(stack, self) : result;
}

static int pass_on(domus_stack *stack, struct node *self)
{
    if (atomic_fetch_sub_explicit(&budget, 1, memory_order_relaxed) <= 0)
        return 0;
    uint64_t chance = domi_random_below(&self->dice, 1000);
    if (chance < 2)
        return replace_one(stack, self);
    if (chance < 200)
        return pass_by_ask(stack, self);
    if (chance < 300)
        return pass_on_later(stack, self);
    return pass_by_notice(stack, self);
}

static int take_token(domus_stack *stack, void *self_, const void *payload)
{
    struct node *self = self_;

    count(&taken);
    meet(self, ((const struct token *)payload)->somebody);
    return pass_on(stack, self);
}

static int bell_rang(domus_stack *stack, void *self, const void *payload)
{
    (void)payload;
    count(&rung);
    return pass_on(stack, self);
}

static int answer_later(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)self;
    count(&resumed);
    return answer->error != 0 ? answer->error : domus_reply(stack, &answer_type, answer->payload);
}

/* Answer, ask somebody else first, fail, or forget. */
static int take_question(domus_stack *stack, void *self_, const void *payload)
{
    struct node *self = self_;
    struct token token = {domus_self(stack)};
    uint64_t chance = domi_random_below(&self->dice, 10);

    count(&asks_taken);
    meet(self, ((const struct token *)payload)->somebody);
    if (chance == 0)
        return -EDOM;
    if (chance == 1)
        return 0;
    if (chance == 2 && atomic_load_explicit(&budget, memory_order_relaxed) > 0) {
        int result = domus_ask(stack, any_neighbour(self), &question_type, &token, answer_later);
        if (result == DOMUS_PARKED)
            count(&asked);
        return result;
    }
    return domus_reply(stack, &answer_type, &token);
}

static int mount(domus_stack *stack, void *self_)
{
    struct node *self = self_;

    count(&mounted);
    self->neighbours[0] = domus_self(stack);
    for (int i = 0; i < 16; i++) /* instead of the tokens that stopped with another */
        (void)pass_on_later(stack, self);
    return 0;
}

static void stop(domus_stack *stack, void *self)
{
    (void)stack;
    (void)self;
    count(&stopped);
}

static const domus_behaviour node = {
    .name = "node",
    .state_size = sizeof(struct node),
    .on =
        (const domus_on[]){
            {&token_type, take_token, 0},
            {&question_type, take_question, 0},
            {&bell_type, bell_rang, 0},
            {NULL, NULL, 0},
        },
    .on_mount = mount,
    .on_stop = stop,
};

static int prophesy(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    count(&asks_taken);
    return domus_reply(stack, &answer_type, payload);
}

static const domus_behaviour oracle = {
    .name = "oracle",
    .on = (const domus_on[]){{&question_type, prophesy, 0}, {NULL, NULL, 0}},
    .on_stop = stop,
};

/* --- the watchdog ----------------------------------------------------------------------------- */

static uint64_t moved(void)
{
    return atomic_load(&taken) + atomic_load(&dropped) + atomic_load(&asks_taken) +
           atomic_load(&asks_dropped) + atomic_load(&resumed) + atomic_load(&rung);
}

static bool in_balance(void)
{
    return atomic_load(&sent) == atomic_load(&taken) + atomic_load(&dropped) &&
           atomic_load(&asked) == atomic_load(&asks_taken) + atomic_load(&asks_dropped) &&
           atomic_load(&asked) == atomic_load(&resumed);
}

/* The threads are stuck: what they have may be read as it is. */
static void report(const domus_system *system)
{
    static char text[32768];

    (void)domus_system_profile_table(system, text, sizeof text);
    fprintf(stderr, "%s", text);
    for (uint32_t i = 0; i < system->count; i++) {
        const domi_manager *manager = &system->threads[i].manager;
        fprintf(stderr,
                "thread %u: state %u, channels %u ready; mounting %d, arrivals %d; "
                "houses %lu, timers %u, park word %u\n",
                i, manager->ready[DOMUS_STATE].count, manager->ready[DOMUS_CHANNELS].count,
                manager->mounting.head != NULL, manager->arrivals != NULL, manager->houses,
                manager->timers, manager->park);
    }
    fprintf(stderr,
            "notices: %lu sent, %lu taken, %lu dropped; asks: %lu made, %lu taken, %lu dropped, "
            "%lu resumed; %ld of the budget left\n",
            sent, taken, dropped, asked, asks_taken, asks_dropped, resumed, budget);
}

/* Feed the graph with new actors and tokens until the budget is used up, then wait for silence. */
static void watch(domus_system *system, domi_random *dice, struct node *state)
{
    uint64_t last = moved();
    uint64_t since_ns = domt_now_ns();

    while (atomic_load(&budget) > 0 || !in_balance()) {
        if (atomic_load(&budget) > 0) {
            domus_address born;
            domi_random_init(&state->dice, domi_random_next(dice));
            ck_assert_int_eq(domus_outside_spawn(system, &node, state, &born), 0);
            for (int i = 0; i < 30; i++) {
                if (domus_outside_notice(system, born, &token_type,
                                         &(struct token){state->neighbours[0]}) == 0)
                    count(&sent);
            }
            state->neighbours[domi_random_below(dice, NEIGHBOURS)] = born;
        }
        domt_pause_ns(DOMT_MS);
        if (moved() != last) {
            last = moved();
            since_ns = domt_now_ns();
        } else if (domt_now_ns() - since_ns > 10000 * DOMT_MS) {
            report(system);
            abort();
        }
    }
}

static void run_graph(uint64_t seed, uint32_t mailbox_max)
{
    domus_config config = domt_config(THREADS);
    domus_address founders[FOUNDERS];
    struct node state = {0};
    domi_random dice;

    config.scheduler.mailbox_max = mailbox_max;
    atomic_store(&budget, BUDGET);
    domus_system *system = domt_start(&config);
    domi_random_init(&dice, seed);
    for (uint32_t i = 0; i < FOUNDERS; i++) {
        if (i < THREADS)
            state.oracle = domt_spawn(system, i, &oracle, NULL);
        for (uint32_t k = 0; k < NEIGHBOURS; k++)
            state.neighbours[k] =
                i != 0 ? founders[domi_random_below(&dice, i)] : (domus_address){NULL, 0};
        domi_random_init(&state.dice, domi_random_next(&dice));
        ck_assert_int_eq(domus_outside_spawn(system, &node, &state, &founders[i]), 0);
    }
    for (uint32_t i = 0; i < TOKENS * FOUNDERS; i++) {
        if (domus_outside_notice(system, founders[i % FOUNDERS], &token_type,
                                 &(struct token){founders[i / TOKENS]}) == 0)
            count(&sent);
    }
    watch(system, &dice, &state);
    domt_pause_ns(10 * DOMT_MS); /* nothing comes twice, and no timer is left */
    ck_assert(in_balance());

    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert(in_balance());
    domus_profile sums = domt_profile_all(system);
    ck_assert_uint_eq(sums.notices, atomic_load(&taken));
    ck_assert_uint_eq(sums.asks, atomic_load(&asks_taken));
    ck_assert_uint_eq(sums.replies + sums.exceptions, atomic_load(&resumed) + sums.late_replies);
    ck_assert_uint_ge(sums.refusals, atomic_load(&refused));
    ck_assert_uint_ge(atomic_load(&armed), atomic_load(&rung));
    ck_assert_uint_eq(atomic_load(&mounted) + THREADS, atomic_load(&stopped));
    ck_assert_uint_gt(atomic_load(&stopped), FOUNDERS);
    ck_assert_uint_gt(atomic_load(&asks_dropped) + atomic_load(&stale), 0);
    domt_end(system);
}

START_TEST(every_message_is_handled_refused_or_a_dead_letter)
{
    run_graph(1, 32768);
}
END_TEST

START_TEST(every_message_is_conserved_through_refusals)
{
    run_graph(2, 16);
    ck_assert_uint_gt(atomic_load(&refused), 0);
}
END_TEST

DOMT_MAIN("conservation", 120, every_message_is_handled_refused_or_a_dead_letter,
          every_message_is_conserved_through_refusals)
