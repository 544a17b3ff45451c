/* The types of messages to and from a bucket, and what they own. */
#include "protocols/nats/kv.h"

static void release_entry(void *payload)
{
    domus_nats_kv_entry *entry = payload;

    domus_slice_free(entry->bytes);
}

static void release_put(void *payload)
{
    domus_nats_kv_put *put = payload;

    domus_slice_free(put->value);
}

static void release_list(void *payload)
{
    domus_nats_kv_list *list = payload;

    domus_slice_free(list->bytes);
}

const domus_type domus_nats_kv_get_type = {.name = "nats_kv_get",
                                           .size = sizeof(domus_nats_kv_get)};
const domus_type domus_nats_kv_entry_type = {
    .name = "nats_kv_entry", .size = sizeof(domus_nats_kv_entry), .release = release_entry};
const domus_type domus_nats_kv_put_type = {
    .name = "nats_kv_put", .size = sizeof(domus_nats_kv_put), .release = release_put};
const domus_type domus_nats_kv_revision_type = {.name = "nats_kv_revision",
                                                .size = sizeof(domus_nats_kv_revision)};
const domus_type domus_nats_kv_keys_type = {.name = "nats_kv_keys",
                                            .size = sizeof(domus_nats_kv_keys)};
const domus_type domus_nats_kv_list_type = {
    .name = "nats_kv_list", .size = sizeof(domus_nats_kv_list), .release = release_list};
const domus_type domus_nats_kv_watch_type = {.name = "nats_kv_watch",
                                             .size = sizeof(domus_nats_kv_watch)};
const domus_type domus_nats_kv_watching_type = {.name = "nats_kv_watching",
                                                .size = sizeof(domus_nats_kv_watching)};
const domus_type domus_nats_kv_initial_type = {.name = "nats_kv_initial",
                                               .size = sizeof(domus_nats_kv_initial)};
const domus_type domus_nats_kv_ended_type = {.name = "nats_kv_ended",
                                             .size = sizeof(domus_nats_kv_ended)};
const domus_type domus_nats_kv_look_type = {.name = "nats_kv_look"};
const domus_type domus_nats_kv_status_type = {.name = "nats_kv_status",
                                              .size = sizeof(domus_nats_kv_status)};
const domus_type domus_nats_kv_remove_type = {.name = "nats_kv_remove"};
