/* A client and Debian's nats-server: publications arrive, requests are answered, the client goes
 * on after its server was killed, and logs in by JWT. */
#include "tests/nats/user.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A client and Debian's nats-server: publications arrive, requests are answered, and the client
 * goes on after its server was killed. */

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

static domt_nats_server server;
static domt_nats_user user;

static void start_server_with_client(const char *config, const domus_nats_options *options)
{
    domus_nats_options filled = options != NULL ? *options : (domus_nats_options){0};

    domt_nats_server_start(&server, config, 0);
    filled.servers = server.url;
    domt_nats_user_start_system(&user, &filled);
}

static void stop_server_with_client(void)
{
    domt_nats_user_stop_system(&user);
    domt_nats_server_stop(&server);
}

DOMT_TEST(messages_of_each_size_arrive_unchanged)
{
    static const size_t sizes[] = {0, 1, 185, 512, 513, 16384, 65536, 300000, 1048576};
    static char bytes[1048576 + 1];

    start_server_with_client(NULL, NULL);
    uint64_t number = domt_nats_user_subscribe_to_subject(&user, "a.*", NULL, 9);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        domt_nats_user_publish_bytes(&user, "a.b", bytes, sizes[i]);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const domus_nats_message *message = domt_nats_user_receive_message(&user);
        ck_assert(domt_slice_has_text(domus_nats_subject(message), "a.b"));
        ck_assert_uint_eq(message->subscription, number);
        ck_assert_uint_eq(message->tag, 9);
        ck_assert(domus_slice_equals(domus_nats_payload(message), bytes, sizes[i]));
    }
    domus_nats_status status = domt_nats_user_read_client_status(&user);
    ck_assert(status.connected && status.has_headers);
    ck_assert_uint_eq(status.max_payload, 1048576);
    ck_assert_uint_eq(status.in_messages, 9);
    ck_assert_uint_eq(status.in_bytes, status.out_bytes);
    /* The payload is larger than the server allows, so the client refuses it: the server would end
     * the connection. */
    domt_nats_user_publish_bytes(&user, "a.b", bytes, 1048577);
    domt_nats_user_ask_successfully(&user, &domus_nats_flush_type, NULL);
    status = domt_nats_user_read_client_status(&user);
    ck_assert_uint_eq(status.refused, 1);
    ck_assert_uint_eq(status.connects, 1);
    stop_server_with_client();
}

DOMT_TEST(messages_keep_order_and_flush_follows)
{
    start_server_with_client(NULL, NULL);
    (void)domt_nats_user_subscribe_to_subject(&user, "n", NULL, 0);
    for (uint32_t i = 0; i < 20000; i++)
        domt_nats_user_publish_bytes(&user, "n", &i, sizeof i);
    domt_nats_user_ask_successfully(&user, &domus_nats_flush_type, NULL);
    ck_assert_uint_eq(domt_nats_user_read_client_status(&user).out_messages, 20000);
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t got;
        domus_slice payload = domus_nats_payload(domt_nats_user_receive_message(&user));
        ck_assert_uint_eq(payload.size, sizeof got);
        memcpy(&got, domus_slice_data(payload), sizeof got);
        ck_assert_uint_eq(got, i);
    }
    ck_assert_uint_eq(domt_nats_user_read_client_status(&user).lost, 0);
    stop_server_with_client();
}

DOMT_TEST(request_without_responder_fails_at_once)
{
    domus_nats_message answer;

    start_server_with_client(NULL, NULL);
    domt_nats_user_await_connection(&user);
    ck_assert_int_eq(domt_nats_user_send_request(&user, "nobody", "x", 5 * SECOND, &answer),
                     -ECONNREFUSED);
    (void)domt_nats_user_subscribe_to_subject(&user, "silent", NULL, 0);
    ck_assert_int_eq(domt_nats_user_send_request(&user, "silent", "x", 100 * MS, &answer),
                     -ETIMEDOUT);
    ck_assert(domt_slice_has_text(domus_nats_payload(domt_nats_user_receive_message(&user)), "x"));
    stop_server_with_client();
}

DOMT_TEST(client_without_echo_gets_no_own_messages)
{
    start_server_with_client(NULL, &(domus_nats_options){.no_echo = true});
    (void)domt_nats_user_subscribe_to_subject(&user, "a", NULL, 0);
    domt_nats_user_publish_bytes(&user, "a", "own", 3);
    domt_nats_user_ask_successfully(&user, &domus_nats_flush_type, NULL);
    ck_assert_uint_eq(domt_nats_user_read_client_status(&user).in_messages, 0);
    stop_server_with_client();
}

