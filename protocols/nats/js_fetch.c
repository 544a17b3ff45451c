/* Fetches: a fetch asks the server for messages, and gathers them until there are as many as were
 * asked for, the server says that there are no more, or the time is over. */
#include "protocols/nats/js_pull.h"

#include <domus/await.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ns by which the actor waits longer for the end of a fetch than the server, which normally tells
 * that end. */
#define GRACE_NS UINT64_C(1000000000)

/* --- messages that come ----------------------------------------------------------------------- */

/* Keep a message of the consumer for the batch of a fetch. A message that exceeds a bound, or for
 * which there is no memory, is dropped: it is not acknowledged, so the server delivers it again. */
static void keep_message_for_batch(domi_js_consumer *consumer, const domus_nats_message *message)
{
    domus_nats_stream_message read;

    /* the subject for the acknowledgement is invalid: a stranger has found the inbox, and the
     * message is dropped */
    if (domi_js_read_delivered_message(message, &read) != 0)
        return;
    if (consumer->count == DOMUS_NATS_FETCH_MAX ||
        (consumer->count != 0 && consumer->bytes + read.bytes.size > consumer->bytes_max))
        return;
    if (consumer->messages == NULL)
        consumer->messages = malloc(DOMUS_NATS_FETCH_MAX * sizeof *consumer->messages);
    if (consumer->messages == NULL || domus_slice_keep(message->bytes, &read.bytes) != 0)
        return;
    consumer->messages[consumer->count++] = read;
    consumer->bytes += read.bytes.size;
}

/* Returns the negative errno for a status message by which the server ends a fetch; 0: the fetch
 * has just come to its end. */
static int errno_of_status_message(domi_js_consumer *consumer, const domus_nats_message *message)
{
    domus_slice words = domus_nats_description(message);

    switch (message->status) {
    case 404: /* 404: the server has no messages for the fetch */
    case 408: /* 408: the time that the fetch may take is over */
        return 0;
    case 409:
        if (domus_slice_equals(words, "Message Size Exceeds MaxBytes", 29))
            return consumer->count == 0 ? -EMSGSIZE : 0;
        if (domus_slice_equals(words, "Consumer Deleted", 16)) {
            consumer->is_open = false;
            return -ENXIO;
        }
        return -EBUSY; /* 409: too many fetches are waiting at the server */
    case 503:
        consumer->is_open = false;
        return -ECONNREFUSED;
    default:
        return domi_js_errno_of_api_error(0, message->status);
    }
}

/* Returns whether a status message is for the current fetch, by the number at the end of its
 * subject. */
static bool is_status_of_current_fetch(const domi_js_consumer *consumer,
                                       const domus_nats_message *message)
{
    char subject[DOMI_JS_INBOX_SIZE + 24];
    int size = snprintf(subject, sizeof subject, "%s.%llu", consumer->inbox,
                        (unsigned long long)consumer->fetches);

    return domus_slice_equals(domus_nats_subject(message), subject, (size_t)size);
}

static void keep_delivery_or_end_fetch_by_status(domi_js_consumer *consumer,
                                                 const domus_nats_message *message)
{
    if (domi_js_is_delivery_of_consumer(message)) {
        keep_message_for_batch(consumer, message);
        return;
    }
    if (message->status == 100 || consumer->is_ended ||
        !is_status_of_current_fetch(consumer, message))
        return;
    consumer->error = errno_of_status_message(consumer, message);
    consumer->is_ended = true;
}

int domi_js_keep_message_between_fetches(domus_stack *stack, void *self, const void *payload)
{
    (void)stack;
    keep_delivery_or_end_fetch_by_status(self, payload);
    return 0;
}

/* --- a fetch ---------------------------------------------------------------------------------- */

typedef struct fetch {
    uint64_t until_ns; /* the time until which the actor waits for messages of this fetch */
    uint64_t wait_ns;
    uint32_t wanted;
} fetch;

static int check_options_of_fetch(const domus_nats_consumer_fetch *asked)
{
    return asked == NULL || asked->count == 0 || asked->count > DOMUS_NATS_FETCH_MAX ||
                   asked->wait_ns > DOMUS_NATS_WAIT_MAX
               ? -EINVAL
               : 0;
}

/* Ask the server for messages, with a new last token of the inbox in the reply subject. */
static int ask_server_for_messages(domus_stack *stack, domi_js_consumer *consumer, fetch *frame,
                                   domus_resumed *then)
{
    char subject[2 * DOMUS_NATS_STREAM_NAME_MAX + 64];
    char reply[DOMI_JS_INBOX_SIZE + 24];
    domus_nats_publish publish = {0};

    (void)snprintf(subject, sizeof subject, "$JS.API.CONSUMER.MSG.NEXT.%s.%s", consumer->stream,
                   consumer->name);
    (void)snprintf(reply, sizeof reply, "%s.%llu", consumer->inbox,
                   (unsigned long long)++consumer->fetches);
    consumer->is_ended = false;
    consumer->error = 0;
    frame->until_ns = domus_now_ns(stack) + frame->wait_ns + GRACE_NS;
    int error = domi_js_write_json_object(&publish.payload, "{s:i, s:i, s:I, s:b}", "batch",
                                          (int)frame->wanted, "max_bytes", (int)consumer->bytes_max,
                                          "expires", (json_int_t)frame->wait_ns, "no_wait",
                                          frame->wait_ns == 0);
    if (error == 0)
        error = domus_nats_set_subject(&publish, subject);
    if (error == 0)
        error = domus_nats_set_reply(&publish, reply);
    if (error == 0)
        error = domus_ask(stack, consumer->client, &domus_nats_publish_type, &publish, then);
    if (error < 0)
        domus_nats_publish_free(&publish);
    return error;
}

