/* The key of a WebSocket handshake, by whose answer a server proves that it knows WebSocket, and
 * that no cache has answered. It protects nothing else, so it does not matter that SHA-1 is
 * broken. */
#include "protocols/http/websocket/handshake.h"

#include "protocols/http/websocket/websocket.h"

#include <nettle/base64.h>
#include <nettle/sha1.h>
#include <string.h>

/* constant of RFC 6455 that is appended to a key before it is hashed */
static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

static_assert(BASE64_ENCODE_RAW_LENGTH(DOMI_WEBSOCKET_NONCE) == DOMI_WEBSOCKET_KEY64, "its size");
static_assert(BASE64_ENCODE_RAW_LENGTH(SHA1_DIGEST_SIZE) + 1 ==
                  sizeof((domus_websocket_key *)0)->accept,
              "its size, and the zero at its end");

bool domi_websocket_is_valid_key(domus_slice key)
{
    struct base64_decode_ctx context;
    uint8_t nonce[BASE64_DECODE_LENGTH(DOMI_WEBSOCKET_KEY64)];
    size_t size = sizeof nonce;
    const char *bytes = domus_slice_data(key);

    if (key.size != DOMI_WEBSOCKET_KEY64)
        return false;
    /* each character is checked here, because nettle ignores white space */
    for (size_t i = 0; i < key.size; i++) {
        if (bytes[i] == ' ' || bytes[i] == '\t')
            return false;
    }
    base64_decode_init(&context);
    return base64_decode_update(&context, &size, nonce, key.size, bytes) == 1 &&
           base64_decode_final(&context) == 1 && size == DOMI_WEBSOCKET_NONCE;
}

void domi_websocket_make_answer_to_key(const char *key, domus_websocket_key *ret_key)
{
    struct sha1_ctx context;
    uint8_t digest[SHA1_DIGEST_SIZE];

    sha1_init(&context);
    sha1_update(&context, DOMI_WEBSOCKET_KEY64, (const uint8_t *)key);
    sha1_update(&context, sizeof guid - 1, (const uint8_t *)guid);
    sha1_digest(&context, sizeof digest, digest);
    base64_encode_raw(ret_key->accept, sizeof digest, digest);
    ret_key->accept[sizeof ret_key->accept - 1] = '\0';
}

int domi_websocket_make_key(char *key)
{
    uint8_t nonce[DOMI_WEBSOCKET_NONCE];
    int error = domi_websocket_draw_random_bytes(nonce, sizeof nonce);

    if (error == 0)
        base64_encode_raw(key, sizeof nonce, nonce);
    return error;
}
