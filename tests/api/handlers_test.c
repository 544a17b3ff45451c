/* The handlers of examples/api in a test kit, with a database in memory: what a program that was
 * copied from it begins its own tests with. Requests are written as they come over a connection,
 * and each row says what has to be in the answer. */
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <api/api.h>

#include <domus/sqlite.h>

#include <stdio.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

static int migrated(domus_stack *stack, void *self, const domus_answer *answer)
{
    const domus_sql_result *result;

    (void)stack, (void)self;
    return domus_sql_result_of(answer, &result);
}

static int migrate(domus_stack *stack, void *self)
{
    (void)self;
    return domus_sql_migrate(stack, api_database, api_migrations, migrated);
}

static const domus_behaviour migrator = {
    .name = "migrator", .kind = DOMUS_STATE, .on_mount = migrate};

static domus_testkit *begin(uint64_t seed, uint32_t rate)
{
    static const domus_sql_driver *const drivers[] = {&domus_sqlite_driver, NULL};
    const domus_sql_options options = {.drivers = drivers};
    domus_address address;
    domus_config config;

    domus_config_init(&config);
    domus_testkit *kit = domt_kit_listening(&config, "api", "127.0.0.1:80", seed);
    domus_system *system = domus_testkit_system(kit);
    api_settings.rate = rate;
    api_settings.upload_max = 1 << 20;
    ck_assert_int_eq(api_people_begin(), 0);
    ck_assert_int_eq(domus_outside_sql_open(system, "sqlite::memory:", &options, &api_database), 0);
    ck_assert_int_eq(domus_outside_spawn(system, &migrator, NULL, &address), 0);
    ck_assert_int_eq(api_events_begin(system), 0);
    ck_assert_int_eq(api_site_begin(system), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_int_eq(domus_serve(system, "api", &api_site, NULL, NULL), 0);
    return kit;
}

static void end(domus_testkit *kit)
{
    domus_testkit_free(kit);
    api_site_end();
}

/* Send bytes, and return what has come by then, as a text. */
static const char *ask_raw(domus_testkit *kit, domus_peer *peer, const char *bytes)
{
    static char text[8192];
    size_t size;

    domt_kit_send(peer, bytes);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    const char *got = domus_peer_got(peer, &size);
    ck_assert_uint_lt(size, sizeof text);
    memcpy(text, got, size);
    text[size] = '\0';
    domus_peer_take(peer, size);
    return text;
}

static const char *ask(domus_testkit *kit, domus_peer *peer, const char *line, const char *cookie,
                       const char *body)
{
    char text[8192];

    snprintf(text, sizeof text,
             "%s HTTP/1.1\r\nHost: a\r\n%s%s%sContent-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             line, cookie[0] != '\0' ? "Cookie: " : "", cookie, cookie[0] != '\0' ? "\r\n" : "",
             strlen(body), body);
    return ask_raw(kit, peer, text);
}

/* Log in. `cookie` gets the pair that the browser sends back. */
static void log_in(domus_testkit *kit, domus_peer *peer, const char *name, char cookie[256])
{
    char body[64];

    snprintf(body, sizeof body, "{\"name\":\"%s\"}", name);
    const char *answer = ask(kit, peer, "POST /login", "", body);
    ck_assert_msg(strncmp(answer, "HTTP/1.1 204 ", 13) == 0, "%s", answer);
    const char *pair = strstr(answer, "Set-Cookie: ");
    ck_assert_ptr_nonnull(pair);
    pair += strlen("Set-Cookie: ");
    snprintf(cookie, 256, "%.*s", (int)strcspn(pair, ";"), pair);
}

#define DRAFT "{\"title\":\"It leaks\",\"body\":\"Run it.\",\"priority\":2}"
#define MADE                                                                                       \
    "\"title\":\"It leaks\",\"body\":\"Run it.\",\"state\":\"open\",\"priority\":2,"               \
    "\"author\":\"ada\""

/* Requests in their order, and what their answers have in them. */
static const struct {
    const char *line;
    bool logged_in;
    const char *body;
    const char *status;
    const char *part;
} rows[] = {
    {"GET /issues", false, "", "200", "{\"items\":[],\"next\":null}"},
    {"GET /issues/1", false, "", "404", "application/problem+json"},
    {"GET /issues/0", false, "", "404", ""},
    {"GET /issues/x", false, "", "404", ""},
    {"GET /issues/99999999999999999999", false, "", "404", ""},
    {"POST /issues", false, DRAFT, "401", "application/problem+json"},
    {"POST /issues", true, DRAFT, "201", "Location: /issues/1\r\n"},
    {"GET /issues/1", false, "", "200", "{\"id\":1," MADE},
    {"POST /issues", true, "{\"title\":\"a\",\"body\":\"b\"}", "422", "priority: "},
    {"POST /issues", true, "{\"title\":\"a\",\"body\":\"b\",\"priority\":6}", "422", "1..5"},
    {"POST /issues", true, "{\"title\":", "400", ""},
    {"POST /issues", true, "", "400", ""},
    {"PATCH /issues/1", true, "{\"state\":\"closed\"}", "200", "\"state\":\"closed\""},
    {"PATCH /issues/1", true, "{\"state\":\"gone\"}", "422", "state: "},
    {"PATCH /issues/1", false, "{\"state\":\"open\"}", "401", ""},
    {"PATCH /issues/2", true, "{\"state\":\"closed\"}", "404", ""},
    {"POST /issues", true, DRAFT, "201", "{\"id\":2," MADE},
    {"GET /issues?limit=1", false, "", "200", "\"next\":2}"},
    {"GET /issues?limit=1&before=2", false, "", "200", "{\"items\":[{\"id\":1,"},
    {"GET /issues?limit=1&before=2", false, "", "200", "\"next\":null}"},
    {"GET /issues?limit=0", false, "", "422", "limit"},
    {"GET /issues?limit=101", false, "", "422", "limit"},
    {"GET /issues?before=x", false, "", "422", "limit"},
    {"DELETE /issues/1", true, "", "405", "Allow: "},
    {"POST /login", false, "{\"name\":\"\"}", "422", "empty"},
    {"POST /logout", true, "", "204", "Max-Age=0"},
};

static void run_rows(uint64_t seed)
{
    domus_testkit *kit = begin(seed, 1000);
    domus_peer *peer = domt_kit_peer(kit, "127.0.0.1:80");
    char cookie[256];

    log_in(kit, peer, "ada", cookie);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *answer =
            ask(kit, peer, rows[i].line, rows[i].logged_in ? cookie : "", rows[i].body);
        ck_assert_msg(strncmp(answer, "HTTP/1.1 ", 9) == 0 &&
                          strncmp(answer + 9, rows[i].status, 3) == 0 &&
                          strstr(answer, rows[i].part) != NULL,
                      "row %zu, %s: %s", i, rows[i].line, answer);
    }
    end(kit);
}

