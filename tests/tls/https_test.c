/* The client of HTTP gets https urls, and a proxy passes requests on to them: over sockets, with a
 * service of this library, with nginx and with OpenSSL's s_server. */
#include "tests/runtime/running.h"
#include "tests/support/process.h"
#include "tests/tls/pki.h"

#include <domus/http_client.h>
#include <domus/http_proxy.h>
#include <domus/tls.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- a service with several certificates ------------------------------------------------------ */

enum { RIGHT, OTHER, OLD, SELF, PLAIN, PASSES, PLACES };

static const char *const files[] = {"right", "other", "old", "self"};

static domt_pki pki;
static domus_system *of_test;
static domus_tls_options served[PLAIN];
static domus_pipeline_stage fronts[PLAIN][2];
static _Atomic uint32_t ports[PLACES];
static _Atomic uint32_t requests; /* number of requests that the service has received */
static domus_tls_options trusting = {.tls = NULL};
static const domus_pipeline_stage secure[] = {{&domus_tls_stage, &trusting}, {NULL, NULL}};
static domus_http_proxy proxy = {.name = "edge"};

static int answer_with_redirect(domus_stack *stack, const char *scheme, uint32_t place)
{
    domus_http_response response = {.status = 302};
    char text[100];

    snprintf(text, sizeof text, "Location: %s://localhost:%u/\r\n", scheme,
             atomic_load(&ports[place]));
    int error = domus_slice_copy(text, strlen(text), &response.fields);
    return error != 0 ? error : domus_reply(stack, &domus_http_response_type, &response);
}

static int answer_request_with_tls_info(domus_stack *stack, void *self, const void *payload)
{
    domus_slice path = domus_http_path(payload);
    domus_http_response response = {.status = 200, .close = path.size == 6};
    domus_tls_info info;
    char text[300] = "plain";

    atomic_fetch_add(&requests, 1);
    if (domus_slice_equals(path, "/plain", 6))
        return answer_with_redirect(stack, "http", PLAIN);
    if (domus_slice_equals(path, "/secure", 7))
        return answer_with_redirect(stack, "https", RIGHT);
    if (domus_tls_info_of(stack, domus_channel_running(stack), &info) == 0)
        snprintf(text, sizeof text, "%s %s %d", info.version, info.name, info.resumed);
    int error = domus_slice_copy(text, strlen(text), &response.body);
    return error != 0 ? error : domus_reply(stack, &domus_http_response_type, &response);
}

static int pass_request_on_to_proxied_site(domus_stack *stack, void *self, const void *payload)
{
    return domus_http_pass(stack, payload, &proxy);
}

static const domus_pipeline http = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, NULL}, {NULL, NULL}}};
static const domus_behaviour site_channel = {
    .name = "site",
    .kind = DOMUS_CHANNELS,
    .pipeline = &http,
    .on_peer = (const domus_on_peer[]){
        {.type = &domus_http_request_type, .handle = answer_request_with_tls_info},
        {.type = NULL}}};
static const domus_behaviour proxy_channel = {
    .name = "proxy",
    .kind = DOMUS_CHANNELS,
    .pipeline = &http,
    .on_peer = (const domus_on_peer[]){{&domus_http_request_type, pass_request_on_to_proxied_site,
                                        DOMUS_HTTP_PROXY_FRAME, 0, NULL},
                                       {.type = NULL}}};

static int listen_for_place(domus_stack *stack, uint32_t place)
{
    domus_listen_options options = {.front = place < PLAIN ? fronts[place] : NULL};
    domus_endpoint at, got;

    int error = domus_endpoint_parse("127.0.0.1:0", &at);
    if (error == 0)
        error = domus_listen(stack, &at, &options, NULL, &got);
    if (error == 0)
        atomic_store(&ports[place], got.port);
    return error;
}

static int listen_as_all_sites(domus_stack *stack, void *self)
{
    int error = 0;

    for (uint32_t i = 0; error == 0 && i <= PLAIN; i++)
        error = listen_for_place(stack, i);
    return error;
}

static int listen_as_proxy(domus_stack *stack, void *self)
{
    return listen_for_place(stack, PASSES);
}

static const domus_behaviour site = {.name = "site",
                                     .kind = DOMUS_CHANNELS,
                                     .channel = &site_channel,
                                     .on_mount = listen_as_all_sites};
static const domus_behaviour passing = {.name = "proxy",
                                        .kind = DOMUS_CHANNELS,
                                        .channel = &proxy_channel,
                                        .on_mount = listen_as_proxy};

