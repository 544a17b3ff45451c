/* TLS: sessions that a client keeps: for which servers they are used, how often, and for how
 * long. */
#include "tests/support/suite.h"
#include "tests/tls/talk.h"

#include "protocols/tls/tls.h"

#include <errno.h>
#include <string.h>

static domt_pki pki;
static domt_side server;
static domt_side client;
static domus_tls *server_tls;
static domus_tls *client_tls;

/* Make the contexts of a server, and of a client with these settings; NULL: all defaults. */
static void make_server_and_client_contexts(const domus_tls_settings *own)
{
    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki,
                               &(domt_wish){.file = "a", .names = "DNS:a.example,DNS:b.example"});
    domus_tls_settings settings = domt_make_server_settings(&pki, "a");
    server_tls = domt_make_tls_context(&settings);
    settings = domt_make_client_settings(&pki);
    settings.no_tickets = own != NULL && own->no_tickets;
    settings.sessions_max = own != NULL ? own->sessions_max : 0;
    client_tls = domt_make_tls_context(&settings);
}

static void free_server_and_client_contexts(void)
{
    domus_tls_free(client_tls);
    domus_tls_free(server_tls);
    domt_pki_free_authority(&pki);
}

/* Open a server that supports at most this version of TLS. */
static void open_server_of_version(domt_side *side, int version)
{
    ck_assert_int_eq(domt_side_open_by_role(side, server_tls, NULL), 0);
    domi_tls_state *state = domus_stage_kit_state(side->kit, &domus_tls_stage);
    ck_assert_int_eq(SSL_set_max_proto_version(state->ssl, version), 1);
}

static void open_client_to_server(domt_side *side, const char *name, uint16_t port)
{
    ck_assert_int_eq(domt_side_open_client_to(side, client_tls, NULL, name, port), 0);
}

static void close_client_and_server(domt_side *one, domt_side *other)
{
    domt_side_close_connection(one);
    domt_side_close_connection(other);
}

/* Let client and server exchange a line. Returns whether the connection has resumed a session. */
static bool exchange_line_and_tell_if_resumed(domt_side *from, domt_side *to)
{
    domt_side_send_line(from, "hello");
    domt_side_exchange_bytes_with_other(from, to, 0);
    ck_assert_str_eq(from->last, "hello");
    bool is_resumed = domt_side_tls_info(from).resumed;
    ck_assert(domt_side_tls_info(to).resumed == is_resumed);
    ck_assert(domt_side_tls_info(from).verified);
    return is_resumed;
}

/* Connect to a server of this name, exchange a line, and close. Returns whether a session was
 * resumed. */
static bool connect_once_and_tell_if_resumed(int version, const char *name, uint16_t port)
{
    open_server_of_version(&server, version);
    open_client_to_server(&client, name, port);
    bool is_resumed = exchange_line_and_tell_if_resumed(&client, &server);
    close_client_and_server(&client, &server);
    return is_resumed;
}

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

DOMT_TEST(sessions_resume_only_with_their_server)
{
    for (int i = 0; i < 2; i++) {
        make_server_and_client_contexts(NULL);
        ck_assert(!connect_once_and_tell_if_resumed(versions[i], "a.example", 443));
        ck_assert(connect_once_and_tell_if_resumed(versions[i], "a.example", 443));
        /* a name in other letters and with a dot at its end is the same server */
        ck_assert(connect_once_and_tell_if_resumed(versions[i], "A.Example.", 443));
        ck_assert(!connect_once_and_tell_if_resumed(versions[i], "b.example", 443));
        ck_assert(!connect_once_and_tell_if_resumed(versions[i], "a.example", 444));
        ck_assert(connect_once_and_tell_if_resumed(versions[i], "a.example", 443));
        ck_assert(connect_once_and_tell_if_resumed(versions[i], "b.example", 443));
        free_server_and_client_contexts();
    }
}

DOMT_TEST(session_of_tls_1_3_is_used_only_once)
{
    domt_side other_client, other_server;

    for (int i = 0; i < 2; i++) {
        make_server_and_client_contexts(NULL);
        ck_assert(!connect_once_and_tell_if_resumed(versions[i], "a.example", 443));
        open_server_of_version(&server, versions[i]);
        open_server_of_version(&other_server, versions[i]);
        /* Both clients begin before either has got a new ticket. */
        open_client_to_server(&client, "a.example", 443);
        open_client_to_server(&other_client, "a.example", 443);
        ck_assert(exchange_line_and_tell_if_resumed(&client, &server));
        ck_assert(exchange_line_and_tell_if_resumed(&other_client, &other_server) ==
                  (versions[i] == TLS1_2_VERSION));
        close_client_and_server(&client, &server);
        close_client_and_server(&other_client, &other_server);
        /* the first two connections have left two tickets, one for each of the new clients */
        open_client_to_server(&client, "a.example", 443);
        open_client_to_server(&other_client, "a.example", 443);
        open_server_of_version(&server, versions[i]);
        open_server_of_version(&other_server, versions[i]);
        ck_assert(exchange_line_and_tell_if_resumed(&client, &server));
        ck_assert(exchange_line_and_tell_if_resumed(&other_client, &other_server));
        close_client_and_server(&client, &server);
        close_client_and_server(&other_client, &other_server);
        free_server_and_client_contexts();
    }
}

