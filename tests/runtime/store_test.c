/* A store at its memory limit: a program that keeps values of its clients in memory of its own.
 * When memory is short it refuses to keep more, by a watch on the level of memory. However much it
 * holds, it answers clients that read or delete, on old and new connections, and later it has room
 * again.
 *
 * A request is five bytes: S (set), G (get) or D (delete), and the number of a value; an S is
 * followed by VALUE_BYTES bytes. The answers are K (kept, or deleted), R (refused), N (there is
 * no such value), and V with the value. */
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
    _Atomic int closed_with; /* error of the store's last channel that was closed with an error */
} shared;

static shared *ours;

/* --- the store -------------------------------------------------------------------------------- */

static char *values[VALUES_MAX];
static _Atomic bool is_short;

typedef struct request {
    unsigned char head[HEAD_BYTES];
    uint32_t head_bytes;
    char *value; /* the value of a request S that is being received */
    uint32_t value_bytes;
} request;

static int watch_memory_in_mount(domus_stack *stack, void *self)
{
    return domus_watch_memory(stack);
}

static int record_level_of_memory(domus_stack *stack, void *self, const void *payload)
{
    const domus_memory_change *change = payload;
    atomic_store(&is_short, change->level != DOMUS_MEMORY_NORMAL);
    return 0;
}

static int send_answer_to_client(domus_stack *stack, domus_channel *channel, char word,
                                 const char *value)
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

static uint32_t number_of_value_in_request(const request *of)
{
    uint32_t number;
    memcpy(&number, of->head + 1, sizeof number);
    return number % VALUES_MAX;
}

/* Answer a request of which all bytes have come. */
static int serve_request(domus_stack *stack, domus_channel *channel, request *asked)
{
    char **place = &values[number_of_value_in_request(asked)];
    char word = 'K';

    if (asked->head[0] == 'G')
        return send_answer_to_client(stack, channel, *place != NULL ? 'V' : 'N', *place);
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
    return send_answer_to_client(stack, channel, word, NULL);
}

static int receive_bytes_of_requests(domus_stack *stack, domus_channel *channel, request *asked,
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

static int on_open_make_request(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    domus_channel_set_data(event->channel, calloc(1, sizeof(request)));
    return 0;
}

static int on_read_serve_requests(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    int error =
        receive_bytes_of_requests(stack, event->channel, domus_channel_data(event->channel),
                                  domus_buffer_data(event->bytes), domus_buffer_size(event->bytes));
    domus_buffer_free(event->bytes);
    return error;
}

static int on_close_free_request(domus_stack *stack, void *self, const void *payload)
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
    .on = (const domus_on[]){{&domus_memory_type, record_level_of_memory, 0}, {0}},
    .on_mount = watch_memory_in_mount,
    .on_open = {on_open_make_request, 0},
    .on_read = {on_read_serve_requests, 0},
    .on_close = {on_close_free_request, 0}};

static _Noreturn void run_store_in_child(pid_t parent)
{
    domus_listener_config listener = {.name = "store", .address = "127.0.0.1:0", .backlog = 64};
    domus_config config;
    domus_system *system;
    char error[256];
    uint16_t port = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    domus_config_init(&config);
    config.system.threads = 1; /* only one thread, so the table of values needs no lock */
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

static char send_request_and_get_answer(int fd, char word, uint32_t number)
{
    char head[HEAD_BYTES] = {word};
    char back = 0;

    memcpy(head + 1, &number, sizeof number);
    ck_assert_int_eq(send(fd, head, sizeof head, MSG_NOSIGNAL), sizeof head);
    if (word == 'S')
        ck_assert_int_eq(send(fd, value, sizeof value, MSG_NOSIGNAL), sizeof value);
    ssize_t got = recv(fd, &back, 1, 0);
    if (got != 1)
        /* wait for `closed_with`, because the store learns of the end of a channel after its client
         */
        domt_sleep_ms(100);
    ck_assert_msg(got == 1,
                  "%c %u is not answered: recv is %zd, %s; the store closed a channel with %d",
                  word, number, got, strerror(errno), atomic_load(&ours->closed_with));
    if (back == 'V')
        ck_assert_int_eq(recv(fd, value, sizeof value, MSG_WAITALL), sizeof value);
    return back;
}

static char ask_on_new_connection(uint16_t port, char word, uint32_t number)
{
    int fd = domt_connect_to_port(port);
    char back = send_request_and_get_answer(fd, word, number);
    close(fd);
    return back;
}

static uint32_t fill_store_until_refused(int fd)
{
    uint32_t count = 0;
    while (count < VALUES_MAX && send_request_and_get_answer(fd, 'S', count) == 'K')
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
        run_store_in_child(parent);
    for (int i = 0; i < WAIT_MS && atomic_load(&ours->port) == 0; i++)
        domt_sleep_ms(1);
    uint16_t port = (uint16_t)atomic_load(&ours->port);
    int fd = domt_connect_to_port(port);
    uint32_t kept = fill_store_until_refused(fd);
    printf("%u values of %u bytes kept\n", kept, VALUE_BYTES);
    ck_assert_uint_ge(kept, 300);
    ck_assert_uint_lt(kept, VALUES_MAX);
    domt_sleep_ms(300); /* the store has to stay at its limit for a while */
    for (uint32_t i = 0; i < 100; i++) {
        ck_assert_int_eq(send_request_and_get_answer(fd, 'S', kept + i), 'R');
        ck_assert_int_eq(send_request_and_get_answer(fd, 'G', i), 'V');
        ck_assert_int_eq(ask_on_new_connection(port, 'G', i), 'V');
        ck_assert_int_eq(ask_on_new_connection(port, 'D', kept + i), 'N');
    }
    for (uint32_t i = 0; i < kept; i++)
        ck_assert_int_eq(i % 2 == 0 ? send_request_and_get_answer(fd, 'D', i)
                                    : ask_on_new_connection(port, 'D', i),
                         'K');
    /* While memory is short, the system gives back memory of the heap once a second. */
    char back = 'R';
    for (int i = 0; i < WAIT_MS * 4 && back == 'R' && !DOMT_SANITIZED; i += 50) {
        domt_sleep_ms(50);
        back = send_request_and_get_answer(fd, 'S', 0);
    }
    ck_assert(back == 'K' || DOMT_SANITIZED);
    close(fd);
    atomic_store(&ours->over, true);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
}

DOMT_SUITE(120)
