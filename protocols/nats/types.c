/* The message types of a NATS client, and how their payloads are released. */
#include "protocols/nats/nats.h"

static void release_message(void *payload)
{
    domus_slice_free(((domus_nats_message *)payload)->bytes);
}

static void release_publish(void *payload)
{
    domus_nats_publish_free(payload);
}

static void release_subscribe(void *payload)
{
    domus_nats_subscribe *subscribe = payload;

    domus_slice_free(subscribe->subject);
    domus_slice_free(subscribe->queue);
}

static void release_info(void *payload)
{
    domus_slice_free(((domus_nats_info *)payload)->json);
}

const domus_type domus_nats_message_type = {
    .name = "nats_message", .size = sizeof(domus_nats_message), .release = release_message};
const domus_type domus_nats_publish_type = {
    .name = "nats_publish", .size = sizeof(domus_nats_publish), .release = release_publish};
const domus_type domus_nats_request_type = {
    .name = "nats_request", .size = sizeof(domus_nats_publish), .release = release_publish};
const domus_type domus_nats_subscribe_type = {
    .name = "nats_subscribe", .size = sizeof(domus_nats_subscribe), .release = release_subscribe};
const domus_type domus_nats_subscription_type = {.name = "nats_subscription",
                                                 .size = sizeof(domus_nats_subscription)};
const domus_type domus_nats_unsubscribe_type = {.name = "nats_unsubscribe",
                                                .size = sizeof(domus_nats_unsubscribe)};
const domus_type domus_nats_done_type = {.name = "nats_done"};
const domus_type domus_nats_flush_type = {.name = "nats_flush"};
const domus_type domus_nats_drain_type = {.name = "nats_drain"};
const domus_type domus_nats_look_type = {.name = "nats_look"};
const domus_type domus_nats_status_type = {.name = "nats_status",
                                           .size = sizeof(domus_nats_status)};
const domus_type domus_nats_event_type = {.name = "nats_event", .size = sizeof(domus_nats_event)};
const domus_type domus_nats_info_type = {
    .name = "nats_info", .size = sizeof(domus_nats_info), .release = release_info};
const domus_type domus_nats_error_type = {.name = "nats_error", .size = sizeof(domus_nats_error)};
const domus_type domus_nats_pong_type = {.name = "nats_pong"};
const domus_type domus_nats_ping_type = {.name = "nats_ping"};
const domus_type domus_nats_connect_type = {.name = "nats_connect",
                                            .size = sizeof(domus_nats_connect)};
const domus_type domus_nats_sub_type = {.name = "nats_sub", .size = sizeof(domus_nats_sub)};
const domus_type domus_nats_unsub_type = {.name = "nats_unsub", .size = sizeof(domus_nats_unsub)};
const domus_type domi_nats_inboxed_type = {.name = "nats_inboxed",
                                           .size = sizeof(domi_nats_inboxed)};
