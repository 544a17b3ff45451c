/* The keys of session tickets. All threads share them, and several contexts may, so a session
 * resumes on any thread.
 *
 * A ticket is sealed with the current key. When that key is as old as a ticket may be, it
 * becomes the previous key, and a new one is made. So the key of each ticket is there for as
 * long as the ticket is valid. Thread-safety: any thread. */
#ifndef DOMI_PROTOCOLS_TLS_TICKETS_H
#define DOMI_PROTOCOLS_TLS_TICKETS_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

#define DOMI_TLS_KEY_NAME 16u

typedef struct domi_tls_key {
    unsigned char name[DOMI_TLS_KEY_NAME];
    unsigned char cipher[32];
    unsigned char mac[32];
} domi_tls_key;

typedef struct domi_tls_tickets domi_tls_tickets;

/* Make keys for tickets, which change after `time_s` seconds. Returns NULL if there is no
 * memory. */
domi_tls_tickets *domi_tls_tickets_new(uint64_t time_s, uint64_t now_s);

/* Add an owner of the keys, or remove one (domi_tls_tickets_remove_owner()), of which the last one
 * frees them. `tickets` may be NULL. */
domi_tls_tickets *domi_tls_tickets_add_owner(domi_tls_tickets *tickets);
void domi_tls_tickets_remove_owner(domi_tls_tickets *tickets);

/* Make a new key for tickets now. Returns 0; -ENOMEM when no random bytes can be had. */
int domi_tls_tickets_rotate_keys(domi_tls_tickets *tickets, uint64_t now_s);

/* Get the key by which new tickets are sealed. Returns false when the current key is too old and a
 * new one cannot be made. */
bool domi_tls_tickets_current_key(domi_tls_tickets *tickets, uint64_t now_s, domi_tls_key *ret_key);

/* Find the key by which a ticket was sealed. Returns 0 if the key is unknown or too old; 1 if it is
 * the current key; 2 if it is the previous key, so that the peer gets a new ticket. */
int domi_tls_tickets_find_key(domi_tls_tickets *tickets, const unsigned char *name, uint64_t now_s,
                              domi_tls_key *ret_key);

/* Returns the seconds of a clock that never goes back, by which keys of tickets age. */
uint64_t domi_tls_seconds_since_boot(void);

/* Set up OpenSSL's cipher to make a ticket (`seals`) or to open one. `name`, DOMI_TLS_KEY_NAME
 * bytes, is the name of the key, and is written or read. Returns as the callback of
 * SSL_CTX_set_tlsext_ticket_key_evp_cb() does: 0 when the key is unknown; 1; 2 when it is the
 * previous key, so that a new ticket is made; -1 to fail the handshake. */
int domi_tls_tickets_begin_seal_or_open(domi_tls_tickets *tickets, const EVP_CIPHER *cipher,
                                        unsigned char *name, unsigned char *iv,
                                        EVP_CIPHER_CTX *sealer, EVP_MAC_CTX *mac, bool seals);

#endif
