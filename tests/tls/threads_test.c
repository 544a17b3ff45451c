/* TLS on threads and sockets that are real: HTTPS with other programs, many handshakes at once,
 * and contexts that several threads use while files are read again. */
#include "protocols/tls/context.h"
#include "tests/runtime/running.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"
#include "tests/tls/pki.h"
#include "tests/tls/raw.h"
#include "tests/tls/talk.h"

#include <arpa/inet.h>
#include <domus/http.h>
#include <domus/tls.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* TLS: threads connect with the same contexts while their files are read again and the keys of
 * tickets change, and several threads read files again. The thread sanitizer checks that. */

#define THREADS 4
#define ROUNDS  DOMT_SCALE(40, 10)
#define CHANGES DOMT_SCALE(100, 25)

static domt_pki pki;
static domus_tls *server_tls;
static domus_tls *client_tls;
/* number of the test's threads that have ended; in the test of reloads, 1 ends them */
static _Atomic uint32_t done;
static _Atomic uint32_t resumed; /* number of connections that have resumed a session */

static void connect_and_exchange_line(domt_side *server, domt_side *client)
{
    ck_assert_int_eq(domt_side_open_by_role(server, server_tls, NULL), 0);
    ck_assert_int_eq(domt_side_open_by_role(client, client_tls, "a.example"), 0);
    domt_side_send_line(client, "hello");
    domt_side_exchange_bytes_with_other(client, server, 0);
    ck_assert_str_eq(client->last, "hello");
    if (domt_side_tls_info(client).resumed)
        atomic_fetch_add(&resumed, 1);
    domt_side_close_connection(client);
    domt_side_close_connection(server);
}

static void *connect_repeatedly_in_thread(void *sides_)
{
    domt_side *sides = sides_;

    for (int i = 0; i < ROUNDS; i++)
        connect_and_exchange_line(&sides[0], &sides[1]);
    atomic_fetch_add(&done, 1);
    return NULL;
}

DOMT_TEST(handshakes_succeed_while_files_and_keys_change)
{
    static domt_side sides[THREADS][2];
    pthread_t threads[THREADS];
    uint32_t reloads = 0;

    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    domus_tls_settings settings = domt_make_server_settings(&pki, "a");
    server_tls = domt_make_tls_context(&settings);
    settings = domt_make_client_settings(&pki);
    client_tls = domt_make_tls_context(&settings);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, connect_repeatedly_in_thread, sides[i]),
                         0);
    for (; atomic_load(&done) < THREADS; reloads++) {
        ck_assert_int_eq(domus_tls_reload(server_tls, NULL, 0), 0);
        ck_assert_int_eq(domus_tls_rotate(server_tls), 0);
        if (reloads % 8 == 7)
            ck_assert_int_eq(domus_tls_reload(client_tls, NULL, 0), 0);
        struct timespec pause = {.tv_nsec = 2000000};
        nanosleep(&pause, NULL);
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_uint_gt(reloads, 3);
    ck_assert_uint_gt(atomic_load(&resumed), 0);
    domus_tls_free(client_tls);
    domus_tls_free(server_tls);
    domt_pki_free_authority(&pki);
}

/* --- several threads read files again
 * ----------------------------------------------------------- */

static char path[2][128]; /* paths of the two files of which one at a time is in use */
static char now_path[128];

/* Read the files of the context again. A thread may see the certificate of one file and the key of
 * the other, and its reading fails then. */
static void *reload_files_repeatedly_in_thread(void *nothing)
{
    while (atomic_load(&done) == 0)
        (void)domus_tls_reload(server_tls, NULL, 0);
    return NULL;
}

static bool has_context_this_certificate(domi_tls_text file)
{
    (void)CRYPTO_THREAD_read_lock(server_tls->lock);
    const domi_tls_text *in_use = &server_tls->files->certs[0];
    bool same = in_use->size >= file.size && memcmp(in_use->bytes, file.bytes, file.size) == 0;
    (void)CRYPTO_THREAD_unlock(server_tls->lock);
    return same;
}

