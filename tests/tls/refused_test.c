/* TLS: which bytes, certificates and names are refused, and the error that the other side gets. */
#include "tests/support/suite.h"
#include "tests/tls/raw.h"

#include <domus/budget.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* TLS: bytes that were damaged or are wrong on purpose, and the limits for a peer. */

static domt_pki pki;
static domt_side server;
static domt_side client;
static domt_raw raw;

static void set_up(void)
{
    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    domus_tls_settings settings = domt_make_server_settings(&pki, "a");
    ck_assert_int_eq(domt_side_open_by_role(&server, domt_make_tls_context(&settings), NULL), 0);
}

static void tear_down(void)
{
    domt_side_close_connection(&server);
    domus_tls_free(server.options.tls);
    domt_pki_free_authority(&pki);
}

/* Feed bytes to a new server, and check the error and the alert with which it answers. */
static void expect_refused(const char *bytes, size_t size, int error, int alert)
{
    size_t answered;

    domt_side_close_connection(&server);
    ck_assert_int_eq(domt_side_open_by_role(&server, server.options.tls, NULL), 0);
    domt_side_feed_in_pieces(&server, bytes, size, 1);
    ck_assert_int_eq(server.error, error);
    ck_assert_uint_eq(server.messages, 0);
    char *answer = domt_side_take_output(&server, &answered);
    ck_assert_uint_eq(answered, 7);
    ck_assert(answer[0] == 21 && answer[6] == alert);
    free(answer);
}

DOMT_TEST(bytes_that_are_not_tls_are_refused)
{
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 28},
        {"\x16\x02\x00\x00\x05\x01\x00\x00\x01\x00", 10}, /* version of SSL 2 */
        /* a record of 18,433 bytes */
        {"\x16\x03\x01\x48\x01\x01\x00\x00\x10\x00", 10},
        {"\x16\x03\x01\x00\x09\x01\x00\x40\x00\x03\x03\x00\x00\x00", 14}, /* a message of 16 KiB */
        /* no complete header of a message */
        {"\x16\x03\x01\x00\x03\x01\x00\x00", 8},
        {"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00", 10}, /* a ServerHello */
        {"\x17\x03\x03\x00\x05zzzzz", 10},                /* application data */
        {"\x15\x03\x03\x00\x02\x02\x28", 7},
        {"\0\0\0\0\0\0\0\0", 8},
    };

    set_up();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_refused(cases[i].bytes, cases[i].size, -EPROTO, 10);
    tear_down();
}

DOMT_TEST(alert_of_openssl_leaves_before_the_end)
{
    static const char hello[] = "\x16\x03\x01\x00\x2d\x01\x00\x00\x29\x03\x03"
                                "01234567890123456789012345678901"
                                /* TLS 1.2, with none of its ciphers */
                                "\x00\x00\x02\x13\x01\x01\x00";

    set_up();
    expect_refused(hello, sizeof hello - 1, -EPROTO, 40);
    tear_down();
}

#define HELLO_OF(record, message, extensions)                                                      \
    "\x16\x03\x01\x00" record "\x01\x00\x00" message "\x03\x03"                                    \
    "01234567890123456789012345678901"                                                             \
    "\x00\x00\x02\x13\x01\x01\x00\x00" extensions "\x00\x2b\x00\x03\x02\x03\x04" /* TLS 1.3 */     \
    "\x00\x0a\x00\x04\x00\x02\x00\x1d"                                           /* X25519 */      \
    "\x00\x0d\x00\x06\x00\x04\x04\x03\x08\x04"

/* Feed a ClientHello without a key share, which OpenSSL answers with a HelloRetryRequest, and then
 * the start of a second ClientHello. */
static void check_second_hello(const char *second, size_t size, int error)
{
    static const char hello[] = HELLO_OF("\x4e", "\x4a", "\x1f") "\x00\x33\x00\x02\x00\x00";
    size_t answered;

    set_up();
    domt_side_feed_in_pieces(&server, hello, sizeof hello - 1, 0);
    char *answer = domt_side_take_output(&server, &answered);
    ck_assert_int_eq(server.error, 0);
    ck_assert(answered > 50 && answer[0] == 22 && answer[5] == 2);
    free(answer);
    domt_side_feed_in_pieces(&server, second, size, 1);
    ck_assert_int_eq(server.error, error);
    answer = domt_side_take_output(&server, &answered);
    if (error != 0) {
        ck_assert_uint_eq(answered, 7);
        ck_assert_int_eq(memcmp(answer, "\x15\x03\x03\x00\x02\x02\x0a", 7), 0);
    }
    free(answer);
    tear_down();
}

