/* HTTP/2 over TLS, with both as stages of a service's pipeline: curl is answered by the protocol on
 * which ALPN agrees. */
#include "tests/runtime/running.h"
#include "tests/tls/pki.h"

#include <domus/http.h>
#include <domus/http2.h>
#include <domus/tls.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define LARGE 3000000u

static domt_pki pki;
static domus_tls_options secure;
static _Atomic uint32_t port;
static char output[4096];

static const domus_http_options http = {.body_max = LARGE};
static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_tls_stage, &secure},
                                             {&domus_http2_stage, NULL},
                                             {&domus_http_stage, &http},
                                             {NULL, NULL}}};

/* Answer a POST with the number of its bytes and the carrier of the channel, and other requests
 * with a large body. */
static int answer(domus_stack *stack, void *self, const void *payload)
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

static domus_system *start(void)
{
    static const char *const alpn[] = {"h2", "http/1.1", NULL};
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

/* Run curl with options for one url twice, on one connection. Returns its output. */
static const char *run_curl(const char *options)
{
    char command[1024];

    snprintf(command, sizeof command,
             "head -c %u /dev/zero | curl -sS --max-time 60 --cacert '%s' "
             "-w ' %%{http_version} %%{num_connects}\\n' %s -o - 'https://localhost:%u/[1-2]' 2>&1",
             LARGE, domt_pki_path(&pki, "ca"), options, atomic_load(&port));
    FILE *pipe = popen(command, "r"); /* NOLINT(cert-env33-c): a test may use the shell */
    ck_assert_ptr_nonnull(pipe);
    size_t size = fread(output, 1, sizeof output - 1, pipe);
    output[size] = '\0';
    int status = pclose(pipe);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", output);
    return output;
}

DOMT_TEST(curl_speaks_either_protocol)
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
    domus_system *system_ = start();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(run_curl(cases[i][0]), cases[i][1]);
    domt_end(system_);
    domus_tls_free(secure.tls);
    domt_pki_free(&pki);
}

DOMT_SUITE(100)
