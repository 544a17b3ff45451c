/* TLS 1.2 and 1.3, server and client: a byte stage that stands before any pipeline, made with
 * OpenSSL 3. It belongs to libdomus-tls; docs/tls.md shows how it is used.
 *
 *     static domus_tls *tls;                               made before the system is
 *     static domus_tls_options options;                    options.tls = tls
 *     static const domus_pipeline https = {
 *         .stages = (const domus_pipeline_stage[]){
 *             {&domus_tls_stage, &options}, {&domus_http_stage, NULL}, {NULL, NULL}}};
 *
 * A `domus_tls` is a context: certificates, keys, authorities and limits. One context serves any
 * number of pipelines, threads and systems; it is freed when they have ended.
 *
 * The stage keeps to these rules. Renegotiation, compression and early data are refused. An end of
 * the connection without close_notify is the error -ECONNABORTED, because somebody may have cut it.
 * An alert tells the peer what it has done wrong. A ClientHello is at most 16 KiB. At most
 * `quiet_max` records in a row may carry no bytes of the application. The handshake has to be done
 * within channel.headTimeout; before its first byte channel.firstByteTimeout counts. */
#ifndef DOMUS_TLS_H
#define DOMUS_TLS_H

#include <domus/budget.h>
#include <domus/channel.h>
#include <domus/front.h>
#include <domus/stage.h>
#include <domus/stage_kit.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- contexts --------------------------------------------------------------------------------- */

/* A context of TLS: certificates and settings for connections. */
typedef struct domus_tls domus_tls;

/* Versions of TLS that a context may name. */
typedef enum domus_tls_version {
    DOMUS_TLS_1_2 = 0,
    DOMUS_TLS_1_3 = 1,
} domus_tls_version;

typedef enum domus_tls_verify {
    /* the default: a client verifies as REQUIRED, and so does a server with a `ca_file`; other
     * servers as NONE */
    DOMUS_TLS_VERIFY_DEFAULT = 0,
    DOMUS_TLS_VERIFY_NONE = 1, /* any peer is accepted, whatever its certificate: for tests alone */
    /* for servers: a client may have no certificate, but one that it shows is verified */
    DOMUS_TLS_VERIFY_OPTIONAL = 2,
    DOMUS_TLS_VERIFY_REQUIRED = 3,
} domus_tls_verify;

/* A certificate: files in PEM. `cert_file` begins with the certificate itself, and those that lead
 * to the authority follow. The key is not encrypted. Each file is at most 1 MiB. */
typedef struct domus_tls_certificate {
    const char *cert_file;
    const char *key_file; /* file of the certificate's key; NULL: the key is in `cert_file`, too */
} domus_tls_certificate;

/* Most certificates of a context of a server. */
#define DOMUS_TLS_CERTIFICATES_MAX 64u

/* The settings of a context of TLS. All of them are copied. Fields of 0 have the defaults that are
 * named. The structure grows only at its end, with a minor version. */
