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

static void open_server_under_test(void)
{
    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    domus_tls_settings settings = domt_make_server_settings(&pki, "a");
    ck_assert_int_eq(domt_side_open_by_role(&server, domt_make_tls_context(&settings), NULL), 0);
}

static void close_server_under_test(void)
{
    domt_side_close_connection(&server);
    domus_tls_free(server.options.tls);
    domt_pki_free_authority(&pki);
}

/* Feed bytes to a new server of the stage, and check its error and the alert that it sends. */
static void expect_bytes_refused_with_alert(const char *bytes, size_t size, int error, int alert)
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
        /* a hello with the version number of SSL 2, which is refused */
        {"\x16\x02\x00\x00\x05\x01\x00\x00\x01\x00", 10},
        /* a record of 18,433 bytes, which is longer than TLS allows */
        {"\x16\x03\x01\x48\x01\x01\x00\x00\x10\x00", 10},
        /* a handshake message that says it has 16 KiB, which is refused */
        {"\x16\x03\x01\x00\x09\x01\x00\x40\x00\x03\x03\x00\x00\x00", 14},
        /* a record that holds no complete header of a handshake message */
        {"\x16\x03\x01\x00\x03\x01\x00\x00", 8},
        /* a ServerHello, which only a client may get */
        {"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00", 10},
        /* application data before the handshake, which is refused */
        {"\x17\x03\x03\x00\x05zzzzz", 10},
        {"\x15\x03\x03\x00\x02\x02\x28", 7},
        {"\0\0\0\0\0\0\0\0", 8},
    };

    open_server_under_test();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_bytes_refused_with_alert(cases[i].bytes, cases[i].size, -EPROTO, 10);
    close_server_under_test();
}

DOMT_TEST(alert_is_sent_before_connection_ends)
{
    static const char hello[] = "\x16\x03\x01\x00\x2d\x01\x00\x00\x29\x03\x03"
                                "01234567890123456789012345678901"
                                /* a ClientHello of TLS 1.2 that offers none of the server's
                                 * ciphers */
                                "\x00\x00\x02\x13\x01\x01\x00";

    open_server_under_test();
    expect_bytes_refused_with_alert(hello, sizeof hello - 1, -EPROTO, 40);
    close_server_under_test();
}

#define HELLO_OF(record, message, extensions)                                                      \
    "\x16\x03\x01\x00" record "\x01\x00\x00" message "\x03\x03"                                    \
    "01234567890123456789012345678901"                                                             \
    "\x00\x00\x02\x13\x01\x01\x00\x00" extensions                                                  \
    "\x00\x2b\x00\x03\x02\x03\x04"     /* extension supported_versions: TLS 1.3 */                 \
    "\x00\x0a\x00\x04\x00\x02\x00\x1d" /* extension supported_groups: X25519 */                    \
    "\x00\x0d\x00\x06\x00\x04\x04\x03\x08\x04"

/* Feed a server a ClientHello without a key share, which OpenSSL answers with a HelloRetryRequest,
 * and then the begin of a second ClientHello. */
static void check_result_of_second_hello(const char *second, size_t size, int error)
{
    static const char hello[] = HELLO_OF("\x4e", "\x4a", "\x1f") "\x00\x33\x00\x02\x00\x00";
    size_t answered;

    open_server_under_test();
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
    close_server_under_test();
}

DOMT_TEST(second_hello_has_size_limit_of_first)
{
    static const char right[] = HELLO_OF("\x72", "\x6e", "\x43") "\x00\x33\x00\x26\x00\x24"
                                                                 "\x00\x1d\x00\x20"
                                                                 "01234567890123456789012345678901";

    check_result_of_second_hello(right, sizeof right - 1, 0);
    check_result_of_second_hello("\x16\x03\x03\x00\x07\x01\x00\x3f\xfc\x03\x03\x30", 12, 0);
    check_result_of_second_hello("\x16\x03\x03\x00\x07\x01\x00\x3f\xfd\x03\x03\x30", 12, -EPROTO);
    check_result_of_second_hello("\x16\x03\x03\x00\x07\x01\x02\x01\x00\x03\x03\x30", 12, -EPROTO);
    check_result_of_second_hello("\x16\x03\x03\x00\x01\x01", 6, -EPROTO);
}

/* Let a raw client complete the handshake with the server under test. */
static void complete_handshake_with_raw_client(int version)
{
    open_server_under_test();
    domt_raw_open_client(&raw, &pki, version, "a.example");
    ck_assert(domt_raw_exchange_bytes_with_side(&raw, &server));
    domt_raw_expect_echo_of_line(&raw, &server, "hello");
}

static void close_raw_client_and_server(void)
{
    domt_raw_free_peer(&raw);
    close_server_under_test();
}

DOMT_TEST(renegotiation_is_refused)
{
    complete_handshake_with_raw_client(TLS1_2_VERSION);
    ck_assert_int_eq(SSL_renegotiate(raw.ssl), 1);
    (void)domt_raw_exchange_bytes_with_side(&raw, &server);
    ck_assert(SSL_is_init_finished(raw.ssl) == 0);
    ck_assert_int_ne(SSL_do_handshake(raw.ssl), 1);
    ck_assert_uint_eq(server.messages, 1);
    close_raw_client_and_server();
}

