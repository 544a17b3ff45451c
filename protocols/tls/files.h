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
    char *bytes; /* the text of a file; NULL: no file was read */
    size_t size;
} domi_tls_text;

typedef struct domi_tls_files {
    /* how many contexts and shards own these files; guarded by the lock of the context */
    uint32_t owners;
    /* number of the read by which these files came; it was counted when the read began */
    uint64_t read;
    uint32_t count;
    domi_tls_text certs[DOMUS_TLS_CERTIFICATES_MAX];
    domi_tls_text keys[DOMUS_TLS_CERTIFICATES_MAX];
    X509_STORE *store; /* the store of trusted authorities; NULL: peers are not verified */
    /* names of the trusted authorities, which a server tells its clients; NULL: none */
    STACK_OF(X509_NAME) * names;
    /* bytes of all names in a handshake, including names that were left out */
    size_t names_size;
    /* hash of what a server asks of its clients; a session is resumed only where this hash is the
     * same */
    unsigned char session_id[32];
} domi_tls_files;

/* Read the files of a context. Returns 0, and the caller is an owner of them; a negative errno of
 * open(2) such as -ENOENT; -EBADMSG; -ENOMEM. */
int domi_tls_files_read(const domi_tls_settings *settings, const domi_tls_report *report,
                        domi_tls_files **ret_files);
void domi_tls_files_free(domi_tls_files *files);

/* The function that gives OpenSSL a password, used for every read of PEM: it always refuses,
 * because without it OpenSSL asks the terminal and waits. An encrypted text is refused even if its
 * password is empty. */
int domi_tls_answer_no_password(char *text, int size, int writes, void *context);

#endif
