/* Keeps the keys of session tickets, and seals tickets with them (tickets.h). Thread-safety: any
 * thread. */
#include "protocols/tls/tickets.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <string.h>
#include <time.h>

struct domi_tls_tickets {
    CRYPTO_RWLOCK *lock; /* the lock that guards all fields below */
    uint32_t owners;
    uint64_t time_s;
    uint64_t made_s; /* time at which the key `current` was made, in s */
    bool has_previous;
    domi_tls_key current;
    domi_tls_key previous;
};

static bool make_random_ticket_key(domi_tls_key *key)
{
    return RAND_bytes(key->name, sizeof key->name) == 1 &&
           RAND_priv_bytes(key->cipher, sizeof key->cipher) == 1 &&
           RAND_priv_bytes(key->mac, sizeof key->mac) == 1;
}

uint64_t domi_tls_seconds_since_boot(void)
{
    struct timespec now;

    return clock_gettime(CLOCK_BOOTTIME, &now) == 0 ? (uint64_t)now.tv_sec : 0;
}

domi_tls_tickets *domi_tls_tickets_new(uint64_t time_s, uint64_t now_s)
{
    domi_tls_tickets *tickets = OPENSSL_zalloc(sizeof *tickets);

    if (tickets == NULL)
        return NULL;
    tickets->lock = CRYPTO_THREAD_lock_new();
    if (tickets->lock == NULL || !make_random_ticket_key(&tickets->current)) {
        CRYPTO_THREAD_lock_free(tickets->lock);
        OPENSSL_clear_free(tickets, sizeof *tickets);
        return NULL;
    }
    tickets->owners = 1;
    tickets->time_s = time_s;
    tickets->made_s = now_s;
    return tickets;
}

domi_tls_tickets *domi_tls_tickets_add_owner(domi_tls_tickets *tickets)
{
    (void)CRYPTO_THREAD_write_lock(tickets->lock);
    tickets->owners++;
    (void)CRYPTO_THREAD_unlock(tickets->lock);
    return tickets;
}

void domi_tls_tickets_remove_owner(domi_tls_tickets *tickets)
{
    if (tickets == NULL)
        return;
    (void)CRYPTO_THREAD_write_lock(tickets->lock);
    bool is_last = --tickets->owners == 0;
    (void)CRYPTO_THREAD_unlock(tickets->lock);
    if (!is_last)
        return;
    CRYPTO_THREAD_lock_free(tickets->lock);
    OPENSSL_clear_free(tickets, sizeof *tickets);
}

/* Make a new key for tickets, and keep the current one as the previous one. The caller holds the
 * lock for writing. */
static bool rotate_ticket_keys(domi_tls_tickets *tickets, uint64_t now_s)
{
    domi_tls_key key;

    if (!make_random_ticket_key(&key))
        return false;
    tickets->previous = tickets->current;
    /* if the server was idle for long, the key is older than any valid ticket, and need not be
     * kept */
    tickets->has_previous = now_s - tickets->made_s < 2 * tickets->time_s;
    tickets->current = key;
    tickets->made_s = now_s;
    OPENSSL_cleanse(&key, sizeof key);
    return true;
}

int domi_tls_tickets_rotate_keys(domi_tls_tickets *tickets, uint64_t now_s)
{
    (void)CRYPTO_THREAD_write_lock(tickets->lock);
    bool is_rotated = rotate_ticket_keys(tickets, now_s);
    (void)CRYPTO_THREAD_unlock(tickets->lock);
    return is_rotated ? 0 : -ENOMEM;
}

/* Lock the keys of tickets, and make a new key if the current one is too old. Returns false, with
 * the keys unlocked, if no key can be made. */
static bool lock_and_renew_ticket_keys(domi_tls_tickets *tickets, uint64_t now_s)
{
    (void)CRYPTO_THREAD_write_lock(tickets->lock);
    if (now_s - tickets->made_s < tickets->time_s || rotate_ticket_keys(tickets, now_s))
        return true;
    (void)CRYPTO_THREAD_unlock(tickets->lock);
    return false;
}

bool domi_tls_tickets_current_key(domi_tls_tickets *tickets, uint64_t now_s, domi_tls_key *ret_key)
{
    if (!lock_and_renew_ticket_keys(tickets, now_s))
        return false;
    *ret_key = tickets->current;
    (void)CRYPTO_THREAD_unlock(tickets->lock);
    return true;
}

int domi_tls_tickets_find_key(domi_tls_tickets *tickets, const unsigned char *name, uint64_t now_s,
                              domi_tls_key *ret_key)
{
    int found = 0;

    if (!lock_and_renew_ticket_keys(tickets, now_s))
        return 0;
    if (memcmp(name, tickets->current.name, DOMI_TLS_KEY_NAME) == 0)
        found = 1;
    else if (tickets->has_previous && memcmp(name, tickets->previous.name, DOMI_TLS_KEY_NAME) == 0)
        found = 2;
    if (found != 0)
        *ret_key = found == 1 ? tickets->current : tickets->previous;
    (void)CRYPTO_THREAD_unlock(tickets->lock);
    return found;
}

/* --- callbacks of OpenSSL --------------------------------------------------------------------- */

static bool begin_cipher_of_ticket(const domi_tls_key *key, const EVP_CIPHER *cipher,
                                   const unsigned char *iv, EVP_CIPHER_CTX *sealer,
                                   EVP_MAC_CTX *mac, bool seals)
{
    char digest[] = "SHA256";
    OSSL_PARAM parameters[] = {OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY,
                                                                 (void *)(uintptr_t)key->mac,
                                                                 sizeof key->mac),
                               OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                               OSSL_PARAM_construct_end()};

    return EVP_MAC_CTX_set_params(mac, parameters) == 1 &&
           EVP_CipherInit_ex(sealer, cipher, NULL, key->cipher, iv, seals) == 1;
}

int domi_tls_tickets_begin_seal_or_open(domi_tls_tickets *tickets, const EVP_CIPHER *cipher,
                                        unsigned char *name, unsigned char *iv,
                                        EVP_CIPHER_CTX *sealer, EVP_MAC_CTX *mac, bool seals)
{
    domi_tls_key key;
    int found = 1;

    if (!seals) {
        found = domi_tls_tickets_find_key(tickets, name, domi_tls_seconds_since_boot(), &key);
    } else {
        if (!domi_tls_tickets_current_key(tickets, domi_tls_seconds_since_boot(), &key) ||
            RAND_bytes(iv, EVP_CIPHER_get_iv_length(cipher)) != 1)
            return -1;
        memcpy(name, key.name, sizeof key.name);
    }
    if (found != 0 && !begin_cipher_of_ticket(&key, cipher, iv, sealer, mac, seals))
        found = -1;
    OPENSSL_cleanse(&key, sizeof key);
    return found;
}
