/* Random runs: a user that publishes, asks and flushes, and a small server of the test, over a
 * network that is slow, cuts pieces and breaks. Messages come in order and at most once; each
 * ask is answered once; where the network does not break, nothing is lost. */
#include "tests/nats/world.h"

#include <domus/timer.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 60u /* how many rounds the user of one run has, 1 ms apart */

static bool breaks; /* whether the simulated network breaks connections in this run */

/* --- the user --------------------------------------------------------------------------------- */

static struct {
    domus_address client;
    uint32_t rounds;
    uint32_t published;
    uint32_t next; /* least number that the next message of the server may have */
    uint32_t received;
    uint32_t asked;
    uint32_t answered;
    uint32_t failed;
} user;

static const domus_type round_type = {.name = "round"};

static int resume_with_answer_of_request(domus_stack *stack, void *self, const domus_answer *answer)
{
    for (; answer != NULL; answer = answer->next) {
        user.answered++;
        user.failed += answer->error != 0;
        ck_assert_msg(answer->error == 0 || answer->error == -EPIPE ||
                          answer->error == -ETIMEDOUT || answer->error == -ECONNREFUSED ||
                          answer->error == -ESTALE,
                      "%d", answer->error);
        ck_assert_int_eq(answer->error == -ECONNREFUSED,
                         answer->tag == 2 && answer->error != 0 && answer->error == -ECONNREFUSED);
        if (answer->tag == 1 && answer->error == 0) {
            domus_slice payload = domus_nats_payload(answer->payload);
            ck_assert(domus_slice_equals(payload, "question", 8));
        }
        ck_assert(answer->tag != 2 || answer->error != 0);
    }
    (void)stack;
    return 0;
}

static void send_request_or_flush(domus_stack *stack, const domus_type *type, const void *payload,
                                  uint64_t tag)
{
    uint64_t within_ns = user.asked % 3 == 0 ? 0 : (1 + user.asked % 50) * MS;

    if (breaks == false && within_ns != 0)
        within_ns += 10 * SECOND;
    ck_assert_int_eq(domus_ask_add(stack, user.client, type, payload, within_ns, tag), 0);
    user.asked++;
}

static int handle_round_of_user(domus_stack *stack, void *self, const void *payload)
{
    if (user.rounds++ >= ROUNDS)
        return 0;
    for (uint32_t i = 0; i < 5; i++) {
        domus_nats_publish publish = domt_nats_make_publication("d", "");
        ck_assert_int_eq(domus_nats_set_payload(&publish, &user.published, sizeof(uint32_t)), 0);
        user.published++;
        ck_assert_int_eq(domus_notice(stack, user.client, &domus_nats_publish_type, &publish), 0);
    }
    domus_nats_publish request = domt_nats_make_publication("service", "question");
    send_request_or_flush(stack, &domus_nats_request_type, &request, 1);
    request = domt_nats_make_publication("nobody", "question");
    send_request_or_flush(stack, &domus_nats_request_type, &request, 2);
    send_request_or_flush(stack, &domus_nats_flush_type, NULL, 3);
    return domus_wait_all(stack, resume_with_answer_of_request);
}

static int handle_message_of_server(domus_stack *stack, void *self, const void *payload)
{
    const domus_nats_message *message = payload;
    uint32_t number;

    ck_assert_uint_eq(message->payload_size, sizeof number);
    memcpy(&number, domus_slice_data(domus_nats_payload(message)), sizeof number);
    ck_assert_uint_ge(number, user.next);
    user.next = number + 1;
    user.received++;
    return 0;
}

static int resume_when_subscribed(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    return domus_every(stack, MS, &round_type, NULL, NULL);
}

static domus_nats_options user_options;

static int mount_user_of_client(domus_stack *stack, void *self)
{
    domus_nats_subscribe subscribe;

    ck_assert_int_eq(domus_nats_open(stack, &user_options, &user.client), 0);
    ck_assert_int_eq(domus_nats_subscribe_make("d", NULL, &subscribe), 0);
    return domus_ask(stack, user.client, &domus_nats_subscribe_type, &subscribe,
                     resume_when_subscribed);
}

static const domus_behaviour user_behaviour = {
    .name = "user",
    .kind = DOMUS_STATE,
    .on_mount = mount_user_of_client,
    .on = (const domus_on[]){{&domus_nats_message_type, handle_message_of_server, 0},
                             {&round_type, handle_round_of_user, 0},
                             {NULL, NULL, 0}},
};

/* --- the server ------------------------------------------------------------------------------- */

#define PEERS_MAX 500

static struct peer {
    domus_peer *peer;
    unsigned long long number; /* number of the client's subscription to the subject d; 0: none */
} peers[PEERS_MAX];
static uint32_t peers_count;

static void send_bytes_to_client(struct peer *peer, const char *text)
{
    (void)domus_peer_send(peer->peer, text, strlen(text));
}

/* Answer a request of the client, or report that it has no responder. */
static void answer_request_as_server(struct peer *peer, const char *subject, const char *reply,
                                     const char *payload, size_t size)
{
    char text[300];

    if (strcmp(subject, "nobody") == 0)
        snprintf(text, sizeof text, "HMSG %s 0 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", reply);
    else
        snprintf(text, sizeof text, "MSG %s 0 %zu\r\n%.*s\r\n", reply, size, (int)size, payload);
    send_bytes_to_client(peer, text);
}