DOMT_TEST(records_without_data_are_limited)
{
    complete_handshake_with_raw_client(TLS1_3_VERSION);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 30; k++) {
            ck_assert_int_eq(SSL_key_update(raw.ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
            (void)domt_raw_exchange_bytes_with_side(&raw, &server);
        }
        domt_raw_expect_echo_of_line(&raw, &server, "still here");
    }
    for (int k = 0; k < 40 && server.error == 0; k++) {
        ck_assert_int_eq(SSL_key_update(raw.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        (void)domt_raw_exchange_bytes_with_side(&raw, &server);
    }
    ck_assert_int_eq(server.error, -EPROTO);
    ck_assert_str_eq(domt_side_tls_info(&server).failure, "too many empty records");
    close_raw_client_and_server();
}

DOMT_TEST(changed_byte_in_record_is_detected)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

    for (int i = 0; i < 2; i++) {
        char *bytes;
        char copy[256];
        complete_handshake_with_raw_client(versions[i]);
        ck_assert_int_eq(SSL_write(raw.ssl, "secret\n", 7), 7);
        long size = BIO_get_mem_data(raw.out, &bytes);
        memcpy(copy, bytes, (size_t)size);
        copy[size - 3] ^= 1;
        domt_side_feed_in_pieces(&server, copy, (size_t)size, 0);
        ck_assert_int_eq(server.error, -EBADMSG);
        ck_assert_uint_eq(server.messages, 1);
        close_raw_client_and_server();
    }
}

DOMT_TEST(bytes_waiting_for_handshake_are_limited)
{
    domus_packet packet = {{NULL, 0, 0}};

    open_server_under_test();
    domus_tls_settings settings = domt_make_client_settings(&pki);
    settings.held_max = 10;
    ck_assert_int_eq(domt_side_open_by_role(&client, domt_make_tls_context(&settings), "a.example"),
                     0);
    /* with its line end this line has the ten bytes that may wait for the handshake */
    domt_side_send_line(&client, "123456789");
    ck_assert_int_eq(domus_stage_kit_encode(client.kit, DOMUS_NO_ID, &domus_packet_type, &packet),
                     -ENOBUFS);
    domt_side_close_connection(&client);
    ck_assert_int_eq(domt_side_open_by_role(&client, client.options.tls, "a.example"), 0);
    /* the client has made no bytes yet that an end of the output would have to wait for */
    ck_assert_int_eq(domus_stage_kit_end_output(client.kit), 0);
    domt_side_close_connection(&client);
    ck_assert_int_eq(domt_side_open_by_role(&client, client.options.tls, "a.example"), 0);
    domt_side_send_line(&client, "1");
    ck_assert_int_eq(domus_stage_kit_end_output(client.kit), -ENOTCONN);
    domt_side_close_connection(&client);
    domus_tls_free(client.options.tls);
    close_server_under_test();
}

DOMT_TEST(budget_limits_number_of_connections)
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
    ck_assert(domt_raw_exchange_bytes_with_side(&raw, &server));
    ck_assert_uint_eq(budget.used_bytes, 49152 + 16384);
    domt_raw_free_peer(&raw);
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

static void issue_certificates_to_verify(void)
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

static void free_authorities_of_certificates(void)
{
    domt_pki_free_authority(&pki);
    domt_pki_free_authority(&other);
}

static void run_handshake_of_client_and_server(const domus_tls_settings *of_server,
                                               const domus_tls_settings *of_client,
                                               const char *host)
{
    ck_assert_int_eq(domt_side_open_by_role(&server, domt_make_tls_context(of_server), NULL), 0);
    ck_assert_int_eq(domt_side_open_by_role(&client, domt_make_tls_context(of_client), host), 0);
    domt_side_send_line(&client, "hello");
    domt_side_exchange_bytes_with_other(&client, &server, 0);
}

static void close_client_and_server(void)
{
    domt_side_close_connection(&client);
    domt_side_close_connection(&server);
    domus_tls_free(client.options.tls);
    domus_tls_free(server.options.tls);
}

DOMT_TEST(client_verifies_certificate_of_server)
{
    static const struct {
        const char *file;
        const char *host;
        const char *failure; /* failure text of the client; NULL: the server is accepted */
        const char *heard;   /* failure text that the server then has */
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

    issue_certificates_to_verify();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        domus_tls_settings of_server = domt_make_server_settings(&pki, cases[i].file);
        domus_tls_settings of_client = domt_make_client_settings(&pki);
        run_handshake_of_client_and_server(&of_server, &of_client, cases[i].host);
        if (cases[i].failure == NULL) {
            ck_assert_str_eq(client.last, "hello");
        } else {
            ck_assert_int_eq(client.error, -EACCES);
            ck_assert_int_eq(server.error, -EACCES);
            ck_assert_str_eq(domt_side_tls_info(&client).failure, cases[i].failure);
            ck_assert_str_eq(domt_side_tls_info(&server).failure, cases[i].heard);
            /* Lines of the client that waited for the handshake were not sent to a server that is
             * not verified. */
            ck_assert_uint_eq(server.messages, 0);
        }
        close_client_and_server();
    }
    free_authorities_of_certificates();
}

DOMT_TEST(client_trusts_system_authorities_by_default)
{
    issue_certificates_to_verify();
    domus_tls_settings of_server = domt_make_server_settings(&pki, "right");
    domus_tls_settings of_client = {.role = DOMUS_ROLE_CLIENT};
    run_handshake_of_client_and_server(&of_server, &of_client, "a.example");
    ck_assert_int_eq(client.error, -EACCES);
    close_client_and_server();
    ck_assert_int_eq(setenv("SSL_CERT_FILE", domt_pki_path_of_file(&pki, "ca"), 1), 0);
    run_handshake_of_client_and_server(&of_server, &of_client, "a.example");
    unsetenv("SSL_CERT_FILE");
    ck_assert_str_eq(client.last, "hello");
    close_client_and_server();
    free_authorities_of_certificates();
}

DOMT_TEST(client_skips_verification_only_if_configured)
{
    domt_side side;

    issue_certificates_to_verify();
    domus_tls_settings of_server = domt_make_server_settings(&pki, "self");
    domus_tls_settings of_client = {.role = DOMUS_ROLE_CLIENT, .verify = DOMUS_TLS_VERIFY_NONE};
    run_handshake_of_client_and_server(&of_server, &of_client, "z.example");
    ck_assert_str_eq(client.last, "hello");
    ck_assert(!domt_side_tls_info(&client).verified);
    close_client_and_server();
    of_client.verify = DOMUS_TLS_VERIFY_DEFAULT;
    of_client.ca_file = domt_pki_path_of_file(&pki, "ca");
    domus_tls *tls = domt_make_tls_context(&of_client);
    /* without a host the client has no name to verify */
    ck_assert_int_eq(domt_side_open_client_to(&side, tls, NULL, NULL, 0), -EINVAL);
    ck_assert_int_eq(domt_side_open_by_role(&side, tls, ""), -EINVAL);
    /* a host name that begins with an empty label is no name */
    ck_assert_int_eq(domt_side_open_by_role(&side, tls, ".example"), -EINVAL);
    ck_assert_int_eq(domt_side_open_client_to(&side, tls, NULL, ".example", 443), -EINVAL);
    ck_assert_int_eq(domt_side_open_by_role(&side, NULL, "a"), -EINVAL);
    domus_tls_free(tls);
    free_authorities_of_certificates();
}

/* Connect a client with a certificate of `of`, or without one, to a server that verifies in this
 * way. */
static void connect_client_with_certificate(const domt_pki *of, const char *file,
                                            domus_tls_verify verify)
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
    run_handshake_of_client_and_server(&of_server, &of_client, "a.example");
}

