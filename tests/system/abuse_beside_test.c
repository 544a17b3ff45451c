/* The latency of a good client beside each attack, and beside as many harmless connections, on both
 * backends. The test prints a table of medians over rounds that alternate between the two, on a
 * service of one thread with its own CPU. A row is void if the load used more than 90 % of its CPU.
 * The last row is the same on both sides, so it shows the ratio that chance alone produces. The
 * short form only checks that each row can be measured; the long form (DOMT_LONG) measures
 * DOMT_ROUNDS rounds (5) of all rows, or of the row DOMT_ROW. */
#include "tests/support/crowd.h"
#include "tests/support/process.h"
#include "tests/support/suite.h"
#include "tests/system/attack.h"
#include "tests/system/talks.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define ROUNDS_MAX 9u

/* One side of a row: connections of one kind, and settings of the service. */
typedef struct side {
    domt_attack_kind kind;
    const char *setting; /* a setting of the service, for --set */
    bool few;            /* true: the service may have only few descriptors */
} side;

typedef struct row {
    const char *name;
    uint32_t count; /* number of connections that stay; 0: the row's connections come and go */
    uint32_t rate; /* actions of all connections in a second; 0: as many as there are connections */
    side attack;
    side twin;
    const domt_protocol *with; /* protocol of the service; NULL: the echo service */
} row;

#define MANY "channel.maxConnections=20000"

/* A kind of connections, to a service that accepts them all. */
#define OF(kind)                                                                                   \
    {                                                                                              \
        DOMT_ATTACK_##kind, MANY, false                                                            \
    }

static const row rows[] = {
    {"10,000 idle", 10000, 0, OF(IDLE), OF(SAID), NULL},
    {"10,000 dripping", 10000, 0, OF(DRIP), OF(TALK), NULL},
    {"10,000/s dropping", 0, 10000, OF(DROP), OF(VISIT), NULL},
    {"10,000/s reset within", 0, 10000, OF(HALF), OF(VISIT), NULL},
    {"no descriptors", 1000, 0, {DOMT_ATTACK_DRIP, MANY, true}, OF(TALK), NULL},
    {"no buffers",
     100,
     2000,
     {DOMT_ATTACK_FLOOD, "io.buffers.count=16", false},
     {DOMT_ATTACK_TALK, "io.buffers.count=16", false},
     NULL},
    {"nobody accepts",
     2000,
     0,
     {DOMT_ATTACK_DRIP, "channel.maxConnections=1000", false},
     OF(TALK),
     NULL},
    /* single bytes of a command, compared with as many whole commands */
    {"1,000 dripping, kv", 1000, 0, OF(DRIP), OF(TALK), &domt_kv},
    {"1,000 dripping, lines", 1000, 0, OF(DRIP), OF(TALK), &domt_lines},
    /* heads of requests that never end, and may drip in this service, compared with whole
     * requests */
    {"10,000 dripping, web", 10000, 0, OF(DRIP), OF(TALK), &domt_web},
    /* the same endless heads, compared with silent connections */
    {"10,000 slow heads, web", 10000, 1000, OF(DRIP), OF(IDLE), &domt_web},
    /* equal sides, whose ratio shows what chance alone does */
    {"the same twice", 2000, 0, OF(TALK), OF(TALK), NULL},
};

/* Measurements of one side of a row: latencies for each round, and largest shares of a CPU. */
typedef struct figures {
    double p50[ROUNDS_MAX];
    double p99[ROUNDS_MAX];
    double worst[ROUNDS_MAX];
    double load;    /* largest share of a CPU that the load used */
    double service; /* largest share of a CPU that the service used */
    double others;  /* largest share of a CPU that other programs used */
} figures;

static domt_service service;
static uint32_t rounds = 1;
static uint32_t trips = 100;
static uint32_t divisor = 50; /* in the short form, counts and rates are divided by this number */

static void pin_process_to_cpu(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static void pin_service_to_first_cpu(void)
{
    pin_process_to_cpu(0);
}

static void pin_service_and_limit_descriptors(void)
{
    const struct rlimit limit = {256, 256};

    pin_process_to_cpu(0);
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        _exit(126);
}

/* Returns the CPU time that all programs of the machine have used so far. */
static uint64_t read_machine_cpu_ns(void)
{
    unsigned long long user = 0;
    unsigned long long nice = 0;
    unsigned long long system = 0;
    unsigned long long idle = 0;
    unsigned long long wait = 0;
    unsigned long long interrupts = 0;
    unsigned long long soft = 0;
    unsigned long long stolen = 0;
    FILE *file = fopen("/proc/stat", "re");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice,
                            &system, &idle, &wait, &interrupts, &soft, &stolen),
                     8);
    fclose(file);
    return (user + nice + system + interrupts + soft + stolen) * 1000000000u /
           (uint64_t)sysconf(_SC_CLK_TCK);
}

static void raise_maximum_to_value(double *most, double value)
{
    if (value > *most)
        *most = value;
}

