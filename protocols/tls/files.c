/* Reads the files of a context of TLS (files.h). Reading blocks the thread that calls it. */
#include "protocols/tls/files.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX        ((size_t)1 << 20)
#define AUTHORITIES_MAX ((size_t)16 << 20)
#define FIRST_ROOM      ((size_t)8192)
/* bytes of the names of all trusted authorities in a handshake, at most */
#define NAMES_MAX ((size_t)32768)
#define NAME_HEAD 2 /* bytes of the length before each name in a handshake */

/* The file in which Debian and similar systems keep the authorities that the system trusts. */
static const char *const system_file = "/etc/ssl/certs/ca-certificates.crt";

static void free_text_of_file(domi_tls_text *text)
{
    OPENSSL_clear_free(text->bytes, text->size);
    *text = (domi_tls_text){NULL, 0};
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* Read more bytes of a file behind the first `*used` ones of a text, which grows up to `most`
 * bytes. Returns 1; 0 at the end of the file; a negative errno. */
static int read_next_bytes(FILE *file, domi_tls_text *text, size_t *used, size_t most)
{
    if (*used == text->size) {
        size_t room = text->size != 0 ? 2 * text->size : FIRST_ROOM;
        char *bytes = OPENSSL_clear_realloc(text->bytes, text->size, room);
        if (bytes == NULL)
            return -ENOMEM;
        *text = (domi_tls_text){bytes, room};
    }
    size_t got = fread(text->bytes + *used, 1, text->size - *used, file);
    if (got == 0 && ferror(file))
        return -EIO;
    *used += got;
    if (*used > most)
        return -EFBIG;
    return got != 0;
}

/* Open a file. A fifo or a device is refused, because reading it could block for ever. Returns 0;
 * -EISDIR; -EBADF if it is not a regular file; the negative errno of open(2). */
static int open_regular_file(const char *path, FILE **ret_file)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;

    if (fd < 0)
        return -errno;
    int result = fstat(fd, &status) != 0    ? -errno
                 : S_ISDIR(status.st_mode)  ? -EISDIR
                 : !S_ISREG(status.st_mode) ? -EBADF
                                            : 0;
    FILE *file = result == 0 ? fdopen(fd, "r") : NULL;
    if (result == 0 && file == NULL)
        result = -ENOMEM;
    if (result != 0)
        close(fd);
    else
        *ret_file = file;
    return result;
}

/* Read a whole file of at most `most` bytes as a text. */
static int read_file_as_text(const char *path, size_t most, const domi_tls_report *report,
                             domi_tls_text *ret_text)
{
    domi_tls_text text = {NULL, 0};
    size_t used = 0;
    int result;
    FILE *file = NULL;

    result = open_regular_file(path, &file);
    if (result != 0)
        return domi_tls_write_reason_and_return_error(
            report, result, path, result == -EBADF ? "not a regular file" : strerror(-result));
    result = 1;
    /* stdio gets no buffer, because the buffer would keep a copy of the private key */
    setvbuf(file, NULL, _IONBF, 0);
    while (result > 0)
        result = read_next_bytes(file, &text, &used, most);
    fclose(file);
    if (result == 0 && used == 0)
        result = -EBADMSG;
    if (result < 0) {
        free_text_of_file(&text);
        return domi_tls_write_reason_and_return_error(
            report, result, path, result == -EBADMSG ? "the file is empty" : strerror(-result));
    }
    /* the memory behind the text is never read, but it is initialized with line ends */
    memset(text.bytes + used, '\n', text.size - used);
    *ret_text = text;
    return 0;
}

int domi_tls_answer_no_password(char *text, int size, int writes, void *context)
{
    (void)text, (void)size, (void)writes, (void)context;
    return -1;
}

/* --- authorities ------------------------------------------------------------------------------ */

static X509 *read_next_certificate(BIO *bio)
{
    return PEM_read_bio_X509_AUX(bio, NULL, domi_tls_answer_no_password, NULL);
}

static void free_names_of_authorities(STACK_OF(X509_NAME) * names)
{
    while (sk_X509_NAME_num(names) > 0)
        X509_NAME_free(sk_X509_NAME_pop(names));
}

/* Add the name of a trusted authority, once, to the names that a server tells its clients. Names
 * beyond NAMES_MAX bytes are left out: a handshake has at most 64 KiB for them, and a client that
 * misses a name shows the certificate that it has (RFC 8446, 4.2.4). Returns 0; -ENOMEM. */
static int add_name_of_authority(domi_tls_files *files, const X509 *authority)
{
    X509_NAME *name = X509_get_subject_name(authority);

    if (files->names_size > NAMES_MAX)
        return 0;
    for (int i = 0; i < sk_X509_NAME_num(files->names); i++)
        if (X509_NAME_cmp(sk_X509_NAME_value(files->names, i), name) == 0)
            return 0;
    files->names_size += NAME_HEAD + (size_t)i2d_X509_NAME(name, NULL);
    if (files->names_size > NAMES_MAX) {
        free_names_of_authorities(files->names);
        return 0;
    }
    name = X509_NAME_dup(name);
    if (name != NULL && sk_X509_NAME_push(files->names, name) != 0)
        return 0;
    X509_NAME_free(name);
    return -ENOMEM;
}