/* Put another file in place of the one that the context reads, in one step, and return its text. */
static void replace_certificate_file(int which, domi_tls_text *ret_file)
{
    static char bytes[1 << 16];
    char next[160];
    FILE *file = fopen(path[which], "r");

    ck_assert_ptr_nonnull(file);
    *ret_file = (domi_tls_text){bytes, fread(bytes, 1, sizeof bytes, file)};
    ck_assert_int_eq(fclose(file), 0);
    snprintf(next, sizeof next, "%s.next", now_path);
    ck_assert_int_eq(link(path[which], next), 0);
    ck_assert_int_eq(rename(next, now_path), 0);
}

DOMT_TEST(older_read_of_files_never_replaces_newer)
{
    pthread_t threads[THREADS];
    domi_tls_text file;

    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "b", .names = "DNS:b.example"});
    snprintf(path[0], sizeof path[0], "%s", domt_pki_path_of_file(&pki, "a"));
    snprintf(path[1], sizeof path[1], "%s", domt_pki_path_of_file(&pki, "b"));
    snprintf(now_path, sizeof now_path, "%s", domt_pki_path_of_file(&pki, "now"));
    replace_certificate_file(0, &file);
    domus_tls_settings settings = domt_make_server_settings(&pki, "now");
    server_tls = domt_make_tls_context(&settings);
    atomic_store(&done, 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, reload_files_repeatedly_in_thread, NULL),
                         0);
    for (int i = 0; i < CHANGES; i++) {
        replace_certificate_file((i + 1) % 2, &file);
        ck_assert_int_eq(domus_tls_reload(server_tls, NULL, 0), 0);
        for (int look = 0; look < 4; look++) {
            ck_assert_msg(has_context_this_certificate(file), "change %d, look %d", i, look);
            struct timespec pause = {.tv_nsec = 500000};
            nanosleep(&pause, NULL);
        }
    }
    atomic_store(&done, 1);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    domus_tls_free(server_tls);
    domt_pki_free_authority(&pki);
}

/* --- storm ------------------------------------------------------------------------------------ */

/* TLS: many handshakes at once delay neither timers nor state actors: the time between two ticks
 * of an actor is at most scheduler.stageTime and a few handshakes. Time is that of the thread's
 * CPU, but a handshake takes up to twice as much of it beside other programs. */

#define CLIENTS 24

static domus_tls_options secure;
static _Atomic uint64_t longest_ns; /* longest CPU time between two ticks of the state actor */
static _Atomic uint64_t ticks;
/* CPU time between the first and the last tick of the state actor */
static _Atomic uint64_t used_ns;

static const domus_type tick_type = {.name = "tick"};

static uint64_t read_thread_cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* A handler of a state actor that always has a tick due, and measures the CPU time between two. */
static int handle_tick_and_measure_time(domus_stack *stack, void *self, const void *payload)
{
    uint64_t *before = self;
    uint64_t now = read_thread_cpu_ns();

    if (*before != 0 && now - *before > atomic_load(&longest_ns))
        atomic_store(&longest_ns, now - *before);
    if (*before != 0)
        atomic_fetch_add(&used_ns, now - *before);
    *before = now;
    atomic_fetch_add(&ticks, 1);
    return 0;
}

static int begin_ticks_of_actor(domus_stack *stack, void *self)
{
    return domus_every(stack, DOMT_MS, &tick_type, NULL, NULL);
}

static const domus_behaviour clock_actor = {
    .name = "clock",
    .state_size = sizeof(uint64_t),
    .on_mount = begin_ticks_of_actor,
    .on = (const domus_on[]){{&tick_type, handle_tick_and_measure_time, 0}, {NULL, NULL, 0}}};

static const domus_pipeline lines = {
    .stages = (const domus_pipeline_stage[]){
        {&domus_tls_stage, &secure}, {&domus_line_stage, NULL}, {NULL, NULL}}};
static const domus_behaviour channel = {
    .name = "lines", .kind = DOMUS_CHANNELS, .pipeline = &lines};

/* --- clients ---------------------------------------------------------------------------------- */

typedef struct client {
    domt_raw raw;
    int fd;
} client;