/* The nats-server is killed, and started again at the same address: messages published meanwhile
 * arrive. */
DOMT_TEST(client_reconnects_after_server_is_killed)
{
    static const domus_nats_options options = {.backoff_min_ns = 10 * MS,
                                               .backoff_max_ns = 50 * MS};
    start_server_with_client(NULL, &options);
    (void)domt_nats_user_subscribe_to_subject(&user, "a", NULL, 0);
    domt_nats_user_ask_successfully(&user, &domus_nats_flush_type, NULL);
    uint16_t port = server.port;
    domt_nats_server_stop(&server);
    while (domt_nats_user_read_client_status(&user).connected)
        ;
    for (int i = 0; i < 100; i++)
        domt_nats_user_publish_bytes(&user, "a", "meanwhile", 9);
    domt_nats_server_start(&server, NULL, port);
    for (int i = 0; i < 100; i++)
        ck_assert(domt_slice_has_text(domus_nats_payload(domt_nats_user_receive_message(&user)),
                                      "meanwhile"));
    domus_nats_status status = domt_nats_user_read_client_status(&user);
    ck_assert_uint_eq(status.reconnects, 1);
    ck_assert_uint_eq(status.refused + status.waiting, 0);
    stop_server_with_client();
}

/* The nats-server is suspended: the client notices by its pings, and the request that was under way
 * fails. */
DOMT_TEST(client_leaves_suspended_server)
{
    static const domus_nats_options options = {.ping_interval_ns = 150 * MS,
                                               .connect_timeout_ns = 500 * MS,
                                               .backoff_min_ns = 10 * MS,
                                               .backoff_max_ns = 20 * MS};
    domus_nats_message answer;

    start_server_with_client(NULL, &options);
    (void)domt_nats_user_subscribe_to_subject(&user, "a", NULL, 0);
    domt_nats_user_ask_successfully(&user, &domus_nats_flush_type, NULL);
    domt_nats_server_kill(&server, SIGSTOP);
    ck_assert_int_eq(domt_nats_user_send_request(&user, "a", "x", 10 * SECOND, &answer), -EPIPE);
    ck_assert_uint_ge(domt_nats_user_read_client_status(&user).stale, 1);
    domt_nats_server_kill(&server, SIGCONT);
    domt_nats_user_await_connection(&user);
    domt_nats_user_ask_successfully(&user, &domus_nats_flush_type, NULL);
    stop_server_with_client();
}

/* A server names the other servers of its cluster, and the client connects to one of them when the
 * first server is gone. */
DOMT_TEST(client_moves_to_another_server_of_cluster)
{
    static domt_nats_server other;
    char config[300];
    static const domus_nats_options options = {.backoff_min_ns = 10 * MS,
                                               .backoff_max_ns = 50 * MS};

    domt_nats_server_start(&other, "cluster { name: c, listen: \"127.0.0.1:-1\" }", 0);
    snprintf(config, sizeof config,
             "cluster { name: c, listen: \"127.0.0.1:-1\", routes: [\"nats://127.0.0.1:%u\"] }",
             domt_nats_server_cluster_port(&other));
    start_server_with_client(config, &options);
    (void)domt_nats_user_subscribe_to_subject(&user, "a", NULL, 0);
    domt_nats_user_ask_successfully(&user, &domus_nats_flush_type, NULL);
    while (domt_nats_user_read_client_status(&user).servers < 2)
        ;
    domt_nats_server_kill(&server, SIGKILL);
    while (domt_nats_user_read_client_status(&user).reconnects == 0)
        ;
    domt_nats_user_publish_bytes(&user, "a", "there", 5);
    ck_assert(
        domt_slice_has_text(domus_nats_payload(domt_nats_user_receive_message(&user)), "there"));
    ck_assert_str_eq(domt_nats_user_read_client_status(&user).server, other.url);
    domt_nats_server_stop(&other);
    stop_server_with_client();
}

/* A drain of the client finishes everything: publications arrive, and received messages are
 * delivered. */
