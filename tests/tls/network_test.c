/* TLS over many seeds of a network that fails: lines that clients (OpenSSL itself) send come back
 * in order, wherever the network cuts the records, and a stream that is cut is never mistaken for
 * one that has ended. The bytes differ from run to run, because OpenSSL's random numbers do not
 * come from the seed; sizes and order are the same. DOMUS_SEED=n runs seed n alone; DOMT_LONG runs
 * 50 times as many. */
#include "tests/runtime/net_sweep.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"
#include "tests/tls/raw.h"

#include <openssl/err.h>
#include <string.h>

#define SEEDS DOMT_SCALE(300, 40)
#define DEEDS 30u
#define AT    "127.0.0.1:80"
#define LINE  3000u /* size in bytes of the largest line with its line end */

/* --- the service ------------------------------------------------------------------------------ */

static domus_tls_options secure;
static const domus_pipeline_stage front[] = {{&domus_tls_stage, &secure}, {NULL, NULL}};
static const domus_line_options options = {.role = DOMUS_ROLE_SERVER};
static const domus_pipeline lines = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, &options}, {NULL, NULL}}};

static int send_line_back(domus_stack *stack, void *self, const void *payload)
{
    domus_packet packet;
    int error = domus_slice_keep(((const domus_packet *)payload)->bytes, &packet.bytes);

    if (error == 0)
        error = domus_reply(stack, &domus_packet_type, &packet);
    return error;
}

static const domus_behaviour channel = {
    .name = "lines",
    .kind = DOMUS_CHANNELS,
    .pipeline = &lines,
    .on_peer = (const domus_on_peer[]){{.type = &domus_packet_type, .handle = send_line_back},
                                       {.type = NULL}},
};
static const domus_behaviour service = {
    .name = "service", .kind = DOMUS_CHANNELS, .channel = &channel};

/* --- clients ---------------------------------------------------------------------------------- */

typedef struct tls_client {
    domus_peer *peer;
    domt_raw raw;
    uint32_t said;    /* number of lines that the client has sent */
    uint32_t heard;   /* number of whole lines that have come back to the client */
    uint64_t checked; /* how many bytes of the line that is coming back are checked */
    bool is_done;     /* whether the client sends no more lines */
    bool was_rude;
    bool is_cut;     /* whether the service saw the client's stream end without a close_notify */
    bool has_failed; /* whether OpenSSL has reported an error to the client */
    bool has_ended;  /* whether the service's close_notify has come to the client */
} tls_client;

static domt_pki pki;
static tls_client clients[DOMT_SWEEP_CLIENTS];
static uint32_t clients_count;

/* Make the line with this number, which alone determines the line's size and bytes. */
static size_t make_numbered_line(const tls_client *client, uint32_t number, char *bytes)
{
    uint32_t mixed = (number + 1) * 2654435761u + (uint32_t)(client - clients) * 97u;
    size_t size = 2 + (mixed >> 8) % (mixed % 5 == 0 ? LINE - 2 : 60);

    for (size_t i = 0; i + 1 < size; i++)
        bytes[i] = (char)('a' + (mixed + i) % 26);
    bytes[size - 1] = '\n';
    return size;
}

/* Give the bytes that the client's OpenSSL has made to the network. */
static void flush_client_to_network(tls_client *client)
{
    char *bytes;
    long size = BIO_get_mem_data(client->raw.out, &bytes);

    if (size > 0 && domus_peer_send(client->peer, bytes, (size_t)size) != 0)
        client->is_done = true;
    (void)BIO_reset(client->raw.out);
}

