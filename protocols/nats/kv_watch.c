/* The actor that serves a watch or a list of keys. It begins with the ask, which the bucket's actor
 * has forwarded to it, and ends with its watcher. kv_round.c tells how the actor gets the entries
 * from the server. */
#include "protocols/nats/kv.h"

#include <domus/receive.h>
#include <domus/spawn.h>
#include <domus/supervise.h>
#include <domus/timer.h>

#include <errno.h>
#include <string.h>

/* the shortest heartbeat of a consumer that a server accepts, in ns */
#define HEARTBEAT_LEAST UINT64_C(100000000)
#define HEARTBEAT_MOST  UINT64_C(3600000000000)

/* ns for which a new actor waits for the ask of its watch or list before it ends */
#define UNASKED_NS UINT64_C(1000000000)

static const domus_type beat_type = {.name = "nats_kv_beat"};
static const domus_type unasked_type = {.name = "nats_kv_unasked"};

static int arm_timer_for_first_ask_at_mount(domus_stack *stack, void *self)
{
    (void)self;
    return domus_after(stack, UNASKED_NS, &unasked_type, NULL, NULL);
}

/* End the actor of a watch if its ask has not come in time, because then the asker does not wait
 * any more. */
static int stop_watch_without_ask_at_timer(domus_stack *stack, void *self, const void *payload)
{
    const domi_kv_watch *watch = self;

    (void)payload;
    return watch->round == 0 ? domus_stop(stack, domus_self(stack)) : 0;
}

/* Begin the first round of a watch or list, with the options of its ask. */
static int begin_first_round(domus_stack *stack, domi_kv_watch *watch)
{
    domus_nats_kv_watch *options = &watch->options;

    if (options->heartbeat_ns == 0)
        options->heartbeat_ns = DOMUS_NATS_KV_HEARTBEAT;
    if (options->heartbeat_ns < HEARTBEAT_LEAST || options->heartbeat_ns > HEARTBEAT_MOST ||
        options->from > INT64_MAX || (options->from != 0 && options->changes_only) ||
        (*options->pattern != '\0' && !domi_kv_is_valid_key_pattern(options->pattern)))
        return domi_kv_stop_watch_and_tell_error(stack, watch, -EINVAL);
    watch->backoff_ns = DOMI_KV_BACKOFF_MIN;
    int error = domus_every(stack, options->heartbeat_ns, &beat_type, NULL, NULL);
    if (error != 0)
        return domi_kv_stop_watch_and_tell_error(stack, watch, error);
    return domi_kv_begin_watch_round(stack, watch);
}

static int watch_watcher_and_begin_first_round(domus_stack *stack, void *self, const void *payload)
{
    domi_kv_watch *watch = self;
    const domus_address nobody = {NULL, 0};

    watch->options = *(const domus_nats_kv_watch *)payload;
    if (domus_address_equals(watch->options.to, nobody))
        watch->options.to = domus_sender(stack);
    if (domus_address_equals(watch->options.to, nobody))
        return domi_kv_stop_watch_and_tell_error(stack, watch, -EINVAL);
    int error = domus_watch_actor(stack, watch->options.to, NULL);
    if (error != 0)
        return domi_kv_stop_watch_and_tell_error(stack, watch, error);
    return begin_first_round(stack, watch);
}

static int begin_first_round_of_key_list(domus_stack *stack, void *self, const void *payload)
{
    domi_kv_watch *watch = self;
    const domus_nats_kv_keys *keys = payload;

    watch->is_list = true;
    watch->options = (domus_nats_kv_watch){.no_values = true};
    memcpy(watch->options.pattern, keys->pattern, sizeof keys->pattern);
    return begin_first_round(stack, watch);
}

/* Put the current message aside until the round's consumer is made. A message that does not fit is
 * dropped; the number of the next delivery then shows that it is missing. */
static void stash_message_until_consumer_is_made(domus_stack *stack, domi_kv_watch *watch,
                                                 uint32_t size)
{
    if (watch->aside <= DOMI_KV_ASIDE_MAX && domus_stash(stack) == 0)
        watch->aside += size;
}

static int use_message_if_of_current_round(domus_stack *stack, void *self, const void *payload)
{
    domi_kv_watch *watch = self;
    const domus_nats_message *message = payload;

    if (message->tag != watch->round)
        return 0; /* the message belongs to a round that has ended, so it is ignored */
    if (watch->is_opening) {
        stash_message_until_consumer_is_made(stack, watch, message->bytes.size);
        return 0;
    }
    return watch->is_live ? domi_kv_take_entry_or_status_of_round(stack, watch, message) : 0;
}

/* Begin the next round of a watch, because its delay is over or the watcher has room again. */
static int begin_next_round_unless_one_is_live(domus_stack *stack, void *self, const void *payload)
{
    domi_kv_watch *watch = self;

    (void)payload;
    return watch->is_live ? 0 : domi_kv_begin_watch_round(stack, watch);
}

static int begin_round_if_mailbox_has_room_again(domus_stack *stack, void *self,
                                                 const void *payload)
{
    const domus_down *down = payload;

    if (down->reason != 0)
        return domus_stop(stack, domus_self(stack));
    return begin_next_round_unless_one_is_live(stack, self, payload);
}

static int stop_watch_whose_watcher_has_ended(domus_stack *stack, void *self, const void *payload)
{
    domi_kv_watch *watch = self;

    (void)payload;
    domi_kv_unsubscribe_and_end_round(stack, watch);
    return domus_stop(stack, domus_self(stack));
}

/* Check whether the server still sends heartbeats for this watch: after more than two intervals of
 * silence the round ends. Also begin the round for which no timer could be set. */
static int end_round_if_server_is_silent(domus_stack *stack, void *self, const void *payload)
{
    domi_kv_watch *watch = self;
    uint64_t silent_ns = domus_now_ns(stack) - watch->heard_ns;

    (void)payload;
    if (watch->is_live && silent_ns > watch->options.heartbeat_ns * 2)
        domi_kv_end_round_and_begin_next_later(stack, watch);
    return watch->has_no_timer ? domi_kv_begin_watch_round(stack, watch) : 0;
}

static void end_round_and_free_list_at_stop(domus_stack *stack, void *self)
{
    domi_kv_watch *watch = self;

    domi_kv_unsubscribe_and_end_round(stack, watch);
    domi_kv_free_keys_of_list(watch);
}

static const domus_on rows[] = {
    {.type = &domus_nats_message_type, .handle = use_message_if_of_current_round},
    {.type = &domus_nats_kv_watch_type, .handle = watch_watcher_and_begin_first_round},
    {.type = &domus_nats_kv_keys_type, .handle = begin_first_round_of_key_list},
    {.type = &unasked_type, .handle = stop_watch_without_ask_at_timer},
    {.type = &beat_type, .handle = end_round_if_server_is_silent},
    {.type = &domi_kv_again_type, .handle = begin_next_round_unless_one_is_live},
    {.type = &domus_room_type, .handle = begin_round_if_mailbox_has_room_again},
    {.type = &domus_down_type, .handle = stop_watch_whose_watcher_has_ended},
    {.type = NULL},
};

const domus_behaviour domi_kv_watch_behaviour = {
    .name = "nats_kv_watch",
    .kind = DOMUS_STATE,
    .state_size = sizeof(domi_kv_watch),
    .on = rows,
    .on_mount = arm_timer_for_first_ask_at_mount,
    .on_stop = end_round_and_free_list_at_stop,
};
