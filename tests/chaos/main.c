/* chaos_bank NODE SERVERS FOLDER EPOCH_NS ACCOUNTS RATE PROBES THREADS LEASE_MS: a node of the
 * bank. bank.h says what the program does, and explains the arguments. It runs until SIGTERM, and
 * then leaves the cluster. It prints "up" when it has begun, and then the lines of watcher.c. */
#include "tests/chaos/store.h"
#include "tests/chaos/tally.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ARGUMENTS 10

struct chaos_options chaos_options;
domus_cluster *chaos_cluster;

static const domus_pickle_field transfer_fields[] = {
    {DOMUS_PICKLE(1, struct chaos_transfer, to, UINT(0))},
    {DOMUS_PICKLE(2, struct chaos_transfer, amount, UINT(0))},
};
static const domus_pickle_table transfer_table =
    DOMUS_PICKLE_TABLE(struct chaos_transfer, transfer_fields);

static const domus_pickle_field deposit_fields[] = {
    {DOMUS_PICKLE(1, struct chaos_deposit, from, UINT(0))},
    {DOMUS_PICKLE(2, struct chaos_deposit, amount, UINT(0))},
    {DOMUS_PICKLE(3, struct chaos_deposit, number, UINT(0))},
};
static const domus_pickle_table deposit_table =
    DOMUS_PICKLE_TABLE(struct chaos_deposit, deposit_fields);

static const domus_pickle_field done_fields[] = {
    {DOMUS_PICKLE(1, struct chaos_done, number, UINT(0))},
};
static const domus_pickle_table done_table = DOMUS_PICKLE_TABLE(struct chaos_done, done_fields);

static const domus_pickle_field place_fields[] = {
    {DOMUS_PICKLE(1, struct chaos_place, node, UINT(0))},
    {DOMUS_PICKLE(2, struct chaos_place, fence, UINT(0))},
};
static const domus_pickle_table place_table = DOMUS_PICKLE_TABLE(struct chaos_place, place_fields);

const domus_type chaos_transfer_type = {.name = "transfer", .size = sizeof(struct chaos_transfer)};
const domus_type chaos_deposit_type = {.name = "deposit", .size = sizeof(struct chaos_deposit)};
const domus_type chaos_done_type = {.name = "done", .size = sizeof(struct chaos_done)};
const domus_type chaos_where_type = {.name = "where"};
const domus_type chaos_place_type = {.name = "place", .size = sizeof(struct chaos_place)};

const domus_pickler chaos_picklers[] = {
    {.type = &chaos_transfer_type, .version = 1, .table = &transfer_table},
    {.type = &chaos_deposit_type, .version = 1, .table = &deposit_table},
    {.type = &chaos_done_type, .version = 1, .table = &done_table},
    {.type = &chaos_where_type, .version = 1},
    {.type = &chaos_place_type, .version = 1, .table = &place_table},
    {.type = NULL},
};

static const domus_cluster_export exports[] = {{.name = "watched", .behaviour = &chaos_watched},
                                               {.name = NULL}};

uint64_t chaos_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The root actor of this program opens the client of the store before anything else, since accounts
 * use it. */
static int mount_root_actor(domus_stack *stack, void *self)
{
    domus_address address;
    int error = chaos_store_open_bucket(stack);

    (void)self;
    if (error == 0)
        error = domus_spawn(stack, &chaos_watcher, NULL, &address);
    if (error == 0)
        error = domus_spawn(stack, &chaos_teller, NULL, &address);
    if (error == 0 && chaos_options.probes != 0)
        error = domus_spawn(stack, &chaos_prober, NULL, &address);
    return error;
}

static const domus_behaviour root = {.name = "bank", .on_mount = mount_root_actor};

static bool read_options_of_command_line(int argc, char **argv)
{
    if (argc != ARGUMENTS)
        return false;
    chaos_options = (struct chaos_options){
        .node = (uint32_t)strtoul(argv[1], NULL, 10),
        .servers = argv[2],
        .folder = argv[3],
        .epoch_ns = strtoull(argv[4], NULL, 10),
        .accounts = (uint32_t)strtoul(argv[5], NULL, 10),
        .rate = (uint32_t)strtoul(argv[6], NULL, 10),
        .probes = (uint32_t)strtoul(argv[7], NULL, 10),
        .threads = (uint32_t)strtoul(argv[8], NULL, 10),
        .lease_ns = strtoull(argv[9], NULL, 10) * CHAOS_MS,
    };
    return chaos_options.node > 0 && chaos_options.accounts > 1 &&
           chaos_options.accounts <= CHAOS_ACCOUNTS_MAX;
}

static int start_node_of_bank(domus_system **ret_system, char *error, size_t size)
{
    char name[16];
    /* The list of kinds of grains has that of accounts, and a kind without a name as its end. */
    static domus_grain_kind kinds[2];
    domus_cluster_options options = {.name = CHAOS_CLUSTER,
                                     .node = name,
                                     .servers = chaos_options.servers,
                                     .replicas = 3,
                                     .lease_ns = chaos_options.lease_ns,
                                     .picklers = chaos_picklers,
                                     .exports = exports,
                                     .grains = kinds};
    domus_config config;
    domus_address address;

    kinds[0] = chaos_accounts;
    snprintf(name, sizeof name, "n%u", chaos_options.node);
    domus_config_init(&config);
    config.system.threads = chaos_options.threads;
    int result = chaos_tally_map_file();
    if (result == 0)
        result = chaos_audit_open_file();
    if (result == 0)
        result = domus_system_new(&config, error, size, ret_system);
    if (result == 0)
        result = domus_system_start(*ret_system);
    if (result == 0)
        result = domus_cluster_open(*ret_system, &options, error, size, &chaos_cluster);
    if (result == 0)
        result = domus_outside_spawn(*ret_system, &root, NULL, &address);
    return result;
}

int main(int argc, char **argv)
{
    domus_system *system = NULL;
    char error[256] = "";
    sigset_t ends;
    int signal;

    if (!read_options_of_command_line(argc, argv)) {
        fprintf(stderr, "usage: chaos_bank NODE SERVERS FOLDER EPOCH_NS ACCOUNTS RATE PROBES "
                        "THREADS LEASE_MS\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    int result = start_node_of_bank(&system, error, sizeof error);
    if (result != 0) {
        fprintf(stderr, "chaos_bank: %s %s\n", strerror(-result), error);
        return 1;
    }
    printf("up\n");
    sigwait(&ends, &signal);
    domus_cluster_leave(chaos_cluster);
    (void)domus_system_stop(system);
    domus_cluster_close(chaos_cluster);
    domus_system_free(system);
    return 0;
}
