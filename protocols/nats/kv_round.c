/* Rounds of a watch. A round is a consumer on the server that delivers to an inbox of its own. So a
 * message that is still under way when its round has ended is recognized by the tag of the
 * subscription, and is ignored. Each round begins behind the last entry that was sent to the
 * watcher.
 *
 * 1. Subscribe to a new inbox.
 * 2. Make the consumer. Its messages may come before the answer, and are put aside until then.
 * 3. Answer the ask, if this is the first round. If there are no initial entries, tell the watcher
 * so. */
#include "protocols/nats/kv.h"

#include <domus/receive.h>
#include <domus/spawn.h>

#include <errno.h>
#include <stdio.h>

/* Choose at which entry the consumer of a round begins, in the server's words. `ret_from` gets the
 * first sequence number for "by_start_sequence", otherwise 0. */
static const char *choose_first_entry_of_round(const domi_kv_watch *watch, uint64_t *ret_from)
{
    *ret_from = 0;
    if (watch->last != 0) {
        *ret_from = watch->last + 1;
        return "by_start_sequence";
    }
    if (watch->options.from != 0) {
        *ret_from = watch->options.from;
        return "by_start_sequence";
    }
    if (watch->options.changes_only)
        return "new";
    return watch->options.history ? "all" : "last_per_subject";
}

static int make_request_for_consumer(const domi_kv_watch *watch, domus_slice *ret_body)
{
    char stream[DOMUS_NATS_KV_BUCKET_MAX + 4];
    char filter[DOMI_KV_SUBJECT_SIZE];
    const char *pattern = watch->options.pattern;
    uint64_t from = 0;
    const char *begin = choose_first_entry_of_round(watch, &from);

    (void)snprintf(stream, sizeof stream, "KV_%s", watch->bucket);
    domi_kv_make_subject_of_key(watch->bucket, *pattern != '\0' ? pattern : ">", filter);
    /* If nobody listens to the consumer of a round, the server removes it after three
     * heartbeats. */
    return domi_js_write_json_object(
        ret_body, "{s:s, s:{s:s, s:s, s:I, s:s, s:i, s:s, s:b, s:I, s:b, s:b, s:i, s:I}}",
        "stream_name", stream, "config", "deliver_subject", watch->inbox, "deliver_policy", begin,
        "opt_start_seq", (json_int_t)from, "ack_policy", "none", "max_deliver", 1, "filter_subject",
        filter, "flow_control", 1, "idle_heartbeat", (json_int_t)watch->options.heartbeat_ns,
        "headers_only", watch->options.no_values, "mem_storage", 1, "num_replicas", 1,
        "inactive_threshold", 3 * (json_int_t)watch->options.heartbeat_ns);
}

/* The consumer that the server has made, as its answer describes it. */
typedef struct made {
    uint64_t before;  /* sequence number before the first message that the consumer may deliver */
    uint64_t pending; /* number of existing messages that the consumer will deliver */
} made;

static int read_answer_to_consumer_create(const domus_answer *answer, made *ret_made)
{
    json_t *json = NULL;
    int error = domi_js_read_api_answer(answer, DOMUS_NATS_ANSWER_MAX, &json);

    if (error != 0)
        return error;
    const json_t *delivered = domi_js_get_object(json, "delivered");
    if (delivered == NULL)
        error = -EPROTO;
    if (error == 0)
        error = domi_js_get_number(delivered, "stream_seq", &ret_made->before);
    if (error == 0)
        error = domi_js_get_number(json, "num_pending", &ret_made->pending);
    json_decref(json);
    return error;
}

/* Returns whether another try may succeed after this error. */
static bool may_retry_round_after_error(int error)
{
    switch (error) {
    case -ETIMEDOUT:
    case -ECONNREFUSED:
    case -EPIPE:
    case -ENOTCONN:
    case -EAGAIN:
    case -ENOBUFS:
    case -EBUSY:
    case -ENOMEM:
    case -ENOSPC:
    case -ENOMSG:
    case -EREMOTEIO:
        return true;
    default:
        return false;
    }
}

