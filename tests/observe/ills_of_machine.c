/* Programs to which the machine gives too little. Files of the test say how much a cgroup or a
 * hypervisor takes from them. */
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
static uint64_t looked; /* how often `again` was called, once for each tick of 10 ms */

static void make_files_of_machine(domus_system *system)
{
    looked = 0;
    domt_tree_make(&tree);
    domt_tree_write(&tree, "proc/self/cgroup", "0::/a\n");
    system->pressure.root = tree.root;
}

/* Replace a file in one step, so that a reader finds either the old text or the new one. */
static void replace_file_in_one_step(const char *path, const char *text)
{
    char from[PATH_MAX], to[PATH_MAX];

    domt_tree_write(&tree, "new", text);
    snprintf(from, sizeof from, "%s/new", tree.root);
    snprintf(to, sizeof to, "%s/%s", tree.root, path);
    ck_assert_int_eq(rename(from, to), 0);
}

static void remove_files_of_machine(void)
{
    domt_tree_remove_copy(&tree);
}

/* --- CPUs ------------------------------------------------------------------------------------- */

static void spawn_workers_on_each_thread(domt_ill_run *run)
{
    for (uint32_t i = 0; i < domus_system_threads(run->system); i++)
        domt_ill_spawn_workers(run->system, i, 2, 50 * US);
}

static void give_one_cpu_to_two_threads(domus_system *system)
{
    make_files_of_machine(system);
    domt_tree_write(&tree, "sys/fs/cgroup/a/cpu.max", "100000 100000\n");
}

static void give_two_cpus_to_two_threads(domus_system *system)
{
    make_files_of_machine(system);
    domt_tree_write(&tree, "sys/fs/cgroup/a/cpu.max", "200000 100000\n");
}

/* Write files that show the CPU quota as used up before the end of every second period. */
static void show_quota_used_up(domt_ill_run *run)
{
    char text[128];

    looked++;
    snprintf(text, sizeof text, "nr_periods %u\nnr_throttled %u\nthrottled_usec %u\n",
             (unsigned)looked, (unsigned)looked / 2, (unsigned)looked * 20000);
    replace_file_in_one_step("sys/fs/cgroup/a/cpu.stat", text);
}

/* Write files that show a hypervisor which takes one of the CPUs all the time: one tick of 10 ms in
 * each 10 ms. */
static void show_cpu_stolen_by_hypervisor(domt_ill_run *run)
{
    char text[128];

    looked++;
    snprintf(text, sizeof text, "cpu  0 0 0 0 0 0 0 %u 0 0\n", (unsigned)looked);
    replace_file_in_one_step("proc/stat", text);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void write_memory_limit_of_cgroup(domus_system *system)
{
    make_files_of_machine(system);
    domt_tree_write(&tree, "sys/fs/cgroup/a/memory.max", "1048576000\n");
    domt_tree_write(&tree, "sys/fs/cgroup/a/memory.stat", "inactive_file 0\n");
    domt_tree_write(&tree, "sys/fs/cgroup/a/memory.current", "000104857600\n");
}

/* Set the memory that the library counts as held, out of a limit of 1,000 MiB. */
static void set_held_memory(domt_ill_run *run, uint64_t bytes)
{
    char text[32];

    snprintf(text, sizeof text, "%012llu\n", (unsigned long long)bytes);
    atomic_store(&run->system->pressure.meter.held, (int64_t)bytes);
    domt_tree_write(&tree, "sys/fs/cgroup/a/memory.current", text);
}

static void show_much_held_memory(domt_ill_run *run)
{
    set_held_memory(run, 850 * MIB);
}

static void show_nearly_all_memory_held(domt_ill_run *run)
{
    set_held_memory(run, 930 * MIB);
}

static void shorten_interval_of_measuring(domus_config *config)
{
    config->memory.enabled = true;
    config->memory.interval_ns = 5 * DOMT_MS;
}

/* --- datagrams -------------------------------------------------------------------------------- */

static domus_endpoint reader_at;
/* set when `reader_at`, the address of the reader of datagrams, was written */
static _Atomic bool has_reader;

static int read_datagram_slowly(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    domus_buffer_free(event->bytes);
    return 0;
}

static int open_datagram_socket(domus_stack *stack, void *self)
{
    static const domus_behaviour reader = {
        .name = "reader", .kind = DOMUS_CHANNELS, .on_read = {read_datagram_slowly, 0}};
    const domus_datagram_options options = {.behaviour = &reader};
    domus_endpoint at;

    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:0", &at), 0);
    int error = domus_datagram_open(stack, &at, &options, NULL, &reader_at);
    atomic_store(&has_reader, error == 0);
    return error;
}

static const domus_behaviour opener = {
    .name = "opener", .kind = DOMUS_CHANNELS, .on_mount = open_datagram_socket};

static void open_reader_of_datagrams(domt_ill_run *run)
{
    run->actor = domt_spawn(run->system, 0, &opener, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&has_reader));
    run->fds[0] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/* Send datagrams that are longer than the reader's receive buffer. */
static void send_too_long_datagrams(domt_ill_run *run)
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
     .prepare = give_one_cpu_to_two_threads,
     .begin = spawn_workers_on_each_thread,
     .end = remove_files_of_machine},
    {.rule = "cpu-throttled",
     .prepare = give_two_cpus_to_two_threads,
     .begin = spawn_workers_on_each_thread,
     .again = show_quota_used_up,
     .end = remove_files_of_machine},
    {.rule = "cpu-stolen",
     .prepare = make_files_of_machine,
     .begin = spawn_workers_on_each_thread,
     .again = show_cpu_stolen_by_hypervisor,
     .end = remove_files_of_machine},
    {.rule = "memory-high",
     .configure = shorten_interval_of_measuring,
     .prepare = write_memory_limit_of_cgroup,
     .begin = show_much_held_memory,
     .end = remove_files_of_machine},
    {.rule = "memory-critical",
     .configure = shorten_interval_of_measuring,
     .prepare = write_memory_limit_of_cgroup,
     .begin = show_nearly_all_memory_held,
     .end = remove_files_of_machine},
    {.rule = "datagrams-lost", .begin = open_reader_of_datagrams, .again = send_too_long_datagrams},
    {.rule = NULL},
};
