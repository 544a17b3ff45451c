/* Keeps the TLS sessions of a client (sessions.h). */
#include "protocols/tls/sessions.h"

#include <openssl/crypto.h>
#include <openssl/x509.h>
#include <string.h>

/* bytes of a session with its ticket and certificate, in OpenSSL's encoding, at most */
#define BYTES_MAX 16384
#define DAY_S     86400

struct domi_tls_session {
    domi_tls_session *older;
    SSL_SESSION *session;
    uint64_t until_s;
    uint16_t port;
    uint8_t size;
    char host[]; /* the name of the session's server, of `size` bytes */
};

static bool is_session_of_server(const domi_tls_session *entry, const domi_tls_peer_name *server)
{
    return entry->port == server->port && entry->size == server->size &&
           memcmp(entry->host, server->host, server->size) == 0;
}

static bool is_session_used_once(const SSL_SESSION *session)
{
    return SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION;
}

/* Remove the entry of a session, to which `place` points, from the list. Returns the session, which
 * the caller then owns. */
static SSL_SESSION *remove_session(domi_tls_sessions *sessions, domi_tls_session **place)
{
    domi_tls_session *entry = *place;
    SSL_SESSION *session = entry->session;

    *place = entry->older;
    sessions->count--;
    OPENSSL_free(entry);
    return session;
}

/* Remove all sessions that are too old, and the oldest sessions of this server that are more than
 * `most`. */
static void remove_excess_sessions(domi_tls_sessions *sessions, const domi_tls_peer_name *server,
                                   uint64_t now_s, uint32_t most)
{
    domi_tls_session **place = &sessions->newest;
    uint32_t count = 0;

    while (*place != NULL) {
        bool is_over =
            (*place)->until_s <= now_s || (is_session_of_server(*place, server) && ++count > most);
        if (is_over)
            SSL_SESSION_free(remove_session(sessions, place));
        else
            place = &(*place)->older;
    }
}

/* Remove the oldest sessions of the list that are more than `most`. */
static void remove_oldest_sessions(domi_tls_sessions *sessions, uint32_t most)
{
    domi_tls_session **place = &sessions->newest;

    for (uint32_t i = 0; i < most && *place != NULL; i++)
        place = &(*place)->older;
    while (*place != NULL)
        SSL_SESSION_free(remove_session(sessions, place));
}

bool domi_tls_keep_session(domi_tls_sessions *sessions, const domi_tls_peer_name *server,
                           SSL_SESSION *session, uint64_t now_s, uint64_t until_s, uint32_t most)
{
    if (until_s <= now_s || most == 0 || SSL_SESSION_is_resumable(session) != 1 ||
        i2d_SSL_SESSION(session, NULL) > BYTES_MAX)
        return false;
    domi_tls_session *entry = OPENSSL_malloc(sizeof *entry + server->size);
    if (entry == NULL)
        return false;
    *entry = (domi_tls_session){.older = sessions->newest,
                                .session = session,
                                .until_s = until_s,
                                .port = server->port,
                                .size = server->size};
    memcpy(entry->host, server->host, server->size);
    sessions->newest = entry;
    sessions->count++;
    remove_excess_sessions(sessions, server, now_s,
                           is_session_used_once(session) ? DOMI_TLS_SESSIONS_EACH : 1);
    remove_oldest_sessions(sessions, most);
    return true;
}

SSL_SESSION *domi_tls_take_session_of_server(domi_tls_sessions *sessions,
                                             const domi_tls_peer_name *server, uint64_t now_s)
{
    domi_tls_session **place = &sessions->newest;

    while (*place != NULL) {
        domi_tls_session *entry = *place;
        if (!is_session_of_server(entry, server)) {
            place = &entry->older;
        } else if (entry->until_s <= now_s || SSL_SESSION_is_resumable(entry->session) != 1) {
            SSL_SESSION_free(remove_session(sessions, place));
        } else if (is_session_used_once(entry->session)) {
            return remove_session(sessions, place);
        } else {
            return SSL_SESSION_up_ref(entry->session) == 1 ? entry->session : NULL;
        }
    }
    return NULL;
}

void domi_tls_remove_session_if_kept(domi_tls_sessions *sessions, const SSL_SESSION *session)
{
    domi_tls_session **place = &sessions->newest;

    while (*place != NULL && (*place)->session != session)
        place = &(*place)->older;
    if (*place != NULL)
        SSL_SESSION_free(remove_session(sessions, place));
}

void domi_tls_remove_all_sessions(domi_tls_sessions *sessions)
{
    remove_oldest_sessions(sessions, 0);
}

/* Returns for how many seconds a certificate is still valid. */
static uint64_t seconds_certificate_stays_valid(const X509 *certificate)
{
    int days, seconds;

    if (ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(certificate)) != 1 || days < 0 ||
        seconds < 0)
        return 0;
    return (uint64_t)days * DAY_S + (uint64_t)seconds;
}

uint64_t domi_tls_seconds_to_keep_session(const SSL_SESSION *session, uint64_t most)
{
    uint64_t hint_s = SSL_SESSION_get_ticket_lifetime_hint(session);
    const X509 *certificate = SSL_SESSION_get0_peer((SSL_SESSION *)(uintptr_t)session);
    uint64_t time_s = most;

    /* for TLS 1.2 a lifetime hint of 0 means that the server gave no lifetime */
    if ((hint_s != 0 || is_session_used_once(session)) && hint_s < time_s)
        time_s = hint_s;
    if (certificate != NULL && seconds_certificate_stays_valid(certificate) < time_s)
        time_s = seconds_certificate_stays_valid(certificate);
    return time_s;
}