DOMT_TEST(server_verifies_client_certificates)
{
    domus_tls_peer peer;
    static const char names[] = "DNS:c.example\nemail:a@b\nURI:urn:x\nIP:10.0.0.1\n";

    issue_certificates_to_verify();
    connect_client_with_certificate(&pki, "client", DOMUS_TLS_VERIFY_DEFAULT);
    ck_assert_str_eq(server.last, "hello");
    ck_assert(domt_side_tls_info(&server).verified);
    ck_assert_int_eq(domus_tls_kit_peer(server.kit, &peer), 0);
    ck_assert(domus_slice_equals(peer.subject, "CN=client,O=domus", 17));
    ck_assert(domus_slice_equals(peer.names, names, sizeof names - 1));
    ck_assert_uint_gt(peer.der.size, 100);
    domus_tls_peer_free(&peer);
    close_client_and_server();

    connect_client_with_certificate(&other, "client", DOMUS_TLS_VERIFY_DEFAULT);
    ck_assert_int_eq(server.error, -EACCES);
    ck_assert_uint_eq(server.messages, 0);
    ck_assert_str_eq(domt_side_tls_info(&client).failure, "tlsv1 alert unknown ca");
    close_client_and_server();
    connect_client_with_certificate(NULL, NULL, DOMUS_TLS_VERIFY_REQUIRED);
    ck_assert_str_eq(domt_side_tls_info(&server).failure, "peer did not return a certificate");
    ck_assert_int_eq(server.error, -EACCES);
    close_client_and_server();
    connect_client_with_certificate(NULL, NULL, DOMUS_TLS_VERIFY_OPTIONAL);
    ck_assert_str_eq(server.last, "hello");
    ck_assert(!domt_side_tls_info(&server).verified);
    close_client_and_server();
    connect_client_with_certificate(&other, "client", DOMUS_TLS_VERIFY_OPTIONAL);
    ck_assert_int_eq(server.error, -EACCES);
    close_client_and_server();
    free_authorities_of_certificates();
}

DOMT_SUITE(60)