/* Execute a line of the client, followed by `rest` received bytes. Returns how many of these bytes
 * belong to the line's message, or -1 if they have not all come yet. */
static int serve_line_of_client(struct peer *peer, const char *line, const char *behind,
                                size_t rest)
{
    char subject[100], reply[100], text[200];
    unsigned long long number;
    size_t size;

    if (strncmp(line, "PING", 4) == 0)
        send_bytes_to_client(peer, "PONG\r\n");
    else if (sscanf(line, "SUB d %llu", &number) == 1)
        peer->number = number;
    if (strncmp(line, "PUB ", 4) != 0)
        return 0;
    bool is_request = sscanf(line, "PUB %99s _INBOX.%99s %zu", subject, reply, &size) == 3;
    ck_assert(is_request || sscanf(line, "PUB %99s %zu", subject, &size) == 2);
    if (rest < size + 2)
        return -1;
    if (is_request) {
        snprintf(text, sizeof text, "_INBOX.%s", reply);
        answer_request_as_server(peer, subject, text, behind, size);
    } else if (peer->number != 0) {
        int head = snprintf(text, sizeof text, "MSG d %llu %zu\r\n", peer->number, size);
        memcpy(text + head, behind, size + 2);
        (void)domus_peer_send(peer->peer, text, (size_t)head + size + 2);
    }
    return (int)size + 2;
}

static void serve_connection_of_client(struct peer *peer)
{
    for (;;) {
        char line[1000];
        size_t size;
        const char *got = domus_peer_got(peer->peer, &size);
        const char *end = size != 0 ? memchr(got, '\n', size) : NULL;
        if (end == NULL)
            return;
        size_t length = (size_t)(end - got) + 1;
        ck_assert_uint_lt(length, sizeof line);
        memcpy(line, got, length);
        line[length] = '\0';
        int more = serve_line_of_client(peer, line, got + length, size - length);
        if (more < 0)
            return;
        domus_peer_take(peer->peer, length + (size_t)more);
    }
}

static void step_kit_and_serve_clients(domus_peer_listener *listener)
{
    domus_peer *peer;

    domt_nats_advance_kit_time(MS / 2);
    while (domus_peer_accept(listener, 0, &peer) == 0) {
        ck_assert_uint_lt(peers_count, PEERS_MAX);
        peers[peers_count] = (struct peer){.peer = peer};
        send_bytes_to_client(&peers[peers_count++], INFO);
    }
    for (uint32_t i = 0; i < peers_count; i++)
        serve_connection_of_client(&peers[i]);
}

/* --- runs ------------------------------------------------------------------------------------- */

static int run_simulation_of_seed(uint64_t seed, void *context)
{
    const domus_net_faults faults = {.latency_max_ns = (seed % 4) * MS,
                                     .short_writes = 200000,
                                     .short_reads = 200000,
                                     .resets = breaks ? 500000 : 0,
                                     .reset_within_bytes = 6000,
                                     .ends = breaks ? 200000 : 0,
                                     .end_within_bytes = 6000,
                                     .refusals = breaks ? 100000 : 0};
    domus_peer_listener *listener;
    domus_address address;

    memset(&user, 0, sizeof user);
    peers_count = 0;
    user_options = (domus_nats_options){.servers = PLACE,
                                        .seed = seed,
                                        .backoff_min_ns = MS,
                                        .backoff_max_ns = 4 * MS,
                                        .ping_interval_ns = 20 * MS,
                                        .request_timeout_ns = breaks ? 60 * MS : 60 * SECOND};
    domt_kit = domt_kit_new(NULL, seed);
    domt_expect_success(domus_testkit_net_set(domt_kit, &faults));
    domt_expect_success(domus_peer_listen(domt_kit, PLACE, 0, &listener));
    ck_assert_int_eq(
        domus_outside_spawn(domus_testkit_system(domt_kit), &user_behaviour, NULL, &address), 0);
    for (int i = 0; i < 600 && (user.rounds < ROUNDS || user.answered < user.asked); i++)
        step_kit_and_serve_clients(listener);
    domt_nats = user.client;
    domus_nats_status status = domt_nats_read_client_status();
    bool is_right = user.asked == 3 * ROUNDS && user.answered == user.asked &&
                    user.received <= user.published &&
                    (breaks || (user.received == user.published && user.failed == ROUNDS &&
                                status.reconnects == 0)) &&
                    status.lost + status.refused == 0;
    if (!is_right)
        printf("seed %llu: asked %u answered %u failed %u published %u received %u refused %llu\n",
               (unsigned long long)seed, user.asked, user.answered, user.failed, user.published,
               user.received, (unsigned long long)status.refused);
    domt_nats_end_kit();
    return is_right ? 0 : 1;
}

static void run_simulations_of_seeds(bool does_break)
{
    uint64_t seed;

    breaks = does_break;
    int result = domus_testkit_sweep(1, domt_tenfold_if_tests_are_long(60), run_simulation_of_seed,
                                     NULL, &seed);
    ck_assert_msg(result == 0, "seed %llu", (unsigned long long)seed);
}

DOMT_TEST(nothing_is_lost_without_broken_connections)
{
    run_simulations_of_seeds(false);
}

DOMT_TEST(no_message_repeats_and_each_ask_ends)
{
    run_simulations_of_seeds(true);
}

DOMT_SUITE(100)