static void check_lines_that_came_back(domt_sweep *sweep, tls_client *client, const char *bytes,
                                       size_t size)
{
    static const char cut[] = "error: ECONNABORTED\n";
    char line[LINE];

    /* When a stream has ended with an error, the stage of lines sends the error's name as text. */
    if (client->heard == client->said && size == sizeof cut - 1 && memcmp(bytes, cut, size) == 0) {
        DOMT_SWEEP_HOLD(sweep, client->is_cut || sweep->faults.ends != 0);
        return;
    }
    while (size != 0) {
        size_t whole = make_numbered_line(client, client->heard, line);
        size_t left = whole - client->checked;
        size_t part = size < left ? size : left;

        DOMT_SWEEP_HOLD(sweep, client->heard < client->said);
        DOMT_SWEEP_HOLD(sweep, memcmp(bytes, line + client->checked, part) == 0);
        if (sweep->has_failed)
            return;
        bytes += part;
        size -= part;
        client->checked = part == left ? 0 : client->checked + part;
        client->heard += part == left;
    }
}

/* Let the client's OpenSSL read the bytes that have come from the network, and send its own. */
static void carry_bytes_of_client(domt_sweep *sweep, tls_client *client)
{
    char plain[4096];
    size_t size;
    const char *got = domus_peer_got(client->peer, &size);
    int part;

    ck_assert(size == 0 || BIO_write(client->raw.in, got, (int)size) == (int)size);
    domus_peer_take(client->peer, size);
    if (client->has_failed || client->has_ended)
        return;
    ERR_clear_error();
    while ((part = SSL_read(client->raw.ssl, plain, sizeof plain)) > 0)
        check_lines_that_came_back(sweep, client, plain, (size_t)part);
    int why = SSL_get_error(client->raw.ssl, part);
    client->has_ended = why == SSL_ERROR_ZERO_RETURN;
    client->has_failed = !client->has_ended && why != SSL_ERROR_WANT_READ;
    flush_client_to_network(client);
}

static void carry_bytes_of_all_clients(domt_sweep *sweep)
{
    for (uint32_t i = 0; i < clients_count; i++)
        carry_bytes_of_client(sweep, &clients[i]);
}

static void write_line_as_client(tls_client *client)
{
    char line[LINE];
    int size = (int)make_numbered_line(client, client->said, line);

    if (client->is_done || client->has_failed || !SSL_is_init_finished(client->raw.ssl))
        return;
    ck_assert_int_eq(SSL_write(client->raw.ssl, line, size), size);
    client->said++;
    flush_client_to_network(client);
}

static void end_stream_of_client(tls_client *client)
{
    if (!client->is_done && !client->has_failed && SSL_is_init_finished(client->raw.ssl)) {
        (void)SSL_shutdown(client->raw.ssl);
        flush_client_to_network(client);
    } else if (!client->is_done) {
        client->is_cut = true;
    }
    domus_peer_finish(client->peer);
    client->is_done = true;
}

static void let_client_act_at_random(domt_sweep *sweep, tls_client *client)
{
    uint64_t deed = domt_sweep_draw_below(sweep, 32);

    if (deed == 0)
        end_stream_of_client(client);
    else if (!domt_sweep_disturb_peer(sweep, deed, client->peer, &client->is_done,
                                      &client->was_rude))
        for (uint64_t left = domt_sweep_draw_below(sweep, 12); left != 0; left--)
            write_line_as_client(client);
}

/* --- a seed ----------------------------------------------------------------------------------- */

static void run_random_actions_of_clients(domt_sweep *sweep)
{
    uint32_t deeds = 1 + (uint32_t)domt_sweep_draw_below(sweep, DEEDS);

    clients_count = 1 + (uint32_t)domt_sweep_draw_below(sweep, DOMT_SWEEP_CLIENTS);
    for (uint32_t i = 0; i < clients_count; i++) {
        tls_client *client = &clients[i];
        *client = (tls_client){.peer = NULL};
        domt_raw_open_client(&client->raw, &pki,
                             domt_sweep_draw_below(sweep, 2) == 0 ? TLS1_2_VERSION : TLS1_3_VERSION,
                             "a.example");
        ck_assert_int_eq(domus_peer_connect(sweep->kit, AT, NULL, &client->peer), 0);
    }
    for (uint32_t i = 0; i < deeds; i++) {
        let_client_act_at_random(sweep, &clients[domt_sweep_draw_below(sweep, clients_count)]);
        for (uint64_t steps = domt_sweep_draw_below(sweep, 30); steps != 0; steps--)
            (void)domus_testkit_step(sweep->kit);
        if (domt_sweep_draw_below(sweep, 4) == 0)
            (void)domus_testkit_advance(sweep->kit,
                                        domt_sweep_draw_below(sweep, 3 * DOMT_SWEEP_MS));
        carry_bytes_of_all_clients(sweep);
    }
}

