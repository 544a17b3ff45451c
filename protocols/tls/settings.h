/* The settings of a context, checked and copied, with the defaults filled in. They
 * do not change. */
#ifndef DOMI_PROTOCOLS_TLS_SETTINGS_H
#define DOMI_PROTOCOLS_TLS_SETTINGS_H

#include <domus/tls.h>

#include "protocols/tls/report.h"

#define DOMI_TLS_ALPN_MAX 16u
#define DOMI_TLS_NAME_MAX 64u
#define DOMI_TLS_KEEPERS  64u /* the most that `buffers_max` may be */

typedef struct domi_tls_settings {
    bool is_server;
    bool no_tickets;
    domus_tls_verify verify; /* not DEFAULT */
    domus_tls_version min_version;
    uint32_t depth_max;
    uint32_t chain_max;
    uint32_t ticket_time_s;
    uint32_t held_max;
    uint32_t sessions_max;
    uint32_t quiet_max;
    uint32_t buffers_max;
    uint32_t count; /* certificates */
    char *cert_files[DOMUS_TLS_CERTIFICATES_MAX];
    char *key_files[DOMUS_TLS_CERTIFICATES_MAX];
    char *ca_file;       /* NULL: none was given */
    char *ciphers;       /* NULL: OpenSSL's own */
    char *cipher_suites; /* NULL: OpenSSL's own */
    uint32_t alpn_size;
    unsigned char alpn[DOMI_TLS_ALPN_MAX *
                       (DOMI_TLS_NAME_MAX + 1)]; /* the names of protocols as ALPN sends them */
    domus_budget *budget;
} domi_tls_settings;

/* Returns 0; -EINVAL; -ENOMEM: then `settings` holds nothing. */
int domi_tls_settings_copy(const domus_tls_settings *from, domi_tls_settings *settings,
                           const domi_tls_report *report);
void domi_tls_settings_clear(domi_tls_settings *settings);

#endif
