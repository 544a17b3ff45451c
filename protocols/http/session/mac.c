/* Makes MACs by nettle (mac.h). Bytes of a key that are left on the stack are wiped. */
#include "protocols/http/session/mac.h"

#include <assert.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <string.h>

static_assert(DOMI_HTTP_MAC_BYTES == SHA256_DIGEST_SIZE, "its size");

static void add_word(struct hmac_sha256_ctx *context, const char *word)
{
    hmac_sha256_update(context, strlen(word) + 1, (const uint8_t *)word);
}

void domi_http_mac(const domus_http_key *key, const domi_http_mac_text *text,
                   unsigned char mac[DOMI_HTTP_MAC_BYTES])
{
    struct hmac_sha256_ctx context;

    hmac_sha256_set_key(&context, key->size, key->bytes);
    add_word(&context, text->kind);
    add_word(&context, text->purpose);
    hmac_sha256_update(&context, text->size, text->bytes);
    hmac_sha256_digest(&context, DOMI_HTTP_MAC_BYTES, mac);
    explicit_bzero(&context, sizeof context);
}

bool domi_http_mac_equals(const unsigned char *one, const unsigned char *other, size_t size)
{
    return memeql_sec(one, other, size) != 0;
}
