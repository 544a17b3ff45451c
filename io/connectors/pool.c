/* The actor of a pool: it keeps connections, and passes messages on to them (pool.h). */
#include "io/connectors/pool.h"

#include "base/pipeline.h"
#include "house/conversation/asks.h"
#include "house/conversation/stack.h"
#include "house/message/family.h"
#include "io/channels/channel.h"
#include "io/pipelines/load.h"
#include "io/pipelines/mail.h"
#include "io/pipelines/returned.h"

#include <domus/connect.h>
#include <domus/receive.h>
#include <domus/supervise.h>
#include <domus/timer.h>

#include <errno.h>
#include <string.h>

#define DRAIN_LOOK_NS UINT64_C(10000000) /* nanoseconds between two checks of a draining pool */

const domus_type domus_pool_look_type = {.name = "pool look"};
const domus_type domus_pool_status_type = {.name = "pool status",
                                           .size = sizeof(domus_pool_status)};
const domus_type domus_pool_drain_type = {.name = "pool drain"};

static const domus_type connect_type = {.name = "pool connect", .size = sizeof(uint32_t)};
static const domus_type give_up_type = {.name = "pool gives up"};
static const domus_type drained_type = {.name = "pool looks at its drain"};

/* --- connections ------------------------------------------------------------------------------ */

/* Arm the timer of a place of the pool; when it fires, the place gets a connection. */
static void arm_timer_of_place(domus_stack *stack, domi_connection_pool *pool, uint32_t index,
                               uint64_t delay_ns)
{
    domi_place *place = &pool->places[index];

    /* without memory for the timer the place stays free, and the next message tries again */
    place->state = domus_after(stack, delay_ns, &connect_type, &index, NULL) == 0 ? DOMI_PLACE_WAITS
                                                                                  : DOMI_PLACE_FREE;
}

/* Returns a number that spreads the reconnects of many clients, and need not be secret
 * (splitmix64). */
