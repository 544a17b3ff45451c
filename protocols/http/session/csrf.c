/* Tokens against forged forms (domus/http_session.h). A token is a random part, and a MAC over that
 * part and the session. */
#include "protocols/http/session/signing.h"

#include <domus/http_session.h>

#include <assert.h>
#include <string.h>

#define CHANCE 16u /* bytes of the random part of a token */
#define BYTES  (CHANCE + DOMI_HTTP_MAC_BYTES)

static_assert(DOMI_HTTP_64_SIZE(BYTES) == DOMUS_HTTP_CSRF_SIZE, "its size");

static bool is_valid_size_of_session(size_t size)
{
    return size != 0 && size <= DOMUS_HTTP_CSRF_SESSION_MAX;
}

/* Make the MAC of a token, whose random part is there already. */
static void make_mac_of_csrf_token(const domus_http_key *key, const void *session, size_t size,
                                   const unsigned char *token, unsigned char *mac)
{
    unsigned char bytes[CHANCE + DOMUS_HTTP_CSRF_SESSION_MAX];
    const domi_http_mac_text text = {"domus-http-csrf", "", bytes, CHANCE + size};

    memcpy(bytes, token, CHANCE);
    memcpy(bytes + CHANCE, session, size);
    domi_http_make_mac(key, &text, mac);
}

int domus_http_csrf_make(const domus_http_keys *keys, const void *session, size_t size, char *to)
{
    unsigned char token[BYTES];

    if (keys->count == 0)
        return -ENOKEY;
    if (!is_valid_size_of_session(size))
        return -EINVAL;
    int error = domi_http_draw_random_bytes(token, CHANCE);
    if (error != 0)
        return error;
    make_mac_of_csrf_token(&keys->keys[0], session, size, token, token + CHANCE);
    to[domi_http_base64url_encode(to, token, sizeof token)] = '\0';
    return 0;
}

bool domus_http_csrf_is_right(const domus_http_keys *keys, const void *session, size_t size,
                              const char *text, size_t text_size)
{
    unsigned char token[BYTES];
    unsigned char mac[DOMI_HTTP_MAC_BYTES];

    if (!is_valid_size_of_session(size) || text_size != DOMUS_HTTP_CSRF_SIZE ||
        domi_http_base64url_decode(token, text, text_size) < 0)
        return false;
    for (uint32_t i = 0; i < keys->count; i++) {
        make_mac_of_csrf_token(&keys->keys[i], session, size, token, mac);
        if (domi_http_mac_equals(mac, token + CHANCE, sizeof mac))
            return true;
    }
    return false;
}
