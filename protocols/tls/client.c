/* The client side of TLS: a connection names its server, and resumes sessions with it.
 * Thread-safety: owner thread. */
#include "protocols/tls/tls.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>

/* --- the name of the server ------------------------------------------------------------------- */

static bool is_ip_address(const char *host)
{
    unsigned char bytes[16];

    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

bool domi_tls_is_host_name(const char *host)
{
    return host[0] != '.';
}

/* Copy the name of the server in lower case, without a dot at its end, which is part of DNS but not
 * of the name (RFC 6066, 3). Returns 0; -EINVAL for a name that is too long, empty, or not the name
 * of one host. */
static int copy_name_of_server(const char *host, uint16_t port, domi_tls_peer_name *ret_server)
{
    size_t size = strlen(host);

    if (size > 1 && host[size - 1] == '.')
        size--;
    if (size == 0 || size > DOMI_TLS_HOST_MAX || !domi_tls_is_host_name(host))
        return -EINVAL;
    for (size_t i = 0; i < size; i++)
        ret_server->host[i] = (char)tolower((unsigned char)host[i]);
    ret_server->host[size] = '\0';
    ret_server->size = (uint8_t)size;
    ret_server->port = port;
    return 0;
}

/* Require that the server's certificate has this name, and send the name to the server if it is no
 * address. */
static int require_name_of_server(SSL *ssl, const char *host)
{
    int is_set;

    if (is_ip_address(host)) {
        is_set = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
    } else {
        /* the subject of a certificate is text for people and not the name of a host (RFC 9525, 2;
         * RFC 9110, 4.3.4), so it is ignored */
        SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                   X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
        is_set = SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
    }
    return is_set == 1 ? 0 : -ENOMEM;
}

/* --- sessions --------------------------------------------------------------------------------- */

static domi_tls_shard *shard_of_connection(const SSL *ssl)
{
    return SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
}

/* Remember the server of a connection, so that its sessions are kept, and offer it a session that
 * was kept before. If there is no memory, neither is done. */
static void remember_server_and_offer_kept_session(domi_tls_state *state,
                                                   const domi_tls_peer_name *server)
{
    state->taker.server = OPENSSL_memdup(server, offsetof(domi_tls_peer_name, host) + server->size);
    if (state->taker.server == NULL)
        return;
    SSL_SESSION *session = domi_tls_take_session_of_server(
        &shard_of_connection(state->ssl)->sessions, server, domi_tls_seconds_since_boot());
    domi_tls_extra *extra = session != NULL ? domi_tls_get_or_make_extra_state(state) : NULL;
    if (extra != NULL && SSL_set_session(state->ssl, session) == 1)
        extra->offered = session;
    else
        SSL_SESSION_free(session);
}

int domi_tls_set_server_of_client(const domi_tls_call *call, const char *host)
{
    domi_tls_state *state = call->state;
    const domi_tls_settings *settings = &state->tls->settings;
    domi_tls_peer_name server;
    uint16_t port;
    const char *connected = domus_wire_server(call->wire, &port);

    if (SSL_set_app_data(state->ssl, &state->taker) != 1)
        return -ENOMEM;
    if (host == NULL)
        host = connected;
    if (host == NULL)
        return settings->verify == DOMUS_TLS_VERIFY_NONE ? 0 : -EINVAL;
    int error = copy_name_of_server(host, port, &server);
    if (error == 0)
        error = require_name_of_server(state->ssl, server.host);
    if (error == 0 && !settings->no_tickets)
        remember_server_and_offer_kept_session(state, &server);
    return error;
}

void domi_tls_settle_offered_session(domi_tls_state *state)
{
    domi_tls_extra *extra = state->extra;

    if (extra == NULL || extra->offered == NULL)
        return;
    bool is_taken = state->phase == DOMI_TLS_OPEN && SSL_session_reused(state->ssl) == 1;

    if (!is_taken)
        domi_tls_remove_session_if_kept(&shard_of_connection(state->ssl)->sessions, extra->offered);
    SSL_SESSION_free(extra->offered);
    extra->offered = NULL;
}
