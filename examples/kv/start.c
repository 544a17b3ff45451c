/* The store as a part of a program: its settings, its actors and its port. */
#include "start.h"

#include "desk.h"
#include "nodes.h"
#include "pubsub.h"
#include "wait.h"

#include <domus/main.h>

#include <errno.h>

struct kv_settings kv_settings;
domus_address kv_shards[KV_SHARDS_MAX];
uint32_t kv_shard_count;

static void choose_number_of_shards(domus_system *system)
{
    kv_shard_count = kv_settings.shards != 0 ? kv_settings.shards
                     : kv_settings.cluster   ? KV_SHARDS_OF_CLUSTER
                                             : domus_system_threads(system);
    if (kv_shard_count > KV_SHARDS_MAX)
        kv_shard_count = KV_SHARDS_MAX;
}

static int spawn_shards(domus_system *system, const domus_spawn_options *options)
{
    struct kv_store empty = {.memory.bytes_max = kv_memory_max_of_shard()};
    for (uint32_t i = 0; i < kv_shard_count; i++) {
        empty.index = i;
        int error = domus_outside_spawn_with(system, &kv_shard, &empty, options, &kv_shards[i]);
        if (error != 0)
            return error;
    }
    return 0;
}

int kv_start_actors_of_store(domus_system *system)
{
    static const domus_spawn_options options = {.mailbox_max = UINT16_MAX};

    if (kv_settings.cluster)
        kv_seed_hash_by_text(kv_settings.hash_key);
    else
        kv_seed_hash_at_random();
    if (kv_settings.cluster && kv_cluster == NULL)
        return -EOPNOTSUPP; /* kv.cluster is set, but the program is part of no cluster */
    kv_record_when_program_began();
    kv_config_set_limits_at_start(domus_system_config(system));
    kv_make_index_of_command_names();
    kv_fill_options_of_client_protocol();
    choose_number_of_shards(system);
    int error = kv_settings.cluster ? kv_start_doors_and_grains_of_node(system)
                                    : spawn_shards(system, &options);
    if (error == 0)
        error = domus_outside_group_open(system, "kv.subscribers", &kv_subscribers);
    if (error == 0)
        error = domus_outside_spawn_with(system, &kv_switchboard_behaviour, NULL, &options,
                                         &kv_switchboard);
    for (; error == 0 && kv_clerk_count < domus_system_threads(system); kv_clerk_count++)
        error = domus_outside_spawn_on(system, kv_clerk_count, &kv_clerk, NULL,
                                       &kv_clerks[kv_clerk_count]);
    return error;
}

/* Stop the store before the drain: clients that wait for elements are answered first, because they
 * would delay it. */
void kv_stop_store(domus_system *system)
{
    if (kv_settings.cluster)
        kv_stop_node(system);
    for (uint32_t i = 0; i < kv_shard_count && !kv_settings.cluster; i++)
        (void)domus_outside_notice(system, kv_shards[i], &kv_wait_end_type, NULL);
}

static const char *const debug_words[] = {"no", "local", "yes", NULL};

const domus_config_key kv_keys[] = {
    {DOMUS_KEY("maxMemory", SIZE, struct kv_settings, memory_max_bytes, 1048576, UINT64_MAX / 2, 0),
     .or_zero = true},
    {DOMUS_KEY("answerMax", SIZE, struct kv_settings, answer_max_bytes, 65536, DOMUS_SLICE_MAX,
               256 * 1048576)},
    {DOMUS_KEY("valueMax", SIZE, struct kv_settings, value_max_bytes, 1024, DOMUS_SLICE_MAX,
               512 * 1048576)},
    {DOMUS_KEY("commandMax", SIZE, struct kv_settings, command_max_bytes, 65536, DOMUS_SLICE_MAX,
               DOMUS_SLICE_MAX)},
    {DOMUS_KEY("argumentsMax", COUNT, struct kv_settings, arguments_max, 16, INT32_MAX, 65536)},
    {DOMUS_KEY("scanMax", COUNT, struct kv_settings, scan_max, 1, 1048576, 4096)},
    {DOMUS_KEY("incompleteMax", SIZE, struct kv_settings, incomplete_max_bytes, 1048576,
               UINT64_C(1) << 40, 256 * 1048576)},
    {DOMUS_KEY("shards", COUNT, struct kv_settings, shards, 0, KV_SHARDS_MAX, 0)},
    {DOMUS_KEY_SWITCH("cluster", struct kv_settings, cluster, false)},
    {DOMUS_KEY_TEXT("hashKey", TEXT, struct kv_settings, hash_key, 0, ""), .secret = true},
    {DOMUS_KEY("transactionCommands", COUNT, struct kv_settings, transaction_commands, 1, 1048576,
               10000)},
    {DOMUS_KEY("transactionBytes", SIZE, struct kv_settings, transaction_bytes, 1024, 1073741824,
               67108864)},
    {DOMUS_KEY("transactionMemory", SIZE, struct kv_settings, transaction_memory, 1024,
               UINT64_MAX / 2, 256 * 1048576)},
    {DOMUS_KEY("subscriptionsMax", COUNT, struct kv_settings, subscriptions_max, 1, 1048576,
               10000)},
    {DOMUS_KEY("subscriptionMemory", SIZE, struct kv_settings, subscription_bytes, 65536,
               UINT64_MAX / 2, 67108864)},
    {DOMUS_KEY("observedMemory", SIZE, struct kv_settings, observed_bytes, 65536, UINT64_MAX / 2,
               16777216)},
    {DOMUS_KEY_WORD("debug", struct kv_settings, debug, debug_words, KV_DEBUG_NO)},
    {DOMUS_KEY_TEXT("password", TEXT, struct kv_settings, password, 0, "")},
    {0}};