static void open_storm_client(client *one, const domus_endpoint *at)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(at->port)};
    char *hello;

    memcpy(&address.sin_addr, at->bytes, 4);
    domt_raw_open_client(&one->raw, &pki, TLS1_2_VERSION, "a.example");
    one->fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(one->fd, (struct sockaddr *)&address, sizeof address), 0);
    (void)SSL_do_handshake(one->raw.ssl);
    long size = BIO_get_mem_data(one->raw.out, &hello);
    ck_assert_int_eq(write(one->fd, hello, (size_t)size), size);
}

/* Wait for the first bytes of the server, which come after it has computed the signature of its
 * handshake, and close. */
static void close_storm_client_after_answer(client *one)
{
    char byte;

    ck_assert_int_eq(recv(one->fd, &byte, 1, MSG_WAITALL), 1);
    ck_assert_int_eq(close(one->fd), 0);
    domt_raw_free_peer(&one->raw);
}

static void run_storm_of_handshakes(int bits)
{
    static client clients[CLIENTS];
    domus_config config = domt_config_of_threads(1);

    atomic_store(&longest_ns, 0);
    atomic_store(&ticks, 0);
    atomic_store(&used_ns, 0);
    domt_pki_issue_certificate(&pki,
                               &(domt_wish){.file = "a", .names = "DNS:a.example", .is_rsa = bits});
    domus_tls_settings settings = domt_make_server_settings(&pki, "a");
    secure.tls = domt_make_tls_context(&settings);
    domus_system *system = domt_start_system(&config);
    domus_endpoint at = domt_serve_channel_at_any_port(system, &channel);
    (void)domt_spawn(system, 0, &clock_actor, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&ticks) > 1);
    for (int i = 0; i < CLIENTS; i++)
        open_storm_client(&clients[i], &at);
    for (int i = 0; i < CLIENTS; i++)
        close_storm_client_after_answer(&clients[i]);
    /* The time after the last handshakes counts when one more tick has come. */
    uint64_t before = atomic_load(&ticks);
    DOMT_WAIT_FOR(10, atomic_load(&ticks) > before);
    uint64_t each_ns = atomic_load(&used_ns) / CLIENTS;
    /* A sanitizer lengthens the time between two looks of a phase at the clock, too. */
    uint64_t more_ns = DOMT_SCALE(1, 20) * DOMT_MS;
    uint64_t most_ns = config.scheduler.stage_time_ns + 4 * each_ns + more_ns;
    ck_assert_msg(atomic_load(&longest_ns) <= most_ns, "%d bits: %lu us, at most %lu us", bits,
                  (unsigned long)atomic_load(&longest_ns) / 1000, (unsigned long)most_ns / 1000);
    domt_end_system(system);
    domus_tls_free(secure.tls);
}

DOMT_TEST(many_handshakes_do_not_delay_ticks)
{
    domt_pki_make_authority(&pki);
    run_storm_of_handshakes(2048);
    run_storm_of_handshakes(4096);
    domt_pki_free_authority(&pki);
}

/* --- sockets ---------------------------------------------------------------------------------- */

/* TLS over sockets: a service of HTTPS in a real system, tested by curl and OpenSSL's s_client. */

static uint32_t port;
static char output[65536];

static const domus_pipeline https = {
    .stages = (const domus_pipeline_stage[]){
        {&domus_tls_stage, &secure}, {&domus_http_stage, NULL}, {NULL, NULL}}};

/* Answer with the agreed version and cipher of TLS, or with a body of a megabyte. */
static int answer_with_tls_info_or_megabyte(domus_stack *stack, void *self, const void *payload)
{
    static char large[1 << 20];
    domus_slice target = domus_http_path(payload);
    domus_tls_info info;
    char text[400];
    domus_http_response response = {.status = 200, .media = "text/plain"};

    int error = domus_tls_info_of(stack, domus_channel_running(stack), &info);
    if (error != 0)
        return error;
    memset(large, 'x', sizeof large);
    snprintf(text, sizeof text, "%s %s %s\n", info.version, info.alpn, info.name);
    error = target.size == 1 ? domus_slice_copy(text, strlen(text), &response.body)
                             : domus_slice_copy(large, sizeof large, &response.body);
    return error != 0 ? error : domus_reply(stack, &domus_http_response_type, &response);
}