DOMT_TEST(second_hello_has_the_bound_of_the_first)
{
    static const char right[] = HELLO_OF("\x72", "\x6e", "\x43") "\x00\x33\x00\x26\x00\x24"
                                                                 "\x00\x1d\x00\x20"
                                                                 "01234567890123456789012345678901";

    check_second_hello(right, sizeof right - 1, 0);
    check_second_hello("\x16\x03\x03\x00\x07\x01\x00\x3f\xfc\x03\x03\x30", 12, 0);
    check_second_hello("\x16\x03\x03\x00\x07\x01\x00\x3f\xfd\x03\x03\x30", 12, -EPROTO);
    check_second_hello("\x16\x03\x03\x00\x07\x01\x02\x01\x00\x03\x03\x30", 12, -EPROTO);
    check_second_hello("\x16\x03\x03\x00\x01\x01", 6, -EPROTO);
}

/* Let OpenSSL's client complete the handshake. */
static void complete_raw_handshake(int version)
{
    set_up();
    domt_raw_open_client(&raw, &pki, version, "a.example");
    ck_assert(domt_raw_talk_with_side(&raw, &server));
    domt_raw_expect_echo_of_line(&raw, &server, "hello");
}

static void close_raw(void)
{
    domt_raw_close_connection(&raw);
    tear_down();
}

DOMT_TEST(renegotiation_is_refused)
{
    complete_raw_handshake(TLS1_2_VERSION);
    ck_assert_int_eq(SSL_renegotiate(raw.ssl), 1);
    (void)domt_raw_talk_with_side(&raw, &server);
    ck_assert(SSL_is_init_finished(raw.ssl) == 0);
    ck_assert_int_ne(SSL_do_handshake(raw.ssl), 1);
    ck_assert_uint_eq(server.messages, 1);
    close_raw();
}

DOMT_TEST(records_without_bytes_are_bounded)
{
    complete_raw_handshake(TLS1_3_VERSION);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 30; k++) {
            ck_assert_int_eq(SSL_key_update(raw.ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
            (void)domt_raw_talk_with_side(&raw, &server);
        }
        domt_raw_expect_echo_of_line(&raw, &server, "still here");
    }
    for (int k = 0; k < 40 && server.error == 0; k++) {
        ck_assert_int_eq(SSL_key_update(raw.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        (void)domt_raw_talk_with_side(&raw, &server);
    }
    ck_assert_int_eq(server.error, -EPROTO);
    ck_assert_str_eq(domt_side_tls_info(&server).failure, "too many empty records");
    close_raw();
}

DOMT_TEST(byte_that_was_changed_is_seen)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

    for (int i = 0; i < 2; i++) {
        char *bytes;
        char copy[256];
        complete_raw_handshake(versions[i]);
        ck_assert_int_eq(SSL_write(raw.ssl, "secret\n", 7), 7);
        long size = BIO_get_mem_data(raw.out, &bytes);
        memcpy(copy, bytes, (size_t)size);
        copy[size - 3] ^= 1;
        domt_side_feed_in_pieces(&server, copy, (size_t)size, 0);
        ck_assert_int_eq(server.error, -EBADMSG);
        ck_assert_uint_eq(server.messages, 1);
        close_raw();
    }
}

DOMT_TEST(bytes_before_the_handshake_are_bounded)
{
    domus_packet packet = {{NULL, 0, 0}};

    set_up();
    domus_tls_settings settings = domt_make_client_settings(&pki);
    settings.held_max = 10;
    ck_assert_int_eq(domt_side_open_by_role(&client, domt_make_tls_context(&settings), "a.example"),
                     0);
    domt_side_send_line(&client, "123456789"); /* the line end is the tenth byte */
    ck_assert_int_eq(domus_stage_kit_encode(client.kit, DOMUS_NO_ID, &domus_packet_type, &packet),
                     -ENOBUFS);
    domt_side_close_connection(&client);
    ck_assert_int_eq(domt_side_open_by_role(&client, client.options.tls, "a.example"), 0);
    /* there is no output left to send */
    ck_assert_int_eq(domus_stage_kit_end_output(client.kit), 0);
    domt_side_close_connection(&client);
    ck_assert_int_eq(domt_side_open_by_role(&client, client.options.tls, "a.example"), 0);
    domt_side_send_line(&client, "1");
    ck_assert_int_eq(domus_stage_kit_end_output(client.kit), -ENOTCONN);
    domt_side_close_connection(&client);
    domus_tls_free(client.options.tls);
    tear_down();
}

DOMT_TEST(budget_bounds_connections)
{
    domus_budget budget = {.bytes_max = 100000};
    domt_side third;

    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    domus_tls_settings settings = domt_make_server_settings(&pki, "a");
    settings.budget = &budget;
    domus_tls *tls = domt_make_tls_context(&settings);
    ck_assert_int_eq(domt_side_open_by_role(&server, tls, NULL), 0);
    ck_assert_int_eq(domt_side_open_by_role(&client, tls, NULL), 0);
    ck_assert_int_eq(domt_side_open_by_role(&third, tls, NULL), -ENOMEM);
    domt_raw_open_client(&raw, &pki, TLS1_3_VERSION, "a.example");
    ck_assert(domt_raw_talk_with_side(&raw, &server));
    ck_assert_uint_eq(budget.used_bytes, 49152 + 16384);
    domt_raw_close_connection(&raw);
    domt_side_close_connection(&client);
    domt_side_close_connection(&server);
    ck_assert_uint_eq(budget.used_bytes, 0);
    domus_tls_free(tls);
    domt_pki_free_authority(&pki);
}

/* --- verify ----------------------------------------------------------------------------------- */

/* TLS: which certificates of servers and of clients are accepted, and the error that the other
 * side gets. */

static domt_pki other;

static void set_up_verify(void)
{
    domt_pki_make_authority(&pki);
    domt_pki_make_authority(&other);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "right", .names = "DNS:a.example"});
    domt_pki_issue_certificate(
        &pki, &(domt_wish){.file = "old", .names = "DNS:a.example", .ends_s = -30});
    domt_pki_issue_certificate(
        &pki, &(domt_wish){.file = "early", .names = "DNS:a.example", .begins_s = 600});
    domt_pki_issue_certificate(&pki,
                               &(domt_wish){.file = "address", .names = "IP:127.0.0.1,IP:::1"});
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "cn.example", .names = "email:a@b"});
    domt_pki_issue_certificate(
        &pki, &(domt_wish){.file = "self", .names = "DNS:a.example", .is_self_signed = 1});
    domt_pki_issue_certificate(
        &pki,
        &(domt_wish){.file = "client", .names = "DNS:c.example,email:a@b,URI:urn:x,IP:10.0.0.1"});
    domt_pki_issue_certificate(&other, &(domt_wish){.file = "client", .names = "DNS:c.example"});
}

