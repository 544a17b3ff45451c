/* The client of HTTP uses for https urls the protocol that ALPN chooses: HTTP/2 if the server
 * agrees, else HTTP/1.1. The servers are this library's, nginx, nghttpd and node, over sockets;
 * servers that are not installed are reported and left out. */
#include "tests/runtime/running.h"
#include "tests/support/process.h"
#include "tests/tls/pki.h"

#include <domus/http2.h>
#include <domus/http2_client.h>
#include <domus/http_client.h>
#include <domus/tls.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static domt_pki pki;
static domus_system *system_now;
static domus_tls_options served, asking;
static domus_pipeline_stage front[2];
static const domus_pipeline_stage secure[] = {{&domus_tls_stage, &asking}, {NULL, NULL}};
static _Atomic uint32_t port, opened;

/* --- the service ------------------------------------------------------------------------------ */

/* Answer with the protocol that ALPN has chosen, and the number of bytes of the body. */
static int answer(domus_stack *stack, void *self, const void *payload)
{
    const domus_http_request *request = payload;
    domus_http_response response = {.status = 200};
    domus_tls_info info;
    char text[100];

    ck_assert_int_eq(domus_tls_info_of(stack, domus_channel_running(stack), &info), 0);
    snprintf(text, sizeof text, "%s %u", info.alpn, request->body.size);
    int error = domus_slice_copy(text, strlen(text), &response.body);
    return error != 0 ? error : domus_reply(stack, &domus_http_response_type, &response);
}

static const domus_pipeline serving = {
    .stages = (const domus_pipeline_stage[]){
        {&domus_http2_stage, NULL}, {&domus_http_stage, NULL}, {NULL, NULL}}};
static const domus_behaviour site_channel = {
    .name = "site",
    .kind = DOMUS_CHANNELS,
    .pipeline = &serving,
    .on_peer = (const domus_on_peer[]){{.type = &domus_http_request_type, .handle = answer},
                                       {.type = NULL}}};

static int serve_site(domus_stack *stack, void *self)
{
    const domus_listen_options options = {.front = front};
    domus_endpoint at, got;

    int error = domus_endpoint_parse("127.0.0.1:0", &at);
    if (error == 0)
        error = domus_listen(stack, &at, &options, NULL, &got);
    if (error == 0)
        atomic_store(&port, got.port);
    return error;
}

static const domus_behaviour site = {
    .name = "site", .kind = DOMUS_CHANNELS, .channel = &site_channel, .on_mount = serve_site};

/* --- the client ------------------------------------------------------------------------------- */

static const domus_http_options to_servers = {.role = DOMUS_ROLE_CLIENT, .origin_form = true};
static const domus_pipeline by_alpn = {
    .stages = (const domus_pipeline_stage[]){{&domus_http2_client_stage, NULL},
                                             {&domus_http_stage, &to_servers},
                                             {NULL, NULL}},
    .encodes = domus_http_client_encodes,
    .inflight_max = 1};

static int count_open(domus_stack *stack, void *self, const void *event)
{
    atomic_fetch_add(&opened, 1);
    return 0;
}

static const domus_behaviour connection = {
    .name = "connection", .kind = DOMUS_CHANNELS, .pipeline = &by_alpn, .on_open = {count_open, 0}};
static const domus_http_client_options with = {
    .connection = &connection, .secure = secure, .backoff_ns = DOMT_MS};

static domus_tls *make_tls(const domus_tls_settings *settings)
{
    domus_tls *tls = NULL;
    char error[256] = "";

    ck_assert_msg(domus_tls_new(settings, error, sizeof error, &tls) == 0, "%s", error);
    return tls;
}

/* Begin; `of_server` and `of_client` are the protocols that each side offers by ALPN; NULL:
 * none. */
