/* Reads credentials from requests, and compares secrets. Any thread. */
#include "protocols/http/fields.h"

#include <domus/http_auth.h>

#include <errno.h>
#include <nettle/base64.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>

#define PAIR_MAX (DOMUS_HTTP_USER_MAX + 1u + DOMUS_HTTP_PASSWORD_MAX)

/* --- the field Authorization ------------------------------------------------------------------ */

/* Find the text behind a scheme (which is given in small letters) in the field Authorization.
 * Returns 0; -ENOENT; -EINVAL when there are two such fields. */
static int find_text_behind_auth_scheme(domus_slice fields, const char *scheme,
                                        domus_slice *ret_rest)
{
    size_t scheme_size = strlen(scheme);
    domus_slice value = {NULL, 0, 0};
    unsigned count = 0;
    domus_http_line line;
    uint32_t at = 0;

    while (domus_http_next(fields, &at, &line)) {
        if (!domi_http_is_slice_word_in_any_case(line.name, "authorization"))
            continue;
        value = line.value;
        count++;
    }
    if (count > 1)
        return -EINVAL;
    const char *data = domus_slice_data(value);
    if (value.size < scheme_size ||
        !domi_http_is_word_regardless_of_case(data, scheme_size, scheme))
        return -ENOENT;
    if (value.size > scheme_size && data[scheme_size] != ' ')
        return -ENOENT; /* the field has another scheme, which only begins with this name */
    size_t skip = scheme_size;
    while (skip < value.size && data[skip] == ' ')
        skip++;
    *ret_rest = domi_http_borrow_part_of_slice(value, skip, value.size - skip);
    return 0;
}

/* --- Basic ------------------------------------------------------------------------------------ */

/* Decode base64. White space is refused, which nettle would ignore. Returns the number of bytes, at
 * most `room`; -EINVAL; -EMSGSIZE. */
static int decode_base64_strictly(domus_slice text, char *to, size_t room)
{
    struct base64_decode_ctx context;
    const char *data = domus_slice_data(text);
    size_t size = room;

    if (text.size % 4 != 0)
        return -EINVAL;
    if (BASE64_DECODE_LENGTH(text.size) > room)
        return -EMSGSIZE;
    for (size_t i = 0; i < text.size; i++) {
        if (domi_http_is_space_or_tab(data[i]))
            return -EINVAL;
    }
    base64_decode_init(&context);
    if (base64_decode_update(&context, &size, (uint8_t *)to, text.size, data) != 1 ||
        base64_decode_final(&context) != 1)
        return -EINVAL;
    return (int)size;
}

static int split_user_and_password(const char *pair, size_t size, domus_http_basic *ret_basic)
{
    const char *colon = memchr(pair, ':', size);

    if (colon == NULL || domi_http_count_text_bytes(pair, size) != size)
        return -EINVAL;
    size_t user = (size_t)(colon - pair);
    size_t password = size - user - 1;
    if (user > DOMUS_HTTP_USER_MAX || password > DOMUS_HTTP_PASSWORD_MAX)
        return -EMSGSIZE;
    memcpy(ret_basic->user, pair, user);
    ret_basic->user[user] = '\0';
    memcpy(ret_basic->password, colon + 1, password);
    ret_basic->password[password] = '\0';
    return 0;
}

int domus_http_read_basic(domus_slice fields, domus_http_basic *ret_basic)
{
    char pair[PAIR_MAX + 3]; /* 3 bytes more, because nettle's decoder counts the padding, too */
    domus_slice text;
    int error = find_text_behind_auth_scheme(fields, "basic", &text);

    if (error != 0)
        return error;
    int size = decode_base64_strictly(text, pair, sizeof pair);
    error = size < 0 ? size : split_user_and_password(pair, (size_t)size, ret_basic);
    explicit_bzero(pair, sizeof pair);
    return error;
}

/* --- Bearer ----------------------------------------------------------------------------------- */

static bool is_byte_of_bearer_token(char byte)
{
    char lower = domi_http_small_letter_of(byte);

    return (lower >= 'a' && lower <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' ||
           byte == '.' || byte == '_' || byte == '~' || byte == '+' || byte == '/';
}

int domus_http_read_bearer(domus_slice fields, domus_slice *ret_token)
{
    domus_slice token;
    int error = find_text_behind_auth_scheme(fields, "bearer", &token);
    size_t at = 0;

    if (error != 0)
        return error;
    if (token.size > DOMUS_HTTP_TOKEN_MAX)
        return -EMSGSIZE;
    const char *data = domus_slice_data(token);
    while (at < token.size && is_byte_of_bearer_token(data[at]))
        at++;
    if (at == 0)
        return -EINVAL;
    while (at < token.size && data[at] == '=')
        at++;
    if (at != token.size)
        return -EINVAL;
    *ret_token = token;
    return 0;
}

/* --- comparing secrets ------------------------------------------------------------------------ */

static void make_sha256_digest(const void *bytes, size_t size, uint8_t digest[SHA256_DIGEST_SIZE])
{
    struct sha256_ctx context;

    sha256_init(&context);
    sha256_update(&context, size, bytes);
    sha256_digest(&context, SHA256_DIGEST_SIZE, digest);
}

bool domus_http_is_secret(const void *given, size_t given_size, const void *secret,
                          size_t secret_size)
{
    uint8_t of_given[SHA256_DIGEST_SIZE];
    uint8_t of_secret[SHA256_DIGEST_SIZE];

    make_sha256_digest(given, given_size, of_given);
    make_sha256_digest(secret, secret_size, of_secret);
    return memeql_sec(of_given, of_secret, sizeof of_given) != 0;
}

bool domus_http_has_sha256(const void *given, size_t given_size, const char *sha256)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[SHA256_DIGEST_SIZE];
    char text[2 * SHA256_DIGEST_SIZE];

    if (strlen(sha256) != sizeof text)
        return false;
    make_sha256_digest(given, given_size, digest);
    for (size_t i = 0; i < sizeof digest; i++) {
        text[2 * i] = digits[digest[i] >> 4];
        text[2 * i + 1] = digits[digest[i] & 15];
    }
    return memeql_sec(text, sha256, sizeof text) != 0;
}
