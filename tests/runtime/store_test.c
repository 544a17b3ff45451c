/* A store at its limit: a program that keeps the values that its clients send, in memory of its
 * own. When memory is short it refuses to keep more, by a watch on the level; however much it
 * holds, it answers clients that read or delete, on old connections and on new ones, and has room
 * again afterwards.
 *
 * A request is five bytes: S, G or D, and the number of a value; S is followed by VALUE_BYTES. The
 * answers are K (kept, deleted), R (refused), N (there is none), and V with the value. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <domus/domus.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB         (UINT64_C(1) << 20)
#define VALUE_BYTES 100000u
#define VALUES_MAX  4000u
#define HEAD_BYTES  5u
#define WAIT_MS     5000

typedef struct shared {
    _Atomic uint32_t port;
    _Atomic bool over;
    _Atomic int closed_with; /* the error of the last channel that was closed with an error */
} shared;

static shared *ours;

/* --- the store -------------------------------------------------------------------------------- */

static char *values[VALUES_MAX];
static _Atomic bool is_short;

typedef struct request {
    unsigned char head[HEAD_BYTES];
    uint32_t head_bytes;
    char *value; /* the value that is being received */
    uint32_t value_bytes;
} request;

static int watch(domus_stack *stack, void *self)
{
    return domus_watch_memory(stack);
}

static int record_level(domus_stack *stack, void *self, const void *payload)
{
    const domus_memory_change *change = payload;
    atomic_store(&is_short, change->level != DOMUS_MEMORY_NORMAL);
    return 0;
}

static int send_answer(domus_stack *stack, domus_channel *channel, char word, const char *value)
{
    size_t size = 1 + (value != NULL ? VALUE_BYTES : 0);
    domus_buffer *bytes;
    int error = domus_buffer_new(stack, size, &bytes);

    if (error != 0)
        return error;
    char *to = domus_buffer_data(bytes);
    to[0] = word;
    if (value != NULL)
        memcpy(to + 1, value, VALUE_BYTES);
    return domus_channel_write(stack, channel, bytes);
}

static uint32_t number_of(const request *of)
{
    uint32_t number;
    memcpy(&number, of->head + 1, sizeof number);
    return number % VALUES_MAX;
}

/* Serve a request of which all bytes have come. */
static int serve_request(domus_stack *stack, domus_channel *channel, request *asked)
{
    char **place = &values[number_of(asked)];
    char word = 'K';

    if (asked->head[0] == 'G')
        return send_answer(stack, channel, *place != NULL ? 'V' : 'N', *place);
    if (asked->head[0] == 'D') {
        word = *place != NULL ? 'K' : 'N';
        free(*place);
        *place = NULL;
    } else if (asked->value == NULL) {
        word = 'R';
    } else {
        free(*place);
        *place = asked->value;
        asked->value = NULL;
    }
    return send_answer(stack, channel, word, NULL);
}

static int receive_bytes(domus_stack *stack, domus_channel *channel, request *asked,
                         const char *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        if (asked->head_bytes < HEAD_BYTES) {
            asked->head[asked->head_bytes++] = (unsigned char)bytes[at++];
            if (asked->head_bytes == HEAD_BYTES && asked->head[0] == 'S' && !atomic_load(&is_short))
                asked->value = malloc(VALUE_BYTES);
        } else {
            size_t left = VALUE_BYTES - asked->value_bytes;
            size_t some = size - at < left ? size - at : left;
            if (asked->value != NULL)
                memcpy(asked->value + asked->value_bytes, bytes + at, some);
            asked->value_bytes += (uint32_t)some;
            at += some;
        }
        if (asked->head_bytes < HEAD_BYTES ||
            (asked->head[0] == 'S' && asked->value_bytes < VALUE_BYTES))
            continue;
        int error = serve_request(stack, channel, asked);
        asked->head_bytes = asked->value_bytes = 0;
        if (error != 0)
            return error;
    }
    return 0;
}

static int open_channel(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    domus_channel_set_data(event->channel, calloc(1, sizeof(request)));
    return 0;
}

static int read_channel(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    int error = receive_bytes(stack, event->channel, domus_channel_data(event->channel),
                              domus_buffer_data(event->bytes), domus_buffer_size(event->bytes));
    domus_buffer_free(event->bytes);
    return error;
}

static int close_channel(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    request *asked = domus_channel_data(event->channel);

    if (event->error != 0)
        atomic_store(&ours->closed_with, event->error);
    free(asked->value);
    free(asked);
    return 0;
}

