/* The client's side of TLS for the loads of `bench tls`: OpenSSL on sockets, TLS 1.3, one suite and
 * one group, so that all servers do the same work. Certificates are not verified: a load checks the
 * bytes, and its CPU is short. */
#ifndef DOMUS_BENCH_TLS_CLIENT_H
#define DOMUS_BENCH_TLS_CLIENT_H

#include "bench/request_load.h"

#include <openssl/ssl.h>

#define TLS_CLIENT_PEM_MAX 4096u

/* Make a key (ECDSA, P-256) and a certificate for localhost, and write both to `pem`
 * (TLS_CLIENT_PEM_MAX bytes). Returns the size of the text, or a negative errno. */
int tls_client_make_key(char *pem);

/* Make OpenSSL's context for clients, which is valid until the process ends. Returns NULL if
 * OpenSSL has failed. */
SSL_CTX *tls_client_make_context(void);

/* Begin a TLS connection of a client on a connected socket, without waiting. Returns NULL if
 * OpenSSL has failed. */
SSL *tls_client_begin_connection(SSL_CTX *context, int fd);

/* Returns the layer of TLS for a request load; its context is the SSL_CTX. */
struct request_load_link tls_client_make_link_for_load(const SSL_CTX *context);

#endif