static domus_tls *make_tls_context(const domus_tls_settings *settings)
{
    domus_tls *tls = NULL;
    char error[256] = "";

    ck_assert_msg(domus_tls_new(settings, error, sizeof error, &tls) == 0, "%s", error);
    return tls;
}

/* Make a client's context of TLS that trusts the authority of this test, or those of the system. */
static domus_tls *make_client_tls_context(bool trusts)
{
    char path[128];

    snprintf(path, sizeof path, "%s", domt_pki_path_of_file(&pki, "ca"));
    const domus_tls_settings settings = {.role = DOMUS_ROLE_CLIENT,
                                         .ca_file = trusts ? path : NULL};
    return make_tls_context(&settings);
}

static void start_sites_with_certificates(bool trusts)
{
    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(
        &pki, &(domt_wish){.file = "right", .names = "DNS:localhost,IP:127.0.0.1"});
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "other", .names = "DNS:a.example"});
    domt_pki_issue_certificate(
        &pki, &(domt_wish){.file = "old", .names = "DNS:localhost", .ends_s = -30});
    domt_pki_issue_certificate(
        &pki, &(domt_wish){.file = "self", .names = "DNS:localhost", .is_self_signed = 1});
    for (uint32_t i = 0; i < PLAIN; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s", domt_pki_path_of_file(&pki, files[i]));
        const domus_tls_certificate certificate = {path, NULL};
        const domus_tls_settings settings = {
            .role = DOMUS_ROLE_SERVER, .certificates = &certificate, .certificates_count = 1};
        served[i].tls = make_tls_context(&settings);
        fronts[i][0] = (domus_pipeline_stage){&domus_tls_stage, &served[i]};
        atomic_store(&ports[i], 0);
    }
    atomic_store(&ports[PLAIN], 0);
    atomic_store(&requests, 0);
    trusting.tls = make_client_tls_context(trusts);
    domus_config config = domt_config_of_threads(2);
    of_test = domt_start_system(&config);
    (void)domt_spawn(of_test, 0, &site, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&ports[PLAIN]) != 0);
}

static void stop_sites_with_certificates(void)
{
    domt_end_system(of_test);
    domus_tls_free(trusting.tls);
    for (uint32_t i = 0; i < PLAIN; i++)
        domus_tls_free(served[i].tls);
    domt_pki_free_authority(&pki);
}

/* --- requests ------------------------------------------------------------------------------- */

static domus_address open_http_client(const domus_http_client_options *options)
{
    domus_address client;

    ck_assert_int_eq(domus_http_client_open_outside(of_test, options, &client), 0);
    return client;
}

static char body[65536];

/* Send a GET for a url, and store the body of the response in `body`. Returns the status, or the
 * error. */
static int send_request_and_store_body(domus_address client, domus_http_method method,
                                       const char *url)
{
    domus_http_request request = {.method = (uint8_t)method};
    domus_http_response response;
    domus_outside_reply reply = {.buffer = &response, .size = sizeof response};

    ck_assert_int_eq(domus_slice_copy(url, strlen(url), &request.target), 0);
    int error = domus_outside_ask(of_test, client, &domus_http_request_type, &request,
                                  20000 * DOMT_MS, &reply);
    if (error != 0)
        return error;
    snprintf(body, sizeof body, "%.*s", (int)response.body.size, domus_slice_data(response.body));
    int status = response.status;
    domus_http_response_type.release(&response);
    return status;
}

static int get_url_of_parts(domus_address client, const char *scheme, const char *host,
                            uint32_t port, const char *path)
{
    char url[200];

    snprintf(url, sizeof url, "%s://%s:%u%s", scheme, host, port, path);
    return send_request_and_store_body(client, DOMUS_HTTP_GET, url);
}

static int get_url_of_site(domus_address client, uint32_t place, const char *path)
{
    return get_url_of_parts(client, place == PLAIN ? "http" : "https", "localhost",
                            atomic_load(&ports[place]), path);
}

