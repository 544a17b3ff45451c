/* TLS over sockets: a service of HTTPS in a real system, tested by curl and OpenSSL's s_client. */
#include "tests/runtime/running.h"
#include "tests/tls/pki.h"

#include <domus/http.h>
#include <domus/tls.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static domt_pki pki;
static domus_tls_options secure;
static _Atomic uint32_t port;
static char output[65536];

static const domus_pipeline https = {
    .stages = (const domus_pipeline_stage[]){
        {&domus_tls_stage, &secure}, {&domus_http_stage, NULL}, {NULL, NULL}}};

/* Answer with the agreed protocol version and cipher, or with a body of a megabyte. */
static int answer(domus_stack *stack, void *self, const void *payload)
{
    static char large[1 << 20];
    domus_slice path = domus_http_path(payload);
    domus_tls_info info;
    char text[400];
    domus_http_response response = {.status = 200, .media = "text/plain"};

    int error = domus_tls_info_of(stack, domus_channel_running(stack), &info);
    if (error != 0)
        return error;
    memset(large, 'x', sizeof large);
    snprintf(text, sizeof text, "%s %s %s\n", info.version, info.alpn, info.name);
    error = path.size == 1 ? domus_slice_copy(text, strlen(text), &response.body)
                           : domus_slice_copy(large, sizeof large, &response.body);
    return error != 0 ? error : domus_reply(stack, &domus_http_response_type, &response);
}

static const domus_behaviour channel = {
    .name = "https",
    .kind = DOMUS_CHANNELS,
    .pipeline = &https,
    .on_peer = (const domus_on_peer[]){{.type = &domus_http_request_type, .handle = answer},
                                       {.type = NULL}},
};

static int serve(domus_stack *stack, void *self)
{
    domus_endpoint at, got;

    int error = domus_endpoint_parse("127.0.0.1:0", &at);
    if (error == 0)
        error = domus_listen(stack, &at, NULL, NULL, &got);
    atomic_store(&port, error == 0 ? got.port : 0);
    return error;
}

static const domus_behaviour service = {
    .name = "service", .kind = DOMUS_CHANNELS, .channel = &channel, .on_mount = serve};

static domus_system *start_service(void)
{
    static const char *const alpn[] = {"http/1.1", NULL};
    static domus_tls_certificate certificate;
    char error[256];

    domt_pki_make(&pki);
    domt_pki_issue(&pki, &(domt_wish){.file = "a", .names = "DNS:localhost"});
    certificate.cert_file = domt_pki_path(&pki, "a");
    const domus_tls_settings settings = {.role = DOMUS_ROLE_SERVER,
                                         .certificates = &certificate,
                                         .certificates_count = 1,
                                         .alpn = alpn};
    ck_assert_int_eq(domus_tls_new(&settings, error, sizeof error, &secure.tls), 0);
    domus_config config = domt_config(2);
    domus_system *system = domt_start(&config);
    atomic_store(&port, 0);
    (void)domt_spawn(system, 0, &service, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&port) != 0);
    return system;
}

static void stop_service(domus_system *system)
{
    domt_end(system);
    domus_tls_free(secure.tls);
    domt_pki_free(&pki);
}

/* Run a command, and store its output in `output`. Returns its status. */
__attribute__((format(printf, 1, 2))) static int run(const char *format, ...)
{
    char command[1024];
    va_list list;

    va_start(list, format);
    vsnprintf(command, sizeof command, format, list);
    va_end(list);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    size_t size = fread(output, 1, sizeof output - 1, pipe);
    output[size] = '\0';
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Run curl with its usual options, followed by these. Returns its status. */
static int run_curl(const char *options)
{
    return run("curl -sS --max-time 20 --cacert '%s' --resolve localhost:%u:127.0.0.1 %s 2>&1",
               domt_pki_path(&pki, "ca"), atomic_load(&port), options);
}

DOMT_TEST(curl_is_answered)
{
    char options[256];

    if (run("command -v curl") != 0)
        return;
    domus_system *system = start_service();
    unsigned at = atomic_load(&port);
    for (int i = 0; i < 2; i++) {
        snprintf(options, sizeof options, "%s https://localhost:%u/ https://localhost:%u/",
                 i == 0 ? "--tls-max 1.2" : "--tlsv1.3", at, at);
        ck_assert_msg(run_curl(options) == 0, "%s", output);
        ck_assert_str_eq(output, i == 0
                                     ? "TLSv1.2 http/1.1 localhost\nTLSv1.2 http/1.1 localhost\n"
                                     : "TLSv1.3 http/1.1 localhost\nTLSv1.3 http/1.1 localhost\n");
    }
    snprintf(options, sizeof options,
             "-o /dev/null -w '%%{size_download}' https://localhost:%u/big", at);
    ck_assert_msg(run_curl(options) == 0 && strcmp(output, "1048576") == 0, "%s", output);
    snprintf(options, sizeof options, "https://127.0.0.1:%u/", at);
    ck_assert_int_eq(run_curl(options), 60); /* the certificate has another name */
    snprintf(options, sizeof options, "http://localhost:%u/", at);
    ck_assert_int_ne(run_curl(options), 0);
    stop_service(system);
}

DOMT_TEST(s_client_is_answered_and_resumes)
{
    if (run("command -v openssl") != 0)
        return;
    domus_system *system = start_service();
    static const char request[] = "printf 'GET / HTTP/1.1\\r\\nHost: localhost\\r\\n"
                                  "Connection: close\\r\\n\\r\\n'";
    for (int i = 0; i < 2; i++) {
        int status =
            run("%s | openssl s_client -ign_eof -CAfile '%s' -servername localhost "
                "-verify_return_error "
                "-verify_hostname localhost -%s '%s/session' -tls1_2 -connect 127.0.0.1:%u 2>&1",
                request, domt_pki_path(&pki, "ca"), i == 0 ? "sess_out" : "sess_in", pki.folder,
                atomic_load(&port));
        ck_assert_msg(status == 0, "%s", output);
        ck_assert_msg(strstr(output, "TLSv1.2  localhost") != NULL, "%s", output);
        ck_assert(strstr(output, i == 0 ? "New, TLSv1.2" : "Reused, TLSv1.2") != NULL);
    }
    stop_service(system);
}

DOMT_SUITE(60)
