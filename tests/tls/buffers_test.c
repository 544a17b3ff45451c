/* TLS: only a few connections of a thread keep OpenSSL's buffers, and errors that other code has
 * left in OpenSSL's queue do no harm. */
#include "tests/support/suite.h"
#include "tests/tls/talk.h"

#include "protocols/tls/buffers.h"

#include <domus/budget.h>

#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS (DOMI_TLS_KEEPERS + 6)

typedef struct pair {
    domt_side server, client;
} pair;

static domt_pki pki;
static domus_tls *server_tls;
static domus_tls *client_tls;
static pair *pairs[PAIRS];

static void set_up(void)
{
    domt_pki_make(&pki);
    domt_pki_issue(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    const domus_tls_settings of_server = domt_server_settings(&pki, "a");
    const domus_tls_settings of_client = domt_client_settings(&pki);
    server_tls = domt_tls(&of_server);
    client_tls = domt_tls(&of_client);
}

static void tear_down(void)
{
    domus_tls_free(client_tls);
    domus_tls_free(server_tls);
    domt_pki_free(&pki);
}

static void open_pair(uint32_t i)
{
    pairs[i] = calloc(1, sizeof *pairs[i]);
    ck_assert_ptr_nonnull(pairs[i]);
    ck_assert_int_eq(domt_side_open(&pairs[i]->server, server_tls, NULL), 0);
    ck_assert_int_eq(domt_side_open(&pairs[i]->client, client_tls, "a.example"), 0);
}

static void close_pair(uint32_t i)
{
    domt_side_close(&pairs[i]->client);
    domt_side_close(&pairs[i]->server);
    free(pairs[i]);
    pairs[i] = NULL;
}

static void exchange_line(uint32_t i, uint32_t round)
{
    char line[64];

    snprintf(line, sizeof line, "%u in round %u", i, round);
    domt_side_send_line(&pairs[i]->client, line);
    domt_talk(&pairs[i]->client, &pairs[i]->server, 0);
    ck_assert_str_eq(pairs[i]->client.last, line);
}

/* Returns how many of the servers keep their buffers. */
static uint32_t count_keepers(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < PAIRS; i++) {
        if (pairs[i] == NULL)
            continue;
        const domi_tls_state *state = domus_stage_kit_state(pairs[i]->server.kit, &domus_tls_stage);
        bool releases = (SSL_get_mode(state->ssl) & SSL_MODE_RELEASE_BUFFERS) != 0;
        ck_assert_int_eq(releases, state->place == 0);
        count += state->place != 0;
    }
    return count;
}

DOMT_TEST(last_connections_of_a_thread_keep_their_buffers)
{
    set_up();
    for (uint32_t i = 0; i < PAIRS; i++) {
        open_pair(i);
        exchange_line(i, 0);
        ck_assert_uint_eq(count_keepers(), i < DOMI_TLS_KEEPERS ? i + 1 : DOMI_TLS_KEEPERS);
    }
    for (uint32_t round = 1; round < 4; round++) {
        for (uint32_t i = 0; i < PAIRS; i++)
            exchange_line(i, round);
        ck_assert_uint_eq(count_keepers(), DOMI_TLS_KEEPERS);
    }
    for (uint32_t i = 0; i < PAIRS; i += 3)
        close_pair(i);
    uint32_t left = count_keepers();
    ck_assert_uint_lt(left, DOMI_TLS_KEEPERS);
    for (uint32_t i = 0; i < PAIRS; i += 3) {
        open_pair(i);
        exchange_line(i, 4);
    }
    for (uint32_t i = 0; i < PAIRS; i++)
        exchange_line(i, 5);
    ck_assert_uint_le(count_keepers(), DOMI_TLS_KEEPERS);
    for (uint32_t i = 0; i < PAIRS; i++)
        close_pair(i);
    tear_down();
}

DOMT_TEST(kept_buffers_are_bounded_and_count)
{
    domus_budget budget = {.bytes_max = 4 * 16384 + 49152 + 2 * 34816};
    const uint64_t each = 16384, more = 34816;

    set_up();
    domus_tls_settings settings = domt_server_settings(&pki, "a");
    settings.buffers_max = 2;
    settings.budget = &budget;
    domus_tls_free(server_tls);
    server_tls = domt_tls(&settings);
    for (uint32_t i = 0; i < 4; i++) {
        open_pair(i);
        exchange_line(i, 0);
        uint32_t kept = i < 2 ? i + 1 : 2;
        ck_assert_uint_eq(count_keepers(), kept);
        ck_assert_uint_eq(budget.used_bytes, (i + 1) * each + kept * more);
    }
    budget.bytes_max = budget.used_bytes - 1; /* the budget has no bytes left */
    close_pair(0);
    close_pair(3);
    budget.bytes_max = 2 * each + more;
    exchange_line(1, 1);
    ck_assert_uint_le(budget.used_bytes, budget.bytes_max);
    close_pair(1);
    close_pair(2);
    ck_assert_uint_eq(budget.used_bytes, 0);
    tear_down();
}

DOMT_TEST(errors_that_others_have_left_hurt_no_connection)
{
    set_up();
    open_pair(0);
    ERR_raise(ERR_LIB_USER, 1);
    domt_side_send_line(&pairs[0]->client, "early");
    domt_talk(&pairs[0]->client, &pairs[0]->server, 1);
    ck_assert_str_eq(pairs[0]->client.last, "early");
    for (uint32_t round = 0; round < 3; round++) {
        ERR_raise(ERR_LIB_USER, 1);
        exchange_line(0, round);
    }
    ERR_raise(ERR_LIB_USER, 1);
    domus_stage_kit_end_output(pairs[0]->client.kit);
    domt_talk(&pairs[0]->client, &pairs[0]->server, 0);
    ck_assert_int_eq(pairs[0]->server.error, 0);
    close_pair(0);
    tear_down();
}

DOMT_SUITE(120)