DOMT_TEST(https_urls_are_requested_and_sessions_resumed)
{
    static const domus_http_client_options with = {.secure = secure}, without = {.origins_max = 2};

    start_sites_with_certificates(true);
    domus_address client = open_http_client(&with);
    ck_assert_int_eq(get_url_of_site(client, RIGHT, "/"), 200);
    ck_assert_str_eq(body, "TLSv1.3 localhost 0");
    /* This request uses the connection of the first one, as its count of resumed sessions shows. */
    ck_assert_int_eq(get_url_of_site(client, RIGHT, "/close"), 200);
    ck_assert_str_eq(body, "TLSv1.3 localhost 0");
    /* The server has closed the first connection, so this request uses another one, with a resumed
     * session. */
    ck_assert_int_eq(get_url_of_site(client, RIGHT, "/close"), 200);
    ck_assert_str_eq(body, "TLSv1.3 localhost 1");
    ck_assert_int_eq(get_url_of_site(client, RIGHT, "/"), 200);
    ck_assert_str_eq(body, "TLSv1.3 localhost 1");
    ck_assert_int_eq(
        get_url_of_parts(client, "https", "127.0.0.1", atomic_load(&ports[RIGHT]), "/"), 200);
    /* An IP address is another name of the server, so no session is resumed, and the client sends
     * no SNI. */
    ck_assert_str_eq(body, "TLSv1.3  0");
    ck_assert_int_eq(get_url_of_site(client, PLAIN, "/"), 200);
    ck_assert_str_eq(body, "plain");
    ck_assert_int_eq(get_url_of_site(open_http_client(&without), RIGHT, "/"), -EPROTONOSUPPORT);
    stop_sites_with_certificates();
}

DOMT_TEST(unverified_servers_get_no_request)
{
    static const domus_http_client_options with = {.secure = secure};

    for (int trusts = 1; trusts >= 0; trusts--) {
        start_sites_with_certificates(trusts != 0);
        domus_address client = open_http_client(&with);
        for (uint32_t i = trusts != 0 ? OTHER : RIGHT; i < PLAIN; i++) {
            char url[100];
            ck_assert_int_eq(get_url_of_site(client, i, "/"), -EACCES);
            snprintf(url, sizeof url, "https://localhost:%u/", atomic_load(&ports[i]));
            /* Not even a POST, which may not be repeated, comes to the server, because the client
             * ends the handshake first. */
            ck_assert_int_eq(send_request_and_store_body(client, DOMUS_HTTP_POST, url), -EACCES);
        }
        ck_assert_uint_eq(atomic_load(&requests), 0);
        /* A https url with the port of a server without TLS fails. */
        int error = get_url_of_parts(client, "https", "localhost", atomic_load(&ports[PLAIN]), "/");
        ck_assert_msg(error == -EPROTO, "%d", error);
        error = get_url_of_parts(client, "http", "localhost", atomic_load(&ports[RIGHT]), "/");
        ck_assert_msg(error < 0, "%d", error);
        ck_assert_uint_eq(atomic_load(&requests), 0);
        stop_sites_with_certificates();
    }
}

DOMT_TEST(redirect_from_https_to_http_needs_permission)
{
    static const domus_http_client_options usual = {.secure = secure},
                                           lax = {.secure = secure, .redirects_to_http = true},
                                           none = {.origins_max = 2};

    start_sites_with_certificates(true);
    domus_address client = open_http_client(&usual);
    ck_assert_int_eq(get_url_of_site(client, PLAIN, "/secure"), 200);
    ck_assert_str_eq(body, "TLSv1.3 localhost 0");
    ck_assert_int_eq(get_url_of_site(client, RIGHT, "/secure"), 200);
    ck_assert_int_eq(get_url_of_site(client, RIGHT, "/plain"), 302);
    ck_assert_int_eq(get_url_of_site(client, PLAIN, "/plain"), 200);
    ck_assert_int_eq(get_url_of_site(open_http_client(&lax), RIGHT, "/plain"), 200);
    ck_assert_str_eq(body, "plain");
    ck_assert_int_eq(get_url_of_site(open_http_client(&none), PLAIN, "/secure"), 302);
    stop_sites_with_certificates();
}

DOMT_TEST(proxy_passes_requests_on_to_https_server)
{
    const domus_pool_options options = {.behaviour = &domus_http_streaming_connection,
                                        .connections_max = 4,
                                        .repeatable = domus_http_repeatable,
                                        .on_demand = true,
                                        .front = secure};
    char to[64];

    start_sites_with_certificates(true);
    domus_address client = open_http_client(NULL);
    for (uint32_t i = RIGHT; i <= OTHER; i++) {
        snprintf(to, sizeof to, "localhost:%u", atomic_load(&ports[i]));
        ck_assert_int_eq(domus_outside_pool_open(of_test, to, &options, &proxy.upstream), 0);
        atomic_store(&ports[PASSES], 0);
        (void)domt_spawn(of_test, 0, &passing, NULL);
        DOMT_WAIT_FOR(10, atomic_load(&ports[PASSES]) != 0);
        int status =
            get_url_of_parts(client, "http", "localhost", atomic_load(&ports[PASSES]), "/");
        ck_assert_int_eq(status, i == RIGHT ? 200 : 502);
        if (i == RIGHT)
            ck_assert_str_eq(body, "TLSv1.3 localhost 0");
    }
    ck_assert_uint_eq(atomic_load(&requests), 1);
    stop_sites_with_certificates();
}