START_TEST(each_request_gets_its_answer)
{
    for (uint64_t seed = 1; seed <= domt_more_if_long(5); seed++)
        run_rows(seed);
}
END_TEST

/* Bodies that a browser sends for another site without asking are none of JSON, and one whose end
 * is not known is not waited for. */
START_TEST(a_body_says_that_it_is_json_and_how_long_it_is)
{
    static const struct {
        const char *fields;
        const char *status;
    } bodies[] = {
        {"Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"name\":\"ada\"}", "204"},
        {"Content-Type: application/a+json;v=1\r\nContent-Length: 14\r\n\r\n{\"name\":\"ada\"}",
         "204"},
        {"Content-Type: text/plain\r\nContent-Length: 14\r\n\r\n{\"name\":\"ada\"}", "415"},
        {"Content-Length: 14\r\n\r\n{\"name\":\"ada\"}", "415"},
        {"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
         "e\r\n{\"name\":\"ada\"}\r\n0\r\n\r\n",
         "411"},
    };
    domus_testkit *kit = begin(1, 1000);

    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        domus_peer *peer = domt_kit_peer(kit, "127.0.0.1:80");
        char text[512];
        snprintf(text, sizeof text, "POST /login HTTP/1.1\r\nHost: a\r\n%s", bodies[i].fields);
        const char *answer = ask_raw(kit, peer, text);
        ck_assert_msg(strncmp(answer, "HTTP/1.1 ", 9) == 0 &&
                          strncmp(answer + 9, bodies[i].status, 3) == 0,
                      "%s: %s", bodies[i].fields, answer);
    }
    end(kit);
}
END_TEST

START_TEST(a_cookie_of_somebody_else_is_none)
{
    domus_testkit *kit = begin(1, 1000);
    domus_peer *peer = domt_kit_peer(kit, "127.0.0.1:80");
    char cookie[256];

    log_in(kit, peer, "ada", cookie);
    char *value = strrchr(cookie, '.') + 1;
    *value = *value == 'A' ? 'B' : 'A';
    const char *answer = ask(kit, peer, "POST /issues", cookie, DRAFT);
    ck_assert_msg(strncmp(answer, "HTTP/1.1 401 ", 13) == 0, "%s", answer);
    end(kit);
}
END_TEST

START_TEST(each_page_hears_of_an_issue)
{
    domus_testkit *kit = begin(1, 1000);
    domus_peer *page = domt_kit_peer(kit, "127.0.0.1:80");
    domus_peer *peer = domt_kit_peer(kit, "127.0.0.1:80");
    char cookie[256];

    log_in(kit, peer, "ada", cookie);
    const char *head = ask(kit, page, "GET /events", "", "");
    ck_assert_ptr_nonnull(strstr(head, "text/event-stream"));
    (void)ask(kit, peer, "POST /issues", cookie, DRAFT);
    domt_kit_expect(kit, page, "16\r\nevent: issue\ndata: 1\n\n\r\n");
    domt_kit_expect(kit, page, "3\r\n:\n\n\r\n"); /* a sign of life, 15 s later */
    end(kit);
}
END_TEST

START_TEST(an_address_has_its_rate)
{
    domus_testkit *kit;
    domus_peer *peer;
    int refused = 0;

    kit = begin(1, 10);
    peer = domt_kit_peer(kit, "127.0.0.1:80");
    for (int i = 0; i < 12; i++) {
        const char *answer = ask(kit, peer, "GET /issues", "", "");
        refused += strncmp(answer, "HTTP/1.1 429 ", 13) == 0 && strstr(answer, "Retry-After: 1");
    }
    ck_assert_int_eq(refused, 2);
    ck_assert_int_eq(domus_testkit_advance(kit, SECOND), 0);
    ck_assert_int_eq(strncmp(ask(kit, peer, "GET /issues", "", ""), "HTTP/1.1 200 ", 13), 0);
    end(kit);
}
END_TEST

DOMT_MAIN("handlers", 60, each_request_gets_its_answer,
          a_body_says_that_it_is_json_and_how_long_it_is, a_cookie_of_somebody_else_is_none,
          each_page_hears_of_an_issue, an_address_has_its_rate)