static uint64_t draw_random_number(domi_connection_pool *pool)
{
    uint64_t bits = pool->random += UINT64_C(0x9e3779b97f4a7c15);

    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

/* Leave an address of the pool out for a time, because it has failed. */
static void leave_out_address(domi_connection_pool *pool, domi_target *target, uint64_t now_ns)
{
    uint64_t time_ns = pool->options.backoff_min_ns;

    for (uint32_t i = 0; i < target->failures && time_ns < pool->options.backoff_max_ns; i++)
        time_ns *= 2;
    if (time_ns > pool->options.backoff_max_ns)
        time_ns = pool->options.backoff_max_ns;
    target->failures++;
    target->out_until_ns = now_ns + time_ns / 2 + draw_random_number(pool) % (time_ns / 2 + 1);
    pool->counted.failures++;
}

/* Returns the pool's address with the fewest connections among those that are not left out; NULL if
 * all of them are left out, and then hands out until when. */
static domi_target *choose_pool_address(domi_connection_pool *pool, uint64_t now_ns,
                                        uint64_t *ret_until)
{
    domi_target *best = NULL;
    uint64_t until_ns = UINT64_MAX;

    for (uint32_t i = 0; i < pool->targets_count; i++) {
        domi_target *target = &pool->targets[i];
        if (target->out_until_ns > now_ns) {
            if (target->out_until_ns < until_ns)
                until_ns = target->out_until_ns;
        } else if (best == NULL || target->connections < best->connections) {
            best = target;
        }
    }
    *ret_until = until_ns;
    return best;
}

static void free_place_of_pool(domus_stack *stack, domi_connection_pool *pool, domi_place *place)
{
    uint32_t index = (uint32_t)(place - pool->places);

    pool->targets[place->target].connections--;
    place->state = DOMI_PLACE_FREE;
    if (index < pool->options.connections_min && !pool->draining)
        arm_timer_of_place(stack, pool, index, 0);
}

/* Handle the waiting asks of a pool on demand again: it connects for them, or they get `error`. */
static void retry_waiting_messages(domus_stack *stack, domi_connection_pool *pool, int error)
{
    if (!pool->options.on_demand)
        return;
    pool->error = error;
    domus_unstash(stack);
}

static int open_or_free_connected_place(domus_stack *stack, void *self, const domus_answer *answer)
{
    domi_connection_pool *pool = self;
    const uint32_t *index = domus_frame(stack);
    domi_place *place = &pool->places[*index];
    uint64_t now_ns = domus_now_ns(stack);

    if (answer->error == -ECANCELED) /* the connect was cancelled, because the pool stops */
        return 0;
    if (answer->error != 0) {
        leave_out_address(pool, &pool->targets[place->target], now_ns);
        free_place_of_pool(stack, pool, place);
        retry_waiting_messages(stack, pool, answer->error);
        return 0;
    }
    const domus_connected *connected = answer->payload;
    place->state = DOMI_PLACE_OPEN;
    place->channel = connected->channel;
    place->opened_ns = now_ns;
    place->last_word = (domi_last_word){0};
    place->is_blamed = false;
    pool->open++;
    pool->counted.connects++;
    domi_pipe_let_asks_return_to_pool(place->channel, domus_self(stack),
                                      pool->options.on_demand ? &place->last_word : NULL);
    /* without a watch the pool would not hear of the connection's end */
    if (domus_watch_actor(stack, place->channel, NULL) != 0) {
        (void)domus_stop(stack, place->channel);
        pool->open--;
        free_place_of_pool(stack, pool, place);
        retry_waiting_messages(stack, pool, -ENOMEM);
        return 0;
    }
    domus_unstash(stack);
    return 0;
}

/* Get a connection for a place of the pool, because the event of its timer has come. */
static int on_place_timer_connect(domus_stack *stack, void *self, const void *payload)
{
    domi_connection_pool *pool = self;
    uint32_t *index = domus_frame(stack);
    uint64_t now_ns = domus_now_ns(stack), until_ns;
    const domus_connect_options options = {.behaviour = pool->options.behaviour,
                                           .timeout_ns = pool->options.connect_timeout_ns,
                                           .channel = &pool->channel,
                                           .front = pool->options.front};

    memcpy(index, payload, sizeof *index);
    domi_place *place = &pool->places[*index];
    domi_target *target = choose_pool_address(pool, now_ns, &until_ns);
    if (target == NULL) {
        if (!pool->options.on_demand)
            arm_timer_of_place(stack, pool, *index, until_ns - now_ns);
        else
            place->state = DOMI_PLACE_FREE;
        retry_waiting_messages(stack, pool, pool->error);
        return 0;
    }
    place->state = DOMI_PLACE_CONNECTS;
    place->target = (uint32_t)(target - pool->targets);
    target->connections++;
    int result = domus_connect(stack, target->text, &options, open_or_free_connected_place);
    if (result < 0) {
        leave_out_address(pool, target, now_ns);
        free_place_of_pool(stack, pool, place);
        retry_waiting_messages(stack, pool, result);
        return 0;
    }
    return result;
}

static int on_connection_down_free_its_place(domus_stack *stack, void *self, const void *payload)
{
    domi_connection_pool *pool = self;
    const domus_down *down = payload;
    uint64_t now_ns = domus_now_ns(stack);

    for (uint32_t i = 0; i < pool->options.connections_max; i++) {
        domi_place *place = &pool->places[i];
        if (place->state != DOMI_PLACE_OPEN || place->channel.house != down->who.house ||
            place->channel.lease != down->who.lease)
            continue;
        domi_target *target = &pool->targets[place->target];
        int error = place->last_word.was_used ? 0 : place->last_word.error;
        bool is_failure =
            now_ns - place->opened_ns < pool->options.backoff_max_ns && !place->last_word.was_used;
        if (is_failure && !place->is_blamed)
            leave_out_address(pool, target, now_ns);
        else if (!is_failure)
            target->failures = 0;
        pool->open--;
        free_place_of_pool(stack, pool, place);
        if (pool->open == 0) {
            pool->lost_ns = now_ns;
            (void)domus_after(stack, pool->options.wait_ns, &give_up_type, NULL, NULL);
        }
        retry_waiting_messages(stack, pool, error != 0 ? error : -ENOTCONN);
    }
    return 0;
}

/* --- messages --------------------------------------------------------------------------------- */

/* Returns the pool's connection with the fewest asks, and their number; NULL: none is open. */
static domi_place *find_connection_with_fewest_asks(domi_connection_pool *pool, uint32_t *ret_load)
{
    domi_place *best = NULL;
    uint32_t count = pool->options.connections_max;

    for (uint32_t i = 0; i < count; i++) {
        domi_place *place = &pool->places[(pool->next + i) % count];
        uint32_t load = place->state == DOMI_PLACE_OPEN ? domi_pipe_load_of_channel(place->channel)
                                                        : DOMI_PIPE_CLOSED;
        if (load < DOMI_PIPE_ENDS && (best == NULL || load < *ret_load)) {
            best = place;
            *ret_load = load;
        }
    }
    if (best != NULL)
        pool->next = (uint32_t)(best - pool->places) + 1;
    return best;
}

static uint32_t count_waiting_messages(domus_stack *stack)
{
    const domi_house *house = domi_stack_get_house(stack);

    return house->family != NULL ? house->family->stashed : 0;
}

/* True if the pool has a new connection of which it does not know yet how many asks it takes. */
static bool is_capacity_of_place_unknown(const domi_connection_pool *pool, const domi_place *place)
{
    uint32_t load = place->state == DOMI_PLACE_OPEN ? domi_pipe_load_of_channel(place->channel)
                                                    : DOMI_PIPE_CLOSED;

    return load < DOMI_PIPE_ENDS && (load & DOMI_PIPE_SHAKES) != 0 &&
           domi_pipeline_may_lend(pool->options.behaviour->pipeline);
}

/* Returns the number of the pool's places that wait for their timer to connect, connect, or have a
 * connection of which the pool does not know yet how many asks it takes. Hands out the first free
 * place; UINT32_MAX: there is none. */
static uint32_t count_pending_connections(const domi_connection_pool *pool, uint32_t *ret_vacant)
{
    uint32_t coming = 0;

    *ret_vacant = UINT32_MAX;
    for (uint32_t i = 0; i < pool->options.connections_max; i++) {
        if (pool->places[i].state == DOMI_PLACE_WAITS ||
            pool->places[i].state == DOMI_PLACE_CONNECTS ||
            is_capacity_of_place_unknown(pool, &pool->places[i]))
            coming++;
        else if (pool->places[i].state == DOMI_PLACE_FREE && *ret_vacant == UINT32_MAX)
            *ret_vacant = i;
    }
    return coming;
}

/* Open one more connection of the pool, because each one is full, unless one is being made. On
 * demand open one for each message that waits, unless each connection may take many. */
static void open_more_connections(domus_stack *stack, domi_connection_pool *pool)
{
    bool takes_many = domi_pipeline_may_lend(pool->options.behaviour->pipeline);
    uint32_t enough =
        pool->options.on_demand && !takes_many ? count_waiting_messages(stack) + 1 : 1;
    uint32_t vacant;

    if (count_pending_connections(pool, &vacant) < enough && vacant != UINT32_MAX &&
        !pool->draining)
        arm_timer_of_place(stack, pool, vacant, 0);
}

/* Let a message wait in the pool. Returns 0; -ENOBUFS when as many wait as allowed. */
static int let_message_wait_unless_too_many(domus_stack *stack, const domi_connection_pool *pool)
{
    return count_waiting_messages(stack) < pool->options.queue_max ? domus_stash(stack) : -ENOBUFS;
}

/* Leave out the address of a connection that has failed now: its asks come back before the event of
 * its end, and would be sent there once more. */
static void leave_out_addresses_that_just_failed(domi_connection_pool *pool, uint64_t now_ns)
{
    for (uint32_t i = 0; i < pool->options.connections_max; i++) {
        domi_place *place = &pool->places[i];
        if (place->state != DOMI_PLACE_OPEN || place->is_blamed || place->last_word.was_used ||
            place->last_word.error == 0)
            continue;
        place->is_blamed = true;
        leave_out_address(pool, &pool->targets[place->target], now_ns);
    }
}

/* For a pool on demand: let a message wait for the first connection with room, because none has
 * room now; open one more if allowed. Returns 0, or the error that says why it may not wait. */
static int let_message_wait_for_room(domus_stack *stack, domi_connection_pool *pool)
{
    uint64_t now_ns = domus_now_ns(stack), until_ns;
    uint32_t vacant;

    leave_out_addresses_that_just_failed(pool, now_ns);
    if (choose_pool_address(pool, now_ns, &until_ns) != NULL)
        open_more_connections(stack, pool);
    if (pool->open == 0 && count_pending_connections(pool, &vacant) == 0)
        return pool->error != 0 ? pool->error : -ENOTCONN;
    return let_message_wait_unless_too_many(stack, pool);
}

/* Let a message wait for a connection of the pool. Returns 0, or the error that forbids it. */
static int let_message_wait_for_connection(domus_stack *stack, domi_connection_pool *pool)
{
    if (pool->options.on_demand)
        return let_message_wait_for_room(stack, pool);
    open_more_connections(stack, pool); /* the open connections may take no ask any more */
    if (pool->open == 0 && domus_now_ns(stack) - pool->lost_ns >= pool->options.wait_ns)
        return -ENOTCONN;
    return let_message_wait_unless_too_many(stack, pool);
}

static bool is_ask_repeatable(const domi_connection_pool *pool, const domus_type *type)
{
    const domus_type *const *at = pool->options.repeatable;

    for (; at != NULL && *at != NULL; at++) {
        if (*at == type)
            return true;
    }
    return false;
}

/* Take back an ask that a connection has not answered. Returns 0 if it may be sent again. */
static int take_back_unanswered_ask(domi_connection_pool *pool, domi_envelope *ask)
{
    uint32_t *note = &domi_envelope_get_return_of_ask(ask)->note;
    uint32_t how = *note & DOMI_NOTE_MASK;
    uint32_t tries = *note >> DOMI_TRIES_SHIFT;

    if (how == DOMI_ASK_MAYBE_DONE || how == DOMI_ASK_REFUSED) {
        bool may_repeat = how == DOMI_ASK_REFUSED || is_ask_repeatable(pool, ask->type);
        tries++;
        if (!may_repeat || tries >= pool->options.tries_max)
            return -EPIPE;
        pool->counted.repeated++;
    }
    *note = tries << DOMI_TRIES_SHIFT;
    return 0;
}

static int pass_message_to_connection(domus_stack *stack, domi_connection_pool *pool)
{
    uint32_t load = 0;
    const domi_place *place = find_connection_with_fewest_asks(pool, &load);

    if (DOMI_UNLIKELY(place == NULL))
        return let_message_wait_for_connection(stack, pool);
    load &= ~DOMI_PIPE_SHAKES; /* a handshake is soon over, so its connection counts */
    if (DOMI_UNLIKELY(load >= domi_pipe_most_asks_of_channel(place->channel))) {
        if (pool->options.on_demand &&
            (load & ~DOMI_PIPE_LAST) >= domi_pipe_most_asks_of_channel(place->channel))
            return let_message_wait_for_room(stack, pool);
        open_more_connections(stack, pool);
    }
    int result = domus_forward(stack, place->channel);
    return result == -ESTALE ? let_message_wait_for_connection(stack, pool) : result;
}

static int on_message_pass_to_connection(domus_stack *stack, void *self, const void *payload)
{
    domi_connection_pool *pool = self;
    domi_envelope *ask = stack->ask;
    int result = 0;

    (void)payload;
    if (DOMI_UNLIKELY(ask != NULL && domi_envelope_get_return_of_ask(ask)->note != 0 &&
                      domi_envelope_get_return_of_ask(ask)->note != DOMI_NOTE_OF_PEER))
        result = take_back_unanswered_ask(pool, ask);
    else if (DOMI_UNLIKELY(pool->draining))
        result = -ESHUTDOWN;
    if (DOMI_LIKELY(result == 0))
        result = pass_message_to_connection(stack, pool);
    if (DOMI_LIKELY(result == 0))
        return 0;
    pool->counted.refused++;
    if (ask == NULL)
        return 0; /* a notice that cannot be passed on is no failure of the pool */
    /* An ask that was sent before and now finds no other connection may have been carried out
     * already, which -EPIPE says. */
    return domi_envelope_get_return_of_ask(ask)->note >> DOMI_TRIES_SHIFT != 0 ? -EPIPE : result;
}

/* Let the pool's waiting messages fail, because nothing was connected for too long. */
static int fail_messages_that_wait_too_long(domus_stack *stack, void *self, const void *payload)
{
    const domi_connection_pool *pool = self;

    (void)payload;
    if (pool->open == 0 && domus_now_ns(stack) - pool->lost_ns >= pool->options.wait_ns)
        domus_unstash(stack);
    return 0;
}

/* --- looking, draining ------------------------------------------------------------------------ */

static uint64_t count_asks_under_way(const domi_connection_pool *pool)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < pool->options.connections_max; i++) {
        const domi_place *place = &pool->places[i];
        uint32_t load = place->state == DOMI_PLACE_OPEN ? domi_pipe_load_of_channel(place->channel)
                                                        : DOMI_PIPE_CLOSED;
        sum += load != DOMI_PIPE_CLOSED ? load & ~DOMI_PIPE_MARKS : 0;
    }
    return sum;
}