static bool have_all_clients_ended(void)
{
    for (uint32_t i = 0; i < clients_count; i++)
        if (!clients[i].was_rude && !domus_peer_has_end(clients[i].peer) &&
            domus_peer_error(clients[i].peer) == 0)
            return false;
    return true;
}

static void check_client_lost_no_lines(domt_sweep *sweep, const tls_client *client)
{
    domus_peer_counts counts = domus_peer_count(client->peer);
    bool is_whole = !client->was_rude && sweep->faults.ends == 0 &&
                    domus_peer_error(client->peer) == 0 && counts.missed == 0;

    DOMT_SWEEP_HOLD(sweep, client->was_rude || domus_peer_has_end(client->peer) ||
                               domus_peer_error(client->peer) != 0);
    if (is_whole && client->said != 0) {
        DOMT_SWEEP_HOLD(sweep, !client->has_failed && client->has_ended);
        DOMT_SWEEP_HOLD(sweep, client->heard == client->said && client->checked == 0);
    }
    /* a service that ends by a close_notify has sent whole lines */
    if (client->has_ended && !client->was_rude)
        DOMT_SWEEP_HOLD(sweep, client->checked == 0);
}

/* Check that every client that was not reset has received all its lines, and then a
 * close_notify. */
static void let_all_clients_end(domt_sweep *sweep)
{
    for (uint32_t i = 0; i < clients_count; i++) {
        end_stream_of_client(&clients[i]);
        domus_peer_release(clients[i].peer);
        if (!clients[i].was_rude)
            domus_peer_resume(clients[i].peer);
    }
    for (int tries = 0; tries < 200 && (tries == 0 || !have_all_clients_ended()); tries++) {
        DOMT_SWEEP_HOLD(sweep, domus_testkit_advance(sweep->kit, DOMT_SWEEP_SECOND) == 0);
        carry_bytes_of_all_clients(sweep);
    }
    carry_bytes_of_all_clients(sweep);
    for (uint32_t i = 0; i < clients_count; i++) {
        check_client_lost_no_lines(sweep, &clients[i]);
        domt_raw_free_peer(&clients[i].raw);
    }
}

static int run_simulation_of_seed(uint64_t seed, void *context)
{
    const domus_serve_options with = {.front = front};
    domus_listener_config listener = {.name = "lines", .address = AT, .backlog = 4};
    /* is_relayed lets the sweep accept bytes that are received and then discarded, as those behind
     * a close_notify or a wrong record are. */
    domt_sweep sweep = {.seed = seed, .is_relayed = true};
    domus_config config;

    domi_random_init(&sweep.random, seed);
    domt_sweep_draw_config(&sweep, &config);
    domt_sweep_make_kit(&sweep, &config, &listener, 1);
    domus_system *system = domus_testkit_system(sweep.kit);
    ck_assert_int_eq(domus_serve_with(system, "lines", &service, NULL, &with, NULL), 0);
    domt_sweep_draw_faults(&sweep);
    ck_assert_int_eq(domus_testkit_net_set(sweep.kit, &sweep.faults), 0);
    run_random_actions_of_clients(&sweep);
    let_all_clients_end(&sweep);
    return domt_sweep_end_and_check_seed(&sweep);
}

DOMT_TEST(lines_return_through_tls_and_cut_is_no_end)
{
    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    domus_tls_settings settings = domt_make_server_settings(&pki, "a");
    secure.tls = domt_make_tls_context(&settings);
    domt_sweep_run_seeds(SEEDS, run_simulation_of_seed);
    domus_tls_free(secure.tls);
    domt_pki_free_authority(&pki);
}

DOMT_SUITE(3000)
