/* Seals records of TLS 1.3 by hand; forge.h describes them. */
#include "tests/tls/forge.h"

#include "base/check.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#define HEAD 5u
#define TAG  16u

static void check_call_succeeded(int holds)
{
    DOMI_CHECK(holds);
}

/* Compute HKDF-Expand-Label (RFC 8446, section 7.1) without a context, for at most one block of
 * output. */
static void compute_hkdf_expand_label(const unsigned char secret[32], const char *label,
                                      unsigned char *to, size_t size)
{
    unsigned char info[64], block[32];
    size_t label_size = strlen(label) + 6;
    size_t used = 0;

    info[used++] = 0;
    info[used++] = (unsigned char)size;
    info[used++] = (unsigned char)label_size;
    memcpy(info + used, "tls13 ", 6);
    memcpy(info + used + 6, label, label_size - 6);
    used += label_size;
    info[used++] = 0;
    info[used++] = 1; /* the blocks of HKDF-Expand are numbered from 1 */
    check_call_succeeded(HMAC(EVP_sha256(), secret, 32, info, used, block, NULL) != NULL);
    memcpy(to, block, size);
}

static void derive_record_keys(domt_forge *forge)
{
    compute_hkdf_expand_label(forge->secret, "key", forge->key, sizeof forge->key);
    compute_hkdf_expand_label(forge->secret, "iv", forge->iv, sizeof forge->iv);
    forge->number = 0;
}

void domt_forge_begin_with_keys(domt_forge *forge, const domt_raw *raw)
{
    memcpy(forge->secret, raw->secret, sizeof forge->secret);
    derive_record_keys(forge);
}

void domt_forge_update_keys(domt_forge *forge)
{
    unsigned char next[32];

    compute_hkdf_expand_label(forge->secret, "traffic upd", next, sizeof next);
    memcpy(forge->secret, next, sizeof next);
    derive_record_keys(forge);
}

size_t domt_forge_seal_record(domt_forge *forge, int type, const char *bytes, size_t size, char *to)
{
    size_t sealed = size + 1 + TAG;
    unsigned char *out = (unsigned char *)to;
    unsigned char inner = (unsigned char)type;
    unsigned char nonce[12];
    int part;
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();

    out[0] = 0x17; /* The outer type of all encrypted records of TLS 1.3 is "application data". */
    out[1] = out[2] = 3;
    out[3] = (unsigned char)(sealed >> 8);
    out[4] = (unsigned char)sealed;
    memcpy(nonce, forge->iv, sizeof nonce);
    for (int i = 0; i < 8; i++)
        nonce[11 - i] ^= (unsigned char)(forge->number >> (8 * i));
    forge->number++;
    check_call_succeeded(EVP_EncryptInit_ex(cipher, EVP_aes_128_gcm(), NULL, forge->key, nonce) ==
                         1);
    check_call_succeeded(EVP_EncryptUpdate(cipher, NULL, &part, out, HEAD) == 1);
    check_call_succeeded(
        EVP_EncryptUpdate(cipher, out + HEAD, &part, (const unsigned char *)bytes, (int)size) == 1);
    check_call_succeeded(EVP_EncryptUpdate(cipher, out + HEAD + size, &part, &inner, 1) == 1);
    check_call_succeeded(EVP_EncryptFinal_ex(cipher, out + HEAD + size + 1, &part) == 1);
    check_call_succeeded(
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, TAG, out + HEAD + size + 1) == 1);
    EVP_CIPHER_CTX_free(cipher);
    return HEAD + sealed;
}

void domt_forge_send_record(domt_forge *forge, domt_side *side, int type, const char *bytes,
                            size_t size)
{
    static char record[HEAD + 16384 + 1 + TAG];

    check_call_succeeded(size <= 16384);
    domt_side_feed_in_pieces(side, record, domt_forge_seal_record(forge, type, bytes, size, record),
                             0);
}
