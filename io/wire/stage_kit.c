/* The kit of domus/stage_kit.h, by which tests call stages: a wire whose bytes come from memory of
 * exactly their size. */
#include "base/check.h"
#include "base/memory.h"
#include "base/pipeline.h"
#include "io/wire/kit.h"

#include <errno.h>
#include <string.h>

static void *make_payload_of_message(domus_wire *wire, domus_stage_kind kind,
                                     const domus_type *type)
{
    domus_stage_kit *kit = wire->owner;

    (void)kind;
    kit->payload = domi_memory_new(type->size != 0 ? type->size : 1);
    kit->type = type;
    return kit->payload;
}

static void record_delay_of_wake(domus_wire *wire, uint64_t delay_ns)
{
    domus_stage_kit *kit = wire->owner;

    kit->wake_ns = delay_ns;
}

static bool is_kit_closing(const domus_wire *wire)
{
    const domus_stage_kit *kit = wire->owner;

    return kit->drains;
}

/* Finish the last message of the kit. Returns 0; -ENOMEM when a stage has slices of it that cannot
 * be copied. */
static int finish_last_message(domus_stage_kit *kit)
{
    if (kit->payload != NULL && kit->type->release != NULL)
        kit->type->release(kit->payload);
    domi_memory_free(kit->payload);
    kit->payload = NULL;
    return domi_wire_prepare_next_message(kit->wire);
}

static const domi_wire_services services = {
    .make = make_payload_of_message, .wake = record_delay_of_wake, .is_closing = is_kit_closing};

int domus_stage_kit_new(const domus_pipeline *pipeline, domus_stage_kit **ret_kit)
{
    return domus_stage_kit_new_to(pipeline, NULL, 0, ret_kit);
}

int domus_stage_kit_new_to(const domus_pipeline *pipeline, const char *server, uint16_t port,
                           domus_stage_kit **ret_kit)
{
    int error = domi_pipeline_check(pipeline);

    if (error != 0)
        return error;
    domus_stage_kit *kit = domi_memory_new(sizeof *kit);
    if (kit == NULL)
        return -ENOMEM;
    kit->wire = domi_wire_new(pipeline, NULL, 0);
    if (kit->wire == NULL) {
        domi_memory_free(kit);
        return -ENOMEM;
    }
    kit->wire->out = &kit->out;
    kit->wire->aside = &kit->aside;
    kit->wire->services = &services;
    kit->wire->owner = kit;
    kit->wire->last = &kit->last;
    kit->wire->server = server;
    kit->wire->server_port = port;
    error = domi_wire_open_stages(kit->wire);
    if (error != 0) {
        domus_stage_kit_free(kit);
        return error;
    }
    *ret_kit = kit;
    return 0;
}

void domus_stage_kit_free(domus_stage_kit *kit)
{
    if (kit == NULL)
        return;
    (void)finish_last_message(kit);
    domi_wire_free(kit->wire);
    domi_kit_free_inner_channels(kit);
    domi_out_remove_all(&kit->out, true);
    domi_out_remove_all(&kit->aside, true);
    domi_memory_free(kit->joined);
    domi_memory_free(kit->fed);
    domi_memory_free(kit);
}

int domus_stage_kit_feed(domus_stage_kit *kit, const void *bytes, size_t size)
{
    char *fed;
    int error = finish_last_message(kit);

    if (error != 0 || size == 0)
        return error;
    fed = domi_memory_new_bytes(kit->left_size + size);
    if (fed == NULL)
        return -ENOMEM;
    if (kit->left_size != 0)
        memcpy(fed, kit->left, kit->left_size);
    memcpy(fed + kit->left_size, bytes, size);
    domi_memory_free(kit->fed);
    kit->fed = fed;
    kit->left = fed;
    kit->left_size += size;
    return 0;
}

void domus_stage_kit_finish(domus_stage_kit *kit)
{
    domi_wire_record_end_of_peer(kit->wire);
}

