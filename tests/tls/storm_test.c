/* TLS: many handshakes at once delay neither timers nor state actors: the time between two ticks of
 * an actor is at most scheduler.stageTime and a few handshakes. Time is that of the thread's CPU,
 * but a handshake takes up to twice as much of it beside other programs. */
#include "tests/runtime/running.h"
#include "tests/support/sanitizer.h"
#include "tests/tls/raw.h"

#include <domus/tls.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS 24

static domt_pki pki;
static domus_tls_options secure;
static _Atomic uint64_t longest_ns; /* longest CPU time between two ticks */
static _Atomic uint64_t ticks;
static _Atomic uint64_t used_ns; /* CPU time between the first and the last tick */

static const domus_type tick_type = {.name = "tick"};

static uint64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* A state actor that always has a tick due. */
static int on_tick(domus_stack *stack, void *self, const void *payload)
{
    uint64_t *before = self;
    uint64_t now = cpu_ns();

    if (*before != 0 && now - *before > atomic_load(&longest_ns))
        atomic_store(&longest_ns, now - *before);
    if (*before != 0)
        atomic_fetch_add(&used_ns, now - *before);
    *before = now;
    atomic_fetch_add(&ticks, 1);
    return 0;
}

static int begin_ticks(domus_stack *stack, void *self)
{
    return domus_every(stack, DOMT_MS, &tick_type, NULL, NULL);
}

static const domus_behaviour clock_actor = {
    .name = "clock",
    .state_size = sizeof(uint64_t),
    .on_mount = begin_ticks,
    .on = (const domus_on[]){{&tick_type, on_tick, 0}, {NULL, NULL, 0}}};

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

static void open_client(client *one, const domus_endpoint *at)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(at->port)};
    char *hello;

    memcpy(&address.sin_addr, at->bytes, 4);
    domt_raw_open(&one->raw, &pki, TLS1_2_VERSION, "a.example");
    one->fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(one->fd, (struct sockaddr *)&address, sizeof address), 0);
    (void)SSL_do_handshake(one->raw.ssl);
    long size = BIO_get_mem_data(one->raw.out, &hello);
    ck_assert_int_eq(write(one->fd, hello, (size_t)size), size);
}

/* Wait for the first bytes of the server, which come after it has computed its signature. */
static void close_client(client *one)
{
    char byte;

    ck_assert_int_eq(recv(one->fd, &byte, 1, MSG_WAITALL), 1);
    ck_assert_int_eq(close(one->fd), 0);
    domt_raw_close(&one->raw);
}

static void run_storm(int bits)
{
    static client clients[CLIENTS];
    domus_config config = domt_config(1);

    atomic_store(&longest_ns, 0);
    atomic_store(&ticks, 0);
    atomic_store(&used_ns, 0);
    domt_pki_issue(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example", .is_rsa = bits});
    domus_tls_settings settings = domt_server_settings(&pki, "a");
    secure.tls = domt_tls(&settings);
    domus_system *system = domt_start(&config);
    domus_endpoint at = domt_serve(system, &channel);
    (void)domt_spawn(system, 0, &clock_actor, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&ticks) > 1);
    for (int i = 0; i < CLIENTS; i++)
        open_client(&clients[i], &at);
    for (int i = 0; i < CLIENTS; i++)
        close_client(&clients[i]);
    /* a further tick ends the span of the last handshakes */
    uint64_t before = atomic_load(&ticks);
    DOMT_WAIT_FOR(10, atomic_load(&ticks) > before);
    uint64_t each_ns = atomic_load(&used_ns) / CLIENTS;
    /* a sanitizer also lengthens the time between two looks at the clock */
    uint64_t more_ns = DOMT_SCALE(1, 20) * DOMT_MS;
    uint64_t most_ns = config.scheduler.stage_time_ns + 4 * each_ns + more_ns;
    ck_assert_msg(atomic_load(&longest_ns) <= most_ns, "%d bits: %lu us, at most %lu us", bits,
                  (unsigned long)atomic_load(&longest_ns) / 1000, (unsigned long)most_ns / 1000);
    domt_end(system);
    domus_tls_free(secure.tls);
}

DOMT_TEST(handshakes_hold_up_no_ticks)
{
    domt_pki_make(&pki);
    run_storm(2048);
    run_storm(4096);
    domt_pki_free(&pki);
}

DOMT_SUITE(100)