static const domus_behaviour store = {
    .name = "store",
    .kind = DOMUS_CHANNELS,
    .on = (const domus_on[]){{&domus_memory_type, record_level, 0}, {0}},
    .on_mount = watch,
    .on_open = {open_channel, 0},
    .on_read = {read_channel, 0},
    .on_close = {close_channel, 0}};

static _Noreturn void run_store(pid_t parent)
{
    domus_listener_config listener = {.name = "store", .address = "127.0.0.1:0", .backlog = 64};
    domus_config config;
    domus_system *system;
    char error[256];
    uint16_t port = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    domus_config_init(&config);
    config.system.threads = 1; /* one thread, so the table of values has one owner */
    config.system.cpus = "none";
    config.memory.limit_bytes = (DOMT_SANITIZED ? 300 : 100) * MIB;
    config.listeners = &listener;
    config.listener_count = 1;
    if (getppid() != parent || domus_system_new(&config, error, sizeof error, &system) != 0 ||
        domus_system_start(system) != 0 || domus_serve(system, "store", &store, NULL, &port) != 0)
        _exit(2);
    atomic_store(&ours->port, port);
    while (!atomic_load(&ours->over))
        domt_sleep_ms(5);
    _exit(domus_system_stop(system) == 0 ? 0 : 3);
}

/* --- its clients ------------------------------------------------------------------------------ */

static char value[VALUE_BYTES];

static char send_request(int fd, char word, uint32_t number)
{
    char head[HEAD_BYTES] = {word};
    char back = 0;

    memcpy(head + 1, &number, sizeof number);
    ck_assert_int_eq(send(fd, head, sizeof head, MSG_NOSIGNAL), sizeof head);
    if (word == 'S')
        ck_assert_int_eq(send(fd, value, sizeof value, MSG_NOSIGNAL), sizeof value);
    ssize_t got = recv(fd, &back, 1, 0);
    if (got != 1)
        domt_sleep_ms(100); /* the store learns of the end of a channel after its client */
    ck_assert_msg(got == 1,
                  "%c %u is not answered: recv is %zd, %s; the store closed a channel with %d",
                  word, number, got, strerror(errno), atomic_load(&ours->closed_with));
    if (back == 'V')
        ck_assert_int_eq(recv(fd, value, sizeof value, MSG_WAITALL), sizeof value);
    return back;
}

static char ask_anew(uint16_t port, char word, uint32_t number)
{
    int fd = domt_connect(port); /* receives of this connection are limited to 5 s */
    char back = send_request(fd, word, number);
    close(fd);
    return back;
}

static uint32_t fill_store(int fd)
{
    uint32_t count = 0;
    while (count < VALUES_MAX && send_request(fd, 'S', count) == 'K')
        count++;
    return count;
}

DOMT_TEST(a_store_at_its_limit_always_answers)
{
    int status = 0;

    ours = mmap(NULL, sizeof *ours, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(ours != MAP_FAILED);
    pid_t parent = getpid();
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        run_store(parent);
    for (int i = 0; i < WAIT_MS && atomic_load(&ours->port) == 0; i++)
        domt_sleep_ms(1);
    uint16_t port = (uint16_t)atomic_load(&ours->port);
    int fd = domt_connect(port);
    uint32_t kept = fill_store(fd);
    printf("%u values of %u bytes kept\n", kept, VALUE_BYTES);
    ck_assert_uint_ge(kept, 300);
    ck_assert_uint_lt(kept, VALUES_MAX);
    domt_sleep_ms(300); /* the store stays at its limit */
    for (uint32_t i = 0; i < 100; i++) {
        ck_assert_int_eq(send_request(fd, 'S', kept + i), 'R');
        ck_assert_int_eq(send_request(fd, 'G', i), 'V');
        ck_assert_int_eq(ask_anew(port, 'G', i), 'V');
        ck_assert_int_eq(ask_anew(port, 'D', kept + i), 'N');
    }
    for (uint32_t i = 0; i < kept; i++)
        ck_assert_int_eq(i % 2 == 0 ? send_request(fd, 'D', i) : ask_anew(port, 'D', i), 'K');
    /* Memory of the heap is given back once a second while memory is short. */
    char back = 'R';
    for (int i = 0; i < WAIT_MS * 4 && back == 'R' && !DOMT_SANITIZED; i += 50) {
        domt_sleep_ms(50);
        back = send_request(fd, 'S', 0);
    }
    ck_assert(back == 'K' || DOMT_SANITIZED);
    close(fd);
    atomic_store(&ours->over, true);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
}

DOMT_SUITE(120)