static int on_ask_answer_status_of_pool(domus_stack *stack, void *self, const void *payload)
{
    const domi_connection_pool *pool = self;
    domus_pool_status status = pool->counted;
    uint64_t now_ns = domus_now_ns(stack);

    (void)payload;
    status.connected = pool->open;
    for (uint32_t i = 0; i < pool->options.connections_max; i++)
        status.connecting += pool->places[i].state == DOMI_PLACE_WAITS ||
                             pool->places[i].state == DOMI_PLACE_CONNECTS;
    status.addresses = pool->targets_count;
    for (uint32_t i = 0; i < pool->targets_count; i++)
        status.left_out += pool->targets[i].out_until_ns > now_ns;
    status.under_way = count_asks_under_way(pool);
    status.waiting = count_waiting_messages(stack);
    return stack->ask != NULL ? domus_reply(stack, &domus_pool_status_type, &status) : 0;
}

static int on_drain_check_stop_if_drained(domus_stack *stack, void *self, const void *payload)
{
    const domi_connection_pool *pool = self;

    (void)payload;
    if ((count_asks_under_way(pool) == 0 && count_waiting_messages(stack) == 0) ||
        domus_after(stack, DRAIN_LOOK_NS, &drained_type, NULL, NULL) != 0)
        return domus_stop(stack, domus_self(stack));
    return 0;
}

