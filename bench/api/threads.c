/* The service of examples/api on libmicrohttpd and libpq, as their users write it: a pool of 4
 * threads that wait with epoll, each with a connection to the database, whose statements it
 * has prepared; a handler waits for the database. JSON is that of jansson.
 *
 * Environment: DATABASE_URL, SESSION_KEY (signs sessions), ACCESS_LOG (a file). The port is any
 * free one of 127.0.0.1, and stdout says which. It ends at SIGTERM. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <jansson.h>
#include <libpq-fe.h>
#include <microhttpd.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS   4
#define BODY_MAX  65536u /* bytes of the body of a request, at most */
#define NAME_MAX_ 32u
#define SESSION_S (24 * 3600)
#define COLUMNS   "id, title, body, state, priority, author, created"

/* A request of a client, from its head on until its line is in the access log. */
struct request {
    const char *method;
    char url[256];
    char id[24];
    unsigned status;
    size_t sent; /* bytes of the answer's body that was sent */
    size_t size;
    char *body;
};

static const char *database, *key;
static FILE *access_log;
static atomic_uint requests;
/* the connection to the database of this thread of the pool; NULL until its first query */
static _Thread_local PGconn *connection;

/* --- answers ---------------------------------------------------------------------------------- */

static enum MHD_Result send_json_answer(struct MHD_Connection *to, struct request *request,
                                        unsigned status, json_t *value, const char *location)
{
    char *text = value != NULL ? json_dumps(value, JSON_COMPACT) : NULL;

    json_decref(value);
    if (value != NULL && text == NULL)
        return MHD_NO;
    request->status = status;
    request->sent = text != NULL ? strlen(text) : 0;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(request->sent, text, MHD_RESPMEM_MUST_FREE);
    MHD_add_response_header(response, "X-Request-Id", request->id);
    if (text != NULL)
        MHD_add_response_header(response, "Content-Type",
                                status < 400 ? "application/json" : "application/problem+json");
    if (location != NULL)
        MHD_add_response_header(response, status == 204 ? "Set-Cookie" : "Location", location);
    enum MHD_Result result = MHD_queue_response(to, status, response);
    MHD_destroy_response(response);
    return result;
}

/* Send an answer of type application/problem+json; `path` names the field that is wrong, or is
 * NULL. */
static enum MHD_Result send_problem_answer(struct MHD_Connection *to, struct request *request,
                                           unsigned status, const char *path)
{
    json_t *problem = json_pack("{s:s, s:s, s:i}", "type", "about:blank", "title",
                                MHD_get_reason_phrase_for(status), "status", (int)status);

    if (path != NULL)
        json_object_set_new(problem, "errors",
                            json_pack("[{s:s, s:s}]", "path", path, "detail", "is not right"));
    return send_json_answer(to, request, status, problem, NULL);
}

/* --- the database ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    const char *text;
    int parameters;
} statements[] = {
    {"get", "SELECT " COLUMNS " FROM issue WHERE id = $1", 1},
    {"list", "SELECT " COLUMNS " FROM issue WHERE id < $1 ORDER BY id DESC LIMIT $2", 2},
    {"insert",
     "INSERT INTO issue (title, body, priority, author, created) VALUES ($1, $2, $3, $4, $5) "
     "RETURNING " COLUMNS,
     5},
};

enum { GET, LIST, INSERT, STATEMENTS };

static bool connect_thread_to_database(void)
{
    bool is_well;

    PQfinish(connection);
    connection = PQconnectdb(database);
    is_well = PQstatus(connection) == CONNECTION_OK;
    for (int i = 0; is_well && i < STATEMENTS; i++) {
        PGresult *result = PQprepare(connection, statements[i].name, statements[i].text, 0, NULL);
        is_well = PQresultStatus(result) == PGRES_COMMAND_OK;
        PQclear(result);
    }
    if (!is_well)
        fprintf(stderr, "threads: %s", PQerrorMessage(connection));
    return is_well;
}

/* Run a prepared statement in the database. Returns its rows, which the caller clears; NULL after
 * an error. */