int domus_stage_kit_next(domus_stage_kit *kit, domus_stage_message *ret_message)
{
    int result = finish_last_message(kit);

    if (result != 0) {
        kit->wire->failed = result;
        return result;
    }
    do
        result = domi_wire_decode_next_message(kit->wire, &kit->left, &kit->left_size);
    while (result == DOMI_WIRE_BUSY);
    if (result == 1) {
        const domi_made *made = &kit->wire->made;
        *ret_message = (domus_stage_message){made->kind,  made->type,     made->payload, made->id,
                                             made->error, made->has_body, made->last};
    }
    return result;
}

int domus_stage_kit_encode(domus_stage_kit *kit, uint64_t id, const domus_type *type,
                           const void *payload)
{
    return domi_wire_encode_message(kit->wire, id, type, payload);
}

int domus_stage_kit_fail(domus_stage_kit *kit, uint64_t id, const domus_type *request, int error)
{
    return domi_wire_encode_failure_of_request(kit->wire, id, request, error);
}

uint64_t domus_stage_kit_wake_ns(const domus_stage_kit *kit)
{
    return kit->wake_ns;
}

int domus_stage_kit_wake(domus_stage_kit *kit, bool owed)
{
    kit->wake_ns = 0;
    return domi_wire_call_wake_of_stage(kit->wire, owed);
}

bool domus_stage_kit_is_last(const domus_stage_kit *kit)
{
    return kit->last;
}

void domus_stage_kit_drain(domus_stage_kit *kit)
{
    kit->drains = true;
    domi_kit_schedule_carrying_stages(kit);
}

void domus_stage_kit_stream(domus_stage_kit *kit, uint64_t *stream)
{
    kit->wire->stream = stream;
}

int domus_stage_kit_wanted(domus_stage_kit *kit)
{
    return domi_wire_encode_that_body_is_wanted(kit->wire);
}

int domus_stage_kit_cut(domus_stage_kit *kit, uint64_t id, int error)
{
    return domi_wire_encode_cut_of_answer(kit->wire, id, error);
}

int domus_stage_kit_end_output(domus_stage_kit *kit)
{
    return domi_wire_append_end_of_output(kit->wire);
}

int domus_stage_kit_change(domus_stage_kit *kit, const domus_pipeline *next, uint32_t flags)
{
    bool clean = (flags & DOMUS_PIPELINE_CLEAN) != 0;

    if ((flags & ~DOMUS_PIPELINE_CLEAN) != 0)
        return -EINVAL;
    int error = domi_pipeline_check(next);
    if (error != 0 || kit->wire->failed != 0)
        return error != 0 ? error : kit->wire->failed;
    error = finish_last_message(kit);
    if (error != 0)
        return error;
    if (clean && (kit->left_size != 0 || !domi_wire_has_no_undecoded_bytes(kit->wire)))
        return -EPROTO;
    kit->wake_ns = 0;
    return domi_wire_change_pipeline(kit->wire, next);
}

void *domus_stage_kit_state(domus_stage_kit *kit, const domus_stage *stage)
{
    return domi_wire_get_state_of_stage(kit->wire, stage);
}

const char *domus_stage_kit_output(domus_stage_kit *kit, size_t *ret_size)
{
    domi_out_cursor cursor = {0};
    domi_out_part part;
    size_t size = 0;

    while (domi_out_get_next_part(&kit->out, &cursor, &part))
        size += part.size;
    domi_memory_free(kit->joined);
    kit->joined = domi_memory_new_bytes(size + 1);
    *ret_size = kit->joined != NULL ? size : 0;
    if (kit->joined == NULL)
        return "";
    char *end = kit->joined;
    cursor = (domi_out_cursor){0};
    while (domi_out_get_next_part(&kit->out, &cursor, &part)) {
        memcpy(end, part.bytes, part.size);
        end += part.size;
    }
    return kit->joined;
}

void domus_stage_kit_clear(domus_stage_kit *kit)
{
    domi_out_remove_all(&kit->out, false);
}