typedef struct domus_tls_settings {
    domus_role role; /* role of this side: DOMUS_ROLE_SERVER or DOMUS_ROLE_CLIENT */

    /* The certificates: 1..64 of a server. A client that asks for a name gets the first certificate
     * that has this name, and otherwise the first of all. 0 or 1 of a client, which it shows to
     * servers that ask. */
    const domus_tls_certificate *certificates;
    uint32_t certificates_count;

    /* File of authorities that a peer's certificate has to lead to, in PEM, up to 16 MiB. NULL: a
     * client takes the authorities of the system, a server asks no client for a certificate. A
     * server tells their names to its clients; names of more than 32 KiB in all are not told, so a
     * client cannot choose by them which of its certificates it shows. */
    const char *ca_file;
    domus_tls_verify verify;
    /* most certificates between that of the peer and the authority, 1..16; 0 means 8 */
    uint32_t depth_max;
    /* most bytes of all certificates that a peer sends, 1024..131072; 0 means 65536 */
    uint32_t chain_max;

    domus_tls_version min_version; /* oldest version of TLS that is spoken; 0: TLS 1.2 */
    /* ciphers of TLS 1.2, as OpenSSL writes them; NULL: ECDHE with AEAD. A name that OpenSSL
     * does not know: -EINVAL */
    const char *ciphers;
    const char *cipher_suites; /* ciphers of TLS 1.3; NULL: the defaults of OpenSSL */

    /* Protocols by their names in ALPN, the best first, up to a NULL; at most 16, each of 1..64
     * bytes. NULL: none. A client that offers only others is refused by a server that has some. */
    const char *const *alpn;

    /* Whether sessions are not resumed by tickets (`no_tickets`). A ticket is good for
     * `ticket_time_s` seconds, 60..86400; 0 means 7200. Its key is made anew when it is as old, and
     * the key before is still accepted for the same time. A client that resumes gets a new ticket,
     * so it may come back again and again, but not after the certificate that it has shown has
     * ended. */
    bool no_tickets;
    uint32_t ticket_time_s;
    /* A context whose ticket keys this context uses, too, so that sessions of both are resumed by
     * both, if they ask the same of their clients. NULL: this context has keys of its own. */
    domus_tls *tickets_of;

    /* Most bytes that may be written before the handshake is done; they wait for it. 1..1048576; 0
     * means 262144. With more the channel is reset (-ENOBUFS). */
    uint32_t held_max;

    /* A bound on the memory of the connections, by estimate: 48 KiB for one whose handshake is
     * under way, then 16 KiB, and 34 KiB for each that keeps its buffers (`buffers_max`). A
     * connection that finds no room is reset (-ENOMEM). NULL: nothing counts. The budget stays
     * the caller's. */
    domus_budget *budget;

    /* Sessions of a client that each thread keeps to resume them, those that were used last, and at
     * most 8 of one server (name and port); 1..4096; 0 means 64. Each is kept for `ticket_time_s`,
     * but no longer than its server has said or the server's certificate holds. A session of TLS
     * 1.3 is used once. All are forgotten when the files are read again; with `no_tickets` none is
     * kept. */
    uint32_t sessions_max;

    /* Most records in a row that carry no bytes of the application, such as those of a handshake,
     * of new keys and of nothing, and tickets of a server, of which one record may hold many.
     * 16..1024; 0 means 32. With more the channel is ended (-EPROTO). */
    uint32_t quiet_max;

    /* Most connections of each thread, those that have read last, that keep OpenSSL's buffers
     * between two records, which saves the time to allocate them: 34 KiB each, by estimate. 1..64;
     * 0 means 64. No further one does while `budget` has no room for it, or memory is full. */
    uint32_t buffers_max;
} domus_tls_settings;

/* Make a context: read all files, and try all settings.
 *
 * Returns 0; -EINVAL for a wrong value; -ENOENT, -EACCES and their like when a file cannot be read;
 * -EBADMSG when what it holds is wrong; -ENOMEM. Then `error` gets one line that names the field or
 * the file, and the reason (NUL-terminated, cut at `error_size` bytes; it may be NULL if the size
 * is 0). Thread-safety: any thread. It reads files, so it belongs before the system starts, or into
 * blocking work (domus/blocking.h). */
DOMUS_API int domus_tls_new(const domus_tls_settings *settings, char *error, size_t error_size,
                            domus_tls **ret_tls);

/* Read the files of the settings again. New connections get what the files hold now, and open
 * connections go on. If anything is wrong, all stays as it was. If several threads call this at
 * once, what the call that began last has read stays. Tickets stay good, but those of clients whose
 * certificates were verified by another `ca_file`.
 *
 * Returns, and thread-safety: as domus_tls_new(). */
DOMUS_API int domus_tls_reload(domus_tls *tls, char *error, size_t error_size);

/* Make a new ticket key now, before its time. The key before is still accepted, older keys are not:
 * to be safe from a key that was stolen, call this twice. Returns 0; -ENOMEM. Thread-safety: any
 * thread. */
DOMUS_API int domus_tls_rotate(domus_tls *tls);

/* Free a context. No channel, kit or pipeline may use it any more. NULL is allowed. */
DOMUS_API void domus_tls_free(domus_tls *tls);

/* --- listeners -------------------------------------------------------------------------------- */

/* Make the context of a listener from its settings (`tls` in domus/listener_config.h). The
 * texts are copied.
 *
 * Returns as domus_tls_new(), and then `error` has a line that begins with the key of the listener:
 * "tls.certFile: /etc/web/a.pem: No such file or directory"; -EINVAL also when the listener has no
 * certificate. Thread-safety: as domus_tls_new(). */
