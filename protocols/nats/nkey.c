/* Keys of NATS: an Ed25519 seed, written in base32 with a checksum, and its public key and
 * signatures. The text of a user's seed begins with "SU": its first two bytes tell that it is a
 * seed, and of a user. */
#include "protocols/nats/nats.h"

#include <errno.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#define SEED_TEXT 58u /* characters that the text of a seed has */
/* bytes that the text of a seed encodes: 2 of the prefix, 32 of the key, 2 of the checksum */
#define SEED_BYTES 36u
#define KEY_BYTES  32u
/* the prefixes of a seed and of a user's key, whose first digits in base32 are "S" and "U" */
#define PREFIX_SEED (18u << 3)
#define PREFIX_USER (20u << 3)
#define SIGNATURE   64u

static const char base32[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
static const char base64url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Returns the checksum of a seed or key: CRC-16/XMODEM, with the polynomial 0x1021. */
static uint16_t crc16_of_seed(const uint8_t *bytes, size_t size)
{
    uint32_t crc = 0;

    for (size_t i = 0; i < size; i++) {
        crc ^= (uint32_t)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1;
    }
    return (uint16_t)crc;
}

/* Write bytes as digits of `width` bits each (base32 or base64url), with a zero byte at the end of
 * the text. */
static void write_bytes_as_base_digits(const uint8_t *bytes, size_t size, uint32_t width,
                                       const char *digits, char *text)
{
    uint32_t bits = 0, have = 0;

    for (size_t i = 0; i < size; i++) {
        bits = bits << 8 | bytes[i];
        for (have += 8; have >= width;) {
            have -= width;
            *text++ = digits[bits >> have & ((1u << width) - 1)];
        }
        bits &= 0xff;
    }
    if (have != 0)
        *text++ = digits[bits << (width - have) & ((1u << width) - 1)];
    *text = '\0';
}

/* Read the base32 text of a seed into bytes. Returns false if the text has another length, or a
 * character that is no digit of base32. */
static bool read_base32_digits(const char *seed, uint8_t bytes[SEED_BYTES])
{
    uint32_t bits = 0, have = 0, count = 0;

    if (strnlen(seed, SEED_TEXT + 1) != SEED_TEXT)
        return false;
    for (uint32_t i = 0; i < SEED_TEXT; i++) {
        const char *digit = strchr(base32, seed[i]);
        if (digit == NULL)
            return false;
        bits = bits << 5 | (uint32_t)(digit - base32);
        have += 5;
        if (have >= 8) {
            have -= 8;
            bytes[count++] = (uint8_t)(bits >> have);
        }
        bits &= 0xff;
    }
    /* bits of the last digit that belong to no byte must be 0 */
    return (bits & ((1u << have) - 1)) == 0;
}

/* Get the private key from the text of a user's seed. Returns 0; -EBADMSG. */
static int read_key_of_seed(const char *seed, uint8_t key[KEY_BYTES])
{
    uint8_t bytes[SEED_BYTES] = {0};
    int error = -EBADMSG;

    if (read_base32_digits(seed, bytes)) {
        uint16_t sum = (uint16_t)(bytes[SEED_BYTES - 2] | bytes[SEED_BYTES - 1] << 8);
        uint32_t whose = (bytes[0] & 7u) << 5 | bytes[1] >> 3;
        if ((bytes[0] & 0xf8u) == PREFIX_SEED && whose == PREFIX_USER && (bytes[1] & 7u) == 0 &&
            sum == crc16_of_seed(bytes, SEED_BYTES - 2)) {
            memcpy(key, bytes + 2, KEY_BYTES);
            error = 0;
        }
    }
    OPENSSL_cleanse(bytes, sizeof bytes);
    return error;
}

static void write_public_key(const uint8_t key[KEY_BYTES], char text[DOMUS_NATS_NKEY_SIZE])
{
    uint8_t bytes[1 + KEY_BYTES + 2];

    bytes[0] = PREFIX_USER;
    memcpy(bytes + 1, key, KEY_BYTES);
    uint16_t sum = crc16_of_seed(bytes, 1 + KEY_BYTES);
    bytes[1 + KEY_BYTES] = (uint8_t)sum;
    bytes[2 + KEY_BYTES] = (uint8_t)(sum >> 8);
    write_bytes_as_base_digits(bytes, sizeof bytes, 5, base32, text);
}

/* Sign data with a key, and write the signature as text. Returns 0; -ENOMEM. */
static int sign_data_with_key(EVP_PKEY *pair, const void *data, size_t size,
                              char text[DOMUS_NATS_SIGNATURE_SIZE])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    uint8_t signature[SIGNATURE];
    size_t signature_size = sizeof signature;
    bool done = context != NULL && EVP_DigestSignInit(context, NULL, NULL, NULL, pair) == 1 &&
                EVP_DigestSign(context, signature, &signature_size, data, size) == 1;

    EVP_MD_CTX_free(context);
    if (!done)
        return -ENOMEM;
    write_bytes_as_base_digits(signature, sizeof signature, 6, base64url, text);
    return 0;
}

int domus_nats_sign(const char *seed, const void *data, size_t size,
                    char public_key[DOMUS_NATS_NKEY_SIZE],
                    char signature[DOMUS_NATS_SIGNATURE_SIZE])
{
    uint8_t key[KEY_BYTES], public_bytes[KEY_BYTES];
    size_t public_size = sizeof public_bytes;
    int error = read_key_of_seed(seed, key);

    if (error != 0)
        return error;
    EVP_PKEY *pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key, sizeof key);
    OPENSSL_cleanse(key, sizeof key);
    error = pair != NULL ? 0 : -ENOMEM;
    if (error == 0 && EVP_PKEY_get_raw_public_key(pair, public_bytes, &public_size) != 1)
        error = -ENOMEM;
    if (error == 0 && signature != NULL)
        error = sign_data_with_key(pair, data, size, signature);
    if (error == 0)
        write_public_key(public_bytes, public_key);
    EVP_PKEY_free(pair);
    return error;
}
