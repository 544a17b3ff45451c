/* Encodes and decodes base64url (base64url.h). Three bytes become four characters, and the last
 * group may be shorter. */
#include "protocols/http/session/base64url.h"

#include <errno.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

size_t domi_http_64_encode(char *to, const void *bytes_, size_t size)
{
    const unsigned char *bytes = bytes_;
    char *begin = to;
    uint32_t held = 0; /* the lowest bits of this word that are not written yet */
    unsigned bits = 0;

    for (size_t i = 0; i < size; i++) {
        held = held << 8 | bytes[i];
        for (bits += 8; bits >= 6; bits -= 6)
            *to++ = alphabet[held >> (bits - 6) & 63];
    }
    if (bits != 0)
        *to++ = alphabet[held << (6 - bits) & 63];
    return (size_t)(to - begin);
}

/* Returns the value of a character; -1 for any other byte. */
static int value_of_character(char byte)
{
    if (byte >= 'A' && byte <= 'Z')
        return byte - 'A';
    if (byte >= 'a' && byte <= 'z')
        return byte - 'a' + 26;
    if (byte >= '0' && byte <= '9')
        return byte - '0' + 52;
    return byte == '-' ? 62 : byte == '_' ? 63 : -1;
}

int64_t domi_http_64_decode(void *to_, const char *text, size_t size)
{
    unsigned char *to = to_;
    size_t written = 0;
    uint32_t held = 0;
    unsigned bits = 0;

    if (size % 4 == 1)
        return -EINVAL;
    for (size_t i = 0; i < size; i++) {
        int value = value_of_character(text[i]);
        if (value < 0)
            return -EINVAL;
        held = held << 6 | (uint32_t)value;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            to[written++] = (unsigned char)(held >> bits);
        }
    }
    if ((held & ((1u << bits) - 1)) != 0)
        return -EINVAL;
    return (int64_t)written;
}