DOMT_TEST(reload_of_files_ends_kept_sessions)
{
    for (int i = 0; i < 2; i++) {
        make_server_and_client_contexts(NULL);
        ck_assert(!connect_once_and_tell_if_resumed(versions[i], "a.example", 443));
        ck_assert_int_eq(domus_tls_reload(client_tls, NULL, 0), 0);
        ck_assert(!connect_once_and_tell_if_resumed(versions[i], "a.example", 443));
        /* A connection that began before the reload of the files gets its session after it, and the
         * session is not kept. */
        open_server_of_version(&server, versions[i]);
        open_client_to_server(&client, "b.example", 443);
        ck_assert_int_eq(domus_tls_reload(client_tls, NULL, 0), 0);
        domt_side other;
        /* this connection makes the thread use the reloaded context */
        open_client_to_server(&other, "c.example", 443);
        domt_side_close_connection(&other);
        ck_assert(!exchange_line_and_tell_if_resumed(&client, &server));
        close_client_and_server(&client, &server);
        ck_assert(!connect_once_and_tell_if_resumed(versions[i], "b.example", 443));
        ck_assert(connect_once_and_tell_if_resumed(versions[i], "b.example", 443));
        free_server_and_client_contexts();
    }
}

/* Begin a handshake with the server `name`, and let it fail. */
static void fail_handshake_with_server(const char *name)
{
    open_client_to_server(&client, name, 443);
    domt_side_feed_in_pieces(&client, "\x15\x03\x03\x00\x02\x02\x28", 7, 0);
    ck_assert_int_eq(client.error, -EPROTO);
    domt_side_close_connection(&client);
}

DOMT_TEST(session_of_failed_handshake_is_forgotten)
{
    for (int i = 0; i < 2; i++) {
        make_server_and_client_contexts(NULL);
        ck_assert(!connect_once_and_tell_if_resumed(versions[i], "a.example", 443));
        ck_assert(!connect_once_and_tell_if_resumed(versions[i], "b.example", 443));
        fail_handshake_with_server("a.example");
        ck_assert(!connect_once_and_tell_if_resumed(versions[i], "a.example", 443));
        ck_assert(connect_once_and_tell_if_resumed(versions[i], "b.example", 443));
        open_client_to_server(&client, "b.example",
                              443); /* the server does not answer this handshake */
        domt_side_close_connection(&client);
        ck_assert(!connect_once_and_tell_if_resumed(versions[i], "b.example", 443));
        /* After two changes of keys the server cannot read the client's ticket, and the connection
         * succeeds without it. */
        ck_assert_int_eq(domus_tls_rotate(server_tls), 0);
        ck_assert_int_eq(domus_tls_rotate(server_tls), 0);
        ck_assert(!connect_once_and_tell_if_resumed(versions[i], "a.example", 443));
        ck_assert(connect_once_and_tell_if_resumed(versions[i], "a.example", 443));
        free_server_and_client_contexts();
    }
}

DOMT_TEST(kept_sessions_have_a_limit)
{
    static const domus_tls_settings one = {.sessions_max = 1}, none = {.no_tickets = true};
    static const domus_tls_settings wrong = {.role = DOMUS_ROLE_CLIENT, .sessions_max = 4097};
    domus_tls *tls;
    char error[64];

    for (int i = 0; i < 2; i++) {
        make_server_and_client_contexts(&one);
        ck_assert(!connect_once_and_tell_if_resumed(versions[i], "a.example", 443));
        ck_assert(connect_once_and_tell_if_resumed(versions[i], "a.example", 443));
        ck_assert(!connect_once_and_tell_if_resumed(versions[i], "b.example", 443));
        ck_assert(!connect_once_and_tell_if_resumed(versions[i], "a.example", 443));
        free_server_and_client_contexts();
        make_server_and_client_contexts(&none);
        ck_assert(!connect_once_and_tell_if_resumed(versions[i], "a.example", 443));
        ck_assert(!connect_once_and_tell_if_resumed(versions[i], "a.example", 443));
        free_server_and_client_contexts();
    }
    ck_assert_int_eq(domus_tls_new(&wrong, error, sizeof error, &tls), -EINVAL);
    ck_assert_str_eq(error, "sessions_max: out of its range");
}

/* --- the list --------------------------------------------------------------------------------- */