static int receive_message_for_fetch(domus_stack *stack, const fetch *frame, domus_resumed *then)
{
    static const domus_type *const types[] = {&domus_nats_message_type, NULL};
    static const domus_pattern messages = {.types = types};
    uint64_t now_ns = domus_now_ns(stack);

    return domus_receive_within(stack, &messages,
                                frame->until_ns > now_ns ? frame->until_ns - now_ns : 0, then);
}

/* Move the first `count` messages that the consumer has kept to a batch. Returns 0; -ENOMEM. */
static int move_messages_to_batch(domi_js_consumer *consumer, uint32_t count,
                                  domus_nats_batch *ret_batch)
{
    size_t size = count * sizeof *consumer->messages;
    domus_nats_batch batch = {.count = count};

    if (count != 0 && consumer->messages != NULL) {
        batch.messages = malloc(size);
        if (batch.messages == NULL)
            return -ENOMEM;
        memcpy(batch.messages, consumer->messages, size);
        consumer->count -= count;
        memmove(consumer->messages, consumer->messages + count,
                consumer->count * sizeof *consumer->messages);
        for (uint32_t i = 0; i < count; i++)
            consumer->bytes -= batch.messages[i].bytes.size;
    }
    *ret_batch = batch;
    return 0;
}

static int reply_with_batch(domus_stack *stack, domi_js_consumer *consumer, const fetch *frame)
{
    uint32_t count = consumer->count < frame->wanted ? consumer->count : frame->wanted;
    domus_nats_batch batch;

    if (count == 0 && consumer->error != 0)
        return consumer->error;
    int error = move_messages_to_batch(consumer, count, &batch);
    if (error != 0)
        return error;
    error = domus_reply(stack, &domus_nats_batch_type, &batch);
    if (error != 0)
        domus_nats_batch_type.release(&batch);
    return error;
}

/* Handle the result of a receive. Returns 1 if the fetch continues; 0 if it is over; or an error if
 * the asker does not wait for the batch any more, and then the messages stay for the next fetch. */
static int use_received_message_or_end_fetch(domus_stack *stack, domi_js_consumer *consumer,
                                             const fetch *frame, const domus_answer *answer)
{
    if (answer->error == -ETIMEDOUT && domus_now_ns(stack) >= frame->until_ns) {
        /* the server did not end the fetch, perhaps because the consumer is gone, so the next fetch
         * opens the consumer anew */
        consumer->is_open = false;
        return 0;
    }
    if (answer->error != 0)
        return answer->error;
    keep_delivery_or_end_fetch_by_status(consumer, answer->payload);
    return !consumer->is_ended && consumer->count < frame->wanted;
}

/* End the opening of the consumer: asks that were put aside meanwhile are handled now. Returns
 * `error`. */
static int end_opening_and_take_stashed_asks(domus_stack *stack, domi_js_consumer *consumer,
                                             int error)
{
    consumer->is_busy = false;
    domus_unstash(stack);
    return error;
}

/* Wait for a step of the consumer's opening, or end the opening if the step could not begin. */
static int return_step_or_end_failed_opening(domus_stack *stack, domi_js_consumer *consumer,
                                             int result)
{
    return result < 0 ? end_opening_and_take_stashed_asks(stack, consumer, result) : result;
}

DOMUS_SEQUENCE(serve_fetch, fetch)
{
    domi_js_consumer *consumer = self;

    DOMUS_BEGIN;
    {
        const domus_nats_consumer_fetch *asked = message;
        int error = check_options_of_fetch(asked);
        if (error != 0 || asked == NULL) /* `asked` is not NULL in the first turn of a sequence */
            return error;
        if (consumer->is_busy)
            return domus_stash(stack);
        frame->wanted = asked->count;
        frame->wait_ns = asked->wait_ns;
    }
    if (!consumer->is_open) {
        consumer->is_busy = true;
        DOMUS_AWAIT(return_step_or_end_failed_opening(
            stack, consumer, domi_js_subscribe_to_consumer_inbox(stack, consumer, then)));
        {
            int error = domi_js_store_number_of_subscription(consumer, answer);
            if (error != 0)
                return end_opening_and_take_stashed_asks(stack, consumer, error);
        }
        DOMUS_AWAIT(return_step_or_end_failed_opening(
            stack, consumer, domi_js_make_consumer_on_server(stack, consumer, then)));
        {
            int error = end_opening_and_take_stashed_asks(
                stack, consumer, domi_js_store_name_of_made_consumer(consumer, answer));
            if (error != 0)
                return error;
        }
    }
    if (consumer->count == 0) {
        DOMUS_AWAIT(ask_server_for_messages(stack, consumer, frame, then));
        if (answer->error != 0)
            return answer->error;
        while (!consumer->is_ended && consumer->count < frame->wanted) {
            DOMUS_AWAIT(receive_message_for_fetch(stack, frame, then));
            {
                int result = use_received_message_or_end_fetch(stack, consumer, frame, answer);
                if (result < 0)
                    return result;
                if (result == 0)
                    break;
            }
        }
    }
    return reply_with_batch(stack, consumer, frame);
    DOMUS_END;
}

static_assert(sizeof(struct domi_serve_fetch_frame) <= DOMI_JS_FETCH_FRAME, "too large a frame");

int domi_js_serve_fetch(domus_stack *stack, void *self, const void *payload)
{
    return domi_serve_fetch_begin(stack, self, payload);
}
