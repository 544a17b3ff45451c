/* Makes the contexts of OpenSSL that belong to one thread. Runs on that thread, or on the thread
 * that checks newly read files. */
#include "protocols/tls/shard.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#define TICKETS_SENT 1 /* tickets that a server sends a client of TLS 1.3 after the handshake */

/* --- callbacks of OpenSSL --------------------------------------------------------------------- */

/* Select the certificate for the server name that a client has sent. A name that is accepted here
 * is stored in the session, and is known again when the session is resumed. */
static int select_certificate_by_name(SSL *ssl, int *alert, void *shard_)
{
    const domi_tls_shard *shard = shard_;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

    (void)alert;
    for (uint32_t i = 0; name != NULL && i < shard->count; i++) {
        X509 *certificate = SSL_CTX_get0_certificate(shard->contexts[i]);
        if (X509_check_host(certificate, name, 0, 0, NULL) != 1)
            continue;
        return SSL_set_SSL_CTX(ssl, shard->contexts[i]) != NULL ? SSL_TLSEXT_ERR_OK
                                                                : SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    return SSL_TLSEXT_ERR_NOACK;
}

static int select_protocol_by_alpn(SSL *ssl, const unsigned char **ret_name,
                                   unsigned char *ret_size, const unsigned char *offered,
                                   unsigned int offered_size, void *settings_)
{
    const domi_tls_settings *settings = settings_;
    unsigned char *name;

    (void)ssl;
    if (SSL_select_next_proto(&name, ret_size, settings->alpn, settings->alpn_size, offered,
                              offered_size) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *ret_name = name;
    return SSL_TLSEXT_ERR_OK;
}

static int begin_to_seal_or_open_ticket(SSL *ssl, unsigned char *name, unsigned char *iv,
                                        EVP_CIPHER_CTX *sealer, EVP_MAC_CTX *mac, int seals)
{
    const domi_tls_shard *shard = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

    int found = domi_tls_tickets_begin_seal_or_open(shard->tickets, shard->cipher, name, iv, sealer,
                                                    mac, seals != 0);

    /* 2 means that the client gets a new ticket; TLS 1.3 needs this, because a client uses each
     * ticket once */
    return found == 1 && !seals && SSL_version(ssl) == TLS1_3_VERSION ? 2 : found;
}

/* Accept or refuse the session of a client's ticket. Each resumption brings a new ticket, so a
 * client could go on for ever without showing its certificate again. Therefore a session ends when
 * the client's certificate does (RFC 8446, 4.6.1). */
static SSL_TICKET_RETURN accept_or_refuse_session_of_ticket(SSL *ssl, SSL_SESSION *session,
                                                            const unsigned char *name,
                                                            size_t name_size,
                                                            SSL_TICKET_STATUS status, void *none)
{
    const X509 *shown = session != NULL ? SSL_SESSION_get0_peer(session) : NULL;

    (void)ssl, (void)name, (void)name_size, (void)none;
    if (shown != NULL && X509_cmp_current_time(X509_get0_notAfter(shown)) <= 0)
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    return status == SSL_TICKET_SUCCESS         ? SSL_TICKET_RETURN_USE
           : status == SSL_TICKET_SUCCESS_RENEW ? SSL_TICKET_RETURN_USE_RENEW
                                                : SSL_TICKET_RETURN_IGNORE_RENEW;
}

/* Keep a session that a server has given to a client's connection with a ticket, for the server
 * that the connection names; if it names none, the session is not kept. One record may hold
 * hundreds of tickets, each of which costs much more than an empty record, so they are counted. A
 * connection from before a reload has another context than the shard has now, so its sessions
 * belong to other certificates and are not kept. */
static int count_ticket_and_keep_session(SSL *ssl, SSL_SESSION *session)
{
    domi_tls_taker *taker = SSL_get_app_data(ssl);
    domi_tls_shard *shard = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    uint64_t now_s = domi_tls_seconds_since_boot();

    taker->tickets++;
    if (taker->server == NULL || SSL_get_SSL_CTX(ssl) != shard->contexts[0])
        return 0;
    uint64_t time_s = domi_tls_seconds_to_keep_session(session, shard->settings->ticket_time_s);
    return domi_tls_keep_session(&shard->sessions, taker->server, session, now_s, now_s + time_s,
                                 shard->settings->sessions_max);
}

/* --- one context ------------------------------------------------------------------------------ */

/* Let a context use the first certificate of a text, with the others as its chain. */
static int use_certificate_chain(SSL_CTX *context, const domi_tls_text *text)
{
    BIO *bio = BIO_new_mem_buf(text->bytes, (int)text->size);
    X509 *each =
        bio != NULL ? PEM_read_bio_X509_AUX(bio, NULL, domi_tls_answer_no_password, NULL) : NULL;
    bool is_used = each != NULL && SSL_CTX_use_certificate(context, each) == 1;

    X509_free(each);
    while (is_used &&
           (each = PEM_read_bio_X509(bio, NULL, domi_tls_answer_no_password, NULL)) != NULL) {
        is_used = SSL_CTX_add0_chain_cert(context, each) == 1;
        if (!is_used)
            X509_free(each);
    }
    is_used = is_used && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    if (is_used)
        ERR_clear_error();
    BIO_free(bio);
    return is_used ? 0 : -EBADMSG;
}

static int use_private_key(SSL_CTX *context, const domi_tls_text *text,
                           const domi_tls_report *report, const char *file)
{
    BIO *bio = BIO_new_mem_buf(text->bytes, (int)text->size);
    EVP_PKEY *key =
        bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, domi_tls_answer_no_password, NULL) : NULL;
    int error = 0;

    if (bio == NULL)
        error = domi_tls_report_openssl_reason(report, -ENOMEM, file);
    else if (key == NULL)
        error = domi_tls_write_reason_and_return_error(report, -EBADMSG, file,
                                                       "no private key, or an encrypted one");
    else if (SSL_CTX_use_PrivateKey(context, key) != 1)
        error = domi_tls_report_openssl_reason(report, -EBADMSG, file);
    EVP_PKEY_free(key);
    BIO_free(bio);
    return error;
}

static int load_certificate_and_key_into_context(const domi_tls_shard *shard, SSL_CTX *context,
                                                 uint32_t index, const domi_tls_report *report)
{
    const domi_tls_settings *settings = shard->settings;

    if (index >= shard->files->count)
        return 0;
    ERR_clear_error();
    int error = use_certificate_chain(context, &shard->files->certs[index]);
    if (error != 0)
        return domi_tls_report_openssl_reason(report, error, settings->cert_files[index]);
    return use_private_key(context, &shard->files->keys[index], report, settings->key_files[index]);
}

/* Set a context's list of ciphers. OpenSSL ignores unknown names as long as one name is known, so a
 * spelling mistake would leave other ciphers than intended. So each name is first tried alone.
 * Names that the list removes ("!MD5", "-RC4") may be unknown. */
static int set_ciphers_after_check(SSL_CTX *context, const char *list,
                                   int (*set)(SSL_CTX *, const char *),
                                   const domi_tls_report *report, const char *what)
{
    char name[80], reason[120];

    for (const char *at = list; *at != '\0';) {
        size_t size = strcspn(at, ":, ");
        bool is_name = size != 0 && strchr("!-+@", *at) == NULL;
        snprintf(name, sizeof name, "%.*s", (int)size, at);
        if (is_name && (size >= sizeof name || set(context, name) != 1)) {
            int error = domi_tls_report_openssl_reason(report, -EINVAL, what);
            snprintf(reason, sizeof reason, "OpenSSL has no '%s'", name);
            return error == -EINVAL
                       ? domi_tls_write_reason_and_return_error(report, error, what, reason)
                       : error;
        }
        at += size + (at[size] != '\0');
    }
    return set(context, list) == 1 ? 0 : domi_tls_report_openssl_reason(report, -EINVAL, what);
}

/* Set the options of a context that are the same for servers and clients. */
static int set_options_of_server_and_client(const domi_tls_settings *settings, SSL_CTX *context,
                                            const domi_tls_report *report)
{
    int least = settings->min_version == DOMUS_TLS_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;

    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE |
                                     (settings->no_tickets ? SSL_OP_NO_TICKET : 0));
    SSL_CTX_clear_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_LEGACY_SERVER_CONNECT);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_cert_list(context, (long)settings->chain_max);
    SSL_CTX_set_verify_depth(context, (int)settings->depth_max);
    /* with read-ahead one read gets a whole record; the BIO shows no byte of the next record */
    SSL_CTX_set_read_ahead(context, 1);
    if (SSL_CTX_set_min_proto_version(context, least) != 1)
        return domi_tls_report_openssl_reason(report, -EINVAL, "min_version");
    int error = set_ciphers_after_check(context, settings->ciphers, SSL_CTX_set_cipher_list, report,
                                        "ciphers");
    if (error == 0 && settings->cipher_suites != NULL)
        error = set_ciphers_after_check(context, settings->cipher_suites, SSL_CTX_set_ciphersuites,
                                        report, "cipher_suites");
    return error;
}

