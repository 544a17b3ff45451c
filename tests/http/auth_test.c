/* Credentials are read strictly, and a part of a chain admits the users whom its table or its
 * function accepts. */
#include "tests/http/chained.h"
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <domus/http_auth.h>

#include <errno.h>
#include <nettle/base64.h>
#include <stdio.h>
#include <string.h>

/* Returns "Authorization: Basic " and the base64 of the text `pair`, a name and a password. */
static const char *make_basic_credentials(const char *pair)
{
    static char text[1024];
    size_t size = strlen(pair);
    int at = snprintf(text, sizeof text, "Authorization: Basic ");

    base64_encode_raw(text + at, size, (const uint8_t *)pair);
    at += (int)BASE64_ENCODE_RAW_LENGTH(size);
    (void)snprintf(text + at, sizeof text - (size_t)at, "\r\n");
    return text;
}

static int read_basic_credentials(const char *fields, domus_http_basic *ret_basic)
{
    domus_slice slice = domt_slice_of_text(fields);
    int error = domus_http_read_basic(slice, ret_basic);

    domus_slice_free(slice);
    return error;
}

DOMT_TEST(basic_credentials_are_read_strictly)
{
    static const struct {
        const char *fields;
        int error;
    } rows[] = {
        {"", -ENOENT},
        {"A: b\r\n", -ENOENT},
        {"Authorization: Bearer YTpi\r\n", -ENOENT},
        {"Authorization: Basics YTpi\r\n", -ENOENT},
        {"Authorization: Basic YTpi\r\n", 0}, /* base64 of "a:b" */
        {"AUTHORIZATION: bASIC   YTpi\r\n", 0},
        {"Authorization: Basic Og==\r\n", 0}, /* : */
        {"Authorization: Basic\r\n", -EINVAL},
        {"Authorization: Basic YWI=\r\n", -EINVAL}, /* ab */
        {"Authorization: Basic YTpiYw\r\n", -EINVAL},
        {"Authorization: Basic YTpi YTpi\r\n", -EINVAL},
        {"Authorization: Basic YT pi\r\n", -EINVAL},
        {"Authorization: Basic YT    pi\r\n", -EINVAL},
        {"Authorization: Basic YT\t\t\t\tpi\r\n", -EINVAL},
        {"Authorization: Basic YTp!\r\n", -EINVAL},
        {"Authorization: Basic YTpi====\r\n", -EINVAL},
        {"Authorization: Basic YTpj\r\nAuthorization: Basic YTpj\r\n", -EINVAL},
        {"Authorization: Basic YTpj\r\nAuthorization: Bearer a\r\n", -EINVAL},
        /* base64 of "a:\n" */
        {"Authorization: Basic YToK\r\n", -EINVAL},
        {"Authorization: Basic ADpi\r\n", -EINVAL}, /* base64 of "\0:b" */
    };
    domus_http_basic basic;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_msg(read_basic_credentials(rows[i].fields, &basic) == rows[i].error, "%s",
                      rows[i].fields);
    ck_assert_int_eq(read_basic_credentials(make_basic_credentials("me:a:b\xc3\xa4"), &basic), 0);
    ck_assert_str_eq(basic.user, "me");
    ck_assert_str_eq(basic.password, "a:b\xc3\xa4");
}

DOMT_TEST(user_names_and_passwords_have_bounds)
{
    char pair[DOMUS_HTTP_USER_MAX + DOMUS_HTTP_PASSWORD_MAX + 3];
    domus_http_basic basic;

    memset(pair, 'x', sizeof pair);
    pair[sizeof pair - 2] = '\0';
    pair[DOMUS_HTTP_USER_MAX] = ':';
    ck_assert_int_eq(read_basic_credentials(make_basic_credentials(pair), &basic), 0);
    ck_assert_uint_eq(strlen(basic.user), DOMUS_HTTP_USER_MAX);
    ck_assert_uint_eq(strlen(basic.password), DOMUS_HTTP_PASSWORD_MAX);
    pair[DOMUS_HTTP_USER_MAX] = 'x';
    /* the name is one byte too long, the password one byte shorter */
    pair[DOMUS_HTTP_USER_MAX + 1] = ':';
    ck_assert_int_eq(read_basic_credentials(make_basic_credentials(pair), &basic), -EMSGSIZE);
    pair[DOMUS_HTTP_USER_MAX + 1] = 'x';
    pair[DOMUS_HTTP_USER_MAX - 1] = ':';
    ck_assert_int_eq(read_basic_credentials(make_basic_credentials(pair), &basic), -EMSGSIZE);
    char more[1024] = "Authorization: Basic ";
    memset(more + 21, 'A', 900);
    ck_assert_int_eq(read_basic_credentials(more, &basic), -EMSGSIZE);
}

