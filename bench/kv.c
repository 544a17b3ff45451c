/* The kv bench: the example kv beside redis-server, one thread each, in paired rounds (versus.h).
 *
 * Each row is a kind of request and a depth of pipelining. Every server starts with fresh keys.
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

static const struct kv_load_row kinds[] = {
    {"get", "GET KEY", "$"},
    {"set", "SET KEY VALUE", "+OK\r\n"},
    {"incr", "INCR KEY", ":"},
    {"lpush", "LPUSH KEY VALUE", ":"},
    {"hset", "HSET KEY field VALUE", ":"},
};
static const uint32_t depths[] = {1, 16};

#define KINDS  (sizeof kinds / sizeof kinds[0])
#define DEPTHS (sizeof depths / sizeof depths[0])

static char program[PATH_MAX];
static char *config = (char[]){"examples/kv/kv.yaml"};

static int start(uint32_t which, struct server *server)
{
    char port[8];
    uint16_t number = versus_free_port();

    if (which == KV) {
        char *arguments[] = {program,
                             (char[]){"--config"},
                             config,
                             (char[]){"--set"},
                             (char[]){"kv.maxMemory=0"},
                             (char[]){"--set"},
                             (char[]){"listeners.kv.address=127.0.0.1:0"},
                             (char[]){"--set"},
                             (char[]){"system.threads=1"},
                             (char[]){"--set"},
                             (char[]){"system.cpus=none"},
                             (char[]){"--set"},
                             (char[]){"profile.atExit=false"},
                             NULL};
        return server_start(server, VERSUS_SERVER_CPU, arguments);
    }
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
    return server_start_at(server, VERSUS_SERVER_CPU, arguments, number, SIGTERM);
}

static struct versus versus = {
    .bench = "kv",
    .names = {"kv", "redis"},
    .servers = SERVERS,
    .contenders = 1,
    .start = start,
    .rounds = 7,
    .duration_ns = UINT64_C(1000000000),
};

static int run_row(const struct kv_load_row *kind, uint32_t depth)
{
    static struct kv_load load, fill;
    char name[32];

    kv_load_make(&load, kind, KEYS);
    kv_load_make(&fill, &kinds[1], KEYS);
    snprintf(name, sizeof name, "%s_%u", kind->name, depth);
    return versus_run(&versus,
                      &(struct versus_row){.name = name,
                                           .kind = &load.kind,
                                           .connections = CONNECTIONS,
                                           .depth = depth,
                                           .offered = 0.5,
                                           .fill = kind->reply[0] == '$' ? &fill.kind : NULL,
                                           .fills = KEYS});
}

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: bench_kv [--config FILE] [--rounds N] [--seconds N] "
                    "[get|set|incr|lpush|hset ...]\n");
    exit(2);
}

int main(int argc, char **argv)
{
    if (!versus_parse(&versus, argc, argv, &config))
        usage();
    if (access("/usr/bin/redis-server", X_OK) != 0) {
        fprintf(stderr, "bench_kv: no redis-server (apt install redis-server): left out\n");
        return 0;
    }
    if (command_beside("kv", program) != 0 || measure_pin(VERSUS_LOAD_CPU) != 0) {
        fprintf(stderr, "bench_kv: needs %s and a CPU %d\n", program, VERSUS_LOAD_CPU);
        return 1;
    }
    for (size_t i = 0; i < KINDS; i++) {
        for (size_t j = 0; j < DEPTHS; j++) {
            if (options_wanted(argc - optind, argv + optind, kinds[i].name) &&
                run_row(&kinds[i], depths[j]) != 0)
                return 1;
        }
    }
    return 0;
}
