/* A peer of the stage that is OpenSSL itself, over its own BIOs in memory. It can do what the stage
 * refuses to do. */
#ifndef DOMT_RAW_H
#define DOMT_RAW_H

#include "tests/tls/talk.h"

#include <openssl/ssl.h>

typedef struct domt_raw {
    SSL_CTX *context;
    SSL *ssl;
    BIO *in;
    BIO *out;
} domt_raw;

/* A client of at most `version` (TLS1_2_VERSION), that trusts the authority and asks for `host`. */
void domt_raw_open(domt_raw *raw, const domt_pki *pki, int version, const char *host);
void domt_raw_close(domt_raw *raw);

/* Carry bytes between it and a side of the stage, until neither has any. Returns whether the
 * handshake is done. */
bool domt_raw_talk(domt_raw *raw, domt_side *side);

/* Write what OpenSSL has for its peer to the side. */
void domt_raw_flush(domt_raw *raw, domt_side *side);

/* Ask for a line, and hold that it comes back. */
void domt_raw_hold_echo(domt_raw *raw, domt_side *side, const char *line);

#endif
