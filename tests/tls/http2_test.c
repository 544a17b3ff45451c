/* HTTP/2 over TLS, with the protocol that ALPN chooses: a service whose client is curl, and
 * clients of HTTP against servers of this library and of others. */
#include "tests/runtime/running.h"
#include "tests/support/process.h"
#include "tests/tls/pki.h"
#include "tests/tls/talk.h"

#include <domus/http.h>
#include <domus/http2.h>
#include <domus/http2_client.h>
#include <domus/http_client.h>
#include <domus/tls.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* HTTP/2 over TLS, with both as stages of a service's pipeline: curl is answered by the protocol
 * on which ALPN agrees. */

#define LARGE 3000000u

static domt_pki pki;
static domus_tls_options secure;
static uint32_t port;
static char output[4096];

static const domus_http_options http = {.body_max = LARGE};
static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_tls_stage, &secure},
                                             {&domus_http2_stage, NULL},
                                             {&domus_http_stage, &http},
                                             {NULL, NULL}}};

/* Answer a POST with the size of its body and the carrier of its channel, and other requests with a
 * large body. */
static int answer_request_with_carrier_or_large_body(domus_stack *stack, void *self,
                                                     const void *payload)
{
    static char large[LARGE];
    const domus_http_request *request = payload;
    const char *carrier = domus_channel_carrier(domus_channel_running(stack));
    domus_http_response response = {.status = 200, .media = "text/plain"};
    char text[100];

    snprintf(text, sizeof text, "%u %s", request->body.size, carrier != NULL ? carrier : "-");
    int error = request->method == DOMUS_HTTP_POST
                    ? domus_slice_copy(text, strlen(text), &response.body)
                    : domus_slice_copy(large, sizeof large, &response.body);
    return error != 0 ? error : domus_reply(stack, &domus_http_response_type, &response);
}

static const domus_behaviour channel = {
    .name = "https",
    .kind = DOMUS_CHANNELS,
    .pipeline = &pipeline,
    .on_peer = (const domus_on_peer[]){{.type = &domus_http_request_type,
                                        .handle = answer_request_with_carrier_or_large_body},
                                       {.type = NULL}},
};

static domus_system *start_https_service(void)
{
    static const char *const alpn[] = {"h2", "http/1.1", NULL};
    domus_config config = domt_config_of_threads(2);

    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:localhost"});
    domus_tls_settings settings = domt_make_server_settings(&pki, "a");
    settings.alpn = alpn;
    secure.tls = domt_make_tls_context(&settings);
    domus_system *system = domt_start_system(&config);
    port = domt_serve_channel_at_any_port(system, &channel).port;
    return system;
}

/* Let curl get one url twice on one connection, with these options. Returns curl's output. */
static const char *get_url_twice_by_curl(const char *options)
{
    char command[1024];

    snprintf(command, sizeof command,
             "head -c %u /dev/zero | curl -sS --max-time 60 --cacert '%s' "
             "-w ' %%{http_version} %%{num_connects}\\n' %s -o - 'https://localhost:%u/[1-2]' 2>&1",
             LARGE, domt_pki_path_of_file(&pki, "ca"), options, port);
    FILE *pipe = popen(command, "r"); /* NOLINT(cert-env33-c): a test may use the shell */
    ck_assert_ptr_nonnull(pipe);
    size_t size = fread(output, 1, sizeof output - 1, pipe);
    output[size] = '\0';
    int status = pclose(pipe);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", output);
    return output;
}

DOMT_TEST(curl_is_answered_by_either_protocol)
{
    static const char *const cases[][2] = {
        {"--http2 --data-binary @-", "3000000 http2 2 1\n3000000 http2 2 0\n"},
        {"--http1.1 --data-binary @-", "3000000 - 1.1 1\n3000000 - 1.1 0\n"},
        {"--no-alpn --data-binary @-", "3000000 - 1.1 1\n3000000 - 1.1 0\n"},
        {"--http2 -w '%{size_download}\\n' -o /dev/null", "3000000\n3000000\n"},
        {"--http1.1 -w '%{size_download}\\n' -o /dev/null", "3000000\n3000000\n"},
    };

    if (system("command -v curl >/dev/null") != 0) { /* NOLINT(cert-env33-c) */
        puts("curl is not there");
        return;
    }
    domus_system *system_ = start_https_service();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(get_url_twice_by_curl(cases[i][0]), cases[i][1]);
    domt_end_system(system_);
    domus_tls_free(secure.tls);
    domt_pki_free_authority(&pki);
}