/* --- servers of other projects ---------------------------------------------------------------- */

/* Send requests until the server on this port listens. Returns the status of the first response. */
static int get_root_once_server_listens(domus_address client, uint32_t port)
{
    int status = -ECONNREFUSED;

    for (int i = 0; i < 1200 && status == -ECONNREFUSED; i++) {
        domt_pause_ns(50 * DOMT_MS);
        status = get_url_of_parts(client, "https", "localhost", port, "/");
    }
    return status;
}

DOMT_TEST(openssl_s_server_answers_and_resumes_session)
{
    static const domus_http_client_options with = {.secure = secure, .backoff_ns = DOMT_MS};
    static const char *const versions[] = {"-tls1_2", "-tls1_3"};

    if (!domt_path_has_program("openssl"))
        return;
    start_sites_with_certificates(true);
    domus_address client = open_http_client(&with);
    for (int i = 0; i < 2; i++) {
        uint32_t port = domt_find_free_port();
        char at[16], file[128];
        snprintf(at, sizeof at, "%u", port);
        snprintf(file, sizeof file, "%s", domt_pki_path_of_file(&pki, "right"));
        const char *const arguments[] = {"openssl", "s_server", "-accept", at,   "-cert", file,
                                         "-key",    file,       "-www",    NULL, NULL};
        const char *with_version[12];
        memcpy(with_version, arguments, sizeof arguments);
        with_version[9] = versions[i];
        pid_t child = domt_process_start_program(with_version);
        ck_assert_int_eq(get_root_once_server_listens(client, port), 200);
        ck_assert_msg(strstr(body, "\nNew, TLSv1.") != NULL, "%s", body);
        ck_assert_int_eq(get_url_of_parts(client, "https", "localhost", port, "/"), 200);
        ck_assert_msg(strstr(body, "\nReused, TLSv1.") != NULL, "%s", body);
        domt_process_terminate(child);
    }
    stop_sites_with_certificates();
}

DOMT_TEST(nginx_answers_https_client)
{
    static const domus_http_client_options with = {.secure = secure, .backoff_ns = DOMT_MS};

    if (!domt_path_has_program("nginx"))
        return;
    start_sites_with_certificates(true);
    uint32_t port = domt_find_free_port();
    char file[128], conf[2048];
    snprintf(file, sizeof file, "%s", domt_pki_path_of_file(&pki, "right"));
    snprintf(
        conf, sizeof conf,
        "daemon off; master_process off; pid %s/pid; error_log /dev/null;\n"
        "events {}\n"
        "http { access_log off;\n"
        "client_body_temp_path %s/a; proxy_temp_path %s/b; fastcgi_temp_path %s/c;\n"
        "uwsgi_temp_path %s/d; scgi_temp_path %s/e;\n"
        "server { listen 127.0.0.1:%u ssl; ssl_certificate %s; ssl_certificate_key %s;\n"
        "ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:s:1m; ssl_session_tickets on;\n"
        "location / { return 200 \"$ssl_protocol $ssl_session_reused $ssl_server_name\"; }\n"
        "location /close { keepalive_timeout 0; return 200 \"$ssl_session_reused\"; } } }\n",
        pki.folder, pki.folder, pki.folder, pki.folder, pki.folder, pki.folder, port, file, file);
    domt_pki_write_file(&pki, "nginx", conf);
    char path[128];
    snprintf(path, sizeof path, "%s", domt_pki_path_of_file(&pki, "nginx"));
    const char *const arguments[] = {"nginx", "-c", path, "-p", pki.folder, NULL};
    pid_t child = domt_process_start_program(arguments);
    domus_address client = open_http_client(&with);
    ck_assert_int_eq(get_root_once_server_listens(client, port), 200);
    ck_assert_str_eq(body, "TLSv1.3 . localhost");
    ck_assert_int_eq(get_url_of_parts(client, "https", "localhost", port, "/close"), 200);
    ck_assert_int_eq(get_url_of_parts(client, "https", "localhost", port, "/"), 200);
    ck_assert_str_eq(body, "TLSv1.3 r localhost");
    domt_process_terminate(child);
    stop_sites_with_certificates();
}

DOMT_SUITE(100)
