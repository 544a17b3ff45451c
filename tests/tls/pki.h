/* An authority for tests, with the certificates that it has issued, in files of a scratch folder.
 * Everything is made when a test runs, so the tree holds no key. */
#ifndef DOMT_PKI_H
#define DOMT_PKI_H

#include <openssl/x509.h>
#include <stdbool.h>

typedef struct domt_pki {
    char folder[64];
    EVP_PKEY *key;
    X509 *authority; /* in FOLDER/ca.pem */
} domt_pki;

typedef struct domt_wish {
    const char *file;  /* FOLDER/FILE.pem gets the certificate and its key */
    const char *names; /* "DNS:a.example,IP:127.0.0.1" */
    int begins_s;      /* seconds from now */
    int ends_s;        /* 0: in an hour */
    int is_self_signed;
    const char *usage; /* "clientAuth"; NULL: any */
    bool nul;          /* each '?' in the names is a byte 0 in the certificate */
    int is_rsa;        /* 1: 2048 bits; more: so many; 0: P-256 */
} domt_wish;

void domt_pki_make(domt_pki *pki);
void domt_pki_free(domt_pki *pki);

/* Issue a certificate with the subject "CN=FILE,O=domus". */
void domt_pki_issue(const domt_pki *pki, const domt_wish *wish);

/* Returns FOLDER/FILE.pem, valid until the eighth call after this one. */
const char *domt_pki_path(const domt_pki *pki, const char *file);

/* Write a text to FOLDER/FILE.pem. */
void domt_pki_write(const domt_pki *pki, const char *file, const char *text);

#endif
