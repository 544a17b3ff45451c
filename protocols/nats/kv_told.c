/* Handles what the server delivers to a watch, and sends it to the watcher.
 *
 * Deliveries of a round are numbered, so a missing one is noticed at the next delivery, or at the
 * next heartbeat, which tells how far the server is. Then the round ends, and the next one begins
 * behind the last entry that was sent. The same happens when the watcher accepts no more notices:
 * its mailbox bounds the watch. */
#include "protocols/nats/kv.h"

#include <domus/spawn.h>
#include <domus/supervise.h>

#include <errno.h>

/* messages that a round may deliver beyond the initial entries before these count as complete */
#define MORE 1024u

/* End the round after the watcher has refused a notice. Returns `error`. */
static int handle_refused_notice(domus_stack *stack, domi_kv_watch *watch, int error)
{
    if (error == -ESTALE) {
        domi_kv_end_round(stack, watch);
        (void)domus_stop(stack, domus_self(stack));
        return error;
    }
    if (error == -ENOBUFS &&
        /* the event about room in the mailbox begins the next round */
        domus_watch_room(stack, watch->options.to, NULL) == 0) {
        domi_kv_end_round(stack, watch);
        return error;
    }
    domi_kv_retry(stack, watch);
    return error;
}

int domi_kv_tell_initial(domus_stack *stack, domi_kv_watch *watch)
{
    domus_nats_kv_initial initial = {.tag = watch->options.tag, .revision = watch->last};

    if (watch->is_list)
        return domi_kv_end_list(stack, watch);
    int error = domus_notice(stack, watch->options.to, &domus_nats_kv_initial_type, &initial);
    if (error == 0)
        watch->is_initial_told = true;
    else
        (void)handle_refused_notice(stack, watch, error);
    return 0;
}

/* Send an entry to the watcher. Returns 0; or an error after which the round has ended. */
static int send_entry_to_watcher(domus_stack *stack, domi_kv_watch *watch,
                                 domus_nats_kv_entry *entry)
{
    entry->tag = watch->options.tag;
    entry->initial = !watch->is_initial_told;
    int error = domus_slice_keep(entry->bytes, &entry->bytes);
    if (error != 0)
        return handle_refused_notice(stack, watch, error);
    error = domus_notice(stack, watch->options.to, &domus_nats_kv_entry_type, entry);
    if (error != 0) {
        domus_slice_free(entry->bytes);
        return handle_refused_notice(stack, watch, error);
    }
    return 0;
}

/* Send an entry to the watcher if the options want it, or add it to the list. Returns as
 * send_entry_to_watcher(). */
static int pass_entry_on(domus_stack *stack, domi_kv_watch *watch, domus_nats_kv_entry *entry)
{
    if (watch->is_list) {
        int error = domi_kv_add_to_list(watch, entry);
        if (error != 0)
            (void)domi_kv_give_up(stack, watch, error);
        return error;
    }
    if (watch->options.ignore_deletes && entry->operation != DOMUS_NATS_KV_PUT)
        return 0;
    return send_entry_to_watcher(stack, watch, entry);
}

/* Returns whether all initial entries have come, or so many others that some of the initial ones
 * must be gone. While keys change, nats-server 2.9 says too early that none is pending. */
static bool has_all_initial_entries(const domi_kv_watch *watch)
{
    return watch->met >= watch->there || watch->next > 2 * watch->there + MORE;
}

static int handle_entry(domus_stack *stack, domi_kv_watch *watch, const domus_nats_message *message)
{
    domus_nats_stream_message read;
    domus_nats_kv_entry entry;
    domi_js_place place;

    if (domi_js_read_place(domus_nats_reply_to(message), &place) != 0 ||
        domi_js_read_pushed(message, &read) != 0)
        return 0; /* the message is invalid, so a stranger has found the inbox */
    int wrong = domi_kv_read_entry(watch->bucket, &read, &entry);
    if (wrong == -EPROTO)
        return 0; /* the entry is invalid, so a stranger has found the inbox */
    if (place.consumer_sequence != watch->next || place.sequence < watch->last) {
        domi_kv_retry(stack, watch);
        return 0;
    }
    watch->next++;
    /* nats-server 2.9 delivers the newest entry of each key and then further ones, which may begin
     * with the last one again */
    if (place.sequence != watch->last) {
        if (wrong == 0 && pass_entry_on(stack, watch, &entry) != 0)
            return 0;
        watch->last = place.sequence;
        watch->met += !watch->is_list;
        watch->backoff_ns = DOMI_KV_BACKOFF_MIN;
    }
    if (place.pending == 0 && !watch->is_initial_told && has_all_initial_entries(watch))
        return domi_kv_tell_initial(stack, watch);
    return 0;
}

/* Publish an empty message to `subject`, which tells the server to go on sending. */
static void confirm_flow(domus_stack *stack, const domi_kv_watch *watch, domus_slice subject)
{
    domus_nats_publish publish = {0};

    if (subject.size == 0 || domus_slice_keep(subject, &publish.subject) != 0)
        return; /* if this is refused, the server asks again with its next heartbeat */
    if (domus_notice(stack, watch->client, &domus_nats_publish_type, &publish) != 0)
        domus_nats_publish_free(&publish);
}

/* Handle how many messages the server has delivered. At a heartbeat it has no more to deliver
 * unless it waits for this watch, because initial entries may be gone before their turn. */
static void handle_delivered_count(domus_stack *stack, domi_kv_watch *watch, uint64_t delivered,
                                   bool is_stalled)
{
    if (delivered != watch->next - 1)
        domi_kv_retry(stack, watch);
    else if (!is_stalled && !watch->is_initial_told)
        (void)domi_kv_tell_initial(stack, watch);
}

/* Handle a status message: a heartbeat, or a request to confirm that all messages before it were
 * handled. */
static void handle_status(domus_stack *stack, domi_kv_watch *watch,
                          const domus_nats_message *message)
{
    domus_slice value;
    uint64_t delivered = 0;
    uint32_t from = 0;
    bool is_stalled;

    if (message->status != 100) { /* the consumer was removed, or its server has ended */
        domi_kv_retry(stack, watch);
        return;
    }
    confirm_flow(stack, watch, domus_nats_reply_to(message));
    is_stalled = domus_nats_header(message, "Nats-Consumer-Stalled", &from, &value) == 0;
    if (is_stalled)
        confirm_flow(stack, watch, value);
    from = 0;
    if (domus_nats_header(message, "Nats-Last-Consumer", &from, &value) == 0 &&
        domi_js_read_number(domus_slice_data(value), value.size, &delivered) == 0)
        handle_delivered_count(stack, watch, delivered, is_stalled);
}

int domi_kv_hear(domus_stack *stack, domi_kv_watch *watch, const domus_nats_message *message)
{
    watch->heard_ns = domus_now_ns(stack);
    if (domi_js_is_delivered(message))
        return handle_entry(stack, watch, message);
    handle_status(stack, watch, message);
    return 0;
}
