/* A shard: the contexts of OpenSSL that one thread has made for itself from the files.
 *
 * OpenSSL 3.0 locks an SSL_CTX, and counts the users of certificates and keys by atomics, so each
 * thread has its own contexts. */
#ifndef DOMI_PROTOCOLS_TLS_SHARD_H
#define DOMI_PROTOCOLS_TLS_SHARD_H

#include "protocols/tls/files.h"
#include "protocols/tls/sessions.h"
#include "protocols/tls/tickets.h"

typedef struct domi_tls_shard {
    struct domi_tls_shard *next;
    const domi_tls_settings *settings;
    domi_tls_tickets *tickets;
    /* the shard's owner thread, by the address of a thread-local variable. Once this thread has
     * ended, a later thread may have the same address. */
    const void *thread;
    /* the files from which the shard's contexts were made; NULL: no contexts were made yet */
    domi_tls_files *files;
    EVP_CIPHER *cipher; /* the cipher by which the shard's contexts seal tickets */
    BIO *bio; /* the BIO that all connections of the shard share; NULL: it was not made yet */
    /* the sessions that clients have got on this thread, with the present `contexts` */
    domi_tls_sessions sessions;
    /* The shard's connections that keep OpenSSL's buffers (buffers.h), in a ring. */
    struct domi_tls_state *keepers[DOMI_TLS_KEEPERS];
    uint32_t next_keeper;
    uint32_t count;
    /* OpenSSL's contexts: one for each certificate of a server, or a single one */
    SSL_CTX *contexts[DOMUS_TLS_CERTIFICATES_MAX];
} domi_tls_shard;

/* Make the contexts of a shard from its files. Returns 0; -EBADMSG; -EINVAL; -ENOMEM. After an
 * error the shard has no contexts. */
int domi_tls_make_contexts_of_shard(domi_tls_shard *shard, const domi_tls_report *report);
void domi_tls_free_contexts_of_shard(domi_tls_shard *shard);

/* Replace the contexts of `shard` by those of another shard, `from`. */
void domi_tls_replace_contexts_of_shard(domi_tls_shard *shard, domi_tls_shard *from);

#endif
