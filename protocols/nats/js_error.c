/* Translates errors of JetStream's API to errno. An error has a number (err_code) and an HTTP
 * status; the number is the more precise of both. */
#include "protocols/nats/js.h"

#include <errno.h>

/* Errors by number, as in the server's errors.json; the comments are the server's texts. */
static const struct {
    uint32_t number;
    int error;
} known[] = {
    {10002, -ENOSPC},     /* resource limits exceeded for account */
    {10003, -EINVAL},     /* bad request */
    {10008, -EAGAIN},     /* JetStream system temporarily unavailable */
    {10009, -EAGAIN},     /* JetStream cluster can not handle request */
    {10013, -EEXIST},     /* consumer name already in use */
    {10014, -ENXIO},      /* consumer not found */
    {10023, -ENOSPC},     /* insufficient resources */
    {10026, -ENOSPC},     /* maximum consumers limit reached */
    {10027, -ENOSPC},     /* maximum number of streams reached */
    {10028, -ENOSPC},     /* insufficient memory resources available */
    {10037, -ENOENT},     /* no message found */
    {10039, -EOPNOTSUPP}, /* JetStream not enabled for account */
    {10047, -ENOSPC},     /* insufficient storage resources available */
    {10054, -EMSGSIZE},   /* message size exceeds maximum allowed */
    {10058, -EEXIST},     /* stream name already in use with a different configuration */
    {10059, -ENXIO},      /* stream not found */
    {10060, -EEXIST},     /* expected stream does not match */
    {10065, -EINVAL},     /* subjects overlap with an existing stream */
    {10070, -EEXIST},     /* wrong last message ID */
    {10071, -EEXIST},     /* wrong last sequence */
    {10074, -EOPNOTSUPP}, /* replicas > 1 not supported in non-clustered mode */
    {10076, -EOPNOTSUPP}, /* JetStream not enabled */
    {10077, -ENOSPC},     /* store failed: maximum messages, or bytes, exceeded */
    {10097, -EMSGSIZE},   /* message header size exceeds maximum allowed */
    {10148, -EEXIST},     /* consumer already exists */
    {10158, -EEXIST},     /* a message with the same id is in process */
    {10164, -EEXIST},     /* wrong last sequence, in a newer form */
};

int domi_js_error(uint64_t number, uint64_t status)
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
