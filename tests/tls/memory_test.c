/* TLS without memory, and with little: every allocation fails once, and only a few connections of
 * a thread keep OpenSSL's buffers. */
#include "base/memory.h"
#include "protocols/tls/buffers.h"
#include "protocols/tls/tls.h"
#include "tests/support/suite.h"
#include "tests/tls/talk.h"

#include <domus/budget.h>
#include <domus/memory.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* TLS: every allocation of the stage or of OpenSSL fails once; no memory is leaked, and no wrong
 * bytes are accepted. */

static uint32_t left; /* number of allocations until the one that fails */
static bool has_failed;
static bool fails_all; /* whether allocations of OpenSSL count and fail, too */
static bool matters;   /* whether the allocation that failed must make a call fail */
/* The failed allocation makes a call fail if bytes had to be queued, but not if a session was to be
 * offered. */
static bool may_matter;
static int64_t allocated; /* memory blocks of the stage itself that are not freed yet */

static bool is_file_of_stage(const char *file)
{
    return file != NULL && strstr(file, "protocols/tls/") != NULL;
}

/* The allocation is for a session to be resumed: without it the handshake is a full one, and
 * succeeds. */
static bool is_allocation_for_session(const char *file)
{
    return strstr(file, "protocols/tls/sessions.c") != NULL ||
           strstr(file, "protocols/tls/client.c") != NULL;
}

static bool must_allocation_fail(const char *file)
{
    if ((!is_file_of_stage(file) && !fails_all) || has_failed || --left != 0)
        return false;
    has_failed = true;
    matters = !is_allocation_for_session(file);
    may_matter = file != NULL && strstr(file, "protocols/tls/extra.c") != NULL;
    return true;
}

static void *allocate_for_openssl(size_t size, const char *file, int line)
{
    if (must_allocation_fail(file))
        return NULL;
    allocated += is_file_of_stage(file);
    return malloc(size);
}

static void *reallocate_for_openssl(void *block, size_t size, const char *file, int line)
{
    if (must_allocation_fail(file))
        return NULL;
    allocated += is_file_of_stage(file) && block == NULL;
    return realloc(block, size);
}

static void free_for_openssl(void *block, const char *file, int line)
{
    allocated -= is_file_of_stage(file) && block != NULL;
    free(block);
}

static domt_pki pki;

/* Let a client and a server with these contexts exchange a line. Returns the first error. */
static int exchange_line_over_new_connection(domus_tls *server_tls, domus_tls *client_tls)
{
    static domt_side server, client;
    int error = domt_side_open_by_role(&server, server_tls, NULL);

    client.kit = NULL;
    if (error != 0)
        return error;
    error = domt_side_open_by_role(&client, client_tls, "a.example");
    if (error == 0)
        error = domt_side_try_to_send_line(&client, "hello");
    if (error == 0) {
        domt_side_exchange_bytes_with_other(&client, &server, 0);
        error = client.error != 0 ? client.error : server.error;
        ck_assert(error != 0 || strcmp(client.last, "hello") == 0);
    }
    domt_side_close_connection(&client);
    domt_side_close_connection(&server);
    return error;
}

/* Make both contexts, let a client and a server exchange lines, also with a resumed session, and
 * read the files again. Returns the first error. */
static int exchange_lines_resume_and_reload_once(void)
{
    domus_tls_settings of_server = domt_make_server_settings(&pki, "a");
    domus_tls_settings of_client = domt_make_client_settings(&pki);
    domus_tls *server_tls = NULL;
    domus_tls *client_tls = NULL;
    int error = domus_tls_new(&of_server, NULL, 0, &server_tls);

    if (error == 0)
        error = domus_tls_new(&of_client, NULL, 0, &client_tls);
    for (int i = 0; error == 0 && i < 2; i++)
        error = exchange_line_over_new_connection(server_tls, client_tls);
    if (error == 0)
        error = domus_tls_reload(server_tls, NULL, 0);
    domus_tls_free(client_tls);
    domus_tls_free(server_tls);
    return error;
}

