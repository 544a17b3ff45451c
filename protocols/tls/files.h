/* The contents of the files of a context. They do not change, so all threads share them; a reload
 * makes others. The keys in it are text, of which each thread makes keys of its own: OpenSSL locks
 * and counts those that are shared. The store of authorities is shared, because that of the system
 * takes 1 MiB, and is looked at once in a handshake. */
#ifndef DOMI_PROTOCOLS_TLS_FILES_H
#define DOMI_PROTOCOLS_TLS_FILES_H

#include "protocols/tls/settings.h"

#include <openssl/ssl.h>

typedef struct domi_tls_text {
    char *bytes; /* NULL: no file */
    size_t size;
} domi_tls_text;

typedef struct domi_tls_files {
    uint32_t owners; /* how many use these files; guarded by the lock of the context */
    uint64_t read;   /* the number of the read, by when it began (struct domus_tls) */
    uint32_t count;
    domi_tls_text certs[DOMUS_TLS_CERTIFICATES_MAX];
    domi_tls_text keys[DOMUS_TLS_CERTIFICATES_MAX];
    X509_STORE *store;            /* NULL: peers are not verified */
    STACK_OF(X509_NAME) * names;  /* names of the authorities, which clients are told; NULL: none */
    size_t names_size;            /* bytes of all names in a handshake, also of those not told */
    unsigned char session_id[32]; /* sessions resume only where the same is asked of clients */
} domi_tls_files;

/* Read the files. Returns 0, and the caller is the owner; -ENOENT and its like;
 * -EBADMSG; -ENOMEM. */
int domi_tls_files_read(const domi_tls_settings *settings, const domi_tls_report *report,
                        domi_tls_files **ret_files);
void domi_tls_files_free(domi_tls_files *files);

/* For all that reads PEM. Nobody is here to type a password: without this function OpenSSL asks the
 * terminal, and waits. An encrypted text is refused, also with an empty password. */
int domi_tls_refuse_password(char *text, int size, int writes, void *context);

#endif
