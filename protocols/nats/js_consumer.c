/* The actor of a consumer (domus/nats_stream.h): its asks but for fetches, and acknowledgements of
 * messages. */
#include "protocols/nats/js_pull.h"

#include <domus/await.h>
#include <domus/spawn.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_LEAST 1024u
#define BYTES_MOST  DOMUS_NATS_PAYLOAD_LIMIT

static const domus_slice no_bytes = {NULL, 0, 0};

/* --- status and removal of the consumer ------------------------------------------------------- */

static int read_consumer_status(const json_t *json, domus_nats_consumer_status *status)
{
    const json_t *delivered = domi_js_get_object(json, "delivered");
    const json_t *floor = domi_js_get_object(json, "ack_floor");

    if (delivered == NULL || floor == NULL)
        return -EPROTO;
    if (domi_js_get_number(delivered, "stream_seq", &status->delivered) != 0 ||
        domi_js_get_number(floor, "stream_seq", &status->ack_floor) != 0 ||
        domi_js_get_number(json, "num_ack_pending", &status->ack_pending) != 0 ||
        domi_js_get_number(json, "num_redelivered", &status->redelivered) != 0)
        return -EPROTO;
    return domi_js_get_number(json, "num_pending", &status->pending);
}

static int reply_with_consumer_status(domus_stack *stack, const domi_js_consumer *consumer,
                                      const domus_answer *answer)
{
    domus_nats_consumer_status status = {0};
    json_t *json = NULL;
    int error = domi_js_read_api_answer(answer, DOMUS_NATS_ANSWER_MAX, &json);

    if (error != 0)
        return error;
    error = read_consumer_status(json, &status);
    json_decref(json);
    if (error != 0)
        return error;
    memcpy(status.name, consumer->name, sizeof status.name);
    return domus_reply(stack, &domus_nats_consumer_status_type, &status);
}

DOMUS_SEQUENCE(serve_look, char)
{
    domi_js_consumer *consumer = self;

    DOMUS_BEGIN;
    if (consumer->name[0] == '\0')
        /* the first fetch makes the consumer, so before that there is no consumer to tell of */
        return -ENXIO;
    DOMUS_AWAIT(domi_js_ask_server(stack, consumer->client, no_bytes, then,
                                   "$JS.API.CONSUMER.INFO.%s.%s", consumer->stream,
                                   consumer->name));
    return reply_with_consumer_status(stack, consumer, answer);
    DOMUS_END;
}

DOMUS_SEQUENCE(serve_remove, char)
{
    domi_js_consumer *consumer = self;

    DOMUS_BEGIN;
    if (consumer->name[0] == '\0')
        return -ENXIO;
    consumer->is_open = false;
    DOMUS_AWAIT(domi_js_ask_server(stack, consumer->client, no_bytes, then,
                                   "$JS.API.CONSUMER.DELETE.%s.%s", consumer->stream,
                                   consumer->name));
    return domi_js_reply_done_or_error(stack, answer);
    DOMUS_END;
}

/* --- the actor -------------------------------------------------------------------------------- */

/* Free the messages that have come and were not fetched, and unsubscribe from the consumer's
 * inbox. */
static void free_messages_and_leave_inbox(domus_stack *stack, domi_js_consumer *consumer)
{
    domus_nats_unsubscribe unsubscribe = {.number = consumer->subscription};
    domus_nats_batch rest = {consumer->messages, consumer->count};

    domus_nats_batch_type.release(&rest);
    consumer->messages = NULL;
    consumer->count = 0;
    consumer->bytes = 0;
    if (consumer->subscription != 0)
        (void)domus_notice(stack, consumer->client, &domus_nats_unsubscribe_type, &unsubscribe);
    consumer->subscription = 0;
    consumer->is_open = false;
    consumer->is_busy = false;
}

static void free_consumer_and_leave_inbox_at_stop(domus_stack *stack, void *self)
{
    domi_js_consumer *consumer = self;

    free_messages_and_leave_inbox(stack, consumer);
    domus_slice_free(consumer->create);
}

static int free_messages_and_inbox_at_restart(domus_stack *stack, void *self, int error)
{
    (void)error;
    free_messages_and_leave_inbox(stack, self);
    return 0;
}

static const domus_on rows[] = {
    {.type = &domus_nats_message_type, .handle = domi_js_keep_message_between_fetches},
    {.type = &domus_nats_consumer_fetch_type,
     .handle = domi_js_serve_fetch,
     .frame_size = DOMI_JS_FETCH_FRAME},
    DOMUS_ON(&domus_nats_consumer_look_type, serve_look),
    DOMUS_ON(&domus_nats_consumer_remove_type, serve_remove),
    {.type = NULL},
};

static const domus_behaviour consumer_behaviour = {
    .name = "nats_consumer",
    .kind = DOMUS_STATE,
    .state_size = sizeof(domi_js_consumer),
    .on = rows,
    .on_stop = free_consumer_and_leave_inbox_at_stop,
    .on_restart = free_messages_and_inbox_at_restart,
};