static void set_up(const char *const *of_server, const char *const *of_client)
{
    char file[128], authority[128];

    domt_pki_make(&pki);
    domt_pki_issue(&pki, &(domt_wish){.file = "right", .names = "DNS:localhost"});
    snprintf(file, sizeof file, "%s", domt_pki_path(&pki, "right"));
    snprintf(authority, sizeof authority, "%s", domt_pki_path(&pki, "ca"));
    const domus_tls_certificate certificate = {file, NULL};
    served.tls = make_tls(&(domus_tls_settings){.role = DOMUS_ROLE_SERVER,
                                                .certificates = &certificate,
                                                .certificates_count = 1,
                                                .alpn = of_server});
    asking.tls = make_tls(
        &(domus_tls_settings){.role = DOMUS_ROLE_CLIENT, .ca_file = authority, .alpn = of_client});
    front[0] = (domus_pipeline_stage){&domus_tls_stage, &served};
    atomic_store(&port, 0);
    atomic_store(&opened, 0);
    domus_config config = domt_config(2);
    system_now = domt_start(&config);
    (void)domt_spawn(system_now, 0, &site, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&port) != 0);
}

static void tear_down(void)
{
    domt_end(system_now);
    domus_tls_free(asking.tls);
    domus_tls_free(served.tls);
    domt_pki_free(&pki);
}

static domus_address open_client(void)
{
    domus_address client;

    ck_assert_int_eq(domus_http_client_open_outside(system_now, &with, &client), 0);
    return client;
}

static char body[256];

/* Send a request with a body of `size` bytes. Returns the status, or the error. */
static int request_status(domus_address client, uint32_t at, domus_http_method method, size_t size)
{
    domus_http_request request = {.method = (uint8_t)method};
    domus_http_response response;
    domus_outside_reply reply = {.buffer = &response, .size = sizeof response};
    static char zeros[100000];
    char url[100];

    int length = snprintf(url, sizeof url, "https://localhost:%u/a.txt", at);
    ck_assert_int_eq(domus_slice_copy(url, (size_t)length, &request.target), 0);
    ck_assert_int_eq(domus_slice_copy(zeros, size, &request.body), 0);
    int error = domus_outside_ask(system_now, client, &domus_http_request_type, &request,
                                  20000 * DOMT_MS, &reply);
    if (error != 0)
        return error;
    snprintf(body, sizeof body, "%.*s", (int)response.body.size, domus_slice_data(response.body));
    int status = response.status;
    domus_http_response_type.release(&response);
    return status;
}

static const char *const both[] = {"h2", "http/1.1", NULL};
static const char *const old[] = {"http/1.1", NULL};
static const char *const only[] = {"h2", NULL};

DOMT_TEST(alpn_chooses_the_protocol)
{
    static const struct {
        const char *const *server, *const *client;
        const char *said;
        unsigned opened; /* channels of the client, including inner ones */
    } cases[] = {
        {both, both, "h2", 2},      {only, both, "h2", 2}, {both, only, "h2", 2},
        {old, both, "http/1.1", 1}, {NULL, both, "", 1},   {both, NULL, "", 1},
        {both, old, "http/1.1", 1},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_up(cases[i].server, cases[i].client);
        domus_address client = open_client();
        char text[64];
        for (unsigned n = 0; n < 3; n++) {
            ck_assert_int_eq(request_status(client, atomic_load(&port), DOMUS_HTTP_GET, 0), 200);
            snprintf(text, sizeof text, "%s 0", cases[i].said);
            ck_assert_str_eq(body, text);
        }
        ck_assert_int_eq(request_status(client, atomic_load(&port), DOMUS_HTTP_POST, 100000), 200);
        snprintf(text, sizeof text, "%s 100000", cases[i].said);
        ck_assert_str_eq(body, text);
        ck_assert_uint_eq(atomic_load(&opened), cases[i].opened);
        tear_down();
    }
}

/* --- servers of other projects ---------------------------------------------------------------- */

/* Send several requests to a server that is just starting; the last one has a body if
 * `takes_body`. */
