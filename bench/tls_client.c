/* This file has the TLS clients of the loads (tls_client.h). */
#include "bench/tls_client.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

#define SUITE "TLS_AES_256_GCM_SHA384"
#define GROUP "X25519"

/* --- the key ---------------------------------------------------------------------------------- */

static X509 *make_certificate(EVP_PKEY *key)
{
    X509 *made = X509_new();
    X509_NAME *subject = made != NULL ? X509_get_subject_name(made) : NULL;
    bool is_made = subject != NULL && X509_set_version(made, 2) == 1 &&
                   ASN1_INTEGER_set(X509_get_serialNumber(made), 1) == 1 &&
                   X509_gmtime_adj(X509_getm_notBefore(made), -3600) != NULL &&
                   X509_gmtime_adj(X509_getm_notAfter(made), 86400) != NULL &&
                   X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                              (const unsigned char *)"localhost", -1, -1, 0) == 1 &&
                   X509_set_issuer_name(made, subject) == 1 && X509_set_pubkey(made, key) == 1 &&
                   X509_sign(made, key, EVP_sha256()) > 0;

    if (!is_made) {
        X509_free(made);
        return NULL;
    }
    return made;
}

int tls_client_make_key(char *pem)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = key != NULL ? make_certificate(key) : NULL;
    BIO *bio = BIO_new(BIO_s_mem());
    int size = -ENOMEM;

    if (bio != NULL && certificate != NULL && PEM_write_bio_X509(bio, certificate) == 1 &&
        PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1)
        size = BIO_read(bio, pem, TLS_CLIENT_PEM_MAX);
    BIO_free(bio);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return size;
}

/* --- connections ------------------------------------------------------------------------------ */

SSL_CTX *tls_client_make_context(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());

    if (context == NULL)
        return NULL;
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_read_ahead(context, 1);
    if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(context, SUITE) != 1 ||
        SSL_CTX_set1_groups_list(context, GROUP) != 1) {
        SSL_CTX_free(context);
        return NULL;
    }
    return context;
}

SSL *tls_client_begin_connection(SSL_CTX *context, int fd)
{
    SSL *ssl = SSL_new(context);

    if (ssl == NULL || SSL_set_fd(ssl, fd) != 1) {
        SSL_free(ssl);
        return NULL;
    }
    SSL_set_connect_state(ssl);
    return ssl;
}

/* --- the link of a load ----------------------------------------------------------------------- */

static int begin_tls_of_connection(const void *context, int fd, void **ret_state)
{
    SSL *ssl = tls_client_begin_connection((SSL_CTX *)(uintptr_t)context, fd);

    if (ssl == NULL)
        return -ENOMEM;
    *ret_state = ssl;
    if (SSL_connect(ssl) != 1)
        return -EPROTO;
    return fcntl(fd, F_SETFL, O_NONBLOCK) == 0 ? 0 : -errno;
}

static ssize_t send_bytes_by_tls(void *state, const char *bytes, size_t size)
{
    return SSL_write(state, bytes, (int)size) == (int)size ? (ssize_t)size : -ENOBUFS;
}

/* Read all bytes that OpenSSL can decrypt now, because the socket does not become readable again
 * for bytes that OpenSSL has read ahead. */
static ssize_t receive_bytes_by_tls(void *state, char *bytes, size_t room)
{
    size_t size = 0;

    do {
        int got = SSL_read(state, bytes + size, (int)(room - size));
        if (got <= 0) {
            int error = SSL_get_error(state, got);
            if (error == SSL_ERROR_ZERO_RETURN)
                return (ssize_t)size;
            if (error != SSL_ERROR_WANT_READ)
                return -EPROTO;
            return size != 0 ? (ssize_t)size : -EAGAIN;
        }
        size += (size_t)got;
    } while (size < room && SSL_has_pending(state) == 1);
    return (ssize_t)size;
}

static void end_tls_of_connection(void *state)
{
    SSL_free(state);
}

struct request_load_link tls_client_make_link_for_load(const SSL_CTX *context)
{
    return (struct request_load_link){.open = begin_tls_of_connection,
                                      .send = send_bytes_by_tls,
                                      .receive = receive_bytes_by_tls,
                                      .close = end_tls_of_connection,
                                      .context = context};
}