DOMT_TEST(drain_delivers_all_messages)
{
    domt_nats_user other;

    start_server_with_client(NULL, NULL);
    other = user;
    other.client = domt_nats_user_open_client(&user, &(domus_nats_options){.servers = server.url});
    (void)domt_nats_user_subscribe_to_subject(&other, "a", NULL, 1);
    domt_nats_user_ask_successfully(&other, &domus_nats_flush_type, NULL);
    (void)domt_nats_user_subscribe_to_subject(&user, "b", NULL, 2);
    domt_nats_user_ask_successfully(&user, &domus_nats_flush_type, NULL);
    for (int i = 0; i < 1000; i++) {
        domt_nats_user_publish_bytes(&other, "b", "to the one that drains", 22);
        domt_nats_user_publish_bytes(&user, "a", "of the one that drains", 22);
    }
    domt_nats_user_ask_successfully(&other, &domus_nats_flush_type, NULL);
    domt_nats_user_ask_successfully(&user, &domus_nats_drain_type, NULL);
    uint32_t counts[3] = {0};
    for (int i = 0; i < 2000; i++)
        counts[domt_nats_user_receive_message(&user)->tag]++;
    ck_assert_uint_eq(counts[1], 1000);
    ck_assert_uint_eq(counts[2], 1000);
    ck_assert_int_eq(domus_outsider_ask(user.outsider, user.client, &domus_nats_flush_type, NULL,
                                        5 * SECOND, NULL),
                     -ESTALE);
    stop_server_with_client();
}

/* --- jwt -------------------------------------------------------------------------------------- */

/* Logins by JWT: a nats-server in operator mode, whose operator and account are made here. */

#define JWT_SECOND UINT64_C(1000000000)
#define SEED       "SUAJ2YNRTXX72WTAXKCEV5ES5QWMIRCJYVUXWMTJDFYDXLADDSXH6YALCA"
#define USER       "UDLVVGABQKYQVN6VJP7NHSLEA45A5YLS6PNKMIZFV4BBU2HXA5IRUVAL"

/* Write bytes as digits of `width` bits each, from the characters of an alphabet. */
static void write_bytes_as_digits(const uint8_t *bytes, size_t size, unsigned width,
                                  const char *digits, char *text)
{
    unsigned bits = 0, have = 0;

    for (size_t i = 0; i < size; i++) {
        bits = (bits << 8 | bytes[i]) & 0xffff;
        for (have += 8; have >= width; have -= width)
            *text++ = digits[bits >> (have - width) & ((1u << width) - 1)];
    }
    if (have != 0)
        *text++ = digits[bits << (width - have) & ((1u << width) - 1)];
    *text = '\0';
}

