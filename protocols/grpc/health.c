/* The health check of gRPC (grpc.health.v1.Health/Check). Its two messages are so small that they
 * are read and made here by hand. */
#include "protocols/grpc/grpc.h"

#include <errno.h>
#include <string.h>

/* bytes of the name of a service that a health check may have, at most */
#define NAME_MAX_BYTES 256u

/* Messages that answer a health check, with the field `status`: SERVING (1) or NOT_SERVING (2). */
static const char is_well[] = {0x08, 1};
static const char is_ill[] = {0x08, 2};

/* Read the name of a service from the message of a health check, which has one field (number 1,
 * text) or none. Returns 0; -EINVAL. */
static int read_service_name_from_message(domus_slice message, domus_slice *ret_name)
{
    const char *bytes = domus_slice_data(message);
    uint32_t at = 2;

    *ret_name = (domus_slice){NULL, 0, 0};
    if (message.size == 0)
        return 0;
    if (message.size < 2 || bytes[0] != 0x0a)
        return -EINVAL;
    uint32_t size = (unsigned char)bytes[1];
    if (size >= 0x80) { /* the length of the name takes two bytes */
        if (message.size < 3 || (unsigned char)bytes[2] >= 0x80)
            return -EINVAL;
        size = (size & 0x7f) | (uint32_t)(unsigned char)bytes[2] << 7;
        at = 3;
    }
    if (size > NAME_MAX_BYTES || message.size - at != size)
        return -EINVAL;
    *ret_name = message;
    ret_name->offset += at;
    ret_name->size = size;
    return 0;
}

/* Returns whether the table of methods has a method of the service with this name. */
static bool has_table_a_service(const domus_grpc_service *service, domus_slice name)
{
    for (const domus_grpc_method *method = service->methods; method->path != NULL; method++) {
        size_t size = strlen(method->path);
        if (size > (size_t)name.size + 2 && method->path[name.size + 1] == '/' &&
            domus_slice_equals(name, method->path + 1, name.size))
            return true;
    }
    return false;
}

int domus_grpc_check_health(domus_stack *stack, void *self, const void *payload)
{
    const domus_grpc_call *call = payload;
    const domus_grpc_service *service = call->inside->service;
    domus_slice made;
    domus_slice name;
    int error = read_service_name_from_message(call->message, &name);

    (void)self;
    if (error != 0)
        return error;
    if (name.size != 0 && !has_table_a_service(service, name))
        return -ENOENT;
    bool serves =
        service->is_serving == NULL || service->is_serving(domus_slice_data(name), name.size);
    error = domus_slice_copy(serves ? is_well : is_ill, sizeof is_well, &made);
    return error != 0 ? error : domus_grpc_reply(stack, made);
}
