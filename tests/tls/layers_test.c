/* TLS with other stages: put before a pipeline during a connection (STARTTLS), where an attacker
 * may have put unencrypted bytes behind the command; within TLS; and with wrong names. */
#include "tests/support/suite.h"
#include "tests/tls/raw.h"

#include <errno.h>
#include <string.h>

static domt_pki pki;
static domt_side server;
static domt_side client;
static domus_tls *server_tls;
static domus_tls *client_tls;

static void set_up(void)
{
    domt_pki_make(&pki);
    domt_pki_issue(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    domus_tls_settings settings = domt_server_settings(&pki, "a");
    server_tls = domt_tls(&settings);
    settings = domt_client_settings(&pki);
    client_tls = domt_tls(&settings);
}

static void tear_down(void)
{
    domus_tls_free(client_tls);
    domus_tls_free(server_tls);
    domt_pki_free(&pki);
}

static const domus_line_options lines = {.role = DOMUS_ROLE_SERVER};
static const domus_pipeline in_clear = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, &lines}, {NULL, NULL}}};

/* Let a server without TLS receive the command with these bytes behind it, and change to TLS.
 * Returns the result of the change. */
static int start_tls(const char *behind, uint32_t flags, domus_stage_kit **ret_kit)
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

DOMT_TEST(clear_bytes_behind_starttls_are_never_taken_for_protected_ones)
{
    static const char *const behind[] = {"x", "MAIL FROM:<a>\r\n", "\x17\x03\x03",
                                         "\x17\x03\x03\x00\x03zz\n"};
    domus_stage_kit *kit;
    domus_stage_message message;

    set_up();
    for (size_t i = 0; i < sizeof behind / sizeof behind[0]; i++) {
        ck_assert_int_eq(start_tls(behind[i], DOMUS_PIPELINE_CLEAN, &kit), -EPROTO);
        domus_stage_kit_free(kit);
        /* the bytes go to TLS and to no other stage */
        ck_assert_int_eq(start_tls(behind[i], 0, &kit), 0);
        int result = domus_stage_kit_next(kit, &message);
        ck_assert(result == -EPROTO || result == 0); /* 0: the rest of a record is missing */
        ck_assert_int_eq(domus_stage_kit_feed(kit, "abcd\r\n\r\n", 8), 0);
        ck_assert_int_eq(domus_stage_kit_next(kit, &message), -EPROTO);
        domus_stage_kit_free(kit);
    }
    tear_down();
}

/* Put a second TLS within the first. */
static void open_twice(domt_side *side, domus_tls *tls, const char *host,
                       domus_pipeline_stage *stages)
{
    ck_assert_int_eq(domt_side_open(side, tls, host), 0);
    stages[0] = stages[1] = side->stages[0];
    stages[2] = side->stages[1];
    stages[3] = (domus_pipeline_stage){NULL, NULL};
    domt_side_close(side);
    side->pipeline.stages = stages;
    ck_assert_int_eq(domus_stage_kit_new(&side->pipeline, &side->kit), 0);
}

DOMT_TEST(tls_stands_within_tls)
{
    static domus_pipeline_stage of_server[4], of_client[4];

    set_up();
    for (size_t step = 0; step < 3; step++) {
        open_twice(&server, server_tls, NULL, of_server);
        open_twice(&client, client_tls, "a.example", of_client);
        domt_side_send_line(&client, "hello");
        domt_talk(&client, &server, step);
        ck_assert_str_eq(client.last, "hello");
        ck_assert_int_eq(domus_stage_kit_end_output(client.kit), 0);
        domt_talk(&client, &server, step);
        ck_assert_int_eq(server.error, 0);
        ck_assert(domus_stage_kit_is_last(server.kit));
        domt_side_close(&client);
        domt_side_close(&server);
    }
    tear_down();
}

DOMT_TEST(odd_names_get_the_first_certificate)
{
    static const char *const names[] = {"A.EXAMPLE",  "a.example.",   "127.0.0.1",
                                        "[::1]",      "*.example",    "..",
                                        "a..example", "\x01\x7f\xff", "xn--a"};
    char long_name[256];

    set_up();
    memset(long_name, 'a', 255);
    long_name[255] = '\0';
    for (size_t i = 0; i <= sizeof names / sizeof names[0]; i++) {
        const char *name = i < sizeof names / sizeof names[0] ? names[i] : long_name;
        domt_raw raw;
        ck_assert_int_eq(domt_side_open(&server, server_tls, NULL), 0);
        domt_raw_open(&raw, &pki, TLS1_3_VERSION, "a.example");
        SSL_set_verify(raw.ssl, SSL_VERIFY_NONE, NULL);
        ck_assert_int_eq(SSL_set_tlsext_host_name(raw.ssl, name), 1);
        bool is_done = domt_raw_talk(&raw, &server);
        ck_assert_msg(is_done || server.error < 0, "%zu", i);
        if (is_done)
            domt_raw_expect_echo(&raw, &server, "hello");
        domt_raw_close(&raw);
        domt_side_close(&server);
    }
    tear_down();
}

DOMT_SUITE(60)
