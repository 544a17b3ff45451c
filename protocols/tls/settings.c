/* Checks and copies the settings of a context of TLS (settings.h). Thread-safety: any thread. */
#include "protocols/tls/settings.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>

/* The default ciphers of TLS 1.2: with ECDHE recorded traffic stays secret even if the key is
 * stolen later, and an AEAD has no padding that could be probed. */
#define CIPHERS_DEFAULT "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL"

/* Copy a number of the settings, or its default `otherwise` if it is 0, and check its range. */
static int copy_number_in_range(const domi_tls_report *report, const char *field, uint32_t given,
                                uint32_t otherwise, uint32_t least, uint32_t most,
                                uint32_t *ret_number)
{
    uint32_t number = given != 0 ? given : otherwise;

    if (number < least || number > most)
        return domi_tls_write_reason_and_return_error(report, -EINVAL, field, "out of its range");
    *ret_number = number;
    return 0;
}

/* Copy a text of the settings, which may be NULL. */
static int copy_text_of_settings(const char *from, char **ret_text)
{
    if (from == NULL)
        return 0;
    *ret_text = OPENSSL_strdup(from);
    return *ret_text != NULL ? 0 : -ENOMEM;
}

static int copy_role_and_verification(const domus_tls_settings *from, domi_tls_settings *settings,
                                      const domi_tls_report *report)
{
    settings->is_server = from->role == DOMUS_ROLE_SERVER;
    settings->verify = from->verify;
    if (!settings->is_server && from->role != DOMUS_ROLE_CLIENT)
        return domi_tls_write_reason_and_return_error(report, -EINVAL, "role",
                                                      "neither server nor client");
    if (from->verify > DOMUS_TLS_VERIFY_REQUIRED)
        return domi_tls_write_reason_and_return_error(report, -EINVAL, "verify",
                                                      "out of its range");
    if (from->verify == DOMUS_TLS_VERIFY_DEFAULT)
        settings->verify = !settings->is_server || from->ca_file != NULL ? DOMUS_TLS_VERIFY_REQUIRED
                                                                         : DOMUS_TLS_VERIFY_NONE;
    if (!settings->is_server && from->verify == DOMUS_TLS_VERIFY_OPTIONAL)
        return domi_tls_write_reason_and_return_error(report, -EINVAL, "verify",
                                                      "a server always has a certificate");
    if (settings->is_server && settings->verify != DOMUS_TLS_VERIFY_NONE && from->ca_file == NULL)
        return domi_tls_write_reason_and_return_error(report, -EINVAL, "verify", "needs ca_file");
    if (from->min_version > DOMUS_TLS_1_3)
        return domi_tls_write_reason_and_return_error(report, -EINVAL, "min_version",
                                                      "out of its range");
    settings->min_version = from->min_version;
    return 0;
}

static int copy_names_of_certificate_files(const domus_tls_settings *from,
                                           domi_tls_settings *settings,
                                           const domi_tls_report *report)
{
    uint32_t most = settings->is_server ? DOMUS_TLS_CERTIFICATES_MAX : 1;
    int error = 0;

    if (from->certificates_count > most || (settings->is_server && from->certificates_count == 0))
        return domi_tls_write_reason_and_return_error(report, -EINVAL, "certificates_count",
                                                      "out of its range");
    for (uint32_t i = 0; error == 0 && i < from->certificates_count; i++) {
        const domus_tls_certificate *each = &from->certificates[i];
        if (each->cert_file == NULL)
            return domi_tls_write_reason_and_return_error(report, -EINVAL, "certificates",
                                                          "cert_file is missing");
        settings->count = i + 1;
        error = copy_text_of_settings(each->cert_file, &settings->cert_files[i]);
        if (error == 0)
            error = copy_text_of_settings(each->key_file != NULL ? each->key_file : each->cert_file,
                                          &settings->key_files[i]);
    }
    return error;
}

