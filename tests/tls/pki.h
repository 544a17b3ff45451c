/* An authority for tests, and the certificates that it has issued, in files of a scratch folder.
 * Everything is made when a test runs, so the tree contains no key. */
#ifndef DOMT_PKI_H
#define DOMT_PKI_H

#include <openssl/x509.h>
#include <stdbool.h>

typedef struct domt_pki {
    char folder[64];
    EVP_PKEY *key;
    X509 *authority; /* certificate of the authority; FOLDER/ca.pem has it as text */
} domt_pki;

typedef struct domt_wish {
    /* name for the files: the certificate and its key are written to FOLDER/FILE.pem */
    const char *file;
    /* alternative names of the certificate, such as "DNS:a.example,IP:127.0.0.1" */
    const char *names;
    int begins_s; /* begin of the certificate's validity, in seconds from now */
    int ends_s;   /* end of the certificate's validity, in seconds from now; 0: in an hour */
    int is_self_signed;
    const char *usage; /* the certificate's extended key usage, such as "clientAuth"; NULL: any */
    bool nul;          /* whether each '?' in the alternative names is replaced by a byte 0 */
    /* kind of the key: 0: P-256; 1: RSA of 2048 bits; more: RSA of that many bits */
    int is_rsa;
} domt_wish;

void domt_pki_make_authority(domt_pki *pki);
void domt_pki_free_authority(domt_pki *pki);

/* Issue a certificate with the subject "CN=FILE,O=domus", as the wish says. */
void domt_pki_issue_certificate(const domt_pki *pki, const domt_wish *wish);

/* Returns the path FOLDER/FILE.pem, valid until the eighth call after this one. */
const char *domt_pki_path_of_file(const domt_pki *pki, const char *file);

/* Write a text to FOLDER/FILE.pem. */
void domt_pki_write_file(const domt_pki *pki, const char *file, const char *text);

#endif