static void write_bytes_as_base64(const void *bytes, size_t size, char *text)
{
    write_bytes_as_digits(bytes, size, 6,
                          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", text);
}

/* Make a key pair from bytes that `whose` chooses, and write its public key as text: "O..." for an
 * operator, "A..." for an account. */
static EVP_PKEY *make_key_with_public_name(char whose, char name[60])
{
    uint8_t seed[32], bytes[35];
    size_t size = 32;

    memset(seed, whose, sizeof seed);
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, sizeof seed);
    ck_assert_ptr_nonnull(key);
    bytes[0] = (uint8_t)((whose - 'A') << 3);
    ck_assert_int_eq(EVP_PKEY_get_raw_public_key(key, bytes + 1, &size), 1);
    unsigned crc = 0;
    for (int i = 0; i < 33; i++) {
        crc ^= (unsigned)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1;
    }
    bytes[33] = (uint8_t)crc;
    bytes[34] = (uint8_t)(crc >> 8);
    write_bytes_as_digits(bytes, sizeof bytes, 5, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", name);
    return key;
}

/* Make a signed JWT with this issuer, subject, time of expiry and claims. */
static void make_signed_jwt(EVP_PKEY *key, const char *issuer, const char *subject,
                            const char *expires, const char *claims, char text[2000])
{
    static const char head[] = "{\"typ\":\"JWT\",\"alg\":\"ed25519-nkey\"}";
    char body[1000];
    uint8_t signature[64];
    size_t size = sizeof signature;
    EVP_MD_CTX *context = EVP_MD_CTX_new();

    snprintf(body, sizeof body,
             "{\"jti\":\"x\",\"iat\":1700000000,%s\"iss\":\"%s\",\"sub\":\"%s\",\"name\":\"n\","
             "\"nats\":{%s,\"version\":2}}",
             expires, issuer, subject, claims);
    write_bytes_as_base64(head, strlen(head), text);
    size_t end = strlen(text);
    text[end++] = '.';
    write_bytes_as_base64(body, strlen(body), text + end);
    ck_assert_int_eq(EVP_DigestSignInit(context, NULL, NULL, NULL, key), 1);
    ck_assert_int_eq(EVP_DigestSign(context, signature, &size, (const uint8_t *)text, strlen(text)),
                     1);
    EVP_MD_CTX_free(context);
    end = strlen(text);
    text[end++] = '.';
    write_bytes_as_base64(signature, size, text + end);
}

#define ACCOUNT                                                                                    \
    "\"type\":\"account\",\"limits\":{\"subs\":-1,\"data\":-1,\"payload\":-1,\"imports\":-1,"      \
    "\"exports\":-1,\"wildcards\":true,\"conn\":-1,\"leaf\":-1}"
#define OF_USER                                                                                    \
    "\"type\":\"user\",\"subs\":-1,\"data\":-1,\"payload\":-1,\"pub\":{\"deny\":[\"secret\"]},"    \
    "\"sub\":{}"

/* Connect with this seed and JWT. Returns 0, or the error of the client's first event that has
 * one. */
static int connect_with_jwt(domt_nats_server *jwt_server, const char *seed, const char *jwt)
{
    domt_nats_user jwt_user;
    domus_outside_message message;
    int error = 0;

    domt_nats_user_start_system(&jwt_user, &(domus_nats_options){.servers = "127.0.0.1:1"});
    jwt_user.client = domt_nats_user_open_client(
        &jwt_user, &(domus_nats_options){.servers = jwt_server->url,
                                         .nkey_seed = seed,
                                         .jwt = jwt,
                                         .events = domus_outsider_address(jwt_user.outsider)});
    for (;;) {
        ck_assert_int_eq(domus_outside_receive(jwt_user.outsider, NULL, 10 * JWT_SECOND, &message),
                         0);
        const domus_nats_event *event = message.payload;
        error = event->error;
        if (error != 0 || event->happening == DOMUS_NATS_CONNECTED)
            break;
    }
    if (error == 0) {
        /* The JWT gives the user no permission for the subject `secret`. */
        domt_nats_user_publish_bytes(&jwt_user, "secret", "x", 1);
        domt_nats_user_ask_successfully(&jwt_user, &domus_nats_flush_type, NULL);
        ck_assert_uint_eq(domt_nats_user_read_client_status(&jwt_user).errors, 1);
        ck_assert(domt_nats_user_read_client_status(&jwt_user).connected);
    }
    domt_nats_user_stop_system(&jwt_user);
    return error;
}

DOMT_TEST(login_by_jwt_is_accepted)
{
    char operator[60], account[60], of_operator[2000], of_account[2000], of_user[2000];
    char of_other[2000], late[2000], config[6000];
    EVP_PKEY *operator_key = make_key_with_public_name('O', operator),
             *account_key = make_key_with_public_name('A', account);
    domt_nats_server jwt_server;

    make_signed_jwt(operator_key, operator, operator, "", "\"type\":\"operator\"", of_operator);
    make_signed_jwt(operator_key, operator, account, "", ACCOUNT, of_account);
    make_signed_jwt(account_key, account, USER, "", OF_USER, of_user);
    /* This JWT of a user is signed by the operator, which may not issue a user. */
    make_signed_jwt(operator_key, operator, USER, "", OF_USER, of_other);
    make_signed_jwt(account_key, account, USER, "\"exp\":1700000001,", OF_USER, late);
    snprintf(config, sizeof config,
             "operator: %s\nresolver: MEMORY\nresolver_preload: {\n%s: %s\n}\n", of_operator,
             account, of_account);
    domt_nats_server_start(&jwt_server, config, 0);
    ck_assert_int_eq(connect_with_jwt(&jwt_server, SEED, of_user), 0);
    ck_assert_int_eq(connect_with_jwt(&jwt_server, SEED, of_other), -EACCES);
    ck_assert_int_eq(connect_with_jwt(&jwt_server, SEED, late), -EACCES);
    ck_assert_int_eq(connect_with_jwt(&jwt_server, SEED, NULL), -EACCES);
    domt_nats_server_stop(&jwt_server);
    EVP_PKEY_free(operator_key);
    EVP_PKEY_free(account_key);
}

DOMT_SUITE(60)
