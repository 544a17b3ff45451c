/* Logins by JWT: a nats-server in operator mode, whose operator and account are made here. */
#include "tests/nats/user.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#define SECOND UINT64_C(1000000000)
#define SEED   "SUAJ2YNRTXX72WTAXKCEV5ES5QWMIRCJYVUXWMTJDFYDXLADDSXH6YALCA"
#define USER   "UDLVVGABQKYQVN6VJP7NHSLEA45A5YLS6PNKMIZFV4BBU2HXA5IRUVAL"

/* Write bytes as digits of `width` bits each. */
static void write_digits(const uint8_t *bytes, size_t size, unsigned width, const char *digits,
                         char *text)
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

static void write_base64(const void *bytes, size_t size, char *text)
{
    write_digits(bytes, size, 6, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
                 text);
}

/* Make a key of some bytes, and its public key as text: "O..." of an operator, "A..." of an
 * account. */
static EVP_PKEY *make_key(char whose, char name[60])
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
    write_digits(bytes, sizeof bytes, 5, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", name);
    return key;
}

/* Make a JWT with this issuer, subject, time of expiry and claims. */
static void make_jwt(EVP_PKEY *key, const char *issuer, const char *subject, const char *expires,
                     const char *claims, char text[2000])
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
    write_base64(head, strlen(head), text);
    size_t end = strlen(text);
    text[end++] = '.';
    write_base64(body, strlen(body), text + end);
    ck_assert_int_eq(EVP_DigestSignInit(context, NULL, NULL, NULL, key), 1);
    ck_assert_int_eq(EVP_DigestSign(context, signature, &size, (const uint8_t *)text, strlen(text)),
                     1);
    EVP_MD_CTX_free(context);
    end = strlen(text);
    text[end++] = '.';
    write_base64(signature, size, text + end);
}

#define ACCOUNT                                                                                    \
    "\"type\":\"account\",\"limits\":{\"subs\":-1,\"data\":-1,\"payload\":-1,\"imports\":-1,"      \
    "\"exports\":-1,\"wildcards\":true,\"conn\":-1,\"leaf\":-1}"
#define OF_USER                                                                                    \
    "\"type\":\"user\",\"subs\":-1,\"data\":-1,\"payload\":-1,\"pub\":{\"deny\":[\"secret\"]},"    \
    "\"sub\":{}"

/* Connect with this seed and JWT. Returns 0, or the error of the first event that has one. */
static int connect_with_jwt(domt_nats_server *server, const char *seed, const char *jwt)
{
    domt_nats_user user;
    domus_outside_message message;
    int error = 0;

    domt_nats_user_start(&user, &(domus_nats_options){.servers = "127.0.0.1:1"});
    user.client = domt_nats_user_open(
        &user, &(domus_nats_options){.servers = server->url,
                                     .nkey_seed = seed,
                                     .jwt = jwt,
                                     .events = domus_outsider_address(user.outsider)});
    for (;;) {
        ck_assert_int_eq(domus_outside_receive(user.outsider, NULL, 10 * SECOND, &message), 0);
        const domus_nats_event *event = message.payload;
        error = event->error;
        if (error != 0 || event->happening == DOMUS_NATS_CONNECTED)
            break;
    }
    if (error == 0) {
        /* the user has no permission for this subject */
        domt_nats_user_publish(&user, "secret", "x", 1);
        domt_nats_user_ask_well(&user, &domus_nats_flush_type, NULL);
        ck_assert_uint_eq(domt_nats_user_read_status(&user).errors, 1);
        ck_assert(domt_nats_user_read_status(&user).connected);
    }
    domt_nats_user_stop(&user);
    return error;
}

DOMT_TEST(user_with_a_jwt_is_accepted)
{
    char operator[60], account[60], of_operator[2000], of_account[2000], of_user[2000];
    char of_other[2000], late[2000], config[6000];
    EVP_PKEY *operator_key = make_key('O', operator), *account_key = make_key('A', account);
    domt_nats_server server;

    make_jwt(operator_key, operator, operator, "", "\"type\":\"operator\"", of_operator);
    make_jwt(operator_key, operator, account, "", ACCOUNT, of_account);
    make_jwt(account_key, account, USER, "", OF_USER, of_user);
    /* the operator may not issue a user */
    make_jwt(operator_key, operator, USER, "", OF_USER, of_other);
    make_jwt(account_key, account, USER, "\"exp\":1700000001,", OF_USER, late);
    snprintf(config, sizeof config,
             "operator: %s\nresolver: MEMORY\nresolver_preload: {\n%s: %s\n}\n", of_operator,
             account, of_account);
    domt_nats_server_start(&server, config, 0);
    ck_assert_int_eq(connect_with_jwt(&server, SEED, of_user), 0);
    ck_assert_int_eq(connect_with_jwt(&server, SEED, of_other), -EACCES);
    ck_assert_int_eq(connect_with_jwt(&server, SEED, late), -EACCES);
    ck_assert_int_eq(connect_with_jwt(&server, SEED, NULL), -EACCES);
    domt_nats_server_stop(&server);
    EVP_PKEY_free(operator_key);
    EVP_PKEY_free(account_key);
}

DOMT_SUITE(30)
