/* The actors of the conservation stress: nodes that pass on each token.
 *
 * Every message is a token. A node that handles one passes it on in a way that its dice choose, as
 * long as there is budget: by a notice, an ask, a timer, or by a birth and a stop. A token that
 * cannot be sent goes on by a timer. Messages carry addresses, so that the graph changes, and
 * addresses of dead actors are used all the time. Conversations are in conserve_asks.c. */
#include "tests/runtime/conserve.h"

#include "house/conversation/stack.h"

#include <errno.h>

static void count_dropped_notice(void *payload)
{
    domt_count_one(DOMT_NOTICE_DROPPED);
}

static void count_dropped_letter(void *payload)
{
    domt_count_one(DOMT_LETTER_DROPPED);
}

const domus_type domt_token_type = {"token", sizeof(domt_token), count_dropped_notice};
const domus_type domt_letter_type = {"letter", sizeof(domt_token), count_dropped_letter};
/* type of the event of a single timer; its payload says whether the timer was armed on a loan */
static const domus_type bell_type = {"bell", sizeof(bool), NULL};
static const domus_type tick_type = {"tick", 0, NULL};

domus_address domt_any_neighbour(domt_node *self)
{
    return self->neighbours[domi_random_below(&self->dice, DOMT_NEIGHBOURS)];
}

void domt_add_neighbour(domt_node *self, domus_address somebody)
{
    if (somebody.house != NULL)
        self->neighbours[domi_random_below(&self->dice, DOMT_NEIGHBOURS)] = somebody;
}

bool domt_is_run_on_loan(const domus_stack *stack)
{
    return stack->manager != domi_stack_get_house(stack)->home;
}

/* --- the board -------------------------------------------------------------------------------- */

static struct entry {
    _Atomic(struct domi_house *) house;
    _Atomic uint32_t lease;
} board[DOMT_BOARD];

/* release: pairs with the acquire in domt_board_read_address(), so a thread that reads the address
 * sees the memory of its slot, which stays readable for ever. */
static void write_address_on_board(uint64_t place, domus_address address)
{
    struct entry *entry = &board[place % DOMT_BOARD];

    atomic_store_explicit(&entry->house, address.house, memory_order_release);
    atomic_store_explicit(&entry->lease, address.lease, memory_order_relaxed);
}

domus_address domt_board_read_address(uint64_t place)
{
    struct entry *entry = &board[place % DOMT_BOARD];

    return (domus_address){atomic_load_explicit(&entry->house, memory_order_acquire),
                           atomic_load_explicit(&entry->lease, memory_order_relaxed)};
}

void domt_board_clear(void)
{
    for (uint32_t i = 0; i < DOMT_BOARD; i++)
        write_address_on_board(i, (domus_address){NULL, 0});
}

/* --- passing on ------------------------------------------------------------------------------- */

int domt_count_notice_result(int result, bool outside)
{
    if (result == -ENOBUFS)
        domt_count_one(outside ? DOMT_LETTER_REFUSED : DOMT_NOTICE_REFUSED);
    else if (result == -ESTALE)
        domt_count_one(outside ? DOMT_LETTER_STALE : DOMT_NOTICE_STALE);
    else if (result != 0)
        domt_count_one(DOMT_ODD);
    return result;
}

int domt_pass_token_by_timer(domus_stack *stack, domt_node *self)
{
    bool lent = domt_is_run_on_loan(stack);
    uint64_t delay_ns = domi_random_below(&self->dice, DOMT_MS);

    domt_count_one(DOMT_TIMER_MADE);
    if (domus_after(stack, delay_ns, &bell_type, &lent, &self->bell) != 0) {
        domt_count_one(DOMT_TIMER_UNMADE);
        return 0;
    }
    self->timers++;
    domt_add_to_count(DOMT_LENT_ARMED, lent);
    return 0;
}

int domt_pass_token_by_notice(domus_stack *stack, domt_node *self)
{
    domus_address to = domt_any_neighbour(self);
    domt_token token = {.somebody = domt_any_neighbour(self), .to = to.lease};

    domt_count_one(DOMT_NOTICE_MADE);
    domt_add_to_count(DOMT_LENT_SENT, domt_is_run_on_loan(stack));
    if (domt_count_notice_result(domus_notice(stack, to, &domt_token_type, &token), false) == 0)
        return 0;
    /* the node's own address may replace the address of a dead actor */
    domt_add_neighbour(self, domus_self(stack));
    return domt_pass_token_by_timer(stack, self);
}

/* Forward the token that is handled, in its own envelope. */
static int forward_token(domus_stack *stack, domt_node *self, const void *payload)
{
    domt_token *token = (domt_token *)(uintptr_t)payload;
    domus_address to = domt_any_neighbour(self);

    token->to = to.lease;
    domt_count_one(DOMT_NOTICE_MADE);
    if (domt_count_notice_result(domus_forward(stack, to), false) != 0) {
        domt_add_to_count(DOMT_ODD, domus_take(stack) != 0);
        return domt_pass_token_by_timer(stack, self);
    }
    domt_count_one(DOMT_FORWARDED);
    return 0;
}

