/* The kv bench: the example kv beside redis-server, one thread each, in paired rounds (versus.h).
 *
 * Each row is a kind of request and a depth of pipelining. Every server starts with fresh keys.
 *
 * The rows `over_...` compare kv over two threads, which have a shard each, with kv on one thread
 * that has both shards, under the same paced load: half of the keys are on the other thread, and
 * the CPU time of a request tells what that costs. They need two CPUs, one of which the load shares
 * with a thread of kv, so that offers what leaves it time. If the environment names another build
 * of kv in BENCH_KV_BESIDE, it joins these rows.
 *
 * stdout: lines `name value unit`, at the end of each row. stderr: progress. Exit 1 on a wrong
 * result (a reply that differs or lacks, a server that dies); a missed goal is no error. */
#include "bench/kv_load.h"
#include "bench/support/command.h"
#include "bench/support/measure.h"
#include "bench/support/options.h"
#include "bench/versus.h"

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CONNECTIONS 50
#define KEYS        10000u

enum { KV, REDIS, SERVERS };
enum { TWO, ONE, OTHER_TWO, OTHER_ONE };

static const struct kv_load_row kinds[] = {
    {"get", "GET KEY", "$"},
    {"set", "SET KEY VALUE", "+OK\r\n"},
    {"incr", "INCR KEY", ":"},
    {"lpush", "LPUSH KEY VALUE", ":"},
    {"hset", "HSET KEY field VALUE", ":"},
};
static const uint32_t depths[] = {1, 16};
/* rates of the rows `over_...`, in requests per second, at which kv's threads are less than half
 * busy */
static const double over_rates[] = {25000, 200000};

#define KINDS  (sizeof kinds / sizeof kinds[0])
#define DEPTHS (sizeof depths / sizeof depths[0])

static char program[PATH_MAX];
static char *beside; /* path of another build of kv, which joins the comparison; NULL: none */
static char *config = (char[]){"examples/kv/kv.yaml"};

static int start_kv(char *file, uint32_t threads, uint32_t shards, struct server *server)
{
    char with_threads[32], with_shards[32];

    snprintf(with_threads, sizeof with_threads, "system.threads=%u", threads);
    snprintf(with_shards, sizeof with_shards, "kv.shards=%u", shards);
    char *arguments[] = {file,
                         (char[]){"--config"},
                         config,
                         (char[]){"--set"},
                         (char[]){"kv.maxMemory=0"},
                         (char[]){"--set"},
                         (char[]){"listeners.kv.address=127.0.0.1:0"},
                         (char[]){"--set"},
                         with_threads,
                         (char[]){"--set"},
                         with_shards,
                         (char[]){"--set"},
                         threads == 1 ? (char[]){"system.cpus=none"} : (char[]){"system.cpus=auto"},
                         (char[]){"--set"},
                         (char[]){"profile.atExit=false"},
                         NULL};

    return server_start(server, threads > 1 ? SERVER_TWO_CPUS : VERSUS_SERVER_CPU, arguments);
}

static int restart_server(uint32_t which, struct server *server)
{
    return start_kv(which == TWO || which == ONE ? program : beside,
                    which == TWO || which == OTHER_TWO ? 2 : 1, 2, server);
}

static int start_server(uint32_t which, struct server *server)
{
    char port[8];
    uint16_t number = versus_find_free_port();

    if (which == KV)
        return start_kv(program, 1, 1, server);
    snprintf(port, sizeof port, "%u", number);
    char *arguments[] = {(char[]){"/usr/bin/redis-server"},
                         (char[]){"--port"},
                         port,
                         (char[]){"--bind"},
                         (char[]){"127.0.0.1"},
                         (char[]){"--save"},
                         (char[]){""},
                         (char[]){"--appendonly"},
                         (char[]){"no"},
                         (char[]){"--logfile"},
                         (char[]){"/dev/null"},
                         (char[]){"--dir"},
                         (char[]){"/tmp"},
                         NULL};
    return server_start_at_port(server, VERSUS_SERVER_CPU, arguments, number, SIGTERM);
}

static struct versus versus = {
    .bench = "kv",
    .names = {"kv", "redis"},
    .servers = SERVERS,
    .contenders = 1,
    .start = start_server,
    .rounds = 7,
    .duration_ns = UINT64_C(1000000000),
};

/* The servers of the rows `over_...`. These rows have a paced load only, and their figures are CPU
 * times of a request. */
static struct versus over = {
    .bench = "kv_over",
    .names = {[TWO] = "two", [ONE] = "one", [OTHER_TWO] = "other_two", [OTHER_ONE] = "other_one"},
    .servers = 2,
    .contenders = 1,
    .start = restart_server,
    .only_paced = true,
};

/* Run a row with all servers. If `rate` is 0, the paced load offers half of the slowest server's
 * rate. */
static int run_row_with_servers(const struct versus *servers, const struct kv_load_row *kind,
                                uint32_t depth, double rate)
{
    static struct kv_load load, fill;
    char name[32];

    kv_load_make_requests(&load, kind, KEYS);
    kv_load_make_requests(&fill, &kinds[1], KEYS);
    snprintf(name, sizeof name, "%s_%u", kind->name, depth);
    return versus_run_row_and_print_figures(
        servers, &(struct versus_row){.name = name,
                                      .kind = &load.kind,
                                      .connections = CONNECTIONS,
                                      .depth = depth,
                                      .offered = rate == 0 ? 0.5 : 0,
                                      .rate = rate,
                                      .fill = kind->reply[0] == '$' ? &fill.kind : NULL,
                                      .fills = KEYS});
}

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: bench_kv [--config FILE] [--rounds N] [--seconds N] "
                    "[get|set|incr|lpush|hset|over ...]\n");
    exit(2);
}

int main(int argc, char **argv)
{
    if (!versus_parse_options(&versus, argc, argv, &config))
        usage();
    if (access("/usr/bin/redis-server", X_OK) != 0) {
        fprintf(stderr, "bench_kv: no redis-server (apt install redis-server): left out\n");
        return 0;
    }
    if (command_find_program_beside("kv", program) != 0 ||
        measure_pin_thread_to_cpu(VERSUS_LOAD_CPU) != 0) {
        fprintf(stderr, "bench_kv: needs %s and a CPU %d\n", program, VERSUS_LOAD_CPU);
        return 1;
    }
    for (size_t i = 0; i < KINDS; i++) {
        for (size_t j = 0; j < DEPTHS; j++) {
            if (options_is_name_wanted(argc - optind, argv + optind, kinds[i].name) &&
                run_row_with_servers(&versus, &kinds[i], depths[j], 0) != 0)
                return 1;
        }
    }
    beside = getenv("BENCH_KV_BESIDE");
    over.rounds = versus.rounds;
    over.duration_ns = versus.duration_ns;
    over.servers = beside != NULL ? 4 : 2;
    for (size_t j = 0; j < DEPTHS && options_is_name_wanted(argc - optind, argv + optind, "over");
         j++) {
        if (run_row_with_servers(&over, &kinds[0], depths[j], over_rates[j]) != 0)
            return 1;
    }
    return 0;
}
