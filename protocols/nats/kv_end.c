/* Ends the rounds of a watch, and the watch itself (kv_round.c says what a round is). */
#include "protocols/nats/kv.h"

#include <domus/spawn.h>
#include <domus/timer.h>

const domus_type domi_kv_again_type = {.name = "nats_kv_again"};

void domi_kv_unsubscribe_and_end_round(domus_stack *stack, domi_kv_watch *watch)
{
    domus_nats_unsubscribe unsubscribe = {.number = watch->subscription};

    watch->is_live = false;
    if (watch->subscription == 0)
        return;
    watch->subscription = 0;
    /* If the client refuses this unsubscribe, messages of the ended round still come, and are
     * ignored. */
    (void)domus_notice(stack, watch->client, &domus_nats_unsubscribe_type, &unsubscribe);
}

void domi_kv_end_round_and_begin_next_later(domus_stack *stack, domi_kv_watch *watch)
{
    domi_kv_unsubscribe_and_end_round(stack, watch);
    uint64_t delay_ns = watch->backoff_ns;
    watch->backoff_ns = delay_ns * 2 < DOMI_KV_BACKOFF_MAX ? delay_ns * 2 : DOMI_KV_BACKOFF_MAX;
    /* If no timer can be set, the watch's next heartbeat check begins the round. */
    watch->has_no_timer = domus_after(stack, delay_ns, &domi_kv_again_type, NULL, NULL) != 0;
}

int domi_kv_stop_watch_and_tell_error(domus_stack *stack, domi_kv_watch *watch, int error)
{
    domus_nats_kv_ended ended = {.tag = watch->options.tag, .error = error};

    domi_kv_unsubscribe_and_end_round(stack, watch);
    (void)domus_stop(stack, domus_self(stack));
    if (watch->is_list && watch->is_accepted)
        (void)domus_kept_fail(stack, watch->asked, error);
    else if (watch->is_accepted)
        (void)domus_notice(stack, watch->options.to, &domus_nats_kv_ended_type, &ended);
    else
        (void)domus_fail(stack, error);
    return 0;
}