DOMT_TEST(stage_survives_each_failed_allocation)
{
    uint32_t number = 0;

    left = UINT32_MAX;
    ck_assert_int_eq(
        CRYPTO_set_mem_functions(allocate_for_openssl, reallocate_for_openssl, free_for_openssl),
        1);
    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    /* The first run makes everything that is allocated only once in a process. */
    ck_assert_int_eq(exchange_lines_resume_and_reload_once(), 0);
    do {
        has_failed = false;
        left = ++number;
        int64_t before = allocated;
        int error = exchange_lines_resume_and_reload_once();
        if (!has_failed || !may_matter || error != 0)
            ck_assert_int_eq(error, has_failed && matters ? -ENOMEM : 0);
        ck_assert_int_eq(allocated, before);
    } while (has_failed);
    ck_assert_uint_gt(number, 15);
    domt_pki_free_authority(&pki);
}

static void make_server_and_client_contexts(domus_tls **ret_server, domus_tls **ret_client)
{
    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    domus_tls_settings settings = domt_make_server_settings(&pki, "a");
    settings.buffers_max = 1;
    *ret_server = domt_make_tls_context(&settings);
    settings = domt_make_client_settings(&pki);
    *ret_client = domt_make_tls_context(&settings);
}

static void free_server_and_client_contexts(domus_tls *server, domus_tls *client)
{
    domus_tls_free(client);
    domus_tls_free(server);
    domt_pki_free_authority(&pki);
}

/* OpenSSL may go on without the memory, or let the handshake fail; the client and the server
 * survive that. There are more than a thousand allocations, so the short form of the test lets only
 * each fourth one fail. */
DOMT_TEST(stage_survives_each_failed_openssl_allocation)
{
    uint32_t number = 0, failures = 0;

    left = UINT32_MAX;
    ck_assert_int_eq(
        CRYPTO_set_mem_functions(allocate_for_openssl, reallocate_for_openssl, free_for_openssl),
        1);
    domus_tls *server_tls, *client_tls;

    make_server_and_client_contexts(&server_tls, &client_tls);
    /* this exchange allocates the shards of the contexts before allocations fail */
    ck_assert_int_eq(exchange_line_over_new_connection(server_tls, client_tls), 0);
    do {
        fails_all = true;
        has_failed = false;
        number += domt_tests_are_long() ? 1 : 4;
        left = number;
        int error = exchange_line_over_new_connection(server_tls, client_tls);
        bool is_last = !has_failed;
        fails_all = false;
        left = UINT32_MAX;
        has_failed = false;
        failures += error != 0;
        ck_assert(error == 0 || !is_last);
        ck_assert_int_eq(exchange_line_over_new_connection(server_tls, client_tls), 0);
        if (is_last)
            break;
    } while (true);
    ck_assert_uint_gt(number, 300);
    ck_assert_uint_gt(failures, domt_tests_are_long() ? 100 : 25);
    free_server_and_client_contexts(server_tls, client_tls);
}

static const BIO *find_bio_of_side(const domt_side *side)
{
    const domi_tls_state *state = domus_stage_kit_state(side->kit, &domus_tls_stage);

    return SSL_get_rbio(state->ssl);
}

/* The memory of TLS connections counts on the meter of the library; only the BIO of each, of 208
 * bytes, does not. */
DOMT_TEST(connections_count_as_own_memory)
{
    static domt_side servers[16], client;
    domi_meter meter = {.look_at = INT64_MAX};

    domus_tls *server_tls, *client_tls;

    make_server_and_client_contexts(&server_tls, &client_tls);
    (void)domi_memory_set_meter(&meter);
    for (int i = 0; i < 16; i++)
        ck_assert_int_eq(domt_side_open_by_role(&servers[i], server_tls, NULL), 0);
    /* Without a meter, the thread adds the counts that it still holds to the last one. */
    (void)domi_memory_set_meter(NULL);
    int64_t shaking = atomic_load(&meter.held);
    ck_assert_int_gt(shaking, 16 * 48 * 1024);
    ck_assert_int_lt(shaking, 16 * 52 * 1024);
    (void)domi_memory_set_meter(&meter);
    for (int i = 0; i < 16; i++) {
        ck_assert_int_eq(domt_side_open_by_role(&client, client_tls, "a.example"), 0);
        domt_side_exchange_bytes_with_other(&client, &servers[i], 0);
        ck_assert(domt_side_tls_info(&servers[i]).done);
        ck_assert_ptr_eq(find_bio_of_side(&servers[i]), find_bio_of_side(&servers[0]));
        domt_side_close_connection(&client);
    }
    (void)domi_memory_set_meter(NULL);
    ck_assert_int_lt(atomic_load(&meter.held), shaking / 2);
    (void)domi_memory_set_meter(&meter);
    for (int i = 0; i < 16; i++)
        domt_side_close_connection(&servers[i]);
    (void)domi_memory_set_meter(NULL);
    ck_assert_int_eq(atomic_load(&meter.held), 0);

    uint64_t counted = 0;
    (void)domi_memory_set_meter(&meter);
    domi_memory_fail_allocation_after(0, 0);
    ck_assert_int_eq(domus_memory_count(&counted, 100), -ENOMEM);
    domi_memory_fail_allocation_after(-1, 0);
    atomic_store(&meter.full, 1);
    ck_assert_int_eq(domus_memory_count(&counted, 100), -ENOMEM);
    ck_assert_uint_eq(counted, 0);
    atomic_store(&meter.full, 0);
    ck_assert_int_eq(domus_memory_count(&counted, 100), 0);
    ck_assert_int_eq(domus_memory_count(&counted, 0), 0);
    (void)domi_memory_set_meter(NULL);
    ck_assert_int_eq(atomic_load(&meter.held), 0);
    free_server_and_client_contexts(server_tls, client_tls);
}