static void count_spawned_actor(const domus_stack *stack, domus_address born)
{
    domt_add_to_count(DOMT_BORN_AGAIN, born.lease > 1);
    domt_add_to_count(DOMT_BORN_ELSEWHERE, born.house->home != domi_stack_get_house(stack)->home);
    domt_add_to_count(DOMT_LENT_BORN, domt_is_run_on_loan(stack));
}

/* Spawn a child that knows the same neighbours as this node. Returns whether the spawn
 * succeeded. */
static bool spawn_child(domus_stack *stack, domt_node *self)
{
    domt_node state = {.oracle = self->oracle, .threads = self->threads};
    uint64_t bits = domi_random_next_bits(&self->dice);
    const domus_spawn_options options = {.placement = (domus_placement)(bits % 3),
                                         .thread = (uint32_t)(bits >> 8) % self->threads,
                                         .pinned = (bits >> 16) % 8 == 0,
                                         .mailbox_max = (bits >> 24) % 8 == 0 ? 4 : 0};
    const domus_behaviour *behaviour =
        (bits >> 32) % 8 == 0 ? &domt_gate_behaviour : &domt_node_behaviour;
    domus_address born;

    domi_random_init(&state.dice, domi_random_next_bits(&self->dice));
    for (uint32_t i = 0; i < DOMT_NEIGHBOURS; i++)
        state.neighbours[i] = self->neighbours[i];
    state.pinned = options.pinned || behaviour == &domt_gate_behaviour;
    domt_count_one(DOMT_BORN);
    int result = domus_spawn_with(stack, behaviour, &state, &options, &born);
    if (result != 0) {
        domt_count_one(DOMT_UNBORN);
        domt_add_to_count(DOMT_ODD,
                          result != -ESHUTDOWN); /* -ESHUTDOWN: this node has been stopped */
        return false;
    }
    count_spawned_actor(stack, born);
    domt_add_neighbour(self, born);
    return true;
}

/* Spawn a child, and stop a neighbour or this node itself in its place. */
static int spawn_child_and_stop_actor(domus_stack *stack, domt_node *self)
{
    if (spawn_child(stack, self)) {
        bool own = domi_random_below(&self->dice, 4) == 0;
        int result = domus_stop(stack, own ? domus_self(stack) : domt_any_neighbour(self));
        domt_add_to_count(DOMT_STOP_STALE, result == -ESTALE);
        domt_add_to_count(DOMT_ODD, result != 0 && result != -ESTALE);
        domt_add_to_count(DOMT_LENT_STOPPED, own && domt_is_run_on_loan(stack));
    }
    return domt_pass_token_by_timer(stack, self);
}

static void cancel_bell_timer(domus_stack *stack, domt_node *self)
{
    if (domus_timer_cancel(stack, self->bell) != 0)
        return;
    self->timers--;
    domt_count_one(DOMT_TIMER_CANCELLED);
    domt_add_to_count(DOMT_LENT_CANCELLED, domt_is_run_on_loan(stack));
}

static void begin_periodic_timer(domus_stack *stack, domt_node *self)
{
    bool delayed = domi_random_below(&self->dice, 2) == 0;

    if (self->ticks)
        return;
    domt_count_one(DOMT_TICKER_MADE);
    int result = delayed ? domus_repeat(stack, DOMT_MS, &tick_type, NULL, &self->ticker)
                         : domus_every(stack, DOMT_MS, &tick_type, NULL, &self->ticker);
    self->ticks = result == 0;
    if (result != 0)
        domt_count_one(DOMT_TICKER_UNMADE);
}

static void cancel_periodic_timer(domus_stack *stack, domt_node *self)
{
    if (!self->ticks)
        return;
    self->ticks = false;
    domt_count_one(DOMT_TICKER_CANCELLED);
    domt_add_to_count(DOMT_ODD, domus_timer_cancel(stack, self->ticker) != 0);
}

static int act_rarely_and_pass_token_on(domus_stack *stack, domt_node *self, uint64_t chance)
{
    /* Nodes are seldom run on a loan, so a node on a loan replaces an actor more often. */
    if (chance == 0 || (chance < 12 && domt_is_run_on_loan(stack)))
        return spawn_child_and_stop_actor(stack, self);
    if (chance < 4)
        begin_periodic_timer(stack, self);
    else if (chance < 20)
        return domt_cancel_kept_conversation(stack, self);
    else
        cancel_bell_timer(stack, self);
    return domt_pass_token_by_timer(stack, self);
}

int domt_pass_token_on(domus_stack *stack, domt_node *self)
{
    if (!domt_budget_take_message())
        return 0;
    uint64_t chance = domi_random_below(&self->dice, 2048);
    if (chance < 30)
        return act_rarely_and_pass_token_on(stack, self, chance);
    if (chance < 360)
        return domt_pass_token_by_ask(stack, self);
    if (chance < 420)
        return domt_pass_token_by_timer(stack, self);
    return domt_pass_token_by_notice(stack, self);
}