static int set_verification_of_peers(const domi_tls_shard *shard, SSL_CTX *context)
{
    const domi_tls_settings *settings = shard->settings;

    if (settings->verify == DOMUS_TLS_VERIFY_NONE)
        return 0;
    SSL_CTX_set_verify(
        context,
        SSL_VERIFY_PEER |
            (settings->verify == DOMUS_TLS_VERIFY_REQUIRED ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
        NULL);
    SSL_CTX_set1_cert_store(context, shard->files->store);
    if (!settings->is_server)
        return 0;
    STACK_OF(X509_NAME) *names = SSL_dup_CA_list(shard->files->names);
    if (names == NULL)
        return -ENOMEM;
    SSL_CTX_set_client_CA_list(context, names);
    return 0;
}

static int configure_server_context(domi_tls_shard *shard, SSL_CTX *context)
{
    const domi_tls_settings *settings = shard->settings;

    SSL_CTX_set_timeout(context, (long)settings->ticket_time_s);
    if (SSL_CTX_set_session_id_context(context, shard->files->session_id,
                                       sizeof shard->files->session_id) != 1 ||
        SSL_CTX_set_num_tickets(context, settings->no_tickets ? 0 : TICKETS_SENT) != 1 ||
        SSL_CTX_set_tlsext_ticket_key_evp_cb(context, begin_to_seal_or_open_ticket) != 1 ||
        SSL_CTX_set_session_ticket_cb(context, NULL, accept_or_refuse_session_of_ticket, NULL) != 1)
        return -ENOMEM;
    if (settings->alpn_size != 0)
        SSL_CTX_set_alpn_select_cb(context, select_protocol_by_alpn, (void *)(uintptr_t)settings);
    SSL_CTX_set_tlsext_servername_callback(context, select_certificate_by_name);
    SSL_CTX_set_tlsext_servername_arg(context, shard);
    return 0;
}

static int configure_client_context(const domi_tls_settings *settings, SSL_CTX *context)
{
    /* A client needs this even with `no_tickets`, because count_ticket_and_keep_session() counts
     * tickets that are not kept. */
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, count_ticket_and_keep_session);
    /* unlike other functions of OpenSSL, this one returns 0 on success */
    return settings->alpn_size == 0 ||
                   SSL_CTX_set_alpn_protos(context, settings->alpn, settings->alpn_size) == 0
               ? 0
               : -ENOMEM;
}

