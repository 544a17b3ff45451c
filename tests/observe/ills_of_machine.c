/* Programs to which the machine gives too little. Files of the test say how much a cgroup or a
 * hypervisor takes. */
#include "tests/observe/ills.h"

#include "runtime/system/system.h"
#include "tests/runtime/running.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define US  UINT64_C(1000)
#define MIB UINT64_C(1048576)

/* --- files in place of /proc and /sys --------------------------------------------------------- */

static domt_tree tree;
static uint64_t looked; /* calls of `again`, one for each tick of 10 ms */

static void find_files(domus_system *system)
{
    looked = 0;
    domt_tree_make(&tree);
    domt_tree_write(&tree, "proc/self/cgroup", "0::/a\n");
    system->pressure.root = tree.root;
}

/* Replace a file at once, so that a reader finds the old text or the new one. */
static void replace_file(const char *path, const char *text)
{
    char from[PATH_MAX], to[PATH_MAX];

    domt_tree_write(&tree, "new", text);
    snprintf(from, sizeof from, "%s/new", tree.root);
    snprintf(to, sizeof to, "%s/%s", tree.root, path);
    ck_assert_int_eq(rename(from, to), 0);
}

static void remove_files(void)
{
    domt_tree_remove_copy(&tree);
}

/* --- CPUs ------------------------------------------------------------------------------------- */

static void work_on_each_thread(domt_ill_run *run)
{
    for (uint32_t i = 0; i < domus_system_threads(run->system); i++)
        domt_ill_spawn_workers(run->system, i, 2, 50 * US);
}

static void one_cpu_for_two(domus_system *system)
{
    find_files(system);
    domt_tree_write(&tree, "sys/fs/cgroup/a/cpu.max", "100000 100000\n");
}

static void two_cpus_for_two(domus_system *system)
{
    find_files(system);
    domt_tree_write(&tree, "sys/fs/cgroup/a/cpu.max", "200000 100000\n");
}

/* The CPU quota of every second period is used up before the period ends. */
static void stop_at_quota(domt_ill_run *run)
{
    char text[128];

    looked++;
    snprintf(text, sizeof text, "nr_periods %u\nnr_throttled %u\nthrottled_usec %u\n",
             (unsigned)looked, (unsigned)looked / 2, (unsigned)looked * 20000);
    replace_file("sys/fs/cgroup/a/cpu.stat", text);
}

/* In each 10 ms a hypervisor takes one tick of 10 ms, which is one of the CPUs. */
static void steal_cpu(domt_ill_run *run)
{
    char text[128];

    looked++;
    snprintf(text, sizeof text, "cpu  0 0 0 0 0 0 0 %u 0 0\n", (unsigned)looked);
    replace_file("proc/stat", text);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void give_memory(domus_system *system)
{
    find_files(system);
    domt_tree_write(&tree, "sys/fs/cgroup/a/memory.max", "1048576000\n");
    domt_tree_write(&tree, "sys/fs/cgroup/a/memory.stat", "inactive_file 0\n");
    domt_tree_write(&tree, "sys/fs/cgroup/a/memory.current", "000104857600\n");
}

/* Set the memory that the library counts as held, of its limit of 1,000 MiB. */
static void set_held_memory(domt_ill_run *run, uint64_t bytes)
{
    char text[32];

    snprintf(text, sizeof text, "%012llu\n", (unsigned long long)bytes);
    atomic_store(&run->system->pressure.meter.held, (int64_t)bytes);
    domt_tree_write(&tree, "sys/fs/cgroup/a/memory.current", text);
}

static void hold_much(domt_ill_run *run)
{
    set_held_memory(run, 850 * MIB);
}

static void hold_nearly_all(domt_ill_run *run)
{
    set_held_memory(run, 930 * MIB);
}

static void measure_often(domus_config *config)
{
    config->memory.enabled = true;
    config->memory.interval_ns = 5 * DOMT_MS;
}

/* --- datagrams -------------------------------------------------------------------------------- */

static domus_endpoint reader_at;
static _Atomic bool has_reader; /* reader_at is written before this is set */

static int read_datagram(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    domus_buffer_free(event->bytes);
    return 0;
}

static int open_socket(domus_stack *stack, void *self)
{
    static const domus_behaviour reader = {
        .name = "reader", .kind = DOMUS_CHANNELS, .on_read = {read_datagram, 0}};
    const domus_datagram_options options = {.behaviour = &reader};
    domus_endpoint at;

    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:0", &at), 0);
    int error = domus_datagram_open(stack, &at, &options, NULL, &reader_at);
    atomic_store(&has_reader, error == 0);
    return error;
}

static const domus_behaviour opener = {
    .name = "opener", .kind = DOMUS_CHANNELS, .on_mount = open_socket};

static void open_reader(domt_ill_run *run)
{
    run->actor = domt_spawn(run->system, 0, &opener, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&has_reader));
    run->fds[0] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/* Send datagrams that are longer than a receive buffer. */
static void send_long_ones(domt_ill_run *run)
{
    static const char bytes[8192];
    char text[DOMUS_ENDPOINT_TEXT_MAX];
    struct sockaddr_in to = {.sin_family = AF_INET};
    unsigned port = 0;

    (void)domus_endpoint_text(&reader_at, text, sizeof text);
    ck_assert_int_eq(sscanf(text, "127.0.0.1:%u", &port), 1);
    to.sin_port = htons((uint16_t)port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 4; i++)
        (void)sendto(run->fds[0], bytes, sizeof bytes, MSG_DONTWAIT, (const struct sockaddr *)&to,
                     sizeof to);
}

const domt_ill domt_ills_of_machine[] = {
    {.rule = "quota-under-threads",
     .prepare = one_cpu_for_two,
     .begin = work_on_each_thread,
     .end = remove_files},
    {.rule = "cpu-throttled",
     .prepare = two_cpus_for_two,
     .begin = work_on_each_thread,
     .again = stop_at_quota,
     .end = remove_files},
    {.rule = "cpu-stolen",
     .prepare = find_files,
     .begin = work_on_each_thread,
     .again = steal_cpu,
     .end = remove_files},
    {.rule = "memory-high",
     .configure = measure_often,
     .prepare = give_memory,
     .begin = hold_much,
     .end = remove_files},
    {.rule = "memory-critical",
     .configure = measure_often,
     .prepare = give_memory,
     .begin = hold_nearly_all,
     .end = remove_files},
    {.rule = "datagrams-lost", .begin = open_reader, .again = send_long_ones},
    {.rule = NULL},
};