static bool are_valid_consumer_options(const domus_nats_consumer_options *options)
{
    if (options->client.house == NULL || !domi_js_is_valid_stream_name(options->stream) ||
        (options->durable != NULL && !domi_js_is_valid_stream_name(options->durable)))
        return false;
    if (options->filter != NULL &&
        !domi_js_is_valid_subject(options->filter,
                                  strnlen(options->filter, DOMUS_NATS_SUBJECT_MAX + 1), true))
        return false;
    if (options->filter == NULL && options->deliver == DOMUS_NATS_DELIVER_SUBJECTS)
        return false;
    return options->deliver <= DOMUS_NATS_DELIVER_FROM && options->first_sequence <= INT64_MAX &&
           options->ack_wait_ns <= INT64_MAX && options->inactive_ns <= INT64_MAX &&
           options->deliveries_max <= INT32_MAX && options->ack_pending_max <= INT32_MAX &&
           (options->bytes_max == 0 ||
            (options->bytes_max >= BYTES_LEAST && options->bytes_max <= BYTES_MOST));
}

static int write_request_that_creates_consumer(const domus_nats_consumer_options *options,
                                               domus_slice *ret_json)
{
    static const char *const begins[] = {"all", "new", "last", "last_per_subject",
                                         "by_start_sequence"};
    uint64_t inactive_ns = options->inactive_ns;
    uint64_t from = options->deliver == DOMUS_NATS_DELIVER_FROM ? options->first_sequence : 0;

    if (inactive_ns == 0 && options->durable == NULL)
        inactive_ns = DOMUS_NATS_INACTIVE;
    /* An option of 0 gets the server's default, if the server has one. */
    return domi_js_write_json_object(
        ret_json, "{s:s, s:{s:s*, s:s*, s:s, s:I, s:s, s:I, s:I, s:i, s:i, s:s}}", "stream_name",
        options->stream, "config", "durable_name", options->durable, "filter_subject",
        options->filter, "deliver_policy", begins[options->deliver], "opt_start_seq",
        (json_int_t)from, "ack_policy", "explicit", "ack_wait", (json_int_t)options->ack_wait_ns,
        "inactive_threshold", (json_int_t)inactive_ns, "max_deliver",
        options->deliveries_max != 0 ? (int)options->deliveries_max : -1, "max_ack_pending",
        (int)options->ack_pending_max, "replay_policy", "instant");
}

int domus_nats_consumer_open(domus_stack *stack, const domus_nats_consumer_options *options,
                             domus_address *ret_consumer)
{
    domi_js_consumer consumer = {.client = options->client, .is_shared = options->durable != NULL};

    if (!are_valid_consumer_options(options))
        return -EINVAL;
    consumer.bytes_max = options->bytes_max != 0 ? options->bytes_max : DOMUS_NATS_FETCH_BYTES;
    (void)snprintf(consumer.stream, sizeof consumer.stream, "%s", options->stream);
    if (consumer.is_shared)
        (void)snprintf(consumer.name, sizeof consumer.name, "%s", options->durable);
    consumer.random = domi_js_seed_or_random_number(options->seed);
    domi_js_make_inbox_name(&consumer.random, consumer.inbox);
    int error = write_request_that_creates_consumer(options, &consumer.create);
    if (error == 0)
        error = domus_spawn(stack, &consumer_behaviour, &consumer, ret_consumer);
    if (error != 0)
        domus_slice_free(consumer.create);
    return error;
}

/* --- acknowledgements ------------------------------------------------------------------------- */

int domus_nats_ack_make(const domus_nats_stream_message *message, domus_nats_ack_kind kind,
                        uint64_t delay_ns, domus_nats_publish *ret_publish)
{
    static const char *const words[] = {"+ACK", "-NAK", "+TERM", "+WPI"};
    domus_nats_publish publish = {0};
    char to[DOMUS_NATS_SUBJECT_MAX + 1];
    char text[64];

    /* a size of 0 makes an empty subject, which domus_nats_set_subject() refuses below */
    if (message->ack_size > DOMUS_NATS_SUBJECT_MAX || kind > DOMUS_NATS_IN_PROGRESS ||
        delay_ns > INT64_MAX)
        return -EINVAL;
    int size =
        kind == DOMUS_NATS_NAK && delay_ns != 0
            ? snprintf(text, sizeof text, "-NAK {\"delay\": %llu}", (unsigned long long)delay_ns)
            : snprintf(text, sizeof text, "%s", words[kind]);
    domus_slice subject = domus_nats_stream_part(message, message->ack_at, message->ack_size);
    memcpy(to, domus_slice_data(subject), subject.size);
    to[subject.size] = '\0';
    int error = domus_nats_set_subject(&publish, to);
    if (error == 0)
        error = domus_nats_set_payload(&publish, text, (size_t)size);
    if (error != 0) {
        domus_nats_publish_free(&publish);
        return error;
    }
    *ret_publish = publish;
    return 0;
}

int domus_nats_ack(domus_stack *stack, domus_address client,
                   const domus_nats_stream_message *message, domus_nats_ack_kind kind,
                   uint64_t delay_ns)
{
    domus_nats_publish publish;
    int error = domus_nats_ack_make(message, kind, delay_ns, &publish);

    if (error != 0)
        return error;
    error = domus_notice(stack, client, &domus_nats_publish_type, &publish);
    if (error != 0)
        domus_nats_publish_free(&publish);
    return error;
}