static int on_drain_ask_begin_draining_pool(domus_stack *stack, void *self, const void *payload)
{
    domi_connection_pool *pool = self;

    if (pool->draining)
        return 0;
    pool->draining = true;
    return on_drain_check_stop_if_drained(stack, self, payload);
}

/* --- life ------------------------------------------------------------------------------------- */

static int on_mount_pool(domus_stack *stack, void *self)
{
    domi_connection_pool *pool = self;
    int error = domus_channel_options_check(stack, &pool->channel, NULL, 0);

    if (error != 0 || pool->targets_count == 0) /* the pool was restarted without its state */
        return error != 0 ? error : -EINVAL;
    pool->lost_ns = domus_now_ns(stack);
    pool->random = pool->lost_ns + domus_self(stack).lease;
    for (uint32_t i = 0; i < pool->options.connections_min; i++)
        arm_timer_of_place(stack, pool, i, 0);
    (void)domus_after(stack, pool->options.wait_ns, &give_up_type, NULL, NULL);
    return 0;
}

static const domus_on rows[] = {
    {&connect_type, on_place_timer_connect, sizeof(uint32_t)},
    {&domus_down_type, on_connection_down_free_its_place, 0},
    {&give_up_type, fail_messages_that_wait_too_long, 0},
    {&drained_type, on_drain_check_stop_if_drained, 0},
    {&domus_pool_look_type, on_ask_answer_status_of_pool, 0},
    {&domus_pool_drain_type, on_drain_ask_begin_draining_pool, 0},
    {NULL, on_message_pass_to_connection, 0},
};

const domus_behaviour domi_pool_behaviour = {
    .name = "pool",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(domi_connection_pool),
    .on = rows,
    .on_mount = on_mount_pool,
};