static int copy_names_for_alpn(const char *const *alpn, domi_tls_settings *settings,
                               const domi_tls_report *report)
{
    for (uint32_t i = 0; alpn != NULL && alpn[i] != NULL; i++) {
        size_t size = strlen(alpn[i]);
        if (i == DOMI_TLS_ALPN_MAX)
            return domi_tls_write_reason_and_return_error(report, -EINVAL, "alpn",
                                                          "too many names");
        if (size == 0 || size > DOMI_TLS_NAME_MAX)
            return domi_tls_write_reason_and_return_error(report, -EINVAL, "alpn",
                                                          "a name is empty or too long");
        settings->alpn[settings->alpn_size++] = (unsigned char)size;
        memcpy(settings->alpn + settings->alpn_size, alpn[i], size);
        settings->alpn_size += (uint32_t)size;
    }
    return 0;
}

static int copy_numbers_of_settings(const domus_tls_settings *from, domi_tls_settings *settings,
                                    const domi_tls_report *report)
{
    int error =
        copy_number_in_range(report, "depth_max", from->depth_max, 8, 1, 16, &settings->depth_max);

    if (error == 0)
        error = copy_number_in_range(report, "chain_max", from->chain_max, 65536, 1024, 131072,
                                     &settings->chain_max);
    if (error == 0)
        error = copy_number_in_range(report, "ticket_time_s", from->ticket_time_s, 7200, 60, 86400,
                                     &settings->ticket_time_s);
    if (error == 0)
        error = copy_number_in_range(report, "sessions_max", from->sessions_max, 64, 1, 4096,
                                     &settings->sessions_max);
    if (error == 0)
        error = copy_number_in_range(report, "quiet_max", from->quiet_max, 32, 16, 1024,
                                     &settings->quiet_max);
    if (error == 0)
        error = copy_number_in_range(report, "buffers_max", from->buffers_max, DOMI_TLS_KEEPERS, 1,
                                     DOMI_TLS_KEEPERS, &settings->buffers_max);
    if (error == 0)
        error = copy_number_in_range(report, "held_max", from->held_max, 262144, 1, 1048576,
                                     &settings->held_max);
    return error;
}

static int copy_texts_of_settings(const domus_tls_settings *from, domi_tls_settings *settings)
{
    int error = copy_text_of_settings(from->ca_file, &settings->ca_file);

    if (error == 0)
        error = copy_text_of_settings(from->ciphers != NULL ? from->ciphers : CIPHERS_DEFAULT,
                                      &settings->ciphers);
    return error != 0 ? error
                      : copy_text_of_settings(from->cipher_suites, &settings->cipher_suites);
}

int domi_tls_settings_copy(const domus_tls_settings *from, domi_tls_settings *settings,
                           const domi_tls_report *report)
{
    *settings = (domi_tls_settings){.no_tickets = from->no_tickets, .budget = from->budget};
    int error = copy_role_and_verification(from, settings, report);
    if (error == 0)
        error = copy_numbers_of_settings(from, settings, report);
    if (error == 0)
        error = copy_names_for_alpn(from->alpn, settings, report);
    if (error == 0)
        error = copy_names_of_certificate_files(from, settings, report);
    if (error == 0)
        error = copy_texts_of_settings(from, settings);
    if (error == -ENOMEM)
        domi_tls_write_reason_and_return_error(report, error, "settings", "no memory");
    if (error != 0)
        domi_tls_settings_clear(settings);
    return error;
}

void domi_tls_settings_clear(domi_tls_settings *settings)
{
    for (uint32_t i = 0; i < settings->count; i++) {
        OPENSSL_free(settings->cert_files[i]);
        OPENSSL_free(settings->key_files[i]);
    }
    OPENSSL_free(settings->ca_file);
    OPENSSL_free(settings->ciphers);
    OPENSSL_free(settings->cipher_suites);
    *settings = (domi_tls_settings){.count = 0};
}
