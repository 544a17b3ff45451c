/* A peer of the stage that is OpenSSL itself, over its own BIOs in memory. It can do things that
 * the stage refuses to do. */
#ifndef DOMT_RAW_H
#define DOMT_RAW_H

#include "tests/tls/talk.h"

#include <openssl/ssl.h>

typedef struct domt_raw {
    SSL_CTX *context;
    SSL *ssl;
    BIO *in;
    BIO *out;
    /* secret of the bytes that the raw peer sends after its handshake, in TLS 1.3 */
    unsigned char secret[32];
} domt_raw;

/* Make a client of at most `version` (TLS1_2_VERSION) that trusts the authority and expects the
 * server name `host`. */
void domt_raw_open_client(domt_raw *raw, const domt_pki *pki, int version, const char *host);

/* Make a server that has the certificate FILE, its key and its chain. */
void domt_raw_open_server(domt_raw *raw, const domt_pki *pki, const char *file);
void domt_raw_free_peer(domt_raw *raw);

/* Carry bytes between the raw peer and a side of the stage until neither has more. Returns whether
 * the raw peer's handshake is done. */
bool domt_raw_exchange_bytes_with_side(domt_raw *raw, domt_side *side);

/* Feed the bytes that the raw peer's OpenSSL has made to the side. */
void domt_raw_flush_to_side(domt_raw *raw, domt_side *side);

/* Read bytes that the raw peer has received, decrypted. Returns how many were stored at `to`; 0:
 * none, or the end. */
size_t domt_raw_read_received(domt_raw *raw, char *to, size_t room);

/* Send a line from the raw peer to the side, and check that the same line comes back. */
void domt_raw_expect_echo_of_line(domt_raw *raw, domt_side *side, const char *line);

#endif
