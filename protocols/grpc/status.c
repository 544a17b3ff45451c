/* Translates a negative errno to the status of gRPC that a client gets. */
#include "protocols/grpc/grpc.h"

#include <errno.h>

domus_grpc_status domus_grpc_status_of(int error)
{
    static const struct {
        int error;
        domus_grpc_status status;
    } rows[] = {
        {0, DOMUS_GRPC_OK},
        {ECANCELED, DOMUS_GRPC_CANCELLED},
        {EINVAL, DOMUS_GRPC_INVALID_ARGUMENT},
        {EBADMSG, DOMUS_GRPC_INVALID_ARGUMENT},
        {EDOM, DOMUS_GRPC_INVALID_ARGUMENT},
        {ETIMEDOUT, DOMUS_GRPC_DEADLINE_EXCEEDED},
        {ETIME, DOMUS_GRPC_DEADLINE_EXCEEDED},
        {ENOENT, DOMUS_GRPC_NOT_FOUND},
        {EEXIST, DOMUS_GRPC_ALREADY_EXISTS},
        {EACCES, DOMUS_GRPC_PERMISSION_DENIED},
        {EPERM, DOMUS_GRPC_PERMISSION_DENIED},
        {EMSGSIZE, DOMUS_GRPC_RESOURCE_EXHAUSTED},
        {ENOBUFS, DOMUS_GRPC_RESOURCE_EXHAUSTED},
        {ENOMEM, DOMUS_GRPC_RESOURCE_EXHAUSTED},
        {ENOSPC, DOMUS_GRPC_RESOURCE_EXHAUSTED},
        {EDQUOT, DOMUS_GRPC_RESOURCE_EXHAUSTED},
        {ERANGE, DOMUS_GRPC_OUT_OF_RANGE},
        {EOPNOTSUPP, DOMUS_GRPC_UNIMPLEMENTED},
        {ENOSYS, DOMUS_GRPC_UNIMPLEMENTED},
        {EPROTO, DOMUS_GRPC_INTERNAL},
        {ENOMSG, DOMUS_GRPC_INTERNAL},
        {EAGAIN, DOMUS_GRPC_UNAVAILABLE},
        {EBUSY, DOMUS_GRPC_UNAVAILABLE},
        {ENOTCONN, DOMUS_GRPC_UNAVAILABLE},
        {ESTALE, DOMUS_GRPC_UNAVAILABLE},
        {EHOSTDOWN, DOMUS_GRPC_UNAVAILABLE},
        {ECONNREFUSED, DOMUS_GRPC_UNAVAILABLE},
        {ECONNRESET, DOMUS_GRPC_UNAVAILABLE},
        {EPIPE, DOMUS_GRPC_UNAVAILABLE},
        {EKEYREJECTED, DOMUS_GRPC_UNAUTHENTICATED},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].error == -error)
            return rows[i].status;
    }
    return DOMUS_GRPC_UNKNOWN;
}
