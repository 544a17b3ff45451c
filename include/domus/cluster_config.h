/* The configuration of a node of a cluster, the section `cluster` in YAML (domus/config.h). It is
 * for programs that are in a cluster (domus/cluster.h); in others all stays at its default. Times
 * are in nanoseconds, sizes in bytes. Within a minor version the structure stays as it is.
 *
 * A text that is NULL is as good as "". */
#ifndef DOMUS_CLUSTER_CONFIG_H
#define DOMUS_CLUSTER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* TLS of a node's connections to its servers (domus/front.h). Each text is up to 4,095 bytes. */
typedef struct domus_servers_tls_config {
    /* whether the connections speak TLS; if not, the other fields are not set */
    bool enabled;
    /* file of trusted authorities, in PEM; "" (the default): those of the machine */
    const char *ca_file;
    /* File of the certificate that this node shows to servers that ask for one, in PEM, and behind
     * it those that lead to the authority; "" (the default): none. */
    const char *cert_file;
    /* file of the certificate's key; "" (the default): the key is in cert_file */
    const char *key_file;
    /* The name or IP address that each server's certificate has to have; up to 253 bytes; "" (the
     * default): the one to which the connection was made. */
    const char *server_name;
    /* ciphers of TLS 1.2, as OpenSSL writes them; "" (the default): ECDHE with AEAD */
    const char *ciphers;
    /* ciphers of TLS 1.3; "" (the default): those of OpenSSL by default */
    const char *cipher_suites;
    /* oldest version of TLS that is spoken; 0: TLS 1.2 (the default); 1: TLS 1.3 */
    uint32_t min_version;
} domus_servers_tls_config;

/* The section `cluster` of the configuration. */
typedef struct domus_cluster_config {
    /* Name of the cluster, 0..63 letters, digits, '-' and '_'; "" (the default): the name that the
     * program gives, or else its own. */
    const char *name;
    /* Name of this node, 1..63 letters, digits, '-', '_' and '.'; "auto" (the default): the host's
     * name and a random number. */
    const char *node;
    /* Servers, up to 32, with "," between them, as of domus_nats_options (domus/nats.h); up to
     * 4,095 bytes; "" (the default): this machine alone. */
    const char *servers;
    /* The credentials of this node at the servers. A text is up to 255 bytes, the name of a file up
     * to 4,095; all are "" by default. A file has the secret as its one line. At most one of these:
     * user (with a password), token, and a seed (with or without a JWT). */
    const char *user, *password, *password_file;
    const char *token, *token_file;
    const char *nkey_seed_file, *jwt_file;
    /* 10 ms..10 s: time between two signs of life of this node; default 500 ms */
    uint64_t heartbeat_ns;
    /* twice heartbeat_ns..1 min: silence after which a node is down; default 2 s */
    uint64_t down_after_ns;
    /* 500 ms..1 min: duration of the lease by which this node has its names; 0 (the default): as
     * down_after_ns, but at least 500 ms */
    uint64_t lease_ns;
    /* 64 KiB..1 GiB: most bytes on the way to one node at a time; default 8 MiB */
    uint64_t queued_max_bytes;
    /* 1 KiB..512 KiB: most bytes of one message between nodes; default 512 KiB */
    uint64_t message_max_bytes;
    /* 1..5: servers that have a copy of the key-value store; default 1 */
    uint32_t replicas;
    /* 1..1,048,576: most asks to other nodes on each thread; default 65,536 */
    uint32_t asks_max;
    /* 256..16,777,216: most addresses of remote actors; default 262,144 */
    uint32_t addresses_max;
    domus_servers_tls_config tls; /* TLS of the node's connections to its servers */
} domus_cluster_config;

#ifdef __cplusplus
}
#endif

#endif