/* --- http2 client ----------------------------------------------------------------------------- */

/* The client of HTTP uses for https urls the protocol that ALPN chooses: HTTP/2 if the server
 * agrees, else HTTP/1.1. The servers are this library's, nginx, nghttpd and node, over sockets;
 * servers that are not installed are reported and left out. */

static domus_system *system_now;
static domus_tls_options served, asking;
static domus_pipeline_stage front[2];
static const domus_pipeline_stage secure_client[] = {{&domus_tls_stage, &asking}, {NULL, NULL}};
static _Atomic uint32_t port_client, opened;

/* --- the service ------------------------------------------------------------------------------ */

/* Answer with the protocol that ALPN has chosen, and the number of bytes of the body. */
static int answer_request_with_protocol(domus_stack *stack, void *self, const void *payload)
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
    .on_peer = (const domus_on_peer[]){
        {.type = &domus_http_request_type, .handle = answer_request_with_protocol},
        {.type = NULL}}};

static int listen_as_site(domus_stack *stack, void *self)
{
    const domus_listen_options options = {.front = front};
    domus_endpoint at, got;

    int error = domus_endpoint_parse("127.0.0.1:0", &at);
    if (error == 0)
        error = domus_listen(stack, &at, &options, NULL, &got);
    if (error == 0)
        atomic_store(&port_client, got.port);
    return error;
}

static const domus_behaviour site = {
    .name = "site", .kind = DOMUS_CHANNELS, .channel = &site_channel, .on_mount = listen_as_site};

/* --- the client ------------------------------------------------------------------------------- */

static const domus_http_options to_servers = {.role = DOMUS_ROLE_CLIENT, .origin_form = true};
static const domus_pipeline by_alpn = {
    .stages = (const domus_pipeline_stage[]){{&domus_http2_client_stage, NULL},
                                             {&domus_http_stage, &to_servers},
                                             {NULL, NULL}},
    .encodes = domus_http_client_encodes,
    .inflight_max = 1};

static int count_opened_channel(domus_stack *stack, void *self, const void *event)
{
    atomic_fetch_add(&opened, 1);
    return 0;
}

static const domus_behaviour connection = {.name = "connection",
                                           .kind = DOMUS_CHANNELS,
                                           .pipeline = &by_alpn,
                                           .on_open = {count_opened_channel, 0}};
static const domus_http_client_options with = {
    .connection = &connection, .secure = secure_client, .backoff_ns = DOMT_MS};

/* Start the service and its TLS contexts; `of_server` and `of_client` are the protocols that each
 * side offers by ALPN, or NULL for none. */
static void start_site_and_contexts(const char *const *of_server, const char *const *of_client)
{
    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "right", .names = "DNS:localhost"});
    domus_tls_settings settings = domt_make_server_settings(&pki, "right");
    settings.alpn = of_server;
    served.tls = domt_make_tls_context(&settings);
    settings = domt_make_client_settings(&pki);
    settings.alpn = of_client;
    asking.tls = domt_make_tls_context(&settings);
    front[0] = (domus_pipeline_stage){&domus_tls_stage, &served};
    atomic_store(&port_client, 0);
    atomic_store(&opened, 0);
    domus_config config = domt_config_of_threads(2);
    system_now = domt_start_system(&config);
    (void)domt_spawn(system_now, 0, &site, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&port_client) != 0);
}

static void stop_site_and_contexts(void)
{
    domt_end_system(system_now);
    domus_tls_free(asking.tls);
    domus_tls_free(served.tls);
    domt_pki_free_authority(&pki);
}

static domus_address open_http_client(void)
{
    domus_address client;

    ck_assert_int_eq(domus_http_client_open_outside(system_now, &with, &client), 0);
    return client;
}

static char body[256];

/* Send a request with a body of `size` bytes. Returns the status of the response, or the error. */
static int send_request_and_return_status(domus_address client, uint32_t at,
                                          domus_http_method method, size_t size)
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

