/* The one ring, its buffers, and how a test awaits its completions. */
#include "tests/io/ring.h"

#include "io/backend/choose.h"

#include <check.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

const domi_backend *domt_backend;
static domus_config config;
void *domt_ring;
char domt_ring_memory[DOMT_RING_BUFFERS][DOMT_RING_BUFFER_SIZE];

/* Before main(), because tests look at the backend first of all. */
__attribute__((constructor)) static void choose(void)
{
    char reason[256];

    domus_config_init(&config);
    (void)domi_backend_choose(&config, reason, sizeof reason, &domt_backend);
}

void domt_ring_open(uint32_t entries, uint32_t completions)
{
    char error[256] = "";

    domus_config_init(&config);
    config.io.ring_entries = entries;
    config.io.completion_entries = completions;
    config.io.buffers.count = DOMT_RING_BUFFERS;
    config.io.buffers.size_bytes = DOMT_RING_BUFFER_SIZE;
    ck_assert_msg(domt_backend->open(&config, error, sizeof error, &domt_ring) == 0, "%s", error);
}

void domt_ring_give_all(void)
{
    for (uint16_t i = 0; i < DOMT_RING_BUFFERS; i++)
        domt_backend->give(domt_ring, i, domt_ring_memory[i], DOMT_RING_BUFFER_SIZE);
    domt_backend->publish(domt_ring);
}

void domt_ring_begin(void)
{
    domt_ring_open(64, 256);
    ck_assert_int_eq(domt_backend->start(domt_ring), 0);
    domt_ring_give_all();
}

uint64_t domt_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * DOMT_SECOND + (uint64_t)now.tv_nsec;
}

/* The next completion, waited for; a test that loses one fails here. */
domi_completion domt_ring_next(void)
{
    domi_completion completion;
    uint64_t until_ns = domt_now_ns() + 5 * DOMT_SECOND;

    while (domt_backend->reap(domt_ring, &completion, 1) == 0) {
        ck_assert_msg(domt_now_ns() < until_ns, "nothing came");
        ck_assert_int_eq(domt_backend->enter(domt_ring, 1, DOMT_SECOND), 0);
    }
    return completion;
}

void domt_ring_comes(uint64_t user_data, int32_t result, uint16_t flags)
{
    domi_completion completion = domt_ring_next();

    ck_assert_uint_eq(completion.user_data, user_data);
    ck_assert_int_eq(completion.result, result);
    ck_assert_uint_eq(completion.flags, flags);
}

void domt_ring_quiet(void)
{
    domi_completion completion;

    ck_assert_int_eq(domt_backend->enter(domt_ring, 1, 10 * DOMT_MS), 0);
    ck_assert_uint_eq(domt_backend->reap(domt_ring, &completion, 1), 0);
}

void domt_pair(int ends[2])
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
}

void domt_put(int fd, const char *text)
{
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}
