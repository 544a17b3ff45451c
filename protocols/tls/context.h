/* A context: its settings, its ticket keys, the files as they were last read, and a shard for each
 * thread that has opened a connection. A thread makes its shard when its first connection opens,
 * and makes it anew when the files were read again. The lock guards the list of shards, `files`
 * and `reads`; what is in a shard is touched by its thread alone. */
#ifndef DOMI_PROTOCOLS_TLS_CONTEXT_H
#define DOMI_PROTOCOLS_TLS_CONTEXT_H

#include "protocols/tls/shard.h"

struct domus_tls {
    CRYPTO_RWLOCK *lock;
    domi_tls_settings settings;
    domi_tls_tickets *tickets;
    domi_tls_files *files;
    uint64_t reads; /* how many reads of the files were begun so far */
    domi_tls_shard *shards;
};

/* Get the context of OpenSSL for a new connection on the calling thread. Returns 0; -ENOMEM. */
int domi_tls_get_openssl_context(domus_tls *tls, SSL_CTX **ret_context);

/* Returns whether a shard is the one of the calling thread. */
bool domi_tls_is_shard_of_this_thread(const domi_tls_shard *shard);

#endif