/* Handle an error while a round begins: try again later, or give the watch up. */
static int retry_or_give_up_watch_after_error(domus_stack *stack, domi_kv_watch *watch, int error)
{
    watch->is_opening = false;
    /* the watch's actor is being stopped, or the asker does not wait any more */
    if (error == -ECANCELED) {
        domi_kv_unsubscribe_and_end_round(stack, watch);
        (void)domus_stop(stack, domus_self(stack));
        return error;
    }
    if (error == -ESTALE) /* the client has ended, so another try could not succeed */
        return domi_kv_stop_watch_and_tell_error(stack, watch, -ESHUTDOWN);
    if (!watch->is_accepted || !may_retry_round_after_error(error))
        return domi_kv_stop_watch_and_tell_error(stack, watch, error);
    domi_kv_end_round_and_begin_next_later(stack, watch);
    return 0;
}

/* Answer the ask for a watch, or keep the ask for a list until the keys have come. */
static int answer_watch_or_keep_list_ask(domus_stack *stack, domi_kv_watch *watch)
{
    domus_nats_kv_watching watching = {.watch = domus_self(stack)};

    if (watch->is_accepted)
        return 0;
    watch->is_accepted = true;
    return watch->is_list ? domus_keep(stack, &watch->asked)
                          : domus_reply(stack, &domus_nats_kv_watching_type, &watching);
}

static int begin_live_round_of_made_consumer(domus_stack *stack, void *self,
                                             const domus_answer *answer)
{
    domi_kv_watch *watch = self;
    made consumer = {0};
    int error = read_answer_to_consumer_create(answer, &consumer);

    /* If the consumer begins before the last entry that was sent, the bucket was deleted and made
     * anew. */
    if (error == 0 && watch->last != 0 && consumer.before < watch->last)
        error = -ENXIO;
    if (error == 0)
        error = answer_watch_or_keep_list_ask(stack, watch);
    if (error != 0)
        return retry_or_give_up_watch_after_error(stack, watch, error);
    if (watch->options.changes_only && watch->options.from == 0)
        /* later rounds begin at the same entry as this one */
        watch->options.from = consumer.before + 1;
    watch->is_opening = false;
    watch->is_live = true;
    watch->there = consumer.pending;
    watch->met = 0;
    watch->heard_ns = domus_now_ns(stack);
    watch->aside = 0;
    domus_unstash(stack);
    if (consumer.pending == 0 && !watch->is_initial_told)
        return domi_kv_tell_end_of_initial_entries(stack, watch);
    return 0;
}

static int ask_to_make_consumer_for_inbox(domus_stack *stack, void *self,
                                          const domus_answer *answer)
{
    domi_kv_watch *watch = self;
    domus_slice body = {NULL, 0, 0};
    int error = answer->error;

    if (error == 0 && answer->type != &domus_nats_subscription_type)
        error = -EPROTO;
    if (error != 0)
        return retry_or_give_up_watch_after_error(stack, watch, error);
    watch->subscription = ((const domus_nats_subscription *)answer->payload)->number;
    watch->next = 1;
    int result = make_request_for_consumer(watch, &body);
    if (result == 0)
        result = domi_js_ask_server(stack, watch->client, body, begin_live_round_of_made_consumer,
                                    "$JS.API.CONSUMER.CREATE.KV_%s", watch->bucket);
    return result < 0 ? retry_or_give_up_watch_after_error(stack, watch, result) : result;
}

int domi_kv_begin_watch_round(domus_stack *stack, domi_kv_watch *watch)
{
    domus_nats_subscribe subscribe;

    if (watch->is_opening)
        return 0;
    if (watch->is_list && watch->round == DOMI_KV_ROUNDS_MAX)
        return domi_kv_stop_watch_and_tell_error(stack, watch, -EAGAIN);
    watch->has_no_timer = false;
    domi_js_make_inbox_name(&watch->random, watch->inbox);
    int result = domus_nats_subscribe_make(watch->inbox, NULL, &subscribe);
    if (result == 0) {
        subscribe.tag = ++watch->round;
        subscribe.to = domus_self(stack);
        watch->is_opening = true;
        watch->is_live = false;
        if (watch->is_list) { /* each round of a list begins anew with the first key */
            domi_kv_free_keys_of_list(watch);
            watch->seed = domi_js_next_random_number(&watch->random);
            watch->last = 0;
        }
        result = domus_ask(stack, watch->client, &domus_nats_subscribe_type, &subscribe,
                           ask_to_make_consumer_for_inbox);
        if (result < 0)
            domus_nats_subscribe_type.release(&subscribe);
    }
    return result < 0 ? retry_or_give_up_watch_after_error(stack, watch, result) : result;
}