static PGresult *run_prepared_statement(int statement, const char *const values[])
{
    if ((connection == NULL || PQstatus(connection) != CONNECTION_OK) &&
        !connect_thread_to_database())
        return NULL;
    PGresult *result = PQexecPrepared(connection, statements[statement].name,
                                      statements[statement].parameters, values, NULL, NULL, 0);
    if (PQresultStatus(result) == PGRES_TUPLES_OK)
        return result;
    fprintf(stderr, "threads: %s", PQerrorMessage(connection));
    PQclear(result);
    return NULL;
}

static json_int_t get_number_in_database_cell(const PGresult *rows, int row, int column)
{
    return strtoll(PQgetvalue(rows, row, column), NULL, 10);
}

static json_t *make_issue_as_json(const PGresult *rows, int row)
{
    return json_pack(
        "{s:I, s:s, s:s, s:s, s:I, s:s, s:I}", "id", get_number_in_database_cell(rows, row, 0),
        "title", PQgetvalue(rows, row, 1), "body", PQgetvalue(rows, row, 2), "state",
        PQgetvalue(rows, row, 3), "priority", get_number_in_database_cell(rows, row, 4), "author",
        PQgetvalue(rows, row, 5), "created", get_number_in_database_cell(rows, row, 6));
}

/* --- sessions: NAME.EXPIRY.SIGNATURE ---------------------------------------------------------- */

static void sign_text_with_session_key(const char *text, size_t size, char *ret_signature)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;

    HMAC(EVP_sha256(), key, (int)strlen(key), (const unsigned char *)text, size, digest, &length);
    for (unsigned i = 0; i < length; i++)
        snprintf(ret_signature + (size_t)2 * i, 3, "%02x", digest[i]);
}

/* Returns whether the request has a session cookie that is signed and has not expired; if so, its
 * user's name is copied. */
static bool find_user_of_session(struct MHD_Connection *from, char *ret_name)
{
    const char *session = MHD_lookup_connection_value(from, MHD_COOKIE_KIND, "session");
    const char *expiry = session != NULL ? strchr(session, '.') : NULL;
    const char *given = expiry != NULL ? strchr(expiry + 1, '.') : NULL;
    char signature[2 * EVP_MAX_MD_SIZE + 1] = "";

    if (given == NULL || (size_t)(expiry - session) > NAME_MAX_)
        return false;
    sign_text_with_session_key(session, (size_t)(given - session), signature);
    if (strlen(given + 1) != strlen(signature) ||
        CRYPTO_memcmp(given + 1, signature, strlen(signature)) != 0 ||
        strtoll(expiry + 1, NULL, 10) < (long long)time(NULL))
        return false;
    snprintf(ret_name, NAME_MAX_ + 1, "%.*s", (int)(expiry - session), session);
    return true;
}

static enum MHD_Result log_user_in(struct MHD_Connection *to, struct request *request)
{
    json_t *body = json_loadb(request->body, request->size, 0, NULL);
    const char *name = json_string_value(json_object_get(body, "name"));
    char session[64], signature[2 * EVP_MAX_MD_SIZE + 1], cookie[320];
    size_t length = name != NULL ? strlen(name) : 0;

    if (length == 0 || length > NAME_MAX_ || strspn(name, "abcdefghijklmnopqrstuvwxyz") != length) {
        json_decref(body);
        return send_problem_answer(to, request, 422, "/name");
    }
    int size =
        snprintf(session, sizeof session, "%s.%lld", name, (long long)time(NULL) + SESSION_S);
    json_decref(body);
    sign_text_with_session_key(session, (size_t)size, signature);
    snprintf(cookie, sizeof cookie, "session=%s.%s; HttpOnly; SameSite=Lax; Path=/", session,
             signature);
    return send_json_answer(to, request, 204, NULL, cookie);
}

/* --- issues ----------------------------------------------------------------------------------- */

/* Returns whether a text is a number from `least` to `most`. */
static bool is_text_number_within(const char *text, long long least, long long most)
{
    char *end;
    long long value = strtoll(text, &end, 10);

    return *text >= '0' && *text <= '9' && *end == '\0' && value >= least && value <= most;
}

