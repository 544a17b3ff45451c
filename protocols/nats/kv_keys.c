/* Checks names of buckets, keys, and patterns of keys. */
#include "protocols/nats/kv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is_key_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

bool domi_kv_is_valid_bucket_name(const char *text)
{
    size_t size = text != NULL ? strlen(text) : 0;

    if (size == 0 || size > DOMUS_NATS_KV_BUCKET_MAX)
        return false;
    for (size_t i = 0; i < size; i++) {
        if (!is_key_character(text[i]))
            return false;
    }
    return true;
}

/* Returns whether each character of a text is a letter that keys may have, or is among `others`. */
static bool has_only_key_characters(const char *text, size_t size, const char *others)
{
    for (size_t i = 0; i < size; i++) {
        if (!is_key_character(text[i]) && strchr(others, text[i]) == NULL)
            return false;
    }
    return true;
}

/* Returns the length of a key in an array of fixed size. If the array has no zero byte, the length
 * is more than a key may have. */
static size_t length_of_key(const char *text)
{
    return strnlen(text, DOMUS_NATS_KV_KEY_MAX + 1);
}

bool domi_kv_is_valid_key_pattern(const char *text)
{
    size_t size = length_of_key(text);

    return size <= DOMUS_NATS_KV_KEY_MAX && has_only_key_characters(text, size, "/=.*>") &&
           domi_js_is_valid_subject(text, size, true);
}

int domus_nats_kv_check_key(const char *key)
{
    size_t size = length_of_key(key);

    if (size > DOMUS_NATS_KV_KEY_MAX || !has_only_key_characters(key, size, "/=.") ||
        !domi_js_is_valid_subject(key, size, false))
        return -EINVAL;
    return 0;
}

void domi_kv_make_subject_of_key(const char *bucket, const char *key,
                                 char subject[DOMI_KV_SUBJECT_SIZE])
{
    (void)snprintf(subject, DOMI_KV_SUBJECT_SIZE, "$KV.%s.%s", bucket, key);
}

int domus_nats_kv_make_key(const void *bytes, size_t size, char *key, size_t key_size)
{
    static const char digits[] = "0123456789ABCDEF";
    const unsigned char *from = bytes;
    size_t at = 0;

    if (size == 0)
        return -EINVAL;
    for (size_t i = 0; i < size; i++) {
        size_t more = is_key_character((char)from[i]) ? 1 : 3;
        if (at + more >= key_size)
            return -EMSGSIZE;
        if (more == 1) {
            key[at++] = (char)from[i];
            continue;
        }
        key[at++] = '=';
        key[at++] = digits[from[i] >> 4];
        key[at++] = digits[from[i] & 15];
    }
    key[at] = '\0';
    return 0;
}

/* Returns the value of a hexadecimal digit in upper case; 16 for any other character. */
static unsigned value_of_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    return c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : 16;
}

int domus_nats_kv_read_key(const char *key, size_t key_size, void *bytes, size_t bytes_max,
                           size_t *ret_size)
{
    unsigned char *to = bytes;
    size_t size = 0;

    if (key_size == 0)
        return -EINVAL;
    for (size_t i = 0; i < key_size; i++) {
        unsigned byte = (unsigned char)key[i];
        bool is_written_out = key[i] == '=';
        if (is_written_out) {
            if (key_size - i < 3 || value_of_hex_digit(key[i + 1]) > 15 ||
                value_of_hex_digit(key[i + 2]) > 15)
                return -EINVAL;
            byte = value_of_hex_digit(key[i + 1]) << 4 | value_of_hex_digit(key[i + 2]);
            i += 2;
        }
        if (is_key_character((char)byte) == is_written_out)
            return -EINVAL;
        if (size == bytes_max)
            return -EMSGSIZE;
        to[size++] = (unsigned char)byte;
    }
    *ret_size = size;
    return 0;
}
