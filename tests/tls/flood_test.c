/* TLS: a peer completes the handshake, and then sends what costs it little: records of one byte or
 * none, warnings, key updates, tickets. */
#include "tests/support/suite.h"
#include "tests/tls/forge.h"

#include "io/wire/state.h"
#include "protocols/tls/tls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static domt_pki pki;
static domt_side side; /* the stage of TLS under test, as a server or a client */
static domt_raw raw;   /* OpenSSL itself, which is the peer of the stage */
static domt_forge forge;

static void make_authority_with_certificate(void)
{
    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
}

/* Let the stage be a server and the raw peer its client, and complete their handshake. */
static void complete_handshake_with_stage_as_server(int version)
{
    make_authority_with_certificate();
    domus_tls_settings settings = domt_make_server_settings(&pki, "a");
    ck_assert_int_eq(domt_side_open_by_role(&side, domt_make_tls_context(&settings), NULL), 0);
    domt_raw_open_client(&raw, &pki, version, "a.example");
    ck_assert(domt_raw_exchange_bytes_with_side(&raw, &side));
    if (version == TLS1_3_VERSION)
        domt_forge_begin_with_keys(&forge, &raw);
}

/* Let the stage be a client and the raw peer its server, and complete their handshake. */
static void complete_handshake_with_stage_as_client(bool keeps_sessions)
{
    make_authority_with_certificate();
    domus_tls_settings settings = domt_make_client_settings(&pki);
    settings.no_tickets = !keeps_sessions;
    ck_assert_int_eq(
        domt_side_open_client_to(&side, domt_make_tls_context(&settings), NULL, "a.example", 443),
        0);
    domt_raw_open_server(&raw, &pki, "a");
    ck_assert(domt_raw_exchange_bytes_with_side(&raw, &side));
    ck_assert(domt_side_tls_info(&side).done);
    domt_forge_begin_with_keys(&forge, &raw);
}

static void close_stage_and_raw_peer(void)
{
    domt_raw_free_peer(&raw);
    domt_side_close_connection(&side);
    domus_tls_free(side.options.tls);
    domt_pki_free_authority(&pki);
}

static void expect_failure_text_of_stage(const char *failure)
{
    ck_assert_int_eq(side.error, -EPROTO);
    ck_assert_str_eq(domt_side_tls_info(&side).failure, failure);
}

static size_t drop_output_of_stage(void)
{
    size_t size;

    free(domt_side_take_output(&side, &size));
    return size;
}

/* --- records ---------------------------------------------------------------------------------- */

DOMT_TEST(records_of_one_byte_are_accepted)
{
    static char records[2000 * 23];
    size_t size = 0;

    complete_handshake_with_stage_as_server(TLS1_3_VERSION);
    for (int i = 0; i < 2000; i++)
        size += domt_forge_seal_record(&forge, DOMT_FORGE_DATA, i % 100 == 99 ? "\n" : "x", 1,
                                       records + size);
    ck_assert_uint_eq(size, sizeof records);
    domt_side_feed_in_pieces(&side, records, size, 0);
    ck_assert_int_eq(side.error, 0);
    ck_assert_uint_eq(side.messages, 20);
    ck_assert_uint_eq(strlen(side.last), 99);
    close_stage_and_raw_peer();
}

/* largest number of bytes that one call of the stage's `decode` has used */
static size_t most_used;
/* number of calls of `decode` that returned early because they had taken long */
static uint32_t yields;

static int record_most_bytes_used_by_decode(domus_wire *wire, void *state, const char *bytes,
                                            size_t size)
{
    int used = domus_tls_stage.decode(wire, state, bytes, size);

    most_used = used > 0 && (size_t)used > most_used ? (size_t)used : most_used;
    yields += wire->yields;
    return used;
}

DOMT_TEST(decode_of_tiny_records_yields_after_a_while)
{
    static char records[1000 * 23];
    domus_stage noted = domus_tls_stage;
    size_t size = 0;

    make_authority_with_certificate();
    noted.decode = record_most_bytes_used_by_decode;
    domus_tls_settings settings = domt_make_server_settings(&pki, "a");
    side = (domt_side){.options = {domt_make_tls_context(&settings), NULL}, .is_server = true};
    side.stages[0] = (domus_pipeline_stage){&noted, &side.options};
    side.stages[1] = (domus_pipeline_stage){&domus_line_stage, NULL};
    side.pipeline.stages = side.stages;
    ck_assert_int_eq(domus_stage_kit_new(&side.pipeline, &side.kit), 0);
    domt_raw_open_client(&raw, &pki, TLS1_3_VERSION, "a.example");
    ck_assert(domt_raw_exchange_bytes_with_side(&raw, &side));
    domt_forge_begin_with_keys(&forge, &raw);
    for (int i = 0; i < 1000; i++)
        size += domt_forge_seal_record(&forge, DOMT_FORGE_DATA, "x", 1, records + size);
    most_used = yields = 0;
    domt_side_feed_in_pieces(&side, records, size, 4096);
    ck_assert_int_eq(side.error, 0);
    ck_assert_uint_eq(most_used, 64 * 23);
    ck_assert_uint_ge(yields, 1000 / 178 * 2);
    close_stage_and_raw_peer();
}

