/* The contents of the files of a context.
 *
 * They do not change, so all threads share them; a reload makes new ones. Keys are stored as text,
 * from which each thread makes its own keys, because OpenSSL locks and counts shared keys. The
 * store of authorities is shared, because the one of the system takes 1 MiB, and a handshake uses
 * it only once. */
#ifndef DOMI_PROTOCOLS_TLS_FILES_H
#define DOMI_PROTOCOLS_TLS_FILES_H

#include "protocols/tls/settings.h"

#include <openssl/ssl.h>

typedef struct domi_tls_text {
    char *bytes; /* the text of a file; NULL: no file */
    size_t size;
} domi_tls_text;

typedef struct domi_tls_files {
    uint32_t owners; /* users of these files; guarded by the lock of the context */
    uint64_t read;   /* number of the read of the files, counted when it began (struct domus_tls) */
    uint32_t count;
    domi_tls_text certs[DOMUS_TLS_CERTIFICATES_MAX];
    domi_tls_text keys[DOMUS_TLS_CERTIFICATES_MAX];
    X509_STORE *store;           /* the trusted authorities; NULL: peers are not verified */
    STACK_OF(X509_NAME) * names; /* names of the authorities, which clients are told; NULL: none */
    /* bytes of all names in a handshake, including those that are not told */
    size_t names_size;
    /* hash of what is asked of clients; sessions resume only where it is the same */
    unsigned char session_id[32];
} domi_tls_files;

/* Read the files. Returns 0, and the caller is an owner; an errno of open(2) such as -ENOENT;
 * -EBADMSG; -ENOMEM. */
int domi_tls_files_read(const domi_tls_settings *settings, const domi_tls_report *report,
                        domi_tls_files **ret_files);
void domi_tls_files_free(domi_tls_files *files);

/* Refuse to give a password, in every read of PEM: without this function OpenSSL asks the terminal
 * and waits. An encrypted text is refused even if its password is empty. */
int domi_tls_refuse_password(char *text, int size, int writes, void *context);

#endif
