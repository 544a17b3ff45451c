/* The functions of domus/testkit.h for users, except those of probes and of the trace. The steps of
 * simulated threads are in steps.c. */
#include "base/memory.h"
#include "runtime/control/life.h"
#include "runtime/network/parts.h"
#include "runtime/network/ring.h"
#include "runtime/outside/resolver.h"
#include "runtime/testkit/parts.h"
#include "runtime/testkit/peer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS 64u /* number of receive buffers that a simulated thread has */
/* size of a receive buffer in bytes: small, so that a stream comes in many pieces */
#define BUFFER_BYTES       256u
#define RING_ENTRIES       64u
#define COMPLETION_ENTRIES 256u

/* constant that changes the kit's seed into the network's, so that both draw different numbers */
#define NET_SEED UINT64_C(0x6e6574776f726b73)

/* Copy the user's configuration and change it for a simulation: threads are not pinned and do not
 * spin (the clock stands still during a step), phases end without a deadline, and there are few and
 * small buffers unless the user has chosen their number. */
static void adapt_config_for_simulation(const domus_config *config, domus_config *ret_config)
{
    domus_config preset;

    domus_config_init(&preset);
    *ret_config = config != NULL ? *config : preset;
    if (ret_config->system.threads == 0)
        ret_config->system.threads = DOMUS_TESTKIT_THREADS;
    ret_config->system.threads_percent = 0;
    ret_config->system.cpus = "none";
    ret_config->scheduler.io_ratio = 100;
    ret_config->scheduler.idle.spin_ns = 0;
    if (ret_config->io.buffers.count == preset.io.buffers.count &&
        ret_config->io.buffers.size_bytes == preset.io.buffers.size_bytes) {
        ret_config->io.buffers.count = BUFFERS;
        ret_config->io.buffers.size_bytes = BUFFER_BYTES;
    }
    if (ret_config->io.completion_entries == preset.io.completion_entries &&
        ret_config->io.ring_entries == preset.io.ring_entries) {
        ret_config->io.ring_entries = RING_ENTRIES;
        ret_config->io.completion_entries = COMPLETION_ENTRIES;
    }
}

/* Make all parts of a kit except its system. Returns false if there is no memory. */
static bool make_parts_of_kit(domus_testkit *kit, uint32_t threads, uint64_t seed)
{
    kit->threads = domi_memory_new(threads * sizeof kit->threads[0]);
    kit->net = domi_net_new(seed ^ NET_SEED, DOMUS_TESTKIT_START_NS);
    if (kit->threads == NULL || kit->net == NULL || domi_trace_init(&kit->trace) != 0)
        return false;
    kit->net->note = domi_trace_record_network;
    kit->net->note_context = kit;
    domi_random_init(&kit->random, seed);
    return true;
}

int domus_testkit_new(const domus_config *config, uint64_t seed, char *error, size_t error_size,
                      domus_testkit **ret_kit)
{
    domus_config own;
    domus_testkit *kit = NULL;
    int result = config != NULL ? domus_config_check(config, error, error_size) : 0;

    if (result != 0)
        return result;
    adapt_config_for_simulation(config, &own);
    kit = domi_memory_new(sizeof *kit);
    if (kit == NULL || !make_parts_of_kit(kit, own.system.threads, seed)) {
        if (error_size != 0)
            snprintf(error, error_size, "no memory for a test kit");
        domus_testkit_free(kit);
        return -ENOMEM;
    }
    kit->simulator = (domi_simulator){
        .backend = &domi_backend_net,
        .start_ns = DOMUS_TESTKIT_START_NS,
        .thread_hooks = &domi_hooks_of_testkit,
        .wait = domi_testkit_run_until_condition,
    };
    domi_net *before = domi_net_set_network_of_new_rings(kit->net);
    result = domi_system_new(&own, &kit->simulator, error, error_size, &kit->system);
    if (result == 0) {
        result = domus_system_start(kit->system);
        if (result != 0 && error_size != 0)
            snprintf(error, error_size, "%s", domus_system_error(kit->system));
        if (result == 0)
            result = domi_kit_runners_begin(kit, seed);
    }
    (void)domi_net_set_network_of_new_rings(before);
    if (result != 0) {
        domus_testkit_free(kit);
        return result;
    }
    *ret_kit = kit;
    return 0;
}