static enum MHD_Result get_issue(struct MHD_Connection *to, struct request *request, const char *id)
{
    if (!is_text_number_within(id, 1, INT64_MAX))
        return send_problem_answer(to, request, 422, "/id");
    PGresult *rows = run_prepared_statement(GET, &id);
    if (rows == NULL)
        return send_problem_answer(to, request, 503, NULL);
    json_t *issue = PQntuples(rows) == 1 ? make_issue_as_json(rows, 0) : NULL;
    PQclear(rows);
    return issue != NULL ? send_json_answer(to, request, 200, issue, NULL)
                         : send_problem_answer(to, request, 404, NULL);
}

static enum MHD_Result list_issues(struct MHD_Connection *to, struct request *request)
{
    const char *limit = MHD_lookup_connection_value(to, MHD_GET_ARGUMENT_KIND, "limit");
    const char *before = MHD_lookup_connection_value(to, MHD_GET_ARGUMENT_KIND, "before");
    const char *values[] = {before != NULL ? before : "9223372036854775807",
                            limit != NULL ? limit : "20"};

    if (!is_text_number_within(values[0], 1, INT64_MAX) ||
        !is_text_number_within(values[1], 1, 100))
        return send_problem_answer(to, request, 422, limit != NULL ? "/limit" : "/before");
    PGresult *rows = run_prepared_statement(LIST, values);
    if (rows == NULL)
        return send_problem_answer(to, request, 503, NULL);
    json_t *items = json_array();
    int count = PQntuples(rows);
    for (int i = 0; i < count; i++)
        json_array_append_new(items, make_issue_as_json(rows, i));
    json_t *next = count == strtol(values[1], NULL, 10)
                       ? json_integer(get_number_in_database_cell(rows, count - 1, 0))
                       : json_null();
    PQclear(rows);
    return send_json_answer(to, request, 200, json_pack("{s:o, s:o}", "items", items, "next", next),
                            NULL);
}

