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

/* If a round delivers this many messages more than there were initial entries, the initial entries
 * count as complete. */
#define MORE 1024u

/* Handle that the watcher has refused a notice: end the round, and begin another later if the
 * watcher lives. Returns `error`. */
static int end_round_after_watcher_refused_notice(domus_stack *stack, domi_kv_watch *watch,
                                                  int error)
{
    if (error == -ESTALE) {
        domi_kv_unsubscribe_and_end_round(stack, watch);
        (void)domus_stop(stack, domus_self(stack));
        return error;
    }
    if (error == -ENOBUFS &&
        /* when the watcher's mailbox has room again, an event begins the next round */
        domus_watch_room(stack, watch->options.to, NULL) == 0) {
        domi_kv_unsubscribe_and_end_round(stack, watch);
        return error;
    }
    domi_kv_end_round_and_begin_next_later(stack, watch);
    return error;
}

int domi_kv_tell_end_of_initial_entries(domus_stack *stack, domi_kv_watch *watch)
{
    domus_nats_kv_initial initial = {.tag = watch->options.tag, .revision = watch->last};

    if (watch->is_list)
        return domi_kv_answer_list_and_stop_watch(stack, watch);
    int error = domus_notice(stack, watch->options.to, &domus_nats_kv_initial_type, &initial);
    if (error == 0)
        watch->is_initial_told = true;
    else
        (void)end_round_after_watcher_refused_notice(stack, watch, error);
    return 0;
}

/* Send an entry to the watcher as a notice. Returns 0; or an error after which the round has
 * ended. */
static int send_entry_to_watcher(domus_stack *stack, domi_kv_watch *watch,
                                 domus_nats_kv_entry *entry)
{
    entry->tag = watch->options.tag;
    entry->initial = !watch->is_initial_told;
    int error = domus_slice_keep(entry->bytes, &entry->bytes);
    if (error != 0)
        return end_round_after_watcher_refused_notice(stack, watch, error);
    error = domus_notice(stack, watch->options.to, &domus_nats_kv_entry_type, entry);
    if (error != 0) {
        domus_slice_free(entry->bytes);
        return end_round_after_watcher_refused_notice(stack, watch, error);
    }
    return 0;
}

/* Add an entry to the list, or send it to the watcher if the watch's options want such entries.
 * Returns as send_entry_to_watcher(). */
static int pass_entry_to_list_or_watcher(domus_stack *stack, domi_kv_watch *watch,
                                         domus_nats_kv_entry *entry)
{
    if (watch->is_list) {
        int error = domi_kv_add_entry_to_list(watch, entry);
        if (error != 0)
            (void)domi_kv_stop_watch_and_tell_error(stack, watch, error);
        return error;
    }
    if (watch->options.ignore_deletes && entry->operation != DOMUS_NATS_KV_PUT)
        return 0;
    return send_entry_to_watcher(stack, watch, entry);
}

/* Returns whether all initial entries have come, or so many others that some of the initial ones
 * must be gone. While keys change, nats-server 2.9 says too early that none is pending. */
static bool have_all_initial_entries_come(const domi_kv_watch *watch)
{
    return watch->met >= watch->there || watch->next > 2 * watch->there + MORE;
}

static int pass_on_delivered_entry_in_order(domus_stack *stack, domi_kv_watch *watch,
                                            const domus_nats_message *message)
{
    domus_nats_stream_message read;
    domus_nats_kv_entry entry;
    domi_js_place place;

    if (domi_js_read_place_in_ack_subject(domus_nats_reply_to(message), &place) != 0 ||
        domi_js_read_delivered_message(message, &read) != 0)
        /* the message is no valid delivery, so a stranger who has found the inbox has sent it */
        return 0;
    int wrong = domi_kv_read_entry_of_message(watch->bucket, &read, &entry);
    if (wrong == -EPROTO)
        /* the entry has a subject of another bucket, so a stranger who has found the inbox has
         * sent it */
        return 0;
    if (place.consumer_sequence != watch->next || place.sequence < watch->last) {
        domi_kv_end_round_and_begin_next_later(stack, watch);
        return 0;
    }
    watch->next++;
    /* nats-server 2.9 delivers the newest entry of each key and then further entries; the first of
     * these may be the last delivered entry once more, and is skipped */
    if (place.sequence != watch->last) {
        if (wrong == 0 && pass_entry_to_list_or_watcher(stack, watch, &entry) != 0)
            return 0;
        watch->last = place.sequence;
        watch->met += !watch->is_list;
        watch->backoff_ns = DOMI_KV_BACKOFF_MIN;
    }
    if (place.pending == 0 && !watch->is_initial_told && have_all_initial_entries_come(watch))
        return domi_kv_tell_end_of_initial_entries(stack, watch);
    return 0;
}

/* Publish an empty message to `subject`, by which the server hears that it may go on sending. */
static void publish_confirmation_of_flow(domus_stack *stack, const domi_kv_watch *watch,
                                         domus_slice subject)
{
    domus_nats_publish publish = {0};

    if (subject.size == 0 || domus_slice_keep(subject, &publish.subject) != 0)
        return; /* if the server does not get this confirmation, its next heartbeat asks again */
    if (domus_notice(stack, watch->client, &domus_nats_publish_type, &publish) != 0)
        domus_nats_publish_free(&publish);
}

/* Handle the count of deliveries that a heartbeat of the server tells. A server that sends a
 * heartbeat has no more entries to deliver, unless it waits for this watch (`is_stalled`), so the
 * initial entries count as complete even if some were replaced and never came. */
static void compare_with_count_of_heartbeat(domus_stack *stack, domi_kv_watch *watch,
                                            uint64_t delivered, bool is_stalled)
{
    if (delivered != watch->next - 1)
        domi_kv_end_round_and_begin_next_later(stack, watch);
    else if (!is_stalled && !watch->is_initial_told)
        (void)domi_kv_tell_end_of_initial_entries(stack, watch);
}

/* Handle a status message of the server: a heartbeat, or a request to confirm that the watch has
 * handled all messages before it. */
static void use_heartbeat_or_confirm_flow(domus_stack *stack, domi_kv_watch *watch,
                                          const domus_nats_message *message)
{
    domus_slice value;
    uint64_t delivered = 0;
    uint32_t from = 0;
    bool is_stalled;

    /* any status but 100: the consumer was removed, or its server has ended */
    if (message->status != 100) {
        domi_kv_end_round_and_begin_next_later(stack, watch);
        return;
    }
    publish_confirmation_of_flow(stack, watch, domus_nats_reply_to(message));
    is_stalled = domus_nats_header(message, "Nats-Consumer-Stalled", &from, &value) == 0;
    if (is_stalled)
        publish_confirmation_of_flow(stack, watch, value);
    from = 0;
    if (domus_nats_header(message, "Nats-Last-Consumer", &from, &value) == 0 &&
        domi_js_read_number(domus_slice_data(value), value.size, &delivered) == 0)
        compare_with_count_of_heartbeat(stack, watch, delivered, is_stalled);
}

int domi_kv_take_entry_or_status_of_round(domus_stack *stack, domi_kv_watch *watch,
                                          const domus_nats_message *message)
{
    watch->heard_ns = domus_now_ns(stack);
    if (domi_js_is_delivery_of_consumer(message))
        return pass_on_delivered_entry_in_order(stack, watch, message);
    use_heartbeat_or_confirm_flow(stack, watch, message);
    return 0;
}
