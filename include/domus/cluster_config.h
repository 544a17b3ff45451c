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

/* TLS of connections to servers (domus/front.h). Each text is up to 4,095 bytes. */
typedef struct domus_servers_tls_config {
    bool enabled;        /* true: the connections speak TLS; false: the other fields are not set */
    const char *ca_file; /* trusted authorities, in PEM; "" (the default): those of the machine */
    /* The certificate that is shown to servers that ask for one, in PEM, and behind it those that
     * lead to the authority; "" (the default): none. */
    const char *cert_file;
    const char *key_file; /* file of the certificate's key; "" (the default): cert_file has it */
    /* The name or IP address that each server's certificate has to have; up to 253 bytes; "" (the
     * default): the one to which the connection was made. */
    const char *server_name;
    const char *ciphers;       /* ciphers of TLS 1.2, as OpenSSL writes them; "": ECDHE with AEAD */
    const char *cipher_suites; /* ciphers of TLS 1.3; "": the defaults of OpenSSL */
    uint32_t min_version;      /* oldest version of TLS; 0: TLS 1.2 (the default); 1: TLS 1.3 */
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
    uint64_t heartbeat_ns;  /* 10 ms..10 s between two signs of life; 500 ms */
    uint64_t down_after_ns; /* twice heartbeat_ns..1 min: silence after which a node is down; 2 s */
    /* 500 ms..1 min: the lease of this node's names; 0 (the default): as down_after_ns, but at
     * least 500 ms */
    uint64_t lease_ns;
    uint64_t queued_max_bytes;  /* 64 KiB..1 GiB on the way to one node at a time; 8 MiB */
    uint64_t message_max_bytes; /* 1 KiB..512 KiB of one message between nodes; 512 KiB */
    uint32_t replicas;          /* 1..5 servers with a copy of the key-value store; 1 */
    uint32_t asks_max;          /* 1..1,048,576 asks to other nodes of each thread; 65,536 */
    uint32_t addresses_max;     /* 256..16,777,216 addresses of remote actors; 262,144 */
    domus_servers_tls_config tls;
} domus_cluster_config;

#ifdef __cplusplus
}
#endif

#endif