DOMT_TEST(alpn_decides_between_http1_and_http2)
{
    static const struct {
        const char *const *server, *const *client;
        const char *said;
        unsigned opened; /* how many channels the client opens, including inner ones */
    } cases[] = {
        {both, both, "h2", 2},      {only, both, "h2", 2}, {both, only, "h2", 2},
        {old, both, "http/1.1", 1}, {NULL, both, "", 1},   {both, NULL, "", 1},
        {both, old, "http/1.1", 1},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start_site_and_contexts(cases[i].server, cases[i].client);
        domus_address client = open_http_client();
        char text[64];
        for (unsigned n = 0; n < 3; n++) {
            ck_assert_int_eq(send_request_and_return_status(client, atomic_load(&port_client),
                                                            DOMUS_HTTP_GET, 0),
                             200);
            snprintf(text, sizeof text, "%s 0", cases[i].said);
            ck_assert_str_eq(body, text);
        }
        ck_assert_int_eq(send_request_and_return_status(client, atomic_load(&port_client),
                                                        DOMUS_HTTP_POST, 100000),
                         200);
        snprintf(text, sizeof text, "%s 100000", cases[i].said);
        ck_assert_str_eq(body, text);
        ck_assert_uint_eq(atomic_load(&opened), cases[i].opened);
        stop_site_and_contexts();
    }
}

/* --- servers of other projects ---------------------------------------------------------------- */

/* Send several requests to a server of another project that is just starting; the last one has a
 * body if `takes_body`. */
static void check_server_of_other_project(pid_t child, uint32_t at, const char *said,
                                          bool takes_body)
{
    domus_address client = open_http_client();
    int status = -ECONNREFUSED;

    for (int i = 0; i < 1200 && status == -ECONNREFUSED; i++) {
        domt_pause_ns(50 * DOMT_MS);
        status = send_request_and_return_status(client, at, DOMUS_HTTP_GET, 0);
    }
    ck_assert_int_eq(status, 200);
    ck_assert_str_eq(body, said);
    for (unsigned i = 0; i < 20; i++) {
        ck_assert_int_eq(send_request_and_return_status(
                             client, at, i % 2 != 0 ? DOMUS_HTTP_GET : DOMUS_HTTP_HEAD, 0),
                         200);
        ck_assert_str_eq(body, i % 2 != 0 ? said : "");
    }
    if (takes_body) {
        ck_assert_int_eq(send_request_and_return_status(client, at, DOMUS_HTTP_PUT, 100000), 200);
        ck_assert_str_eq(body, "100000");
    }
    /* the client has opened one connection, and one inner channel of HTTP/2 in it */
    ck_assert_uint_eq(atomic_load(&opened), 2);
    domt_process_terminate(child);
}

static const char *copy_path_of_pki_file(const char *file, char to[128])
{
    snprintf(to, 128, "%s", domt_pki_path_of_file(&pki, file));
    return to;
}

DOMT_TEST(nginx_answers_http2_client)
{
    char file[128], conf[2048], path[128];

    if (!domt_path_has_program("nginx"))
        return;
    start_site_and_contexts(both, both);
    uint32_t at = domt_find_free_port();
    copy_path_of_pki_file("right", file);
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
    domt_pki_write_file(&pki, "nginx", conf);
    const char *const arguments[] = {"nginx", "-c",       copy_path_of_pki_file("nginx", path),
                                     "-p",    pki.folder, NULL};
    check_server_of_other_project(domt_process_start_program(arguments), at, "HTTP/2.0", false);
    stop_site_and_contexts();
}

DOMT_TEST(nghttpd_answers_http2_client)
{
    char file[128], text[160], number[16];

    if (!domt_path_has_program("nghttpd"))
        return;
    start_site_and_contexts(both, both);
    uint32_t at = domt_find_free_port();
    snprintf(number, sizeof number, "%u", at);
    snprintf(text, sizeof text, "%s/a.txt", pki.folder);
    FILE *out = fopen(text, "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_int_ge(fputs("a file", out), 0);
    ck_assert_int_eq(fclose(out), 0);
    copy_path_of_pki_file("right", file);
    const char *const arguments[] = {"nghttpd", "-a", "127.0.0.1", "-d", pki.folder,
                                     number,    file, file,        NULL};
    check_server_of_other_project(domt_process_start_program(arguments), at, "a file", false);
    ck_assert_int_eq(unlink(text), 0);
    stop_site_and_contexts();
}

DOMT_TEST(node_answers_http2_client)
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

    if (!domt_path_has_program("node"))
        return;
    start_site_and_contexts(both, both);
    uint32_t at = domt_find_free_port();
    snprintf(number, sizeof number, "%u", at);
    const char *const arguments[] = {
        "node", "-e", script, number, copy_path_of_pki_file("right", file), NULL};
    check_server_of_other_project(domt_process_start_program(arguments), at, "2.0", true);
    stop_site_and_contexts();
}

DOMT_SUITE(100)
