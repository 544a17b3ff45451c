/* TLS: both sides of the stage against each other in memory, alone and with other stages before it,
 * behind it, and within it. */
#include "tests/support/suite.h"
#include "tests/tls/raw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* TLS: both sides of the stage against each other, in memory, and the version and cipher on which
 * they agree. */

static domt_pki pki;
static domt_side server;
static domt_side client;

static void issue_two_server_certificates(void)
{
    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki,
                               &(domt_wish){.file = "a", .names = "DNS:a.example,IP:127.0.0.1"});
    domt_pki_issue_certificate(&pki,
                               &(domt_wish){.file = "b", .names = "DNS:*.b.example,DNS:b.example"});
}

/* Let both sides complete the handshake, and let the client send a line. */
static void complete_handshake_and_send_line(const domus_tls_settings *of_server,
                                             const domus_tls_settings *of_client, const char *host,
                                             size_t step)
{
    domus_tls *server_tls = domt_make_tls_context(of_server);
    domus_tls *client_tls = domt_make_tls_context(of_client);

    ck_assert_int_eq(domt_side_open_by_role(&server, server_tls, NULL), 0);
    ck_assert_int_eq(domt_side_open_by_role(&client, client_tls, host), 0);
    /* the client keeps this line until its handshake is done */
    domt_side_send_line(&client, "hello");
    domt_side_exchange_bytes_with_other(&client, &server, step);
}

static void close_client_and_server(void)
{
    domt_side_close_connection(&client);
    domt_side_close_connection(&server);
    domus_tls_free(client.options.tls);
    domus_tls_free(server.options.tls);
}

static void check_handshake_and_echo(void)
{
    ck_assert_msg(client.error == 0 && server.error == 0, "%d %s, %d %s", client.error,
                  domt_side_tls_info(&client).failure, server.error,
                  domt_side_tls_info(&server).failure);
    ck_assert_str_eq(server.last, "hello");
    ck_assert_str_eq(client.last, "hello");
    ck_assert_str_eq(domt_side_tls_info(&client).cipher, domt_side_tls_info(&server).cipher);
}

/* --- talk ------------------------------------------------------------------------------------- */

DOMT_TEST(sides_exchange_lines_in_pieces_of_any_size)
{
    static const size_t steps[] = {0, 1, 2, 3, 5, 6, 64, 1000};

    issue_two_server_certificates();
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        domus_tls_settings of_server = domt_make_server_settings(&pki, "a");
        domus_tls_settings of_client = domt_make_client_settings(&pki);
        complete_handshake_and_send_line(&of_server, &of_client, "a.example", steps[i]);
        check_handshake_and_echo();
        ck_assert_str_eq(domt_side_tls_info(&client).version, "TLSv1.3");
        ck_assert(domt_side_tls_info(&client).verified && !domt_side_tls_info(&server).verified);
        ck_assert(!domt_side_tls_info(&server).resumed);
        close_client_and_server();
    }
    domt_pki_free_authority(&pki);
}

DOMT_TEST(long_messages_pass_in_both_directions)
{
    static char line[65001];

    issue_two_server_certificates();
    domus_tls_settings of_server = domt_make_server_settings(&pki, "a");
    domus_tls_settings of_client = domt_make_client_settings(&pki);
    complete_handshake_and_send_line(&of_server, &of_client, "a.example", 0);
    memset(line, 'x', sizeof line - 1);
    for (size_t step = 0; step < 40000; step = step * 7 + 777) {
        for (int i = 0; i < 5; i++) {
            line[step] = (char)('a' + i);
            domt_side_send_line(&client, line);
        }
        domt_side_exchange_bytes_with_other(&client, &server, step);
        ck_assert_str_eq(client.last, line);
    }
    ck_assert_uint_eq(client.messages, server.messages);
    close_client_and_server();
    domt_pki_free_authority(&pki);
}

