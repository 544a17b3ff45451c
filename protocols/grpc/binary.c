/* Encodes the binary metadata of a call as base64 in a field, and decodes it. */
#include "protocols/grpc/grpc.h"

#include <errno.h>
#include <nettle/base64.h>
#include <string.h>

int domus_grpc_add_binary(domus_appender *fields, const char *name, const void *bytes, size_t size)
{
    size_t length = strlen(name);
    char encoded[BASE64_ENCODE_RAW_LENGTH(DOMUS_GRPC_METADATA_MAX)];

    if (fields->error != 0)
        return fields->error;
    if (length <= 4 || strcmp(name + length - 4, "-bin") != 0 || size > DOMUS_GRPC_METADATA_MAX) {
        domus_append_drop(fields);
        return fields->error = -EINVAL;
    }
    base64_encode_raw(encoded, size, bytes);
    size_t used = BASE64_ENCODE_RAW_LENGTH(size);
    while (used != 0 && encoded[used - 1] == '=')
        used--;
    return domus_http_add_bytes(fields, name, encoded, used);
}

/* Returns the value of a letter of base64; -1 for any other byte. */
static int value_of_base64_letter(char letter)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = letter != '\0' ? strchr(letters, letter) : NULL;

    return at != NULL ? (int)(at - letters) : -1;
}

int domus_grpc_binary(domus_slice value, domus_slice *ret_bytes)
{
    const char *letters = domus_slice_data(value);
    domus_appender bytes = {0};
    uint32_t size = value.size;
    unsigned bits = 0;
    unsigned count = 0;

    for (unsigned i = 0; i < 2 && size != 0 && size % 4 == i * 3 % 4 && letters[size - 1] == '=';
         i++)
        size--;
    if (size % 4 == 1)
        return -EINVAL;
    for (uint32_t i = 0; i < size; i++) {
        int six = value_of_base64_letter(letters[i]);
        if (six < 0) {
            domus_append_drop(&bytes);
            return -EINVAL;
        }
        bits = (bits << 6 | (unsigned)six) & 0xfff;
        count += 6;
        if (count >= 8) {
            count -= 8;
            (void)domus_append(&bytes, &(char){(char)(bits >> count)}, 1);
        }
    }
    return domus_append_end(&bytes, ret_bytes);
}