static void check_server(pid_t child, uint32_t at, const char *said, bool takes_body)
{
    domus_address client = open_client();
    int status = -ECONNREFUSED;

    for (int i = 0; i < 1200 && status == -ECONNREFUSED; i++) {
        domt_pause_ns(50 * DOMT_MS);
        status = request_status(client, at, DOMUS_HTTP_GET, 0);
    }
    ck_assert_int_eq(status, 200);
    ck_assert_str_eq(body, said);
    for (unsigned i = 0; i < 20; i++) {
        ck_assert_int_eq(
            request_status(client, at, i % 2 != 0 ? DOMUS_HTTP_GET : DOMUS_HTTP_HEAD, 0), 200);
        ck_assert_str_eq(body, i % 2 != 0 ? said : "");
    }
    if (takes_body) {
        ck_assert_int_eq(request_status(client, at, DOMUS_HTTP_PUT, 100000), 200);
        ck_assert_str_eq(body, "100000");
    }
    ck_assert_uint_eq(atomic_load(&opened), 2); /* one connection, and one inner channel */
    domt_process_end(child);
}

static const char *path_of(const char *file, char to[128])
{
    snprintf(to, 128, "%s", domt_pki_path(&pki, file));
    return to;
}

DOMT_TEST(nginx_is_asked_by_http_2)
{
    char file[128], conf[2048], path[128];

    if (!domt_has_program("nginx"))
        return;
    set_up(both, both);
    uint32_t at = domt_free_port();
    path_of("right", file);
    snprintf(conf, sizeof conf,
             "daemon off; master_process off; pid %s/pid; error_log /dev/null;\n"
             "events {}\n"
             "http { access_log off;\n"
             "client_body_temp_path %s/a; proxy_temp_path %s/b; fastcgi_temp_path %s/c;\n"
             "uwsgi_temp_path %s/d; scgi_temp_path %s/e;\n"
             "server { listen 127.0.0.1:%u ssl http2; ssl_certificate %s;\n"
             "ssl_certificate_key %s; location / { return 200 \"$server_protocol\"; } } }\n",
             pki.folder, pki.folder, pki.folder, pki.folder, pki.folder, pki.folder, at, file,
             file);
    domt_pki_write(&pki, "nginx", conf);
    const char *const arguments[] = {"nginx", "-c", path_of("nginx", path), "-p", pki.folder, NULL};
    check_server(domt_process_start(arguments), at, "HTTP/2.0", false);
    tear_down();
}

DOMT_TEST(nghttpd_is_asked)
{
    char file[128], text[160], number[16];

    if (!domt_has_program("nghttpd"))
        return;
    set_up(both, both);
    uint32_t at = domt_free_port();
    snprintf(number, sizeof number, "%u", at);
    snprintf(text, sizeof text, "%s/a.txt", pki.folder);
    FILE *out = fopen(text, "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_int_ge(fputs("a file", out), 0);
    ck_assert_int_eq(fclose(out), 0);
    path_of("right", file);
    const char *const arguments[] = {"nghttpd", "-a", "127.0.0.1", "-d", pki.folder,
                                     number,    file, file,        NULL};
    check_server(domt_process_start(arguments), at, "a file", false);
    ck_assert_int_eq(unlink(text), 0);
    tear_down();
}

DOMT_TEST(node_is_asked)
{
    static const char script[] =
        "const fs = require('fs'), [port, file] = process.argv.slice(1);\n"
        "const pem = fs.readFileSync(file);\n"
        "require('http2').createSecureServer({cert: pem, key: pem}, (ask, answer) => {\n"
        "  let size = 0;\n"
        "  ask.on('data', (part) => { size += part.length; });\n"
        "  ask.on('end', () => answer.end(ask.method == 'PUT' ? `${size}` : ask.httpVersion));\n"
        "}).listen(+port, '127.0.0.1');\n";
    char file[128], number[16];

    if (!domt_has_program("node"))
        return;
    set_up(both, both);
    uint32_t at = domt_free_port();
    snprintf(number, sizeof number, "%u", at);
    const char *const arguments[] = {"node", "-e", script, number, path_of("right", file), NULL};
    check_server(domt_process_start(arguments), at, "2.0", true);
    tear_down();
}

DOMT_SUITE(100)