DOMT_TEST(close_notify_ends_the_other_side)
{
    issue_two_server_certificates();
    domus_tls_settings of_server = domt_make_server_settings(&pki, "a");
    domus_tls_settings of_client = domt_make_client_settings(&pki);
    complete_handshake_and_send_line(&of_server, &of_client, "a.example", 0);
    domt_side_send_line(&client, "last");
    ck_assert_int_eq(domus_stage_kit_end_output(client.kit), 0);
    domt_side_exchange_bytes_with_other(&client, &server, 0);
    ck_assert_str_eq(server.last, "last");
    ck_assert_str_eq(client.last, "last");
    ck_assert(domus_stage_kit_is_last(server.kit) && domus_stage_kit_is_last(client.kit));
    domus_stage_kit_finish(server.kit);
    domus_stage_message message;
    ck_assert_int_eq(domus_stage_kit_next(server.kit, &message), 0);
    close_client_and_server();
    domt_pki_free_authority(&pki);
}

DOMT_TEST(end_without_close_notify_is_error)
{
    domus_stage_message message;

    issue_two_server_certificates();
    domus_tls_settings of_server = domt_make_server_settings(&pki, "a");
    domus_tls_settings of_client = domt_make_client_settings(&pki);
    complete_handshake_and_send_line(&of_server, &of_client, "a.example", 0);
    domus_stage_kit_finish(server.kit);
    ck_assert_int_eq(domus_stage_kit_next(server.kit, &message), -ECONNABORTED);
    ck_assert_str_eq(domt_side_tls_info(&server).failure, "the connection was cut");
    close_client_and_server();
    /* A peer that ends without a single byte has not begun the handshake, so this is no error. */
    ck_assert_int_eq(domt_side_open_by_role(&server, domt_make_tls_context(&of_server), NULL), 0);
    domus_stage_kit_finish(server.kit);
    ck_assert_int_eq(domus_stage_kit_next(server.kit, &message), 0);
    domt_side_close_connection(&server);
    domus_tls_free(server.options.tls);
    domt_pki_free_authority(&pki);
}

/* --- the agreement
 * ----------------------------------------------------------------------------- */

DOMT_TEST(server_chooses_certificate_by_name)
{
    static const struct {
        const char *host;
        const char *subject;
    } cases[] = {{"a.example", "CN=a,O=domus"},
                 {"b.example", "CN=b,O=domus"},
                 {"X.b.example", "CN=b,O=domus"},
                 {"127.0.0.1", "CN=a,O=domus"}};
    char path[2][128];

    issue_two_server_certificates();
    snprintf(path[0], sizeof path[0], "%s", domt_pki_path_of_file(&pki, "a"));
    snprintf(path[1], sizeof path[1], "%s", domt_pki_path_of_file(&pki, "b"));
    const domus_tls_certificate both[] = {{path[0], NULL}, {path[1], path[1]}};
    domus_tls_settings of_server = {
        .role = DOMUS_ROLE_SERVER, .certificates = both, .certificates_count = 2};
    domus_tls_settings of_client = domt_make_client_settings(&pki);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        domus_tls_peer peer;
        complete_handshake_and_send_line(&of_server, &of_client, cases[i].host, 0);
        check_handshake_and_echo();
        ck_assert_int_eq(domus_tls_kit_peer(client.kit, &peer), 0);
        ck_assert(domus_slice_equals(peer.subject, cases[i].subject, strlen(cases[i].subject)));
        domus_tls_peer_free(&peer);
        ck_assert_int_eq(domus_tls_kit_peer(server.kit, &peer), -ENODATA);
        ck_assert_int_eq(strcasecmp(domt_side_tls_info(&server).name, i < 3 ? cases[i].host : ""),
                         0);
        close_client_and_server();
    }
    domt_pki_free_authority(&pki);
}