static int read_bearer_token_and_compare(const char *fields, domus_slice expected)
{
    domus_slice slice = domt_slice_of_text(fields);
    domus_slice token = {NULL, 0, 0};
    int error = domus_http_read_bearer(slice, &token);

    if (error == 0)
        ck_assert(domus_slice_equals(token, domus_slice_data(expected), expected.size));
    domus_slice_free(slice);
    domus_slice_free(expected);
    return error;
}

DOMT_TEST(bearer_tokens_are_read_strictly)
{
    static const struct {
        const char *fields;
        const char *token;
        int error;
    } rows[] = {
        {"", "", -ENOENT},
        {"Authorization: Basic a\r\n", "", -ENOENT},
        {"Authorization: Bearer a.B-c_d~e+f/0==\r\n", "a.B-c_d~e+f/0==", 0},
        {"Authorization: bearer   a\r\n", "a", 0},
        {"Authorization: Bearer\r\n", "", -EINVAL},
        {"Authorization: Bearer =\r\n", "", -EINVAL},
        {"Authorization: Bearer a=b\r\n", "", -EINVAL},
        {"Authorization: Bearer a b\r\n", "", -EINVAL},
        {"Authorization: Bearer a,b\r\n", "", -EINVAL},
        {"Authorization: Bearer a\r\nAuthorization: Bearer a\r\n", "", -EINVAL},
    };
    char fields[DOMUS_HTTP_TOKEN_MAX + 64] = "Authorization: Bearer ";

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_msg(read_bearer_token_and_compare(
                          rows[i].fields, domt_slice_of_text(rows[i].token)) == rows[i].error,
                      "%s", rows[i].fields);
    memset(fields + 22, 'a', DOMUS_HTTP_TOKEN_MAX);
    ck_assert_int_eq(read_bearer_token_and_compare(fields, domt_slice_of_text(fields + 22)), 0);
    fields[22 + DOMUS_HTTP_TOKEN_MAX] = 'a';
    ck_assert_int_eq(read_bearer_token_and_compare(fields, domt_slice_of_text("")), -EMSGSIZE);
}

#define SHA256_OF_TEST "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

DOMT_TEST(secrets_are_compared_whole)
{
    ck_assert(domus_http_is_secret("abc", 3, "abc", 3));
    ck_assert(!domus_http_is_secret("abd", 3, "abc", 3));
    ck_assert(!domus_http_is_secret("ab", 2, "abc", 3));
    ck_assert(!domus_http_is_secret("", 0, "abc", 3));
    ck_assert(domus_http_has_sha256("test", 4, SHA256_OF_TEST));
    ck_assert(!domus_http_has_sha256("tess", 4, SHA256_OF_TEST));
    ck_assert(!domus_http_has_sha256("test", 4, "9f86"));
}

/* --- the part of a chain ---------------------------------------------------------------------- */

static const domus_http_user users[] = {
    {"ann", "right", NULL}, {"bob", NULL, SHA256_OF_TEST}, {NULL, NULL, NULL}};

static int accept_token_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error != 0 ? answer->error : domus_http_go_on(stack, self);
}

static int refuse_token_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    static const domus_http_auth of_bearer = {.realm = "r", .schemes = DOMUS_HTTP_BEARER};

    return answer->error != 0 ? answer->error : domus_http_unauthorized(stack, &of_bearer, true);
}

/* The function of a part that verifies tokens: "now", "later" and "never" belong to users; "busy"
 * fails. */
static int verify_token(domus_stack *stack, domus_http_exchange *exchange,
                        const domus_http_credentials *given, const void *context)
{
    ck_assert_str_eq(context, "context");
    if (given->secret_size == 4 && memcmp(given->secret, "busy", 4) == 0)
        return -EBUSY;
    if (given->secret_size == 5 && memcmp(given->secret, "never", 5) == 0)
        return domus_sleep(stack, DOMT_SERVED_MS, refuse_token_after_sleep);
    int error = domus_http_set_user(exchange, given->secret, given->secret_size);
    if (given->secret_size == 5 && memcmp(given->secret, "later", 5) == 0)
        return domus_sleep(stack, DOMT_SERVED_MS, accept_token_after_sleep);
    return given->secret_size == 3 ? error : -EACCES;
}

static const domus_http_auth of_table = {.realm = "r", .schemes = DOMUS_HTTP_BASIC, .users = users};
static const domus_http_auth of_both = {.realm = "r",
                                        .schemes = DOMUS_HTTP_BASIC | DOMUS_HTTP_BEARER,
                                        .users = users,
                                        .verify = verify_token,
                                        .context = "context"};

#define CHALLENGE "WWW-Authenticate: Basic realm=\"r\", charset=\"UTF-8\"\r\n"
#define UNAUTHORIZED(challenge)                                                                    \
    "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n" challenge "\r\n"
#define IS(size, name) "HTTP/1.1 200 OK\r\nContent-Length: " size "\r\n\r\n" name