static const domi_tls_peer_name names[] = {{1, 1, "a"}, {1, 1, "b"}, {2, 1, "a"}, {1, 2, "ab"}};

static SSL_SESSION *make_resumable_session(int version)
{
    SSL_SESSION *session = SSL_SESSION_new();
    static const unsigned char id[] = {1};

    ck_assert(session != NULL);
    ck_assert_int_eq(SSL_SESSION_set_protocol_version(session, version), 1);
    /* OpenSSL cannot resume a session without an id. */
    ck_assert_int_eq(SSL_SESSION_set1_id(session, id, 1), 1);
    return session;
}

static bool keep_new_session_in_list(domi_tls_sessions *list, int version, int name,
                                     uint64_t until_s, uint32_t most)
{
    SSL_SESSION *session = make_resumable_session(version);
    bool is_kept = domi_tls_keep_session(list, &names[name], session, 100, until_s, most);

    if (!is_kept)
        SSL_SESSION_free(session);
    return is_kept;
}

/* Returns how many kept sessions of a server can be taken, and takes them. */
static uint32_t take_and_count_sessions(domi_tls_sessions *list, int name, uint64_t now_s)
{
    uint32_t count = 0;
    SSL_SESSION *session = domi_tls_take_session_of_server(list, &names[name], now_s);

    while (session != NULL && count < 100) {
        count++;
        SSL_SESSION_free(session);
        session = domi_tls_take_session_of_server(list, &names[name], now_s);
    }
    return count;
}

DOMT_TEST(kept_session_expires)
{
    domi_tls_sessions list = {0};

    ck_assert(!keep_new_session_in_list(&list, TLS1_3_VERSION, 0, 100, 9));
    ck_assert(keep_new_session_in_list(&list, TLS1_3_VERSION, 0, 101, 9));
    ck_assert_uint_eq(take_and_count_sessions(&list, 0, 101), 0);
    ck_assert(keep_new_session_in_list(&list, TLS1_3_VERSION, 0, 101, 9));
    ck_assert_uint_eq(take_and_count_sessions(&list, 0, 100), 1);
    ck_assert_uint_eq(list.count, 0);
}

DOMT_TEST(kept_sessions_of_one_server_are_limited)
{
    domi_tls_sessions list = {0};

    for (int i = 0; i < 12; i++)
        ck_assert(keep_new_session_in_list(&list, TLS1_3_VERSION, 0, 200, 20));
    for (int i = 0; i < 3; i++)
        ck_assert(keep_new_session_in_list(&list, TLS1_2_VERSION, 1, 200, 20));
    ck_assert(keep_new_session_in_list(&list, TLS1_3_VERSION, 2, 200, 20));
    ck_assert(keep_new_session_in_list(&list, TLS1_3_VERSION, 3, 200, 20));
    ck_assert_uint_eq(list.count, DOMI_TLS_SESSIONS_EACH + 3);
    ck_assert_uint_eq(take_and_count_sessions(&list, 0, 100), DOMI_TLS_SESSIONS_EACH);
    ck_assert_uint_eq(take_and_count_sessions(&list, 2, 100), 1);
    /* The oldest session of the list, which belongs to server 1, is removed. */
    ck_assert(keep_new_session_in_list(&list, TLS1_3_VERSION, 0, 200, 2));
    ck_assert_uint_eq(list.count, 2);
    ck_assert_uint_eq(take_and_count_sessions(&list, 3, 100), 1);
    ck_assert_ptr_null(domi_tls_take_session_of_server(&list, &names[1], 100));
    domi_tls_remove_all_sessions(&list);
    ck_assert_uint_eq(list.count, 0);
}

DOMT_TEST(session_ends_when_server_certificate_expires)
{
    domt_wish wish = {.file = "a", .names = "DNS:a.example", .ends_s = 90};

    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &wish);
    domus_tls_settings settings = domt_make_server_settings(&pki, "a");
    server_tls = domt_make_tls_context(&settings);
    settings = domt_make_client_settings(&pki);
    client_tls = domt_make_tls_context(&settings);
    for (int i = 0; i < 2; i++) {
        open_server_of_version(&server, versions[i]);
        open_client_to_server(&client, "a.example", 443);
        ck_assert(!exchange_line_and_tell_if_resumed(&client, &server));
        const domi_tls_state *state = domus_stage_kit_state(client.kit, &domus_tls_stage);
        const SSL_SESSION *session = SSL_get0_session(state->ssl);
        uint64_t time_s = domi_tls_seconds_to_keep_session(session, 7200);
        ck_assert(time_s > 30 && time_s <= 90);
        ck_assert_uint_eq(domi_tls_seconds_to_keep_session(session, 5), 5);
        close_client_and_server(&client, &server);
        ck_assert_int_eq(domus_tls_reload(client_tls, NULL, 0), 0);
    }
    free_server_and_client_contexts();
}

DOMT_SUITE(60)
