/* The settings of a context of TLS: checked and copied, with zeros replaced by defaults. They never
 * change. */
#ifndef DOMI_PROTOCOLS_TLS_SETTINGS_H
#define DOMI_PROTOCOLS_TLS_SETTINGS_H

#include <domus/tls.h>

#include "protocols/tls/report.h"

#define DOMI_TLS_ALPN_MAX 16u
#define DOMI_TLS_NAME_MAX 64u
#define DOMI_TLS_KEEPERS  64u /* the largest value that `buffers_max` may have */

typedef struct domi_tls_settings {
    bool is_server;
    bool no_tickets;
    domus_tls_verify verify; /* how peers are verified; this is never DOMUS_TLS_VERIFY_DEFAULT */
    domus_tls_version min_version;
    uint32_t depth_max;
    uint32_t chain_max;
    uint32_t ticket_time_s;
    uint32_t held_max;
    uint32_t sessions_max;
    uint32_t quiet_max;
    uint32_t buffers_max;
    uint32_t count; /* number of certificates in `cert_files`, with their keys in `key_files` */
    char *cert_files[DOMUS_TLS_CERTIFICATES_MAX];
    char *key_files[DOMUS_TLS_CERTIFICATES_MAX];
    char *ca_file;       /* file with the trusted authorities; NULL: none was given */
    char *ciphers;       /* list of ciphers for TLS 1.2; NULL: OpenSSL's default */
    char *cipher_suites; /* list of ciphers for TLS 1.3; NULL: OpenSSL's default */
    uint32_t alpn_size;
    unsigned char alpn[DOMI_TLS_ALPN_MAX *
                       /* names of application protocols, in the form in which ALPN sends them */
                       (DOMI_TLS_NAME_MAX + 1)];
    domus_budget *budget;
} domi_tls_settings;

/* Check and copy the settings of a context. Returns 0; -EINVAL or -ENOMEM, and `settings` then
 * holds nothing. */
int domi_tls_settings_copy(const domus_tls_settings *from, domi_tls_settings *settings,
                           const domi_tls_report *report);
void domi_tls_settings_clear(domi_tls_settings *settings);

#endif