/* Returns whether a text has `least` to `most` characters. */
static bool is_character_count_of_text_within(const char *text, size_t least, size_t most)
{
    size_t count = 0;

    for (; text != NULL && *text != '\0'; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return text != NULL && count >= least && count <= most;
}

static enum MHD_Result add_issue(struct MHD_Connection *to, struct request *request)
{
    char author[NAME_MAX_ + 1], priority_text[24], created[24], location[48];
    struct timespec now;

    if (!find_user_of_session(to, author))
        return send_problem_answer(to, request, 401, NULL);
    json_t *given = json_loadb(request->body, request->size, 0, NULL);
    const char *title = json_string_value(json_object_get(given, "title"));
    const char *body = json_string_value(json_object_get(given, "body"));
    json_int_t priority = json_integer_value(json_object_get(given, "priority"));
    const char *wrong = !is_character_count_of_text_within(title, 1, 200)    ? "/title"
                        : !is_character_count_of_text_within(body, 0, 10000) ? "/body"
                        : (priority < 1 || priority > 5)                     ? "/priority"
                                                                             : NULL;
    if (wrong != NULL) {
        json_decref(given);
        return send_problem_answer(to, request, 422, wrong);
    }
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(priority_text, sizeof priority_text, "%d", (int)priority);
    snprintf(created, sizeof created, "%lld", (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    PGresult *rows = run_prepared_statement(
        INSERT, (const char *const[]){title, body, priority_text, author, created});
    json_decref(given);
    if (rows == NULL)
        return send_problem_answer(to, request, 503, NULL);
    snprintf(location, sizeof location, "/issues/%s", PQgetvalue(rows, 0, 0));
    json_t *issue = make_issue_as_json(rows, 0);
    PQclear(rows);
    return send_json_answer(to, request, 201, issue, location);
}

/* --- requests --------------------------------------------------------------------------------- */

static struct request *begin_request(const char *url, const char *method)
{
    struct request *request = calloc(1, sizeof *request);

    if (request == NULL)
        return NULL;
    request->method = strcmp(method, "GET") == 0    ? "GET"
                      : strcmp(method, "POST") == 0 ? "POST"
                                                    : "OTHER";
    snprintf(request->url, sizeof request->url, "%s", url);
    snprintf(request->id, sizeof request->id, "%08x", atomic_fetch_add(&requests, 1));
    return request;
}

static enum MHD_Result receive_body_of_request(struct request *request, const char *bytes,
                                               size_t *size)
{
    char *grown =
        request->size + *size <= BODY_MAX ? realloc(request->body, request->size + *size) : NULL;

    if (grown == NULL)
        return MHD_NO;
    memcpy(grown + request->size, bytes, *size);
    request->body = grown;
    request->size += *size;
    *size = 0;
    return MHD_YES;
}

static enum MHD_Result handle_request(void *unused, struct MHD_Connection *from, const char *url,
                                      const char *method, const char *version, const char *bytes,
                                      size_t *size, void **state)
{
    struct request *request = *state;

    (void)unused, (void)version;
    if (request == NULL) {
        *state = begin_request(url, method);
        return *state != NULL ? MHD_YES : MHD_NO;
    }
    if (*size != 0)
        return receive_body_of_request(request, bytes, size);
    bool is_get = strcmp(method, "GET") == 0, is_post = strcmp(method, "POST") == 0;
    if (is_get && strncmp(url, "/issues/", 8) == 0)
        return get_issue(from, request, url + 8);
    if (strcmp(url, "/issues") == 0 && (is_get || is_post))
        return is_get ? list_issues(from, request) : add_issue(from, request);
    return is_post && strcmp(url, "/login") == 0 ? log_user_in(from, request)
                                                 : send_problem_answer(from, request, 404, NULL);
}

/* Write the line of a request into the access log, in the combined format, and free the request. */
static void log_and_free_request(void *unused, struct MHD_Connection *from, void **state,
                                 enum MHD_RequestTerminationCode how)
{
    struct request *request = *state;
    char address[INET_ADDRSTRLEN] = "-", date[40];
    time_t now = time(NULL);
    struct tm parts;

    (void)unused, (void)how;
    if (request == NULL)
        return;
    const struct sockaddr_in *client = (const struct sockaddr_in *)MHD_get_connection_info(
                                           from, MHD_CONNECTION_INFO_CLIENT_ADDRESS)
                                           ->client_addr;
    const char *referer = MHD_lookup_connection_value(from, MHD_HEADER_KIND, "Referer");
    const char *agent = MHD_lookup_connection_value(from, MHD_HEADER_KIND, "User-Agent");
    inet_ntop(AF_INET, &client->sin_addr, address, sizeof address);
    strftime(date, sizeof date, "%d/%b/%Y:%H:%M:%S +0000", gmtime_r(&now, &parts));
    fprintf(access_log, "%s - - [%s] \"%s %s HTTP/1.1\" %u %zu \"%s\" \"%s\"\n", address, date,
            request->method, request->url, request->status, request->sent,
            referer != NULL ? referer : "-", agent != NULL ? agent : "-");
    free(request->body);
    free(request);
}

int main(void)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const char *path = getenv("ACCESS_LOG");
    sigset_t ends;
    int number;

    database = getenv("DATABASE_URL");
    key = getenv("SESSION_KEY");
    access_log = path != NULL ? fopen(path, "ae") : NULL;
    if (database == NULL || key == NULL || access_log == NULL) {
        fprintf(stderr, "threads: DATABASE_URL, SESSION_KEY and ACCESS_LOG are needed\n");
        return 1;
    }
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, handle_request, NULL, MHD_OPTION_SOCK_ADDR,
        &address, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS, MHD_OPTION_NOTIFY_COMPLETED,
        log_and_free_request, NULL, MHD_OPTION_END);
    if (daemon == NULL) {
        fprintf(stderr, "threads: no server\n");
        return 1;
    }
    printf("listening 127.0.0.1:%u\n",
           MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);
    sigwait(&ends, &number);
    MHD_stop_daemon(daemon);
    return fclose(access_log) == 0 ? 0 : 1;
}