static const domus_behaviour channel_sockets = {
    .name = "https",
    .kind = DOMUS_CHANNELS,
    .pipeline = &https,
    .on_peer = (const domus_on_peer[]){{.type = &domus_http_request_type,
                                        .handle = answer_with_tls_info_or_megabyte},
                                       {.type = NULL}},
};

static domus_system *start_https_service(void)
{
    static const char *const alpn[] = {"http/1.1", NULL};
    domus_config config = domt_config_of_threads(2);

    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:localhost"});
    domus_tls_settings settings = domt_make_server_settings(&pki, "a");
    settings.alpn = alpn;
    secure.tls = domt_make_tls_context(&settings);
    domus_system *system = domt_start_system(&config);
    port = domt_serve_channel_at_any_port(system, &channel_sockets).port;
    return system;
}

static void stop_https_service(domus_system *system)
{
    domt_end_system(system);
    domus_tls_free(secure.tls);
    domt_pki_free_authority(&pki);
}

/* Run a command, and store its output in `output`. Returns its exit status. */
__attribute__((format(printf, 1, 2))) static int run_shell_command(const char *format, ...)
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

/* Run curl with its usual options, followed by these. Returns its exit status. */
static int run_curl_with_options(const char *options)
{
    return run_shell_command(
        "curl -sS --max-time 20 --cacert '%s' --resolve localhost:%u:127.0.0.1 %s 2>&1",
        domt_pki_path_of_file(&pki, "ca"), port, options);
}

DOMT_TEST(curl_is_answered_over_tls)
{
    char options[256];

    if (run_shell_command("command -v curl") != 0)
        return;
    domus_system *system = start_https_service();
    unsigned at = port;
    for (int i = 0; i < 2; i++) {
        snprintf(options, sizeof options, "%s https://localhost:%u/ https://localhost:%u/",
                 i == 0 ? "--tls-max 1.2" : "--tlsv1.3", at, at);
        ck_assert_msg(run_curl_with_options(options) == 0, "%s", output);
        ck_assert_str_eq(output, i == 0
                                     ? "TLSv1.2 http/1.1 localhost\nTLSv1.2 http/1.1 localhost\n"
                                     : "TLSv1.3 http/1.1 localhost\nTLSv1.3 http/1.1 localhost\n");
    }
    snprintf(options, sizeof options,
             "-o /dev/null -w '%%{size_download}' https://localhost:%u/big", at);
    ck_assert_msg(run_curl_with_options(options) == 0 && strcmp(output, "1048576") == 0, "%s",
                  output);
    snprintf(options, sizeof options, "https://127.0.0.1:%u/", at);
    /* curl fails, because the certificate has another name */
    ck_assert_int_eq(run_curl_with_options(options), 60);
    snprintf(options, sizeof options, "http://localhost:%u/", at);
    ck_assert_int_ne(run_curl_with_options(options), 0);
    stop_https_service(system);
}

DOMT_TEST(openssl_s_client_is_answered_and_resumes)
{
    if (run_shell_command("command -v openssl") != 0)
        return;
    domus_system *system = start_https_service();
    static const char request[] = "printf 'GET / HTTP/1.1\\r\\nHost: localhost\\r\\n"
                                  "Connection: close\\r\\n\\r\\n'";
    for (int i = 0; i < 2; i++) {
        int status = run_shell_command(
            "%s | openssl s_client -ign_eof -CAfile '%s' -servername localhost "
            "-verify_return_error "
            "-verify_hostname localhost -%s '%s/session' -tls1_2 -connect 127.0.0.1:%u 2>&1",
            request, domt_pki_path_of_file(&pki, "ca"), i == 0 ? "sess_out" : "sess_in", pki.folder,
            port);
        ck_assert_msg(status == 0, "%s", output);
        ck_assert_msg(strstr(output, "TLSv1.2  localhost") != NULL, "%s", output);
        ck_assert(strstr(output, i == 0 ? "New, TLSv1.2" : "Reused, TLSv1.2") != NULL);
    }
    stop_https_service(system);
}

DOMT_SUITE(100)