/* Add the certificates of a text to the store of trusted authorities, and on a server their names
 * to the list for clients. Returns how many certificates there were; -ENOMEM; -EBADMSG. */
static int add_certificates_of_authorities(domi_tls_files *files, const domi_tls_text *text)
{
    BIO *bio = BIO_new_mem_buf(text->bytes, (int)text->size);
    X509 *certificate;
    int count = 0;

    if (bio == NULL)
        return -ENOMEM;
    while (count >= 0 && (certificate = read_next_certificate(bio)) != NULL) {
        count = X509_STORE_add_cert(files->store, certificate) == 1 ? count + 1 : -ENOMEM;
        if (count >= 0 && files->names != NULL && add_name_of_authority(files, certificate) != 0)
            count = -ENOMEM;
        X509_free(certificate);
    }
    if (count >= 0 && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        count = -EBADMSG;
    BIO_free(bio);
    return count;
}

static int read_authorities_of_files(domi_tls_files *files, const char *path,
                                     const domi_tls_report *report)
{
    domi_tls_text text = {NULL, 0};
    int error = read_file_as_text(path, AUTHORITIES_MAX, report, &text);

    if (error != 0)
        return error;
    ERR_clear_error();
    int count = add_certificates_of_authorities(files, &text);
    if (count < 0)
        error = domi_tls_report_openssl_reason(report, count, path);
    else if (count == 0)
        error = domi_tls_write_reason_and_return_error(report, -EBADMSG, path,
                                                       "it holds no certificate");
    ERR_clear_error();
    if (error == 0 &&
        EVP_Digest(text.bytes, text.size, files->session_id, NULL, EVP_sha256(), NULL) != 1)
        error = -ENOMEM;
    free_text_of_file(&text);
    return error;
}

/* Read the authorities that the system trusts: from the file that OpenSSL's environment variable
 * names, else from Debian's file, else from OpenSSL's own places. */
static int read_system_authorities(domi_tls_files *files, const domi_tls_report *report)
{
    const char *named = secure_getenv(X509_get_default_cert_file_env());
    FILE *file = named == NULL ? fopen(system_file, "re") : NULL;

    if (named == NULL && file == NULL) {
        ERR_clear_error();
        return X509_STORE_set_default_paths(files->store) == 1
                   ? 0
                   : domi_tls_report_openssl_reason(report, -ENOENT, "the system's authorities");
    }
    if (file != NULL)
        fclose(file);
    return read_authorities_of_files(files, named != NULL ? named : system_file, report);
}

static int read_files_of_verification(const domi_tls_settings *settings,
                                      const domi_tls_report *report, domi_tls_files *files)
{
    files->session_id[0] = 1;
    if (settings->verify == DOMUS_TLS_VERIFY_NONE)
        return 0;
    files->store = X509_STORE_new();
    if (settings->is_server)
        files->names = sk_X509_NAME_new_null();
    if (files->store == NULL || (settings->is_server && files->names == NULL))
        return -ENOMEM;
    int error = settings->ca_file != NULL
                    ? read_authorities_of_files(files, settings->ca_file, report)
                    : read_system_authorities(files, report);
    if (error == 0) {
        files->session_id[0] ^= (unsigned char)settings->verify;
        files->session_id[1] ^= (unsigned char)settings->depth_max;
    }
    return error;
}

/* --- all files of a context ------------------------------------------------------------------- */

static int read_all_files(const domi_tls_settings *settings, const domi_tls_report *report,
                          domi_tls_files *files)
{
    int error = read_files_of_verification(settings, report, files);

    for (uint32_t i = 0; error == 0 && i < settings->count; i++) {
        files->count = i + 1;
        error = read_file_as_text(settings->cert_files[i], FILE_MAX, report, &files->certs[i]);
        if (error == 0)
            error = read_file_as_text(settings->key_files[i], FILE_MAX, report, &files->keys[i]);
    }
    return error;
}

int domi_tls_files_read(const domi_tls_settings *settings, const domi_tls_report *report,
                        domi_tls_files **ret_files)
{
    domi_tls_files *files = OPENSSL_zalloc(sizeof *files);

    if (files == NULL)
        return domi_tls_write_reason_and_return_error(report, -ENOMEM, "files", "no memory");
    files->owners = 1;
    int error = read_all_files(settings, report, files);
    if (error == 0) {
        *ret_files = files;
        return 0;
    }
    if (error == -ENOMEM)
        domi_tls_write_reason_and_return_error(report, error, "files", "no memory");
    domi_tls_files_free(files);
    return error;
}

void domi_tls_files_free(domi_tls_files *files)
{
    if (files == NULL)
        return;
    for (uint32_t i = 0; i < files->count; i++) {
        free_text_of_file(&files->certs[i]);
        free_text_of_file(&files->keys[i]);
    }
    X509_STORE_free(files->store);
    sk_X509_NAME_pop_free(files->names, X509_NAME_free);
    OPENSSL_free(files);
}
