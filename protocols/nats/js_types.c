/* The types of messages to and from streams and consumers, and what they own. */
#include "protocols/nats/js.h"

#include <stdlib.h>

static void release_publish(void *payload)
{
    domus_nats_stream_publish *publish = payload;

    domus_nats_publish_free(&publish->message);
}

static void release_message(void *payload)
{
    domus_nats_stream_message *message = payload;

    domus_slice_free(message->bytes);
}

static void release_batch(void *payload)
{
    domus_nats_batch *batch = payload;

    for (uint32_t i = 0; i < batch->count; i++)
        domus_slice_free(batch->messages[i].bytes);
    free(batch->messages);
    *batch = (domus_nats_batch){NULL, 0};
}

const domus_type domus_nats_stream_publish_type = {.name = "nats_stream_publish",
                                                   .size = sizeof(domus_nats_stream_publish),
                                                   .release = release_publish};
const domus_type domus_nats_stream_ack_type = {.name = "nats_stream_ack",
                                               .size = sizeof(domus_nats_stream_ack)};
const domus_type domus_nats_stream_message_type = {.name = "nats_stream_message",
                                                   .size = sizeof(domus_nats_stream_message),
                                                   .release = release_message};
const domus_type domus_nats_stream_get_type = {.name = "nats_stream_get",
                                               .size = sizeof(domus_nats_stream_get)};
const domus_type domus_nats_stream_purge_type = {.name = "nats_stream_purge",
                                                 .size = sizeof(domus_nats_stream_purge)};
const domus_type domus_nats_stream_count_type = {.name = "nats_stream_count",
                                                 .size = sizeof(domus_nats_stream_count)};
const domus_type domus_nats_stream_look_type = {.name = "nats_stream_look"};
const domus_type domus_nats_stream_status_type = {.name = "nats_stream_status",
                                                  .size = sizeof(domus_nats_stream_status)};
const domus_type domus_nats_stream_remove_type = {.name = "nats_stream_remove"};
const domus_type domus_nats_consumer_fetch_type = {.name = "nats_consumer_fetch",
                                                   .size = sizeof(domus_nats_consumer_fetch)};
const domus_type domus_nats_batch_type = {
    .name = "nats_batch", .size = sizeof(domus_nats_batch), .release = release_batch};
const domus_type domus_nats_consumer_look_type = {.name = "nats_consumer_look"};
const domus_type domus_nats_consumer_status_type = {.name = "nats_consumer_status",
                                                    .size = sizeof(domus_nats_consumer_status)};
const domus_type domus_nats_consumer_remove_type = {.name = "nats_consumer_remove"};