DOMUS_API int domus_tls_new_of_listener(const domus_listener_config *listener, char *error,
                                        size_t error_size, domus_tls **ret_tls);

/* TLS in front of the listeners that have `tls.certFile`, for `front` of a
 * domus_program (domus/main.h). */
DOMUS_API extern const domus_front domus_tls_front;

/* --- the stage -------------------------------------------------------------------------------- */

/* Options of domus_tls_stage, which may not be NULL. They and the context have to stay valid as
 * long as the pipeline is used. */
typedef struct domus_tls_options {
    domus_tls *tls;
    /* Name of the server, for a client, 1..253 bytes, or its IP address as text. It is sent to the
     * server (SNI, if it is no address), and the server's certificate has to have it among its
     * other names (subjectAltName); its subject does not count. NULL: the name to which the
     * connection was made (domus_connect()); a channel without such a name, such as one of a Unix
     * socket, is reset with -EINVAL, unless the context says DOMUS_TLS_VERIFY_NONE. A dot at the
     * end is left away; a name that begins with one is refused (-EINVAL). */
    const char *host;
} domus_tls_options;

/* The stage of TLS. The errors with which it ends a channel: -EPROTO, the peer has broken the rules
 * of TLS, or nothing suits both; -EACCES, the certificate of the peer was not accepted, or it has
 * not accepted this side's; -EBADMSG, bytes were changed on their way; -ECONNABORTED, the peer has
 * ended the connection without close_notify; -ENOBUFS, `held_max`; -ENOTCONN, this side has closed
 * before the handshake was done, and bytes were waiting; -ENOMEM. */
DOMUS_API extern const domus_stage domus_tls_stage;

/* --- what a connection has agreed on ---------------------------------------------------------- */

/* Facts about a connection of TLS. The texts are valid as long as the structure. */
typedef struct domus_tls_info {
    bool done;        /* whether the handshake is done; the fields below are set then */
    bool resumed;     /* whether the session of an earlier connection was resumed by a ticket */
    bool verified;    /* whether the peer has shown a certificate, which was verified */
    char version[16]; /* version of TLS, such as "TLSv1.3" */
    char cipher[64];  /* cipher of the connection, such as "TLS_AES_256_GCM_SHA384" */
    char alpn[65];    /* protocol that the peers have agreed on by ALPN; "": none */
    char name[256];   /* name of the server that the client has asked for; "": none */
    /* reason for which the connection has failed, in words of OpenSSL; "": none */
    char failure[160];
} domus_tls_info;

/* Get the facts about a connection of TLS. Returns 0; -ENOENT for another actor than that of the
 * channel, when no TLS stands in its pipeline, or when the connection is gone. Thread-safety: only
 * from a handler of the channel's own behaviour, with its stack. */
DOMUS_API int domus_tls_info_of(domus_stack *stack, domus_channel *channel,
                                domus_tls_info *ret_info);

/* The certificate that the peer of a connection has shown. */
typedef struct domus_tls_peer {
    domus_slice der;     /* the whole certificate in DER */
    domus_slice subject; /* subject of the certificate, as RFC 2253 writes it: "CN=a,O=b" */
    /* Other names of the certificate, one a line: "DNS:a.example\n", "IP:127.0.0.1\n",
     * "email:a@b\n", "URI:c\n". Names with bytes that do not print are left out. */
    domus_slice names;
} domus_tls_peer;

/* Get the certificate of the peer, at any time after the handshake.
 *
 * Ownership: the slices are the caller's (domus_tls_peer_free()).
 * Returns as domus_tls_info_of(); -ENODATA when the peer has shown none; -ENOMEM. */
DOMUS_API int domus_tls_peer_of(domus_stack *stack, domus_channel *channel,
                                domus_tls_peer *ret_peer);
DOMUS_API void domus_tls_peer_free(domus_tls_peer *peer);

/* Do what domus_tls_info_of() and domus_tls_peer_of() do, for stages in a kit (domus/stage_kit.h).
 * Return as these. */
DOMUS_API int domus_tls_kit_info(domus_stage_kit *kit, domus_tls_info *ret_info);
DOMUS_API int domus_tls_kit_peer(domus_stage_kit *kit, domus_tls_peer *ret_peer);

#ifdef __cplusplus
}
#endif

#endif
