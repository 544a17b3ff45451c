/* Signs values, and verifies them (domus/http_sign.h): "KEY.EXPIRY.VALUE.MAC". The MAC covers the
 * text before its dot as it is sent, so before the MAC is verified nothing of a value is used
 * except the places of its dots. */
#include "protocols/http/session/signing.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAC_64     DOMI_HTTP_64_SIZE(DOMI_HTTP_MAC_BYTES)
#define DIGITS_MAX 19u /* digits of the expiry in a signed value, at most */

static_assert(DOMUS_HTTP_SIGNED_SIZE(0) ==
                  DOMUS_HTTP_KEY_NAME_BYTES + 1 + DIGITS_MAX + 1 + 1 + MAC_64,
              "its size");

static bool is_valid_purpose(const char *purpose)
{
    size_t size = strnlen(purpose, DOMUS_HTTP_PURPOSE_MAX + 1);

    return size != 0 && size <= DOMUS_HTTP_PURPOSE_MAX;
}

/* Write the MAC of a text as characters of base64url. */
static void make_mac_as_text(const domus_http_key *key, const char *purpose, const char *text,
                             size_t size, char *to)
{
    const domi_http_mac_text covered = {"domus-http-sign", purpose, text, size};
    unsigned char mac[DOMI_HTTP_MAC_BYTES];

    domi_http_make_mac(key, &covered, mac);
    (void)domi_http_base64url_encode(to, mac, sizeof mac);
}

/* Write the begin "KEY.EXPIRY." of a signed value. Returns where it ends. */
static char *put_key_and_expiry(char *to, const domus_http_key *key, int64_t expires)
{
    char digits[DIGITS_MAX + 1];
    int size = snprintf(digits, sizeof digits, "%" PRId64, expires);

    memcpy(to, key->name, sizeof key->name);
    to += sizeof key->name;
    *to++ = '.';
    memcpy(to, digits, (size_t)size);
    to += size;
    *to++ = '.';
    return to;
}

int domus_http_sign(const domus_http_keys *ring, const char *purpose, int64_t expires,
                    const void *value, size_t size, domus_appender *to)
{
    const domus_http_key *key = &ring->keys[0];

    if (ring->count == 0)
        return -ENOKEY;
    if (!is_valid_purpose(purpose) || expires < 1)
        return -EINVAL;
    if (size > DOMUS_HTTP_SIGNED_MAX)
        return -EMSGSIZE;
    char *begin = domus_append_room(to, DOMUS_HTTP_SIGNED_SIZE(size));
    if (begin == NULL)
        return to->error;
    char *at = put_key_and_expiry(begin, key, expires);
    at += domi_http_base64url_encode(at, value, size);
    make_mac_as_text(key, purpose, begin, (size_t)(at - begin), at + 1);
    *at = '.';
    domus_append_written(to, (size_t)(at - begin) + 1 + MAC_64);
    return to->error;
}

/* The parts of a signed value, as they stand in its text. */
typedef struct parts {
    const char *name;  /* name of the key that has signed the value */
    const char *value; /* the value itself, as it stands in the text */
    size_t value_size;
    size_t covered; /* bytes that the MAC covers, from `name` on */
    const char *mac;
    int64_t expires;
} parts;

/* Read the digits of an expiry, up to a dot. Returns how many there are; 0 if they are invalid. */
static size_t read_digits_of_expiry(const char *text, size_t size, int64_t *ret_expires)
{
    int64_t number = 0;
    size_t i = 0;

    if (size == 0 || *text == '0')
        return 0;
    for (; i < size && text[i] != '.'; i++) {
        int digit = text[i] - '0';
        if (digit < 0 || digit > 9 || number > (INT64_MAX - digit) / 10)
            return 0;
        number = number * 10 + digit;
    }
    *ret_expires = number;
    return i;
}

static bool split_signed_value(const char *text, size_t size, parts *ret_parts)
{
    const size_t head = DOMUS_HTTP_KEY_NAME_BYTES + 1;
    const size_t tail = 1 + MAC_64;

    if (size < head + 2 + tail || size > DOMUS_HTTP_SIGNED_SIZE(DOMUS_HTTP_SIGNED_MAX) ||
        text[head - 1] != '.' || text[size - tail] != '.')
        return false;
    ret_parts->name = text;
    ret_parts->covered = size - tail;
    ret_parts->mac = text + size - MAC_64;
    size_t digits = read_digits_of_expiry(text + head, size - tail - head, &ret_parts->expires);
    if (digits == 0 || head + digits == size - tail)
        return false;
    ret_parts->value = text + head + digits + 1;
    ret_parts->value_size = size - tail - head - digits - 1;
    return true;
}

/* Returns whether a key of the ring, the one that the value names, has signed the value. */
static bool is_value_signed_by_key_it_names(const domus_http_keys *ring, const char *purpose,
                                            const parts *is)
{
    char mac[MAC_64];

    for (uint32_t i = 0; i < ring->count; i++) {
        const domus_http_key *key = &ring->keys[i];
        if (memcmp(key->name, is->name, sizeof key->name) != 0)
            continue;
        make_mac_as_text(key, purpose, is->name, is->covered, mac);
        if (domi_http_mac_equals((const unsigned char *)mac, (const unsigned char *)is->mac,
                                 MAC_64))
            return true;
    }
    return false;
}

int64_t domus_http_unsign(const domus_http_keys *ring, const char *purpose, int64_t now,
                          const char *text, size_t text_size, void *to, size_t room)
{
    parts is;

    if (!is_valid_purpose(purpose) || !split_signed_value(text, text_size, &is) ||
        !is_value_signed_by_key_it_names(ring, purpose, &is))
        return -EBADMSG;
    if (is.expires != DOMUS_HTTP_NEVER && now >= is.expires)
        return -EKEYEXPIRED;
    if (domi_http_base64url_decoded_size(is.value_size) > room)
        return -EMSGSIZE;
    return domi_http_base64url_decode(to, is.value, is.value_size) < 0
               ? -EBADMSG
               : (int64_t)domi_http_base64url_decoded_size(is.value_size);
}