DOMT_TEST(only_users_of_the_table_are_let_in)
{
    static const struct {
        const char *pair;
        const char *got;
    } rows[] = {
        {"ann:right", IS("3", "ann")},          {"bob:test", IS("3", "bob")},
        {"ann:wrong", UNAUTHORIZED(CHALLENGE)}, {"ann:", UNAUTHORIZED(CHALLENGE)},
        {"ann:test", UNAUTHORIZED(CHALLENGE)},  {"bob:" SHA256_OF_TEST, UNAUTHORIZED(CHALLENGE)},
        {"eve:right", UNAUTHORIZED(CHALLENGE)}, {":right", UNAUTHORIZED(CHALLENGE)},
        {"right", UNAUTHORIZED(CHALLENGE)},
    };
    const domus_http_step parts[] = {{&domus_http_authenticate, &of_table}, {NULL, NULL}};
    domus_testkit *kit = domt_chained_start_kit(&domt_chained, parts);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_str_eq(
            domt_chained_answer_to_request(kit, "GET /user", make_basic_credentials(rows[i].pair)),
            rows[i].got);
    ck_assert_str_eq(domt_chained_answer_to_request(kit, "GET /user", ""), UNAUTHORIZED(CHALLENGE));
    ck_assert_str_eq(domt_chained_answer_to_request(kit, "GET /none", ""), UNAUTHORIZED(CHALLENGE));
    domt_served_end_kit(kit);
}

DOMT_TEST(functions_of_the_program_check_tokens)
{
    static const struct {
        const char *token;
        const char *begin;
    } rows[] = {
        {"right", IS("3", "ann")},
        {"now", IS("3", "now")},
        {"later", IS("5", "later")},
        {"a,b", UNAUTHORIZED(CHALLENGE
                             "WWW-Authenticate: Bearer realm=\"r\", error=\"invalid_token\"\r\n")},
        {"none", UNAUTHORIZED(CHALLENGE
                              "WWW-Authenticate: Bearer realm=\"r\", error=\"invalid_token\"\r\n")},
        {"never",
         UNAUTHORIZED("WWW-Authenticate: Bearer realm=\"r\", error=\"invalid_token\"\r\n")},
        {"busy", "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 20\r\n"
                 "Content-Type: text/plain\r\n\r\nService Unavailable\n"},
    };
    const domus_http_step parts[] = {{&domus_http_authenticate, &of_both}, {NULL, NULL}};
    domus_testkit *kit = domt_chained_start_kit(&domt_chained, parts);
    char fields[128];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)snprintf(fields, sizeof fields, "Authorization: Bearer %s\r\n", rows[i].token);
        ck_assert_str_eq(domt_chained_answer_to_request(kit, "GET /user", fields), rows[i].begin);
    }
    ck_assert_str_eq(domt_chained_answer_to_request(kit, "GET /user", ""),
                     UNAUTHORIZED(CHALLENGE "WWW-Authenticate: Bearer realm=\"r\"\r\n"));
    ck_assert_str_eq(
        domt_chained_answer_to_request(kit, "GET /user", make_basic_credentials("bob:test")),
        IS("3", "bob"));
    domt_served_end_kit(kit);
}

DOMT_TEST(wrong_options_of_authentication_are_refused)
{
    static const domus_http_user no_secret[] = {{"a", NULL, NULL}, {NULL, NULL, NULL}};
    static const domus_http_user empty[] = {{"a", "", NULL}, {NULL, NULL, NULL}};
    static const domus_http_user both[] = {{"a", "b", SHA256_OF_TEST}, {NULL, NULL, NULL}};
    static const domus_http_user short_hash[] = {{"a", NULL, "9f86"}, {NULL, NULL, NULL}};
    static const domus_http_user colon[] = {{"a:b", "c", NULL}, {NULL, NULL, NULL}};
    const domus_http_auth rows[] = {
        {.realm = NULL, .schemes = 1, .users = users},
        {.realm = "", .schemes = 1, .users = users},
        {.realm = "\"", .schemes = 1, .users = users},
        {.realm = "a", .users = users},
        {.realm = "a", .schemes = 4, .users = users},
        {.realm = "a", .schemes = 1},
        {.realm = "a", .schemes = 1, .users = empty},
        {.realm = "a", .schemes = 1, .users = both},
        {.realm = "a", .schemes = 1, .users = colon},
        {.realm = "\n", .schemes = 1, .users = users},
        {.realm = "a", .schemes = 1, .users = short_hash},
        {.realm = "a", .schemes = 1, .users = no_secret},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_int_eq(domus_http_authenticate.check(&rows[i]), -EINVAL);
    ck_assert_int_eq(domus_http_authenticate.check(NULL), -EINVAL);
    ck_assert_int_eq(domus_http_authenticate.check(&of_both), 0);
}

DOMT_SUITE(20)
