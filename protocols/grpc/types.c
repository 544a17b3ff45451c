/* The types of calls of gRPC and of their ends, and how their payloads are released. */
#include "protocols/grpc/grpc.h"

#include <stdlib.h>

void domi_grpc_free_call_if_last_owner(domi_grpc_inside *inside)
{
    /* Release and acquire: the owner that frees the call sees all that the other owner has
     * written. */
    if (inside == NULL || atomic_fetch_sub_explicit(&inside->owners, 1, memory_order_acq_rel) != 1)
        return;
    domi_grpc_reader_free_bytes(&inside->reader);
    domus_slice_free(inside->message);
    free(inside);
}

static void release_payload_of_call(void *payload)
{
    domus_grpc_call *call = payload;

    domus_slice_free(call->fields);
    domus_slice_free(call->message);
    domi_grpc_free_call_if_last_owner(call->inside);
}

static void release_payload_of_answer(void *payload)
{
    domus_grpc_answer *answer = payload;

    domus_slice_free(answer->message);
    domus_slice_free(answer->metadata);
    domus_slice_free(answer->trailers);
    domus_slice_free(answer->text);
}

const domus_type domus_grpc_call_type = {
    .name = "grpc_call", .size = sizeof(domus_grpc_call), .release = release_payload_of_call};
const domus_type domus_grpc_answer_type = {
    .name = "grpc_answer", .size = sizeof(domus_grpc_answer), .release = release_payload_of_answer};
