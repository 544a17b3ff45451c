/* Checks the metadata of a call before it is sent. Clients of gRPC would see no status if HTTP
 * refused a field when it is sent, so wrong fields are found here. Any thread. */
#include "protocols/grpc/grpc.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* Returns whether a name is that of a field that the library itself writes, or that belongs to
 * HTTP's connection or message. */
static bool is_reserved_field_name(const char *name, size_t size)
{
    static const char *const names[] = {"content-type",   "content-encoding", "te",
                                        "trailer",        "connection",       "host",
                                        "content-length", "transfer-encoding"};

    if (size >= 5 && strncasecmp(name, "grpc-", 5) == 0)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (size == strlen(names[i]) && strncasecmp(name, names[i], size) == 0)
            return true;
    }
    return false;
}

/* Returns how many bytes at the start of `bytes` can be the name of a field (a token of RFC 9110
 * 5.6.2). */
static size_t count_bytes_of_field_name(const char *bytes, size_t size)
{
    size_t at = 0;

    while (at < size && ((bytes[at] >= '0' && bytes[at] <= '9') ||
                         ((bytes[at] | 0x20) >= 'a' && (bytes[at] | 0x20) <= 'z') ||
                         (bytes[at] != '\0' && strchr("!#$%&'*+-.^_`|~", bytes[at]) != NULL)))
        at++;
    return at;
}

/* Returns how many bytes at the start of `bytes` can be the value of a field, which has no control
 * characters but tabs. */
static size_t count_bytes_of_field_value(const char *bytes, size_t size)
{
    size_t at = 0;

    while (at < size && ((unsigned char)bytes[at] >= ' ' || bytes[at] == '\t') && bytes[at] != 0x7f)
        at++;
    return at;
}

int domi_grpc_check_metadata(domus_slice fields)
{
    const char *bytes = domus_slice_data(fields);
    size_t size = fields.size;

    if (size > DOMUS_GRPC_METADATA_MAX)
        return -EINVAL;
    for (size_t at = 0; at < size; at += 2) {
        size_t name = count_bytes_of_field_name(bytes + at, size - at);
        if (name == 0 || at + name == size || bytes[at + name] != ':' ||
            is_reserved_field_name(bytes + at, name))
            return -EINVAL;
        at += name + 1;
        at += count_bytes_of_field_value(bytes + at, size - at);
        if (size - at < 2 || bytes[at] != '\r' || bytes[at + 1] != '\n')
            return -EINVAL;
    }
    return 0;
}
