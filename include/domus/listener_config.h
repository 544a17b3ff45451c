/* The configuration of a listener, an element of `listeners` in YAML (domus/config.h). Durations
 * are in nanoseconds, sizes in bytes. Within a minor version the structure stays as it is. */
#ifndef DOMUS_LISTENER_CONFIG_H
#define DOMUS_LISTENER_CONFIG_H

#include <domus/channel_options.h>

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A place at which a system accepts connections. A program serves it by its name, with
 * domus_serve() (domus/system.h). */
typedef struct domus_listener_config {
    /* name of the listener for domus_serve(); unique; 1..63 letters, digits, '-', '_' */
    const char *name;
    /* address of the listener, such as "127.0.0.1:7000", "[::1]:7000", "unix:/run/a" or
     * "unix:@name" (abstract); port 0: the kernel chooses. A socket at which nobody listens any
     * more is removed from its path before, and no other file is; it stays when the service
     * ends. */
    const char *address;
    /* Connections that may wait to be accepted: 1..65,535; the default is 4,096. The kernel caps it
     * at net.core.somaxconn. */
    uint32_t backlog;
    /* settings of the listener's channels that differ from the section `channel` */
    domus_channel_options channel;
    /* Networks from which proxies connect and send headers of the PROXY protocol (domus/listen.h),
     * such as "10.0.0.0/8, ::1"; at most 32; NULL or "" (the default): clients connect
     * themselves. */
    const char *proxy_from;
    /* Whether other processes may listen at the same port, too (SO_REUSEPORT); then the kernel
     * spreads the connections; false (the default). */
    bool shares_port;
    /* TLS before the pipelines of the listener's connections (domus/front.h). Without `cert_files`
     * they speak no TLS, and all other fields have to be NULL or "", or 0. A text is at most 4,095
     * bytes. */
    struct {
        /* Files of certificates in PEM, divided by commas, at most 64: in each the certificate
         * itself, and behind it those that lead to the authority. The first is for clients that ask
         * for no name, or for one that no certificate has. */
        const char *cert_files;
        /* Files of keys: as many as there are `cert_files`, in the same order. NULL or "" (the
         * default): each key is in the file of its certificate. */
        const char *key_files;
        /* Protocols that ALPN offers, the best first, divided by commas, at most 16: "http/1.1";
         * NULL or "" (the default): none. */
        const char *alpn;
        /* File of authorities that the certificates of clients have to lead to; NULL or "" (the
         * default): no client is asked for a certificate. */
        const char *client_ca_file;
        /* ciphers of TLS 1.2, as OpenSSL writes them; NULL or "": ECDHE with AEAD */
        const char *ciphers;
        const char *cipher_suites; /* ciphers of TLS 1.3; NULL or "": the defaults of OpenSSL */
        /* oldest version of TLS that is spoken; 0: TLS 1.2 (the default); 1: TLS 1.3 */
        uint32_t min_version;
        /* Whether a client may have no certificate, with `client_ca_file`. 1: it may, but a
         * certificate that it shows has to be right; 0 (the default): it needs one. */
        uint32_t clients_may_omit;
    } tls;
} domus_listener_config;

/* Most listeners of a system. */
#define DOMUS_LISTENERS_MAX 64

#ifdef __cplusplus
}
#endif

#endif