static void tear_down_verify(void)
{
    domt_pki_free_authority(&pki);
    domt_pki_free_authority(&other);
}

static void complete_handshake(const domus_tls_settings *of_server,
                               const domus_tls_settings *of_client, const char *host)
{
    ck_assert_int_eq(domt_side_open_by_role(&server, domt_make_tls_context(of_server), NULL), 0);
    ck_assert_int_eq(domt_side_open_by_role(&client, domt_make_tls_context(of_client), host), 0);
    domt_side_send_line(&client, "hello");
    domt_side_talk_with_other(&client, &server, 0);
}

static void close_both(void)
{
    domt_side_close_connection(&client);
    domt_side_close_connection(&server);
    domus_tls_free(client.options.tls);
    domus_tls_free(server.options.tls);
}

DOMT_TEST(client_verifies_name_time_and_authority)
{
    static const struct {
        const char *file;
        const char *host;
        const char *failure; /* error of the client; NULL: accepted */
        const char *heard;   /* error of the server */
    } cases[] = {
        {"right", "a.example", NULL, NULL},
        {"right", "b.example", "hostname mismatch", "sslv3 alert bad certificate"},
        {"right", "a.example.b", "hostname mismatch", "sslv3 alert bad certificate"},
        {"right", "127.0.0.1", "IP address mismatch", "sslv3 alert bad certificate"},
        {"address", "127.0.0.1", NULL, NULL},
        {"address", "::1", NULL, NULL},
        {"address", "a.example", "hostname mismatch", "sslv3 alert bad certificate"},
        {"cn.example", "cn.example", "hostname mismatch", "sslv3 alert bad certificate"},
        {"old", "a.example", "certificate has expired", "sslv3 alert certificate expired"},
        {"early", "a.example", "certificate is not yet valid", "sslv3 alert bad certificate"},
        {"self", "a.example", "self-signed certificate", "tlsv1 alert unknown ca"},
    };

    set_up_verify();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        domus_tls_settings of_server = domt_make_server_settings(&pki, cases[i].file);
        domus_tls_settings of_client = domt_make_client_settings(&pki);
        complete_handshake(&of_server, &of_client, cases[i].host);
        if (cases[i].failure == NULL) {
            ck_assert_str_eq(client.last, "hello");
        } else {
            ck_assert_int_eq(client.error, -EACCES);
            ck_assert_int_eq(server.error, -EACCES);
            ck_assert_str_eq(domt_side_tls_info(&client).failure, cases[i].failure);
            ck_assert_str_eq(domt_side_tls_info(&server).failure, cases[i].heard);
            /* lines that waited for the handshake were not sent */
            ck_assert_uint_eq(server.messages, 0);
        }
        close_both();
    }
    tear_down_verify();
}