void domus_testkit_free(domus_testkit *kit)
{
    if (kit == NULL)
        return;
    domus_system_free(kit->system);
    while (kit->probes != NULL) {
        domus_probe *probe = kit->probes;

        kit->probes = probe->next;
        domi_probe_free(probe);
    }
    if (kit->net != NULL)
        /* the trace is not written any more, because it would read the system, which is freed
         * already */
        kit->net->note = NULL;
    domi_kit_peers_free(kit);
    domi_datagram_peers_free(kit);
    domi_net_free(kit->net);
    domi_trace_fini(&kit->trace);
    domi_memory_free(kit->threads);
    domi_memory_free(kit->runners);
    domi_memory_free(kit);
}

domus_system *domus_testkit_system(domus_testkit *kit)
{
    return kit->system;
}

bool domus_testkit_step(domus_testkit *kit)
{
    return domi_testkit_take_step(kit);
}

int domus_testkit_run(domus_testkit *kit)
{
    return domus_testkit_advance(kit, 0);
}

int domus_testkit_advance(domus_testkit *kit, uint64_t by_ns)
{
    uint64_t now_ns = domus_testkit_now_ns(kit);

    if (kit->stepping)
        return -EBUSY;
    if (by_ns >= UINT64_MAX - now_ns) {
        snprintf(kit->error, sizeof kit->error, "time would end");
        return -ERANGE;
    }
    int result = domi_testkit_run_until(kit, NULL, NULL, now_ns + by_ns);
    return result == -ETIME ? 0 : result;
}

uint64_t domus_testkit_due_ns(const domus_testkit *kit)
{
    return domi_testkit_time_of_next_event(kit);
}

int domus_testkit_jump(domus_testkit *kit, uint64_t by_ns)
{
    if (kit->stepping)
        return -EBUSY;
    if (by_ns >= UINT64_MAX - domus_testkit_now_ns(kit)) {
        snprintf(kit->error, sizeof kit->error, "time would end");
        return -ERANGE;
    }
    domi_clock_advance_virtual(&kit->system->clock, by_ns);
    return domus_testkit_run(kit);
}

void domus_testkit_resolve_with(domus_testkit *kit, domus_testkit_resolver *resolver, void *context)
{
    domi_resolver_set_look_up(kit->system->resolver, resolver, context);
}

uint64_t domus_testkit_now_ns(const domus_testkit *kit)
{
    return domi_clock_now(&kit->system->clock);
}

int domus_testkit_stop(domus_testkit *kit)
{
    return kit->stepping ? -EBUSY : domus_system_stop(kit->system);
}

const char *domus_testkit_error(const domus_testkit *kit)
{
    return kit->error;
}

/* --- seeds ----------------------------------------------------------------------------------- */

/* Read the seed of a kit from the environment variable DOMUS_SEED. Returns false if it is not set
 * or is not a number. */
static bool read_seed_of_environment(uint64_t *ret_seed)
{
    const char *text = getenv("DOMUS_SEED");
    char *end = NULL;

    if (text == NULL || text[0] < '0' || text[0] > '9')
        return false;
    *ret_seed = strtoull(text, &end, 0);
    return *end == '\0';
}

uint64_t domus_testkit_seed(uint64_t preset)
{
    uint64_t seed;

    return read_seed_of_environment(&seed) ? seed : preset;
}

int domus_testkit_sweep(uint64_t first, uint64_t count, int (*test)(uint64_t seed, void *context),
                        void *context, uint64_t *ret_seed)
{
    uint64_t seed = first;
    int result = 0;

    if (read_seed_of_environment(&seed))
        count = 1;
    for (; count != 0 && result == 0; count--, seed++) {
        if (ret_seed != NULL)
            *ret_seed = seed;
        result = test(seed, context);
    }
    return result;
}

const char *domus_testkit_replay(uint64_t seed, char *text, size_t size)
{
    if (size != 0)
        snprintf(text, size, "DOMUS_SEED=%" PRIu64 " %s", seed, program_invocation_name);
    return text;
}
