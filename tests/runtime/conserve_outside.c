/* The outsiders of the conservation stress, and its alarm actor. Outsiders are foreign threads that
 * send, spawn, stop and ask. The alarm actor is told of a silence, arms a timer, and when the timer
 * rings while all threads sleep, it sends new tokens to the graph. */
#include "tests/runtime/conserve.h"

#include "house/message/house.h"

#include <errno.h>

static void count_dropped_alarm(void *payload)
{
    domt_count_one(DOMT_LETTER_DROPPED);
}

const domus_type domt_alarm_type = {"alarm", sizeof(domt_alarm), count_dropped_alarm};
static const domus_type ring_type = {"ring", 0, NULL};

static int on_alarm_arm_timer(domus_stack *stack, void *self_, const void *payload)
{
    domt_alarm *self = self_;

    domt_count_one(DOMT_LETTER_TAKEN);
    domt_add_to_count(DOMT_ODD, domus_take(stack) != 0);
    *self = *(const domt_alarm *)payload;
    domt_count_one(DOMT_TIMER_MADE);
    if (domus_after(stack, self->delay_ns, &ring_type, NULL, NULL) != 0)
        domt_count_one(DOMT_TIMER_UNMADE);
    return 0;
}

/* Send new tokens to the silent graph, while all threads sleep. The ring of the timer is counted
 * only after that, so in between nobody can take the graph for silent. */
static int on_ring_feed_graph(domus_stack *stack, void *self_, const void *payload)
{
    const domt_alarm *self = self_;

    domt_count_one(DOMT_ALARMS);
    domt_budget_add_messages(self->budget);
    for (uint32_t i = 0; i < self->notices; i++) {
        domus_address to = self->members[i % DOMT_NEIGHBOURS];
        domt_token token = {.somebody = self->members[i / 8 % DOMT_NEIGHBOURS], .to = to.lease};
        domt_count_one(DOMT_NOTICE_MADE);
        (void)domt_count_notice_result(domus_notice(stack, to, &domt_token_type, &token), false);
    }
    domt_count_one(DOMT_TIMER_RUNG);
    return 0;
}

static int on_mount_count_alarm(domus_stack *stack, void *self)
{
    domt_count_one(DOMT_MOUNTED);
    return 0;
}

static void on_stop_count_alarm(domus_stack *stack, void *self)
{
    domt_count_one(DOMT_STOPPED);
}

const domus_behaviour domt_alarm_behaviour = {
    .name = "alarm",
    .state_size = sizeof(domt_alarm),
    .on = (const domus_on[]){{&domt_alarm_type, on_alarm_arm_timer, 0},
                             {&ring_type, on_ring_feed_graph, 0},
                             {0}},
    .on_mount = on_mount_count_alarm,
    .on_stop = on_stop_count_alarm,
};

#define SPAWNS   8 /* actors that an outsider spawns at most in a turn */
#define PAUSE_NS UINT64_C(500000)

/* time-out of an outsider's ask: longer than anything in the graph takes, so each ask ends by an
 * answer */
#define QUERY_NS (600000 * DOMT_MS)

static bool is_actor_seemingly_alive(domus_address address)
{
    return address.house != NULL &&
           DOMI_LIFE_LEASE(domi_house_life_word(address.house)) == address.lease;
}

/* Return an address from the board, which in 15 of 16 cases seems to be alive. */
domus_address domt_board_pick_address(domi_random *dice)
{
    uint64_t bits = domi_random_next_bits(dice);
    domus_address address = domt_board_read_address(bits);

    for (uint64_t i = 1; i < DOMT_BOARD && bits % 16 != 0 && !is_actor_seemingly_alive(address);
         i++)
        address = domt_board_read_address(bits + i);
    return address;
}

void domt_outsider_spawn_node(domt_outsider *outsider)
{
    uint64_t bits = domi_random_next_bits(&outsider->dice);
    uint32_t thread = bits % 8 < outsider->crowd ? 0 : (uint32_t)(bits >> 8);
    bool gate = (bits >> 40) % 8 == 0;
    const domus_spawn_options options = {.placement = DOMUS_ON_THREAD,
                                         .thread = thread % outsider->state.threads,
                                         .pinned = (bits >> 48) % 8 == 0};
    domus_address born = {NULL, 0};

    outsider->state.pinned = options.pinned || gate;
    domi_random_init(&outsider->state.dice, domi_random_next_bits(&outsider->dice));
    for (uint32_t i = 0; i < DOMT_NEIGHBOURS; i++)
        outsider->state.neighbours[i] = domt_board_pick_address(&outsider->dice);
    domt_count_one(DOMT_BORN);
    if (domus_outside_spawn_with(outsider->system,
                                 gate ? &domt_gate_behaviour : &domt_node_behaviour,
                                 &outsider->state, &options, &born) != 0) {
        domt_count_one(DOMT_UNBORN);
        domt_count_one(DOMT_ODD);
    }
    domt_add_to_count(DOMT_BORN_AGAIN, born.lease > 1);
}