DOMT_TEST(empty_records_in_a_row_are_limited)
{
    complete_handshake_with_stage_as_server(TLS1_3_VERSION);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 28; k++)
            domt_forge_send_record(&forge, &side, DOMT_FORGE_DATA, "", 0);
        domt_forge_send_record(&forge, &side, DOMT_FORGE_DATA, "x\n", 2);
        ck_assert_int_eq(side.error, 0);
    }
    ck_assert_uint_eq(side.messages, 3);
    for (int k = 0; k < 33; k++)
        domt_forge_send_record(&forge, &side, DOMT_FORGE_DATA, "", 0);
    ck_assert_int_eq(side.error, -EPROTO);
    close_stage_and_raw_peer();
}

DOMT_TEST(warning_alerts_are_limited)
{
    static const char warning[] = {1, 90}; /* the alert user_canceled, which is only a warning */

    complete_handshake_with_stage_as_server(TLS1_3_VERSION);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 4; k++)
            domt_forge_send_record(&forge, &side, DOMT_FORGE_ALERT, warning, 2);
        domt_forge_send_record(&forge, &side, DOMT_FORGE_DATA, "x\n", 2);
        ck_assert_int_eq(side.error, 0);
    }
    for (int k = 0; k < 5; k++)
        domt_forge_send_record(&forge, &side, DOMT_FORGE_ALERT, warning, 2);
    expect_failure_text_of_stage("too many warn alerts");
    close_stage_and_raw_peer();
}

/* --- keys ------------------------------------------------------------------------------------- */

DOMT_TEST(each_key_update_is_answered_by_one)
{
    size_t most = 0;

    complete_handshake_with_stage_as_server(TLS1_3_VERSION);
    (void)drop_output_of_stage();
    for (int i = 0; i < 200; i++) {
        domt_forge_send_record(&forge, &side, DOMT_FORGE_HANDSHAKE, "\x18\x00\x00\x01\x01", 5);
        domt_forge_update_keys(&forge);
        domt_forge_send_record(&forge, &side, DOMT_FORGE_DATA, "x", 1);
        size_t size = drop_output_of_stage();
        most = size > most ? size : most;
        ck_assert_int_eq(side.error, 0);
    }
    /* Each answer has at most one record with a KeyUpdate, which has 27 bytes. */
    ck_assert_uint_eq(most, 27);
    close_stage_and_raw_peer();
}

DOMT_TEST(key_updates_in_one_record_are_refused)
{
    complete_handshake_with_stage_as_server(TLS1_3_VERSION);
    domt_forge_send_record(&forge, &side, DOMT_FORGE_HANDSHAKE, "\x18\0\0\1\1\x18\0\0\1\1", 10);
    expect_failure_text_of_stage("not on record boundary");
    close_stage_and_raw_peer();
}

/* --- tickets ---------------------------------------------------------------------------------- */

/* Write a NewSessionTicket of 21 bytes, with a lifetime of an hour and a nonce and a ticket of two
 * bytes each. Returns its size. */
static size_t write_new_session_ticket(char *to, int number)
{
    static const char ticket[] = "\x04\x00\x00\x11\x00\x00\x0e\x10____\x02NN\x00\x02TT\x00\x00";

    memcpy(to, ticket, sizeof ticket - 1);
    to[13] = to[17] = (char)(number >> 8);
    to[14] = to[18] = (char)number;
    return sizeof ticket - 1;
}

/* Let the raw server send `count` tickets in one record. */
static void send_tickets_in_one_record(int count)
{
    static char bytes[16384];
    size_t size = 0;

    for (int i = 0; i < count; i++)
        size += write_new_session_ticket(bytes + size, i);
    domt_forge_send_record(&forge, &side, DOMT_FORGE_HANDSHAKE, bytes, size);
}

static uint32_t count_sessions_kept_by_client(void)
{
    const domi_tls_state *state = domus_stage_kit_state(side.kit, &domus_tls_stage);
    const domi_tls_shard *shard = SSL_CTX_get_app_data(SSL_get_SSL_CTX(state->ssl));

    return shard->sessions.count;
}

DOMT_TEST(session_tickets_kept_are_limited)
{
    complete_handshake_with_stage_as_client(true);
    for (int i = 0; i < 10; i++) {
        send_tickets_in_one_record(3);
        domt_forge_send_record(&forge, &side, DOMT_FORGE_DATA, "x\n", 2);
    }
    ck_assert_int_eq(side.error, 0);
    ck_assert_uint_eq(count_sessions_kept_by_client(), 8);
    send_tickets_in_one_record(780);
    expect_failure_text_of_stage("too many empty records");
    ck_assert_uint_eq(count_sessions_kept_by_client(), 8);
    close_stage_and_raw_peer();
}

DOMT_TEST(session_tickets_not_kept_are_limited)
{
    complete_handshake_with_stage_as_client(false);
    send_tickets_in_one_record(10);
    ck_assert_int_eq(side.error, 0);
    ck_assert_uint_eq(count_sessions_kept_by_client(), 0);
    send_tickets_in_one_record(30);
    expect_failure_text_of_stage("too many empty records");
    close_stage_and_raw_peer();
}

DOMT_SUITE(60)
