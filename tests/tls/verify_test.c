/* TLS: which certificates of servers and of clients are accepted, and the error that the other side
 * gets. */
#include "tests/support/suite.h"
#include "tests/tls/raw.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static domt_pki pki;
static domt_pki other;
static domt_side server;
static domt_side client;

static void set_up(void)
{
    domt_pki_make(&pki);
    domt_pki_make(&other);
    domt_pki_issue(&pki, &(domt_wish){.file = "right", .names = "DNS:a.example"});
    domt_pki_issue(&pki, &(domt_wish){.file = "old", .names = "DNS:a.example", .ends_s = -30});
    domt_pki_issue(&pki, &(domt_wish){.file = "early", .names = "DNS:a.example", .begins_s = 600});
    domt_pki_issue(&pki, &(domt_wish){.file = "address", .names = "IP:127.0.0.1,IP:::1"});
    domt_pki_issue(&pki, &(domt_wish){.file = "cn.example", .names = "email:a@b"});
    domt_pki_issue(&pki,
                   &(domt_wish){.file = "self", .names = "DNS:a.example", .is_self_signed = 1});
    domt_pki_issue(&pki, &(domt_wish){.file = "client",
                                      .names = "DNS:c.example,email:a@b,URI:urn:x,IP:10.0.0.1"});
    domt_pki_issue(&other, &(domt_wish){.file = "client", .names = "DNS:c.example"});
}

static void tear_down(void)
{
    domt_pki_free(&pki);
    domt_pki_free(&other);
}

static void complete_handshake(const domus_tls_settings *of_server,
                               const domus_tls_settings *of_client, const char *host)
{
    ck_assert_int_eq(domt_side_open(&server, domt_tls(of_server), NULL), 0);
    ck_assert_int_eq(domt_side_open(&client, domt_tls(of_client), host), 0);
    domt_side_send_line(&client, "hello");
    domt_talk(&client, &server, 0);
}

static void close_both(void)
{
    domt_side_close(&client);
    domt_side_close(&server);
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

    set_up();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        domus_tls_settings of_server = domt_server_settings(&pki, cases[i].file);
        domus_tls_settings of_client = domt_client_settings(&pki);
        complete_handshake(&of_server, &of_client, cases[i].host);
        if (cases[i].failure == NULL) {
            ck_assert_str_eq(client.last, "hello");
        } else {
            ck_assert_int_eq(client.error, -EACCES);
            ck_assert_int_eq(server.error, -EACCES);
            ck_assert_str_eq(domt_side_info(&client).failure, cases[i].failure);
            ck_assert_str_eq(domt_side_info(&server).failure, cases[i].heard);
            /* lines that waited for the handshake were not sent */
            ck_assert_uint_eq(server.messages, 0);
        }
        close_both();
    }
    tear_down();
}

DOMT_TEST(client_takes_the_authorities_of_the_system_by_default)
{
    set_up();
    domus_tls_settings of_server = domt_server_settings(&pki, "right");
    domus_tls_settings of_client = {.role = DOMUS_ROLE_CLIENT};
    complete_handshake(&of_server, &of_client, "a.example");
    ck_assert_int_eq(client.error, -EACCES);
    close_both();
    ck_assert_int_eq(setenv("SSL_CERT_FILE", domt_pki_path(&pki, "ca"), 1), 0);
    complete_handshake(&of_server, &of_client, "a.example");
    unsetenv("SSL_CERT_FILE");
    ck_assert_str_eq(client.last, "hello");
    close_both();
    tear_down();
}

DOMT_TEST(client_accepts_anybody_only_if_told_to)
{
    domt_side side;

    set_up();
    domus_tls_settings of_server = domt_server_settings(&pki, "self");
    domus_tls_settings of_client = {.role = DOMUS_ROLE_CLIENT, .verify = DOMUS_TLS_VERIFY_NONE};
    complete_handshake(&of_server, &of_client, "z.example");
    ck_assert_str_eq(client.last, "hello");
    ck_assert(!domt_side_info(&client).verified);
    close_both();
    of_client.verify = DOMUS_TLS_VERIFY_DEFAULT;
    of_client.ca_file = domt_pki_path(&pki, "ca");
    domus_tls *tls = domt_tls(&of_client);
    /* there is no name to verify */
    ck_assert_int_eq(domt_side_open_to(&side, tls, NULL, NULL, 0), -EINVAL);
    ck_assert_int_eq(domt_side_open(&side, tls, ""), -EINVAL);
    /* an empty first label is no name */
    ck_assert_int_eq(domt_side_open(&side, tls, ".example"), -EINVAL);
    ck_assert_int_eq(domt_side_open_to(&side, tls, NULL, ".example", 443), -EINVAL);
    ck_assert_int_eq(domt_side_open(&side, NULL, "a"), -EINVAL);
    domus_tls_free(tls);
    tear_down();
}

/* Connect a client with a certificate, or without one. */
static void connect_client(const domt_pki *of, const char *file, domus_tls_verify verify)
{
    domus_tls_settings of_server = domt_server_settings(&pki, "right");
    domus_tls_settings of_client = domt_client_settings(&pki);
    char path[128];

    snprintf(path, sizeof path, "%s", file != NULL ? domt_pki_path(of, file) : "");
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

    set_up();
    connect_client(&pki, "client", DOMUS_TLS_VERIFY_DEFAULT);
    ck_assert_str_eq(server.last, "hello");
    ck_assert(domt_side_info(&server).verified);
    ck_assert_int_eq(domus_tls_kit_peer(server.kit, &peer), 0);
    ck_assert(domus_slice_equals(peer.subject, "CN=client,O=domus", 17));
    ck_assert(domus_slice_equals(peer.names, names, sizeof names - 1));
    ck_assert_uint_gt(peer.der.size, 100);
    domus_tls_peer_free(&peer);
    close_both();

    connect_client(&other, "client", DOMUS_TLS_VERIFY_DEFAULT);
    ck_assert_int_eq(server.error, -EACCES);
    ck_assert_uint_eq(server.messages, 0);
    ck_assert_str_eq(domt_side_info(&client).failure, "tlsv1 alert unknown ca");
    close_both();
    connect_client(NULL, NULL, DOMUS_TLS_VERIFY_REQUIRED);
    ck_assert_str_eq(domt_side_info(&server).failure, "peer did not return a certificate");
    ck_assert_int_eq(server.error, -EACCES);
    close_both();
    connect_client(NULL, NULL, DOMUS_TLS_VERIFY_OPTIONAL);
    ck_assert_str_eq(server.last, "hello");
    ck_assert(!domt_side_info(&server).verified);
    close_both();
    connect_client(&other, "client", DOMUS_TLS_VERIFY_OPTIONAL);
    ck_assert_int_eq(server.error, -EACCES);
    close_both();
    tear_down();
}

DOMT_SUITE(60)