static void spawn_nodes_up_to_population(domt_outsider *outsider)
{
    domt_sums sums;

    domt_sums_read_counts(&sums);
    uint64_t alive = sums.of[DOMT_MOUNTED] - sums.of[DOMT_STOPPED];
    /* Spawn also if all actors on the board have ended, because otherwise the outsiders would reach
     * none of the living actors. */
    for (int i = 0; i < SPAWNS; i++, alive++) {
        if (alive < outsider->population ||
            !is_actor_seemingly_alive(domt_board_pick_address(&outsider->dice)))
            domt_outsider_spawn_node(outsider);
    }
}

static void send_letters(domt_outsider *outsider)
{
    for (uint32_t i = 0; i < outsider->letters; i++) {
        domus_address to = domt_board_pick_address(&outsider->dice);
        domt_token letter = {.somebody = domt_board_pick_address(&outsider->dice), .to = to.lease};

        domt_count_one(DOMT_LETTER_MADE);
        (void)domt_count_notice_result(
            domus_outside_notice(outsider->system, to, &domt_letter_type, &letter), true);
    }
    if (outsider->letters != 0 && domi_random_below(&outsider->dice, 4) == 0) {
        int result = domus_outside_stop(outsider->system, domt_board_pick_address(&outsider->dice));
        domt_add_to_count(DOMT_STOP_STALE, result == -ESTALE);
        domt_add_to_count(DOMT_ODD, result != 0 && result != -ESTALE);
    }
}

static void ask_any_node(domt_outsider *outsider)
{
    domus_address to = domt_board_pick_address(&outsider->dice);
    domt_token token = {.somebody = domt_board_pick_address(&outsider->dice), .to = to.lease};
    uint64_t before = domt_count_of_this_thread(DOMT_QUERY_DROPPED);
    domt_token answer;
    domus_outside_reply reply = {.buffer = &answer, .size = sizeof answer};

    domt_count_one(DOMT_QUERY_MADE);
    int result =
        domus_outside_ask(outsider->system, to, &domt_query_type, &token, QUERY_NS, &reply);
    domt_add_to_count(DOMT_QUERY_UNPUT, domt_count_of_this_thread(DOMT_QUERY_DROPPED) - before);
    domt_add_to_count(DOMT_QUERY_REFUSED, result == -ENOBUFS);
    domt_add_to_count(DOMT_REPLY_TAKEN, result == 0);
    domt_add_to_count(DOMT_ODD, result == -ETIMEDOUT || result == -EBUSY || result == -ENOMEM);
    domt_count_one(DOMT_QUERY_ENDED);
}

static void act_once_as_outsider(domt_outsider *outsider)
{
    pthread_mutex_lock(&outsider->turn);
    if (domt_budget_messages_left() > 0 && outsider->asks) {
        if (outsider->letters != 0)
            ask_any_node(outsider);
    } else if (domt_budget_messages_left() > 0) {
        spawn_nodes_up_to_population(outsider);
        send_letters(outsider);
    }
    pthread_mutex_unlock(&outsider->turn);
}

static void *run_outsider(void *outsider_)
{
    domt_outsider *outsider = outsider_;

    while (!atomic_load_explicit(&outsider->done, memory_order_relaxed)) {
        act_once_as_outsider(outsider);
        domt_pause_ns(PAUSE_NS);
    }
    atomic_store_explicit(&outsider->ended, true, memory_order_relaxed);
    return NULL;
}

void domt_outsider_start_thread(domt_outsider *outsider)
{
    pthread_mutex_init(&outsider->turn, NULL);
    ck_assert_int_eq(pthread_create(&outsider->thread, NULL, run_outsider, outsider), 0);
}

bool domt_outsider_end_thread(domt_outsider *outsider)
{
    /* Relaxed for both flags: pthread_join() orders the accesses. */
    atomic_store_explicit(&outsider->done, true, memory_order_relaxed);
    if (!atomic_load_explicit(&outsider->ended, memory_order_relaxed))
        return false;
    pthread_join(outsider->thread, NULL);
    pthread_mutex_destroy(&outsider->turn);
    return true;
}