static int make_context_of_openssl(domi_tls_shard *shard, uint32_t index,
                                   const domi_tls_report *report)
{
    const domi_tls_settings *settings = shard->settings;
    SSL_CTX *context = SSL_CTX_new(settings->is_server ? TLS_server_method() : TLS_client_method());

    if (context == NULL)
        return domi_tls_report_openssl_reason(report, -ENOMEM, "OpenSSL");
    shard->contexts[index] = context;
    shard->count = index + 1;
    SSL_CTX_set_app_data(context, shard);
    int error = set_options_of_server_and_client(settings, context, report);
    if (error == 0)
        error = load_certificate_and_key_into_context(shard, context, index, report);
    if (error != 0)
        return error;
    error = set_verification_of_peers(shard, context);
    if (error == 0)
        error = settings->is_server ? configure_server_context(shard, context)
                                    : configure_client_context(settings, context);
    return error != 0 ? domi_tls_report_openssl_reason(report, error, "OpenSSL") : 0;
}

int domi_tls_make_contexts_of_shard(domi_tls_shard *shard, const domi_tls_report *report)
{
    uint32_t count = shard->files->count != 0 ? shard->files->count : 1;
    int error = 0;

    ERR_clear_error();
    shard->cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
    if (shard->cipher == NULL)
        error = domi_tls_report_openssl_reason(report, -ENOMEM, "OpenSSL");
    for (uint32_t i = 0; error == 0 && i < count; i++)
        error = make_context_of_openssl(shard, i, report);
    if (error != 0)
        domi_tls_free_contexts_of_shard(shard);
    ERR_clear_error();
    return error;
}

void domi_tls_free_contexts_of_shard(domi_tls_shard *shard)
{
    for (uint32_t i = 0; i < shard->count; i++)
        SSL_CTX_free(shard->contexts[i]);
    shard->count = 0;
    domi_tls_remove_all_sessions(&shard->sessions);
    EVP_CIPHER_free(shard->cipher);
    shard->cipher = NULL;
}

void domi_tls_replace_contexts_of_shard(domi_tls_shard *shard, domi_tls_shard *from)
{
    domi_tls_free_contexts_of_shard(shard);
    shard->cipher = from->cipher;
    shard->count = from->count;
    for (uint32_t i = 0; i < from->count; i++) {
        SSL_CTX *context = from->contexts[i];
        shard->contexts[i] = context;
        SSL_CTX_set_app_data(context, shard);
        if (shard->settings->is_server)
            SSL_CTX_set_tlsext_servername_arg(context, shard);
    }
    from->cipher = NULL;
    from->count = 0;
}
