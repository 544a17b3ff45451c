/* The files of the memory cgroup, the system that reads them, the lines that it logs, and clients
 * of its echo (tests/runtime/pressed.h). */
#include "tests/runtime/pressed.h"

#include "runtime/system/system.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB UINT64_C(1048576)

domt_tree domt_pressed_tree;
static domus_system *pressed;

void domt_pressed_set_used_and_foreign(uint64_t percent, uint64_t foreign_percent)
{
    char text[32], path[PATH_MAX];

    /* Set the number of bytes that the library itself holds, which its functions of allocation
     * count. */
    atomic_store(&pressed->pressure.meter.held, (int64_t)((percent - foreign_percent) * MIB * 10));
    /* The number in the file has a fixed length and is written in place, so a thread that reads
     * meanwhile finds the old or the new number. */
    snprintf(text, sizeof text, "%012llu\n", (unsigned long long)(percent * MIB * 10));
    snprintf(path, sizeof path, "%s/sys/fs/cgroup/a/memory.current", domt_pressed_tree.root);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        domt_tree_write(&domt_pressed_tree, "sys/fs/cgroup/a/memory.current", text);
        return;
    }
    ck_assert_int_eq(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
    close(fd);
}

void domt_pressed_set_used_percent(uint64_t percent)
{
    domt_pressed_set_used_and_foreign(percent, 0);
}

domus_system *domt_pressed_start(bool enabled, const domus_hooks *hooks)
{
    domus_listener_config listener = {.name = "echo", .address = "127.0.0.1:0", .backlog = 64};
    const domus_pool_config work = {.name = "work", .runners = 1};
    domus_config config = domt_config_of_threads(2);
    char error[256];

    config.pools = &work;
    config.pool_count = 1;
    config.memory.interval_ns = 5 * DOMT_MS;
    config.memory.enabled = enabled;
    config.scheduler.mailbox_max = 65535;
    config.listeners = &listener;
    config.listener_count = 1;
    domt_tree_make(&domt_pressed_tree);
    domt_tree_write(&domt_pressed_tree, "proc/self/cgroup", "0::/a\n");
    domt_tree_write(&domt_pressed_tree, "sys/fs/cgroup/a/memory.max", "1048576000\n");
    domt_tree_write(&domt_pressed_tree, "sys/fs/cgroup/a/memory.stat", "inactive_file 0\n");
    ck_assert_int_eq(domus_system_new_with(&config, hooks, error, sizeof error, &pressed), 0);
    domt_pressed_set_used_percent(10);
    pressed->pressure.root = domt_pressed_tree.root;
    ck_assert_int_eq(domus_system_start(pressed), 0);
    return pressed;
}

void domt_pressed_end(void)
{
    domt_end_system(pressed);
    domt_tree_remove_copy(&domt_pressed_tree);
}

domus_memory domt_pressed_read_memory(void)
{
    domus_memory now;
    domus_system_memory(pressed, &now);
    return now;
}

/* --- an actor that takes heap ----------------------------------------------------------------- */

static _Atomic int spawn_error;
static atomic_bool has_spawned;
static const domus_type spawn_it = {.name = "spawn it"};

static int spawn_and_stop_large_actor(domus_stack *stack, void *self, const void *payload)
{
    static const domus_behaviour large = {.name = "large", .state_size = 500000};
    domus_address address;

    int error = domus_spawn(stack, &large, NULL, &address);
    atomic_store(&spawn_error, error);
    atomic_store(&has_spawned, true);
    if (error == 0)
        (void)domus_stop(stack, address);
    return 0;
}

/* A periodic timer lets the actor spawn, because memory may be too short to arm a new timer after
 * each spawn. */
static int on_mount_begin_spawning(domus_stack *stack, void *self)
{
    int error = domus_every(stack, 2 * DOMT_MS, &spawn_it, NULL, NULL);
    return error != 0 ? error : spawn_and_stop_large_actor(stack, self, NULL);
}

static const domus_behaviour spawning = {
    .name = "spawning",
    .on = (const domus_on[]){{&spawn_it, spawn_and_stop_large_actor, 0}, {0}},
    .on_mount = on_mount_begin_spawning};

void domt_pressed_begin_large_spawns(uint32_t thread)
{
    atomic_store(&spawn_error, 0);
    atomic_store(&has_spawned, false);
    (void)domt_spawn(pressed, thread, &spawning, NULL);
    /* wait for the first spawn, because the actor could not mount once memory is full */
    DOMT_WAIT_FOR(10, atomic_load(&has_spawned));
}

int domt_pressed_error_of_spawns(void)
{
    return atomic_load(&spawn_error);
}

/* --- its log, and its port -------------------------------------------------------------------- */

#define LINES_MAX 64

static uint16_t port;
static char lines[LINES_MAX][DOMUS_LOG_TEXT_MAX + 1];
static _Atomic uint32_t lines_count;
static pthread_mutex_t lines_mutex = PTHREAD_MUTEX_INITIALIZER;

static void keep_log_line(void *context, domus_log_level level, uint32_t thread, const char *text)
{
    pthread_mutex_lock(&lines_mutex);
    if (lines_count < LINES_MAX)
        memcpy(lines[lines_count++], text, strlen(text) + 1);
    pthread_mutex_unlock(&lines_mutex);
}

uint32_t domt_pressed_count_lines(const char *part)
{
    uint32_t count = 0;
    pthread_mutex_lock(&lines_mutex);
    for (uint32_t i = 0; i < lines_count; i++)
        count += strstr(lines[i], part) != NULL;
    pthread_mutex_unlock(&lines_mutex);
    return count;
}

domus_system *domt_pressed_start_logged(bool enabled)
{
    const domus_hooks hooks = {.log = keep_log_line};
    return domt_pressed_start(enabled, &hooks);
}

static int on_read_echo_bytes(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    return domus_channel_write(stack, event->channel, event->bytes);
}

static const domus_behaviour echo = {
    .name = "echo", .kind = DOMUS_CHANNELS, .on_read = {on_read_echo_bytes, 0}};

void domt_pressed_serve_echo(void)
{
    ck_assert_int_eq(domus_serve(pressed, "echo", &echo, NULL, &port), 0);
}

int domt_pressed_connect(void)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

void domt_pressed_send_byte(int fd)
{
    ck_assert_int_eq(send(fd, "x", 1, MSG_NOSIGNAL), 1);
}

bool domt_pressed_is_byte_echoed(int fd, int ms)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    char byte;
    return poll(&wait, 1, ms) == 1 && recv(fd, &byte, 1, 0) == 1 && byte == 'x';
}
