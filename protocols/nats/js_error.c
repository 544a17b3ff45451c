/* Translates errors of JetStream's API to errno. An error has a number (err_code) and an HTTP
 * status; the number is the more precise of both. */
#include "protocols/nats/js.h"

#include <errno.h>

/* The errno for each number of an error of JetStream (errors.json of the server); each comment is
 * the server's text. */
static const struct {
    uint32_t number;
    int error;
} known[] = {
    {10002, -ENOSPC},     /* the server's text: resource limits exceeded for account */
    {10003, -EINVAL},     /* the server's text: bad request */
    {10008, -EAGAIN},     /* the server's text: JetStream system temporarily unavailable */
    {10009, -EAGAIN},     /* the server's text: JetStream cluster can not handle request */
    {10013, -EEXIST},     /* the server's text: consumer name already in use */
    {10014, -ENXIO},      /* the server's text: consumer not found */
    {10023, -ENOSPC},     /* the server's text: insufficient resources */
    {10026, -ENOSPC},     /* the server's text: maximum consumers limit reached */
    {10027, -ENOSPC},     /* the server's text: maximum number of streams reached */
    {10028, -ENOSPC},     /* the server's text: insufficient memory resources available */
    {10037, -ENOENT},     /* the server's text: no message found */
    {10039, -EOPNOTSUPP}, /* the server's text: JetStream not enabled for account */
    {10047, -ENOSPC},     /* the server's text: insufficient storage resources available */
    {10054, -EMSGSIZE},   /* the server's text: message size exceeds maximum allowed */
    /* the server's text: stream name already in use with a different configuration */
    {10058, -EEXIST},
    {10059, -ENXIO},      /* the server's text: stream not found */
    {10060, -EEXIST},     /* the server's text: expected stream does not match */
    {10065, -EINVAL},     /* the server's text: subjects overlap with an existing stream */
    {10070, -EEXIST},     /* the server's text: wrong last message ID */
    {10071, -EEXIST},     /* the server's text: wrong last sequence */
    {10074, -EOPNOTSUPP}, /* the server's text: replicas > 1 not supported in non-clustered mode */
    {10076, -EOPNOTSUPP}, /* the server's text: JetStream not enabled */
    {10077, -ENOSPC},   /* the server's text: store failed (maximum messages, or bytes, exceeded) */
    {10097, -EMSGSIZE}, /* the server's text: message header size exceeds maximum allowed */
    {10148, -EEXIST},   /* the server's text: consumer already exists */
    {10158, -EEXIST},   /* the server's text: a message with the same id is in process */
    {10164, -EEXIST},   /* the server's text: wrong last sequence (a newer form of this error) */
};

int domi_js_errno_of_api_error(uint64_t number, uint64_t status)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].number == number)
            return known[i].error;
    }
    switch (status) {
    case 400:
        return -EINVAL;
    case 401:
    case 403:
        return -EACCES;
    case 404:
        return -ENOENT;
    case 408:
        return -ETIMEDOUT;
    case 503:
        return -EAGAIN;
    default:
        return -EREMOTEIO;
    }
}
