/* Half close over a real socket: a peer that sends a request and then FIN gets the answer, though
 * that takes a conversation with an actor on another thread. */
#include "tests/runtime/running.h"
#include "tests/support/crowd.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS   16u
#define REQUEST   "requests"
#define ANSWER_NS (20 * DOMT_MS)

static domus_address worker; /* written before the system serves */
static _Atomic unsigned begun;
static _Atomic unsigned closes_with_error;

/* --- the worker: answers later --------------------------------------------------------------- */

typedef struct job {
    domus_channel *channel;
    uint32_t size;
    char bytes[sizeof REQUEST];
} job;

static const domus_type job_type = {.name = "job", .size = sizeof(job)};
static const domus_type done_type = {.name = "done", .size = sizeof(job)};

static int rested(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error != 0 ? answer->error : domus_reply(stack, &done_type, domus_frame(stack));
}

static int on_job(domus_stack *stack, void *self, const void *payload)
{
    memcpy(domus_frame(stack), payload, sizeof(job));
    return domus_sleep(stack, ANSWER_NS, rested);
}

static const domus_behaviour working = {
    .name = "working",
    .on = (const domus_on[]){{&job_type, on_job, sizeof(job)}, {NULL, NULL, 0}},
};

/* --- the service ----------------------------------------------------------------------------- */

static int answered(domus_stack *stack, void *self, const domus_answer *answer)
{
    const job *done = answer->payload;
    domus_buffer *buffer = NULL;

    if (answer->error != 0)
        return answer->error;
    int error = domus_buffer_new(stack, done->size, &buffer);
    if (error != 0)
        return error;
    memcpy(domus_buffer_data(buffer), done->bytes, done->size);
    return domus_channel_write(stack, done->channel, buffer);
}

static int on_read(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    job work = {.channel = event->channel, .size = (uint32_t)domus_buffer_size(event->bytes)};

    if (work.size < sizeof work.bytes)
        memcpy(work.bytes, domus_buffer_data(event->bytes), work.size);
    domus_buffer_free(event->bytes);
    atomic_fetch_add(&begun, 1);
    return work.size < sizeof work.bytes ? domus_ask(stack, worker, &job_type, &work, answered)
                                         : -EMSGSIZE;
}

static int on_close(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    atomic_fetch_add(&closes_with_error, event->error != 0);
    return 0;
}

static const domus_behaviour serving = {
    .name = "serving", .kind = DOMUS_CHANNELS, .on_read = {on_read, 0}, .on_close = {on_close, 0}};

static const domus_listener_config listeners[] = {
    {.name = "half", .address = "127.0.0.1:0", .backlog = 64}};

/* --- the clients ----------------------------------------------------------------------------- */

/* Half of the request, a little later the other half, and FIN: so one or two conversations. */
static void ask_and_finish(int fd)
{
    size_t half = strlen(REQUEST) / 2;

    ck_assert_int_eq(send(fd, REQUEST, half, MSG_NOSIGNAL), (ssize_t)half);
    domt_pause_ns(DOMT_MS);
    ck_assert_int_eq(send(fd, &REQUEST[half], half, MSG_NOSIGNAL), (ssize_t)half);
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
}

/* All until the service closes. */
static void hold_answer(int fd)
{
    char answer[64] = "";
    size_t length = 0;
    ssize_t size;

    while ((size = recv(fd, answer + length, sizeof answer - 1 - length, 0)) > 0)
        length += (size_t)size;
    ck_assert_int_eq(size, 0); /* by FIN, not by a reset */
    ck_assert_str_eq(answer, REQUEST);
    close(fd);
}

static domus_system *serve(uint16_t *ret_port)
{
    domus_config config = domt_config(2);

    config.listeners = listeners;
    config.listener_count = 1;
    atomic_store(&begun, 0);
    atomic_store(&closes_with_error, 0);
    domus_system *system = domt_start(&config);
    worker = domt_spawn(system, 1, &working, NULL);
    ck_assert_int_eq(domus_serve(system, "half", &serving, NULL, ret_port), 0);
    return system;
}

DOMT_TEST(answer_that_takes_a_conversation_reaches_who_has_finished_sending)
{
    uint16_t port = 0;
    int fds[CLIENTS];
    domus_system *system = serve(&port);

    for (uint32_t i = 0; i < CLIENTS; i++) {
        fds[i] = domt_connect(port);
        ask_and_finish(fds[i]);
    }
    for (uint32_t i = 0; i < CLIENTS; i++)
        hold_answer(fds[i]);
    ck_assert_uint_ge(atomic_load(&begun), CLIENTS);
    DOMT_WAIT_FOR(30, domt_profile_all(system).channels_closed == CLIENTS);
    ck_assert_uint_eq(atomic_load(&closes_with_error), 0);
    domt_end(system);
}

DOMT_TEST(answer_reaches_it_in_a_drain_too)
{
    uint16_t port = 0;
    domus_system *system = serve(&port);
    int fd = domt_connect(port);

    ask_and_finish(fd);
    DOMT_WAIT_FOR(30, atomic_load(&begun) != 0);
    domt_end(system); /* holds that nothing was cut */
    hold_answer(fd);
}

DOMT_SUITE(120)