/* --- handlers --------------------------------------------------------------------------------- */

/* Count how the node is run (pinned, on a loan), and check that the token was meant for this
 * node. */
static void count_run_and_check_token(domus_stack *stack, const domt_node *self,
                                      const domt_token *token)
{
    bool lent = domt_is_run_on_loan(stack);

    domt_add_to_count(DOMT_ASTRAY, token->to != domus_self(stack).lease);
    if (self->pinned)
        domt_count_one(domi_stack_get_house(stack)->behaviour == &domt_gate_behaviour
                           ? DOMT_GATE_RUN
                           : DOMT_PINNED_RUN);
    if (!lent)
        return;
    domt_count_one(DOMT_LENT_RUN);
    domt_add_to_count(DOMT_LENT_WITH_TIMERS, self->timers != 0);
    domt_add_to_count(DOMT_STRAYED, self->pinned);
}

static int on_token_pass_on(domus_stack *stack, void *self_, const void *payload)
{
    const domt_token *token = payload;
    domt_node *self = self_;
    uint64_t chance = domi_random_below(&self->dice, 256);

    count_run_and_check_token(stack, self, token);
    /* A token is stashed only if the node has a timer, because the handler of a timer unstashes
     * it. */
    if (chance == 0 && self->timers != 0 && domus_stash(stack) == 0) {
        domt_count_one(DOMT_STASHED);
        return 0;
    }
    domt_count_one(DOMT_NOTICE_TAKEN);
    domt_add_neighbour(self, token->somebody);
    if (chance < 8 && domt_budget_take_message())
        return forward_token(stack, self, payload);
    domt_add_to_count(DOMT_ODD, domus_take(stack) != 0);
    return domt_pass_token_on(stack, self);
}

static int on_letter_pass_token_on(domus_stack *stack, void *self, const void *payload)
{
    count_run_and_check_token(stack, self, payload);
    domt_count_one(DOMT_LETTER_TAKEN);
    domt_add_to_count(DOMT_ODD, domus_take(stack) != 0);
    domt_add_neighbour(self, ((const domt_token *)payload)->somebody);
    return domt_pass_token_on(stack, self);
}

static int on_bell_pass_token_on(domus_stack *stack, void *self_, const void *armed_lent)
{
    domt_node *self = self_;

    self->timers--;
    domt_count_one(DOMT_TIMER_RUNG);
    domt_add_to_count(DOMT_LENT_RUNG, *(const bool *)armed_lent);
    domus_unstash(stack);
    domt_answer_kept_ask(stack, self);
    return domt_pass_token_on(stack, self);
}

static int on_tick_pass_token_on(domus_stack *stack, void *self_, const void *payload)
{
    domt_node *self = self_;

    domt_count_one(DOMT_TICKER_RUNG);
    if (domt_budget_messages_left() <= 0 || domi_random_below(&self->dice, 16) == 0)
        cancel_periodic_timer(stack, self);
    return domt_pass_token_on(stack, self);
}

static int on_mount_begin_node(domus_stack *stack, void *self_)
{
    domt_node *self = self_;

    domt_count_one(DOMT_MOUNTED);
    self->neighbours[0] = domus_self(stack);
    write_address_on_board(domi_random_next_bits(&self->dice), domus_self(stack));
    /* tokens that start from timers, in place of tokens that got lost when other actors ended */
    for (int i = 0; i < 8; i++)
        (void)domt_pass_token_by_timer(stack, self);
    return 0;
}

/* Count the timers that the node still has as taken back, because its stop cancels them. */
static void on_stop_count_timers(domus_stack *stack, void *self_)
{
    const domt_node *self = self_;

    domt_count_one(DOMT_STOPPED);
    domt_add_to_count(DOMT_TIMER_BACK, self->timers);
    domt_add_to_count(DOMT_TICKER_BACK, self->ticks);
}

static const domus_on rows[] = {
    {&domt_token_type, on_token_pass_on, 0},
    {&domt_question_type, domt_on_question_respond, 0},
    {&bell_type, on_bell_pass_token_on, 0},
    {&domt_letter_type, on_letter_pass_token_on, 0},
    {&domt_query_type, domt_on_query_respond, 0},
    {&tick_type, on_tick_pass_token_on, 0},
    {0},
};

const domus_behaviour domt_node_behaviour = {.name = "node",
                                             .state_size = sizeof(domt_node),
                                             .on = rows,
                                             .on_mount = on_mount_begin_node,
                                             .on_stop = on_stop_count_timers};

const domus_behaviour domt_gate_behaviour = {.name = "gate",
                                             .kind = DOMUS_CHANNELS,
                                             .state_size = sizeof(domt_node),
                                             .on = rows,
                                             .on_mount = on_mount_begin_node,
                                             .on_stop = on_stop_count_timers};