/* Start the service of a row, and return the connection of the good client. */
static int start_service_for_row_of_attack(const char *backend, const domt_protocol *with,
                                           const char *setting)
{
    const char *const more[] = {"--set", "system.threads=1",           "--set", backend,
                                "--set", "channel.firstByteTimeout=0", "--set", setting,
                                NULL};

    if (with != NULL)
        return domt_protocol_start_and_connect(&service, with, more);
    domt_service_start(&service,
                       DOMT_ECHO_ARGUMENTS("--set", "system.threads=1", "--set", backend, "--set",
                                           "channel.firstByteTimeout=0", "--set", setting, ));
    int good = domt_connect_to_port(service.port);
    ck_assert(domt_send_and_get_echo(good, "hello"));
    return good;
}

static void measure_attack_or_twin(const char *backend, const row *of, const side *on,
                                   figures *into, uint32_t round)
{
    domt_attack attack = {.kind = on->kind, .is_fast = on->few};

    attack.says = of->with != NULL ? of->with->ask : NULL;
    attack.count = of->count / divisor;
    attack.rate = (of->rate != 0 ? of->rate : of->count) / divisor;
    service.prepare = on->few ? pin_service_and_limit_descriptors : pin_service_to_first_cpu;
    int good = start_service_for_row_of_attack(backend, of->with, on->setting);
    attack.port = service.port;
    domt_attack_begin(&attack);
    uint64_t begin_ns = domt_monotonic_ns();
    uint64_t machine = read_machine_cpu_ns();
    uint64_t service_cpu_ns = domt_service_cpu_ns(&service);
    domt_good seen = of->with != NULL ? domt_measure_good_client(good, of->with->ask,
                                                                 of->with->answer, trips, 1000)
                                      : domt_measure_good_client(good, NULL, NULL, trips, 1000);
    ck_assert_uint_eq(seen.failed, 0);
    domt_attack_end(&attack, false);
    double wall_ns = (double)(domt_monotonic_ns() - begin_ns);
    double load = seen.cpu + (double)attack.cpu_ns / wall_ns;
    double used = (double)(domt_service_cpu_ns(&service) - service_cpu_ns) / wall_ns;
    double all = (double)(read_machine_cpu_ns() - machine) / wall_ns;
    into->p50[round] = seen.p50_ms;
    into->p99[round] = seen.p99_ms;
    into->worst[round] = seen.worst_ms;
    raise_maximum_to_value(&into->load, load);
    raise_maximum_to_value(&into->service, used);
    raise_maximum_to_value(&into->others, all - used - load);
    close(good);
    domt_service_signal(&service, SIGKILL);
    (void)domt_service_wait(&service, 10000);
}

static double sort_and_return_median(double *values)
{
    qsort(values, rounds, sizeof *values, domt_compare_double);
    return values[rounds / 2];
}

static void measure_attack_and_twin_and_print(const char *backend, const row *of)
{
    figures attack = {0};
    figures twin = {0};

    for (uint32_t round = 0; round < rounds; round++) {
        bool twin_is_first = round % 2 == 0;
        measure_attack_or_twin(backend, of, twin_is_first ? &of->twin : &of->attack,
                               twin_is_first ? &twin : &attack, round);
        measure_attack_or_twin(backend, of, twin_is_first ? &of->attack : &of->twin,
                               twin_is_first ? &attack : &twin, round);
    }
    double worst = 0;
    for (uint32_t round = 0; round < rounds; round++)
        worst = attack.worst[round] > worst ? attack.worst[round] : worst;
    double ratio = sort_and_return_median(attack.p99) / sort_and_return_median(twin.p99);
    raise_maximum_to_value(&attack.load, twin.load);
    raise_maximum_to_value(&attack.others, twin.others);
    printf("%-6s %-22s %7.3f %7.3f %4.0f %% %7.3f %7.3f %4.0f %% %6.2f %7.1f %4.0f %% %4.0f %%%s\n",
           backend + sizeof "io.backend=" - 1, of->name, sort_and_return_median(twin.p50),
           sort_and_return_median(twin.p99), twin.service * 100, sort_and_return_median(attack.p50),
           sort_and_return_median(attack.p99), attack.service * 100, ratio, worst,
           attack.load * 100, attack.others * 100,
           attack.load > 0.9 ? " void" : (ratio > 1.5 || worst > 200 ? " missed" : ""));
    fflush(stdout);
}

DOMT_TEST(good_client_is_served_as_beside_harmless_ones)
{
    const char *is_long = getenv("DOMT_LONG");
    const char *only = getenv("DOMT_ROW");

    if (is_long != NULL && is_long[0] != '\0') {
        const char *text = getenv("DOMT_ROUNDS");
        long wanted = text != NULL ? strtol(text, NULL, 10) : 0;
        rounds = wanted >= 1 && wanted <= (long)ROUNDS_MAX ? (uint32_t)wanted : 5;
        trips = 2000;
        divisor = 1;
    }
    ck_assert(domt_raise_descriptor_limit(12000 / divisor));
    pin_process_to_cpu(1);
    printf("%-6s %-22s %22s %22s\n%-6s %-22s %7s %7s %6s %7s %7s %6s %6s %7s %6s %6s\n", "", "",
           "harmless, ms", "attack, ms", "", "attack", "p50", "p99", "cpu", "p50", "p99", "cpu",
           "ratio", "worst", "load", "others");
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (only != NULL && strtol(only, NULL, 10) != (long)i)
            continue;
        measure_attack_and_twin_and_print("io.backend=uring", &rows[i]);
        measure_attack_and_twin_and_print("io.backend=epoll", &rows[i]);
    }
}

DOMT_SUITE(1800)
