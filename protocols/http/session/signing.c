/* The parts of signed values: how their bytes become text, and how their MACs are made. */
#include "protocols/http/session/signing.h"

#include <assert.h>
#include <errno.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <string.h>

/* ---- base64url --------------------------------------------------------------------------------*/

/* Encodes and decodes base64url (signing.h). Three bytes become four characters, and the last
 * group may be shorter. */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

size_t domi_http_base64url_encode(char *to, const void *bytes_, size_t size)
{
    const unsigned char *bytes = bytes_;
    char *begin = to;
    /* the bytes' bits so far; the lowest `bits` of them are not written as characters yet */
    uint32_t held = 0;
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

/* Returns the value of a character of base64url; -1 for any other byte. */
static int value_of_base64url_character(char byte)
{
    if (byte >= 'A' && byte <= 'Z')
        return byte - 'A';
    if (byte >= 'a' && byte <= 'z')
        return byte - 'a' + 26;
    if (byte >= '0' && byte <= '9')
        return byte - '0' + 52;
    return byte == '-' ? 62 : byte == '_' ? 63 : -1;
}

int64_t domi_http_base64url_decode(void *to_, const char *text, size_t size)
{
    unsigned char *to = to_;
    size_t written = 0;
    uint32_t held = 0;
    unsigned bits = 0;

    if (size % 4 == 1)
        return -EINVAL;
    for (size_t i = 0; i < size; i++) {
        int value = value_of_base64url_character(text[i]);
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

/* ---- mac --------------------------------------------------------------------------------------*/

/* The functions of this section make MACs by the library nettle (signing.h), and wipe what they
 * leave of a key on the stack. */

static_assert(DOMI_HTTP_MAC_BYTES == SHA256_DIGEST_SIZE, "its size");

static void add_word_with_its_zero_to_mac(struct hmac_sha256_ctx *context, const char *word)
{
    hmac_sha256_update(context, strlen(word) + 1, (const uint8_t *)word);
}

void domi_http_make_mac(const domus_http_key *key, const domi_http_mac_text *text,
                        unsigned char mac[DOMI_HTTP_MAC_BYTES])
{
    struct hmac_sha256_ctx context;

    hmac_sha256_set_key(&context, key->size, key->bytes);
    add_word_with_its_zero_to_mac(&context, text->kind);
    add_word_with_its_zero_to_mac(&context, text->purpose);
    hmac_sha256_update(&context, text->size, text->bytes);
    hmac_sha256_digest(&context, DOMI_HTTP_MAC_BYTES, mac);
    explicit_bzero(&context, sizeof context);
}

bool domi_http_mac_equals(const unsigned char *one, const unsigned char *other, size_t size)
{
    return memeql_sec(one, other, size) != 0;
}
