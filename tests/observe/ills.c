/* Starts and ends programs with a fault, and sends bytes to their listeners; ills.h describes
 * them. */
#include "tests/observe/ills.h"

#include "tests/runtime/running.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PIECE 256

const domus_type domt_work_type = {.name = "work", .size = sizeof(uint64_t)};

void domt_use_cpu_for_ns(uint64_t time_ns)
{
    struct timespec now;
    uint64_t until_ns = 0, now_ns;

    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        now_ns = (uint64_t)now.tv_sec * 1000 * DOMT_MS + (uint64_t)now.tv_nsec;
        until_ns = until_ns != 0 ? until_ns : now_ns + time_ns;
    } while (now_ns < until_ns);
}

/* --- workers ---------------------------------------------------------------------------------- */

static int work_and_send_to_itself(domus_stack *stack, void *self, const void *payload)
{
    domt_use_cpu_for_ns(*(const uint64_t *)payload);
    return domus_notice(stack, domus_self(stack), &domt_work_type, payload);
}

static const domus_behaviour worker = {
    .name = "worker", .on = (const domus_on[]){{&domt_work_type, work_and_send_to_itself, 0}, {0}}};

void domt_ill_spawn_workers(domus_system *system, uint32_t thread, uint32_t count, uint64_t work_ns)
{
    for (uint32_t i = 0; i < count; i++)
        domt_send_notice(system, domt_spawn(system, thread, &worker, NULL), &domt_work_type,
                         &work_ns);
}

/* --- clients ---------------------------------------------------------------------------------- */

struct domt_ill_client {
    pthread_t thread;
    domt_ill_run *run;
    atomic_bool is_ending;
};

/* Until the program ends, send bytes on all its client's connections, and read the bytes that have
 * come. */
static void *exchange_bytes_of_clients(void *client_)
{
    struct domt_ill_client *client = client_;
    char bytes[16 * PIECE] = {0};

    while (!atomic_load(&client->is_ending)) {
        for (int i = 0; i < DOMT_ILL_CLIENTS && client->run->fds[i] >= 0; i++) {
            (void)send(client->run->fds[i], bytes, PIECE, MSG_DONTWAIT | MSG_NOSIGNAL);
            while (recv(client->run->fds[i], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
                continue;
        }
        domt_pause_ns(200000);
    }
    return NULL;
}

int domt_ill_connect_to_listener(const domt_ill_run *run)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(run->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)connect(fd, (const struct sockaddr *)&to, sizeof to);
    return fd;
}

static void start_clients_of_program(domt_ill_run *run, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        run->fds[i] = domt_ill_connect_to_listener(run);
    if (count == 0)
        return;
    run->client = calloc(1, sizeof *run->client);
    run->client->run = run;
    ck_assert_int_eq(
        pthread_create(&run->client->thread, NULL, exchange_bytes_of_clients, run->client), 0);
}

/* --- runs ------------------------------------------------------------------------------------- */

static void discard_log_line(void *context, domus_log_level level, uint32_t thread,
                             const char *text)
{
}

static domus_system *start_system_of_program(const domt_ill *ill, const domus_config *config)
{
    static const domus_hooks hooks = {.log = discard_log_line};
    domus_system *system;
    char error[256] = "";

    ck_assert_msg(domus_system_new_with(config, &hooks, error, sizeof error, &system) == 0, "%s",
                  error);
    if (ill->prepare != NULL)
        ill->prepare(system);
    ck_assert_msg(domus_system_start(system) == 0, "%s", domus_system_error(system));
    return system;
}

void domt_ill_start_program(const domt_ill *ill, domt_ill_run *ret_run)
{
    const domus_listener_config listener = {
        .name = "ill", .address = "127.0.0.1:0", .backlog = 128};
    domus_config config = domt_config_of_threads(2);

    config.io.buffers.count = 1024;
    config.stall.signal = 0;
    config.log.level = DOMUS_LOG_ERROR;
    if (ill->channel != NULL) {
        config.listeners = &listener;
        config.listener_count = 1;
    }
    if (ill->configure != NULL)
        ill->configure(&config);
    *ret_run = (domt_ill_run){.ill = ill, .system = start_system_of_program(ill, &config)};
    memset(ret_run->fds, 0xff, sizeof ret_run->fds);
    if (ill->channel != NULL)
        ck_assert_int_eq(domus_serve(ret_run->system, "ill", ill->channel, NULL, &ret_run->port),
                         0);
    start_clients_of_program(ret_run, ill->clients);
    if (ill->begin != NULL)
        ill->begin(ret_run);
}

void domt_ill_end_program(domt_ill_run *run)
{
    if (run->client != NULL) {
        atomic_store(&run->client->is_ending, true);
        pthread_join(run->client->thread, NULL);
        free(run->client);
    }
    for (int i = 0; i < DOMT_ILL_CLIENTS; i++)
        if (run->fds[i] >= 0)
            close(run->fds[i]);
    (void)domus_system_stop(run->system);
    domus_system_free(run->system);
    if (run->ill->end != NULL)
        run->ill->end();
}