DOMT_TEST(both_sides_agree_on_protocol_by_alpn)
{
    static const char *const two[] = {"h2", "http/1.1", NULL};
    static const char *const one[] = {"http/1.1", NULL};
    static const char *const other[] = {"redis", NULL};
    static const struct {
        const char *const *server;
        const char *const *client;
        const char *alpn;
        bool fails;
    } cases[] = {{two, one, "http/1.1", false},
                 {two, two, "h2", false},
                 {two, NULL, "", false},
                 {NULL, two, "", false},
                 {two, other, "", true}};

    issue_two_server_certificates();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        domus_tls_settings of_server = domt_make_server_settings(&pki, "a");
        domus_tls_settings of_client = domt_make_client_settings(&pki);
        of_server.alpn = cases[i].server;
        of_client.alpn = cases[i].client;
        complete_handshake_and_send_line(&of_server, &of_client, "a.example", 0);
        if (cases[i].fails) {
            ck_assert_int_eq(server.error, -EPROTO);
            ck_assert_int_eq(client.error, -EPROTO);
            ck_assert_str_eq(domt_side_tls_info(&client).failure,
                             "tlsv1 alert no application protocol");
        } else {
            check_handshake_and_echo();
            ck_assert_str_eq(domt_side_tls_info(&client).alpn, cases[i].alpn);
            ck_assert_str_eq(domt_side_tls_info(&server).alpn, cases[i].alpn);
        }
        close_client_and_server();
    }
    domt_pki_free_authority(&pki);
}

DOMT_TEST(tls_1_2_is_used_unless_minimum_is_higher)
{
    domt_raw raw;

    issue_two_server_certificates();
    for (int i = 0; i < 2; i++) {
        domus_tls_settings settings = domt_make_server_settings(&pki, "a");
        settings.min_version = (domus_tls_version)i;
        ck_assert_int_eq(domt_side_open_by_role(&server, domt_make_tls_context(&settings), NULL),
                         0);
        domt_raw_open_client(&raw, &pki, TLS1_2_VERSION, "a.example");
        ck_assert(domt_raw_exchange_bytes_with_side(&raw, &server) == (i == 0));
        if (i == 0) {
            domt_raw_expect_echo_of_line(&raw, &server, "old");
            ck_assert_str_eq(domt_side_tls_info(&server).version, "TLSv1.2");
        } else {
            ck_assert_int_eq(server.error, -EPROTO);
            ck_assert_str_eq(domt_side_tls_info(&server).failure, "unsupported protocol");
        }
        domt_raw_free_peer(&raw);
        domt_side_close_connection(&server);
        domus_tls_free(server.options.tls);
    }
    domt_pki_free_authority(&pki);
}

/* --- layers ----------------------------------------------------------------------------------- */

/* TLS with other stages: put before a pipeline during a connection (STARTTLS), where an attacker
 * may have put unencrypted bytes behind the command; within TLS; and with wrong names. */

static domus_tls *server_tls;
static domus_tls *client_tls;

static void make_contexts_for_layers(void)
{
    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    domus_tls_settings settings = domt_make_server_settings(&pki, "a");
    server_tls = domt_make_tls_context(&settings);
    settings = domt_make_client_settings(&pki);
    client_tls = domt_make_tls_context(&settings);
}

static void free_contexts_of_layers(void)
{
    domus_tls_free(client_tls);
    domus_tls_free(server_tls);
    domt_pki_free_authority(&pki);
}

static const domus_line_options lines = {.role = DOMUS_ROLE_SERVER};
static const domus_pipeline in_clear = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, &lines}, {NULL, NULL}}};

/* Let a server without TLS receive the command STARTTLS with the bytes `behind` behind it, and
 * change to TLS. Returns the result of the change. */
static int start_tls_after_command(const char *behind, uint32_t flags, domus_stage_kit **ret_kit)
{
    static domus_tls_options options;
    static domus_pipeline_stage stages[3];
    static const domus_pipeline secured = {.stages = stages};
    domus_stage_message message;

    options.tls = server_tls;
    stages[0] = (domus_pipeline_stage){&domus_tls_stage, &options};
    stages[1] = (domus_pipeline_stage){&domus_line_stage, &lines};
    ck_assert_int_eq(domus_stage_kit_new(&in_clear, ret_kit), 0);
    ck_assert_int_eq(domus_stage_kit_feed(*ret_kit, "STARTTLS\r\n", 10), 0);
    ck_assert_int_eq(domus_stage_kit_feed(*ret_kit, behind, strlen(behind)), 0);
    ck_assert_int_eq(domus_stage_kit_next(*ret_kit, &message), 1);
    return domus_stage_kit_change(*ret_kit, &secured, flags);
}