/* OpenSSL does not learn that a write to its BIO may not be repeated, so the stage has to remember
 * the failure. */
DOMT_TEST(handshake_fails_if_its_bytes_cannot_be_queued)
{
    static domt_side server, client;
    domus_stage_message message;
    domus_tls *server_tls, *client_tls;
    uint32_t failures = 0;

    make_server_and_client_contexts(&server_tls, &client_tls);
    for (int64_t number = 0; number < 12; number++) {
        ck_assert_int_eq(domt_side_open_by_role(&server, server_tls, NULL), 0);
        ck_assert_int_eq(domt_side_open_by_role(&client, client_tls, "a.example"), 0);
        size_t size;
        char *hello = domt_side_take_output(&client, &size);
        ck_assert_int_eq(domus_stage_kit_feed(server.kit, hello, size), 0);
        free(hello);
        domi_memory_fail_allocation_after(number, 0);
        int result = domus_stage_kit_next(server.kit, &message);
        domi_memory_fail_allocation_after(-1, 0);
        failures += result != 0;
        if (result == 0)
            domt_side_exchange_bytes_with_other(&client, &server, 0);
        ck_assert(result == -ENOMEM || domt_side_tls_info(&server).done);
        domt_side_close_connection(&client);
        domt_side_close_connection(&server);
    }
    ck_assert_uint_gt(failures, 0);
    ck_assert_uint_lt(failures, 12);
    free_server_and_client_contexts(server_tls, client_tls);
}

/* --- buffers ---------------------------------------------------------------------------------- */

/* TLS: only a few connections of a thread keep OpenSSL's buffers while they are idle, and errors
 * that other code has left in OpenSSL's queue do no harm. */

#define PAIRS (DOMI_TLS_KEEPERS + 6)

typedef struct pair {
    domt_side server, client;
} pair;

static domus_tls *server_tls;
static domus_tls *client_tls;
static pair *pairs[PAIRS];

static void make_contexts_for_pairs(void)
{
    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    const domus_tls_settings of_server = domt_make_server_settings(&pki, "a");
    const domus_tls_settings of_client = domt_make_client_settings(&pki);
    server_tls = domt_make_tls_context(&of_server);
    client_tls = domt_make_tls_context(&of_client);
}

static void free_contexts_of_pairs(void)
{
    domus_tls_free(client_tls);
    domus_tls_free(server_tls);
    domt_pki_free_authority(&pki);
}

static void open_connected_pair(uint32_t i)
{
    pairs[i] = calloc(1, sizeof *pairs[i]);
    ck_assert_ptr_nonnull(pairs[i]);
    ck_assert_int_eq(domt_side_open_by_role(&pairs[i]->server, server_tls, NULL), 0);
    ck_assert_int_eq(domt_side_open_by_role(&pairs[i]->client, client_tls, "a.example"), 0);
}

static void close_connected_pair(uint32_t i)
{
    domt_side_close_connection(&pairs[i]->client);
    domt_side_close_connection(&pairs[i]->server);
    free(pairs[i]);
    pairs[i] = NULL;
}