DOMT_TEST(client_takes_the_authorities_of_the_system_by_default)
{
    set_up_verify();
    domus_tls_settings of_server = domt_make_server_settings(&pki, "right");
    domus_tls_settings of_client = {.role = DOMUS_ROLE_CLIENT};
    complete_handshake(&of_server, &of_client, "a.example");
    ck_assert_int_eq(client.error, -EACCES);
    close_both();
    ck_assert_int_eq(setenv("SSL_CERT_FILE", domt_pki_path_of_file(&pki, "ca"), 1), 0);
    complete_handshake(&of_server, &of_client, "a.example");
    unsetenv("SSL_CERT_FILE");
    ck_assert_str_eq(client.last, "hello");
    close_both();
    tear_down_verify();
}

DOMT_TEST(client_accepts_anybody_only_if_told_to)
{
    domt_side side;

    set_up_verify();
    domus_tls_settings of_server = domt_make_server_settings(&pki, "self");
    domus_tls_settings of_client = {.role = DOMUS_ROLE_CLIENT, .verify = DOMUS_TLS_VERIFY_NONE};
    complete_handshake(&of_server, &of_client, "z.example");
    ck_assert_str_eq(client.last, "hello");
    ck_assert(!domt_side_tls_info(&client).verified);
    close_both();
    of_client.verify = DOMUS_TLS_VERIFY_DEFAULT;
    of_client.ca_file = domt_pki_path_of_file(&pki, "ca");
    domus_tls *tls = domt_make_tls_context(&of_client);
    /* there is no name to verify */
    ck_assert_int_eq(domt_side_open_client_to(&side, tls, NULL, NULL, 0), -EINVAL);
    ck_assert_int_eq(domt_side_open_by_role(&side, tls, ""), -EINVAL);
    /* an empty first label is no name */
    ck_assert_int_eq(domt_side_open_by_role(&side, tls, ".example"), -EINVAL);
    ck_assert_int_eq(domt_side_open_client_to(&side, tls, NULL, ".example", 443), -EINVAL);
    ck_assert_int_eq(domt_side_open_by_role(&side, NULL, "a"), -EINVAL);
    domus_tls_free(tls);
    tear_down_verify();
}

/* Connect a client with a certificate, or without one. */
static void connect_client(const domt_pki *of, const char *file, domus_tls_verify verify)
{
    domus_tls_settings of_server = domt_make_server_settings(&pki, "right");
    domus_tls_settings of_client = domt_make_client_settings(&pki);
    char path[128];

    snprintf(path, sizeof path, "%s", file != NULL ? domt_pki_path_of_file(of, file) : "");
    const domus_tls_certificate own = {path, NULL};
    of_server.ca_file = of_client.ca_file;
    of_server.verify = verify;
    of_client.certificates = &own;
    of_client.certificates_count = file != NULL;
    complete_handshake(&of_server, &of_client, "a.example");
}

DOMT_TEST(server_verifies_clients)
{
    domus_tls_peer peer;
    static const char names[] = "DNS:c.example\nemail:a@b\nURI:urn:x\nIP:10.0.0.1\n";

    set_up_verify();
    connect_client(&pki, "client", DOMUS_TLS_VERIFY_DEFAULT);
    ck_assert_str_eq(server.last, "hello");
    ck_assert(domt_side_tls_info(&server).verified);
    ck_assert_int_eq(domus_tls_kit_peer(server.kit, &peer), 0);
    ck_assert(domus_slice_equals(peer.subject, "CN=client,O=domus", 17));
    ck_assert(domus_slice_equals(peer.names, names, sizeof names - 1));
    ck_assert_uint_gt(peer.der.size, 100);
    domus_tls_peer_free(&peer);
    close_both();

    connect_client(&other, "client", DOMUS_TLS_VERIFY_DEFAULT);
    ck_assert_int_eq(server.error, -EACCES);
    ck_assert_uint_eq(server.messages, 0);
    ck_assert_str_eq(domt_side_tls_info(&client).failure, "tlsv1 alert unknown ca");
    close_both();
    connect_client(NULL, NULL, DOMUS_TLS_VERIFY_REQUIRED);
    ck_assert_str_eq(domt_side_tls_info(&server).failure, "peer did not return a certificate");
    ck_assert_int_eq(server.error, -EACCES);
    close_both();
    connect_client(NULL, NULL, DOMUS_TLS_VERIFY_OPTIONAL);
    ck_assert_str_eq(server.last, "hello");
    ck_assert(!domt_side_tls_info(&server).verified);
    close_both();
    connect_client(&other, "client", DOMUS_TLS_VERIFY_OPTIONAL);
    ck_assert_int_eq(server.error, -EACCES);
    close_both();
    tear_down_verify();
}

DOMT_SUITE(60)