DOMT_TEST(clear_bytes_after_starttls_are_never_trusted)
{
    static const char *const behind[] = {"x", "MAIL FROM:<a>\r\n", "\x17\x03\x03",
                                         "\x17\x03\x03\x00\x03zz\n"};
    domus_stage_kit *kit;
    domus_stage_message message;

    make_contexts_for_layers();
    for (size_t i = 0; i < sizeof behind / sizeof behind[0]; i++) {
        ck_assert_int_eq(start_tls_after_command(behind[i], DOMUS_PIPELINE_CLEAN, &kit), -EPROTO);
        domus_stage_kit_free(kit);
        /* Without DOMUS_PIPELINE_CLEAN the bytes behind the command go to TLS and to no other
         * stage. */
        ck_assert_int_eq(start_tls_after_command(behind[i], 0, &kit), 0);
        int result = domus_stage_kit_next(kit, &message);
        /* the result 0 says that TLS waits for the rest of a record */
        ck_assert(result == -EPROTO || result == 0);
        ck_assert_int_eq(domus_stage_kit_feed(kit, "abcd\r\n\r\n", 8), 0);
        ck_assert_int_eq(domus_stage_kit_next(kit, &message), -EPROTO);
        domus_stage_kit_free(kit);
    }
    free_contexts_of_layers();
}

/* Make a side that speaks TLS within another TLS. */
static void open_side_with_tls_in_tls(domt_side *side, domus_tls *tls, const char *host,
                                      domus_pipeline_stage *stages)
{
    ck_assert_int_eq(domt_side_open_by_role(side, tls, host), 0);
    stages[0] = stages[1] = side->stages[0];
    stages[2] = side->stages[1];
    stages[3] = (domus_pipeline_stage){NULL, NULL};
    domt_side_close_connection(side);
    side->pipeline.stages = stages;
    ck_assert_int_eq(domus_stage_kit_new(&side->pipeline, &side->kit), 0);
}

DOMT_TEST(tls_works_within_tls)
{
    static domus_pipeline_stage of_server[4], of_client[4];

    make_contexts_for_layers();
    for (size_t step = 0; step < 3; step++) {
        open_side_with_tls_in_tls(&server, server_tls, NULL, of_server);
        open_side_with_tls_in_tls(&client, client_tls, "a.example", of_client);
        domt_side_send_line(&client, "hello");
        domt_side_exchange_bytes_with_other(&client, &server, step);
        ck_assert_str_eq(client.last, "hello");
        ck_assert_int_eq(domus_stage_kit_end_output(client.kit), 0);
        domt_side_exchange_bytes_with_other(&client, &server, step);
        ck_assert_int_eq(server.error, 0);
        ck_assert(domus_stage_kit_is_last(server.kit));
        domt_side_close_connection(&client);
        domt_side_close_connection(&server);
    }
    free_contexts_of_layers();
}

DOMT_TEST(unknown_server_names_get_first_certificate)
{
    static const char *const names[] = {"A.EXAMPLE",  "a.example.",   "127.0.0.1",
                                        "[::1]",      "*.example",    "..",
                                        "a..example", "\x01\x7f\xff", "xn--a"};
    char long_name[256];

    make_contexts_for_layers();
    memset(long_name, 'a', 255);
    long_name[255] = '\0';
    for (size_t i = 0; i <= sizeof names / sizeof names[0]; i++) {
        const char *name = i < sizeof names / sizeof names[0] ? names[i] : long_name;
        domt_raw raw;
        ck_assert_int_eq(domt_side_open_by_role(&server, server_tls, NULL), 0);
        domt_raw_open_client(&raw, &pki, TLS1_3_VERSION, "a.example");
        SSL_set_verify(raw.ssl, SSL_VERIFY_NONE, NULL);
        ck_assert_int_eq(SSL_set_tlsext_host_name(raw.ssl, name), 1);
        bool is_done = domt_raw_exchange_bytes_with_side(&raw, &server);
        ck_assert_msg(is_done || server.error < 0, "%zu", i);
        if (is_done)
            domt_raw_expect_echo_of_line(&raw, &server, "hello");
        domt_raw_free_peer(&raw);
        domt_side_close_connection(&server);
    }
    free_contexts_of_layers();
}

DOMT_SUITE(60)