static void exchange_line_of_pair(uint32_t i, uint32_t round)
{
    char line[64];

    snprintf(line, sizeof line, "%u in round %u", i, round);
    domt_side_send_line(&pairs[i]->client, line);
    domt_side_exchange_bytes_with_other(&pairs[i]->client, &pairs[i]->server, 0);
    ck_assert_str_eq(pairs[i]->client.last, line);
}

/* Returns how many of the test's servers keep OpenSSL's buffers. */
static uint32_t count_servers_keeping_buffers(void)
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

DOMT_TEST(last_used_connections_keep_openssl_buffers)
{
    make_contexts_for_pairs();
    for (uint32_t i = 0; i < PAIRS; i++) {
        open_connected_pair(i);
        exchange_line_of_pair(i, 0);
        ck_assert_uint_eq(count_servers_keeping_buffers(),
                          i < DOMI_TLS_KEEPERS ? i + 1 : DOMI_TLS_KEEPERS);
    }
    for (uint32_t round = 1; round < 4; round++) {
        for (uint32_t i = 0; i < PAIRS; i++)
            exchange_line_of_pair(i, round);
        ck_assert_uint_eq(count_servers_keeping_buffers(), DOMI_TLS_KEEPERS);
    }
    for (uint32_t i = 0; i < PAIRS; i += 3)
        close_connected_pair(i);
    uint32_t remaining = count_servers_keeping_buffers();
    ck_assert_uint_lt(remaining, DOMI_TLS_KEEPERS);
    for (uint32_t i = 0; i < PAIRS; i += 3) {
        open_connected_pair(i);
        exchange_line_of_pair(i, 4);
    }
    for (uint32_t i = 0; i < PAIRS; i++)
        exchange_line_of_pair(i, 5);
    ck_assert_uint_le(count_servers_keeping_buffers(), DOMI_TLS_KEEPERS);
    for (uint32_t i = 0; i < PAIRS; i++)
        close_connected_pair(i);
    free_contexts_of_pairs();
}

DOMT_TEST(kept_buffers_are_limited_and_count_in_budget)
{
    domus_budget budget = {.bytes_max = 4 * 16384 + 49152 + 2 * 34816};
    const uint64_t each = 16384, more = 34816;

    make_contexts_for_pairs();
    domus_tls_settings settings = domt_make_server_settings(&pki, "a");
    settings.buffers_max = 2;
    settings.budget = &budget;
    domus_tls_free(server_tls);
    server_tls = domt_make_tls_context(&settings);
    for (uint32_t i = 0; i < 4; i++) {
        open_connected_pair(i);
        exchange_line_of_pair(i, 0);
        uint32_t kept = i < 2 ? i + 1 : 2;
        ck_assert_uint_eq(count_servers_keeping_buffers(), kept);
        ck_assert_uint_eq(budget.used_bytes, (i + 1) * each + kept * more);
    }
    budget.bytes_max = budget.used_bytes - 1; /* the budget has no byte left for kept buffers */
    close_connected_pair(0);
    close_connected_pair(3);
    budget.bytes_max = 2 * each + more;
    exchange_line_of_pair(1, 1);
    ck_assert_uint_le(budget.used_bytes, budget.bytes_max);
    close_connected_pair(1);
    close_connected_pair(2);
    ck_assert_uint_eq(budget.used_bytes, 0);
    free_contexts_of_pairs();
}

DOMT_TEST(stale_errors_in_openssl_queue_are_harmless)
{
    make_contexts_for_pairs();
    open_connected_pair(0);
    ERR_raise(ERR_LIB_USER, 1);
    domt_side_send_line(&pairs[0]->client, "early");
    domt_side_exchange_bytes_with_other(&pairs[0]->client, &pairs[0]->server, 1);
    ck_assert_str_eq(pairs[0]->client.last, "early");
    for (uint32_t round = 0; round < 3; round++) {
        ERR_raise(ERR_LIB_USER, 1);
        exchange_line_of_pair(0, round);
    }
    ERR_raise(ERR_LIB_USER, 1);
    domus_stage_kit_end_output(pairs[0]->client.kit);
    domt_side_exchange_bytes_with_other(&pairs[0]->client, &pairs[0]->server, 0);
    ck_assert_int_eq(pairs[0]->server.error, 0);
    close_connected_pair(0);
    free_contexts_of_pairs();
}

DOMT_SUITE(120)
