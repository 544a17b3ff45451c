/* Opens and closes a cluster: checks and copies its options, and spawns a gateway on each
 * thread. */
#include "protocols/cluster/parts.h"
#include "protocols/cluster/registry.h"

#include <domus/nats.h>
#include <domus/system.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
/* ns within which all gateways should have begun after a cluster was opened */
#define BEGIN_NS (10000 * MS)

__attribute__((format(printf, 3, 4))) static int refuse_cluster_options(char *error, size_t size,
                                                                        const char *format, ...)
{
    va_list list;

    va_start(list, format);
    if (size > 0)
        (void)vsnprintf(error, size, format, list);
    va_end(list);
    return -EINVAL;
}

/* --- options ---------------------------------------------------------------------------------- */

/* Returns whether each byte of the name is a letter, a digit or one of `others`. */
static bool has_only_name_characters(const char *name, const char *others)
{
    for (; *name != '\0'; name++) {
        bool is_letter = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z');
        if (!is_letter && (*name < '0' || *name > '9') && strchr(others, *name) == NULL)
            return false;
    }
    return true;
}

/* Returns whether the bytes are a valid name: 1..63 of them, each a letter, a digit or one of
 * `others`. */
static bool is_name_of_allowed_characters(const char *name, const char *others)
{
    size_t length = strnlen(name, DOMUS_CLUSTER_NAME_MAX + 1);

    return length > 0 && length <= DOMUS_CLUSTER_NAME_MAX && has_only_name_characters(name, others);
}

static uint64_t option_or_preset(uint64_t value, uint64_t preset)
{
    return value != 0 ? value : preset;
}

static void fill_in_presets_of_options(domus_cluster_options *options)
{
    options->heartbeat_ns = option_or_preset(options->heartbeat_ns, DOMUS_CLUSTER_HEARTBEAT);
    if (options->down_after_ns == 0) {
        options->down_after_ns = DOMUS_CLUSTER_DOWN_AFTER;
        if (options->down_after_ns < 4 * options->heartbeat_ns)
            options->down_after_ns = 4 * options->heartbeat_ns;
    }
    if (options->lease_ns == 0)
        options->lease_ns = options->down_after_ns > 500 * MS ? options->down_after_ns : 500 * MS;
    options->queued_max = option_or_preset(options->queued_max, DOMUS_CLUSTER_QUEUED_MAX);
    options->asks_max = (uint32_t)option_or_preset(options->asks_max, DOMUS_CLUSTER_ASKS_MAX);
    options->message_max = (uint32_t)option_or_preset(options->message_max, 512 * 1024);
}

static int check_numbers_in_options(const domus_cluster_options *options, char *error, size_t size)
{
    if (options->heartbeat_ns < 10 * MS || options->heartbeat_ns > 10000 * MS)
        return refuse_cluster_options(error, size, "heartbeat: not in 10 ms..10 s");
    if (options->down_after_ns < 2 * options->heartbeat_ns || options->down_after_ns > 60000 * MS)
        return refuse_cluster_options(error, size, "downAfter: not in twice the heartbeat..1 min");
    if (options->lease_ns < 500 * MS || options->lease_ns > 60000 * MS)
        return refuse_cluster_options(error, size, "lease: not in 500 ms..1 min");
    if (options->replicas > 5)
        return refuse_cluster_options(error, size, "replicas: not in 1..5");
    if (options->queued_max < 64 * 1024 || options->queued_max > UINT64_C(1) << 30)
        return refuse_cluster_options(error, size, "queuedMax: not in 64 KiB..1 GiB");
    if (options->asks_max > 1048576)
        return refuse_cluster_options(error, size, "asksMax: not in 1..1048576");
    if (options->addresses_max != 0 &&
        (options->addresses_max < 256 || options->addresses_max > 16777216))
        return refuse_cluster_options(error, size, "addressesMax: not in 256..16777216");
    if (options->message_max < 1024 || options->message_max > 512 * 1024)
        return refuse_cluster_options(error, size, "messageMax: not in 1 KiB..512 KiB");
    return 0;
}

/* Check that no pickler is for a type that gateways themselves handle: a gateway would take a
 * message of that type to a remote actor for a message to itself. */
static int check_picklers_of_options(const domus_pickler *picklers, char *error, size_t size)
{
    for (; picklers != NULL && picklers->type != NULL; picklers++) {
        for (const domus_on *on = domi_gateway_behaviour.on; on->type != NULL; on++) {
            if (on->type == picklers->type)
                return refuse_cluster_options(
                    error, size, "picklers: the type %s is the library's own", on->type->name);
        }
    }
    return 0;
}

static int check_exported_behaviours(const domus_cluster_export *exports, char *error, size_t size)
{
    for (; exports != NULL && exports->name != NULL; exports++) {
        if (!domi_wide_is_valid_name(exports->name,
                                     strnlen(exports->name, DOMUS_CLUSTER_NAME_MAX + 1)))
            return refuse_cluster_options(
                error, size, "exports: a name is not 1..63 printable bytes without space");
        if (exports->behaviour == NULL || exports->behaviour->kind != DOMUS_STATE)
            return refuse_cluster_options(error, size, "exports: %s is no state actor",
                                          exports->name);
        if (exports->options.detached)
            return refuse_cluster_options(error, size, "exports: %s is detached", exports->name);
    }
    return 0;
}

/* Let libdomus-nats check the options that the gateways will give to their clients. */
static int check_options_of_nats_clients(const domus_cluster_options *options, char *error,
                                         size_t size)
{
    domus_nats_options nats;

    if (options->servers == NULL || options->open_client != NULL)
        return 0;
    domi_cluster_fill_client_options(options, &nats);
    return domus_nats_check(&nats, error, size);
}

/* --- copies ----------------------------------------------------------------------------------- */

/* Copy the text of an option into the cluster's memory, if the option is set and its text fits. */
static int copy_text_of_option(domus_cluster *cluster, uint32_t place, const char **text,
                               const char *key, char *error, size_t size)
{
    if (*text == NULL || **text == '\0') {
        *text = NULL;
        return 0;
    }
    if (strlen(*text) >= sizeof cluster->texts[place])
        return refuse_cluster_options(error, size, "%s: longer than %zu bytes", key,
                                      sizeof cluster->texts[place] - 1);
    memcpy(cluster->texts[place], *text, strlen(*text) + 1);
    *text = cluster->texts[place];
    return 0;
}

static int copy_texts_of_options(domus_cluster *cluster, char *error, size_t size)
{
    domus_cluster_options *options = &cluster->options;
    struct {
        const char **text;
        const char *key;
    } texts[] = {{&options->name, "name"},   {&options->node, "node"},
                 {&options->user, "user"},   {&options->password, "password"},
                 {&options->token, "token"}, {&options->nkey_seed, "nkeySeedFile"}};
    int result = 0;

    for (uint32_t i = 0; i < sizeof texts / sizeof texts[0] && result == 0; i++)
        result = copy_text_of_option(cluster, i, texts[i].text, texts[i].key, error, size);
    if (options->servers != NULL && options->servers[0] == '\0')
        options->servers = NULL;
    if (result == 0 && options->servers != NULL)
        options->servers = cluster->servers = strdup(options->servers);
    if (result == 0 && options->jwt != NULL)
        options->jwt = cluster->jwt = strdup(options->jwt);
    return result;
}

/* Returns an id for this start of a node: a random number, or one that follows from the seed of a
 * test. */
static uint64_t draw_id_of_node(uint64_t seed)
{
    uint64_t number = seed;

    if (seed == 0 && getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        number = (uint64_t)(uintptr_t)&number ^ (uint64_t)getpid() << 32;
    number += UINT64_C(0x9e3779b97f4a7c15);
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    number ^= number >> 31;
    return number != 0 ? number : 1;
}

/* Make a name for a node whose options give none: the name of the host, and a few digits. */
static void name_node_by_host(domus_cluster *cluster)
{
    char host[32] = "node";

    if (gethostname(host, sizeof host - 1) != 0 || !has_only_name_characters(host, "-_."))
        (void)snprintf(host, sizeof host, "node");
    (void)snprintf(cluster->texts[1], sizeof cluster->texts[1], "%s-%06x", host,
                   (unsigned)(cluster->id & 0xffffff));
    cluster->options.node = cluster->texts[1];
}

/* Returns the time of this start, by which nodes tell several starts of one node apart; a test
 * gives it by an option. */
static uint64_t incarnation_of_this_start(const domus_cluster_options *options)
{
    struct timespec now;

    if (options->seed != 0)
        return options->seed;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static int check_options_and_prepare_cluster(domus_cluster *cluster,
                                             const domus_cluster_options *options, char *error,
                                             size_t size)
{
    cluster->options = *options;
    fill_in_presets_of_options(&cluster->options);
    if (options->name == NULL || !is_name_of_allowed_characters(options->name, "-_"))
        return refuse_cluster_options(error, size, "name: 1..63 letters, digits, '-' and '_'");
    int result = check_numbers_in_options(&cluster->options, error, size);
    if (result == 0)
        result = check_picklers_of_options(options->picklers, error, size);
    if (result == 0)
        result = check_exported_behaviours(options->exports, error, size);
    if (result == 0)
        result = copy_texts_of_options(cluster, error, size);
    if (result == 0)
        result = check_options_of_nats_clients(&cluster->options, error, size);
    if (result != 0)
        return result;
    cluster->id = draw_id_of_node(options->seed);
    cluster->incarnation = incarnation_of_this_start(options);
    const char *node = cluster->options.node;
    if (node == NULL || strcmp(node, "auto") == 0)
        name_node_by_host(cluster);
    else if (!is_name_of_allowed_characters(node, "-_."))
        return refuse_cluster_options(error, size, "node: 1..63 letters, digits, '-', '_' and '.'");
    if (options->picklers == NULL)
        return 0;
    return domus_picklers_new(options->picklers, error, size, &cluster->picklers);
}

/* --- open, leave, close ----------------------------------------------------------------------- */

static int spawn_registrar(domus_cluster *cluster)
{
    domi_registrar *state = calloc(1, sizeof *state);

    if (state == NULL)
        return -ENOMEM;
    state->cluster = cluster;
    int error = domus_outside_spawn_on(cluster->system, 0, &domi_registrar_behaviour, state,
                                       &cluster->registrar);
    free(state);
    return error;
}

static uint32_t count_kinds_of_grains(const domus_cluster_options *options)
{
    uint32_t count = 0;

    while (options->grains != NULL && options->grains[count].name != NULL)
        count++;
    return count;
}

/* Refuse a kind of grains that already has living grains: they would have no fence, and belong to
 * no part with which they could be stopped. */
static int refuse_living_grains(const domus_grain_kind *kind, char *error, size_t size)
{
    (void)refuse_cluster_options(error, size, "grains: grains of %s live already", kind->name);
    return -EBUSY;
}

/* Open the kinds of grains that the options name; the gateways spread them when they are
 * mounted. */
static int open_kinds_of_grains(domus_cluster *cluster, char *error, size_t size)
{
    uint32_t count = count_kinds_of_grains(&cluster->options);
    int result = 0;

    cluster->parts = calloc(1, sizeof *cluster->parts);
    cluster->kinds = calloc(count + 1, sizeof *cluster->kinds);
    if (cluster->parts == NULL || cluster->kinds == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < count && result == 0; i++) {
        result = domus_outside_grain_open(cluster->system, &cluster->options.grains[i],
                                          &cluster->kinds[i]);
        if (result != 0)
            (void)refuse_cluster_options(error, size, "grains: %s cannot be opened: %s",
                                         cluster->options.grains[i].name, strerror(-result));
        if (result == 0 && domus_grain_count(cluster->kinds[i]) != 0)
            result = refuse_living_grains(&cluster->options.grains[i], error, size);
    }
    cluster->kinds_count = count;
    return result;
}

/* Spawn the warden, the actor that takes and gives this node's parts of grains. */
static int spawn_warden(domus_cluster *cluster)
{
    if (cluster->kinds_count == 0 || domi_cluster_has_no_servers(cluster))
        return 0;
    void *state = calloc(1, domi_warden_behaviour.state_size);
    if (state == NULL)
        return -ENOMEM;
    domi_warden_set_cluster_of_state(state, cluster);
    int error = domus_outside_spawn_on(cluster->system, 0, &domi_warden_behaviour, state,
                                       &cluster->parts->warden);
    free(state);
    return error;
}

/* Wait until all gateways have begun, because messages that come before would be lost. A gateway
 * that could not begin has ended, and its address leads to nobody. In a test kit gateways begin
 * later. */
static int wait_until_gateways_have_begun(domus_cluster *cluster)
{
    int result = 0;

    for (uint32_t i = 0; i < cluster->gateways; i++) {
        int error = domus_outside_ask(cluster->system, cluster->addresses[i], &domi_begun_type,
                                      NULL, BEGIN_NS, NULL);
        if (error == -EOPNOTSUPP || error == -ETIMEDOUT)
            break;
        if (error == -ESTALE) {
            cluster->addresses[i] = (domus_address){NULL, 0};
            cluster->missed++;
        }
        result = result == 0 ? error : result;
    }
    /* acquire: pairs with the release in the gateways' on_mount, so that `failed` is seen, too */
    bool has_failed = atomic_load_explicit(&cluster->ended, memory_order_acquire) != 0;
    return result == -ESTALE && has_failed
               ? atomic_load_explicit(&cluster->failed, memory_order_relaxed)
               : result;
}

static int spawn_gateways(domus_cluster *cluster)
{
    domi_cluster_gateway *state = calloc(1, sizeof *state);
    int error = state == NULL ? -ENOMEM : 0;

    for (uint32_t i = 0; i < cluster->gateways && error == 0; i++) {
        state->cluster = cluster;
        state->index = i;
        error = domus_outside_spawn_on(cluster->system, i, &domi_gateway_behaviour, state,
                                       &cluster->addresses[i]);
    }
    free(state);
    if (error == 0)
        error = wait_until_gateways_have_begun(cluster);
    if (error == 0)
        error = spawn_registrar(cluster);
    return error == 0 ? spawn_warden(cluster) : error;
}

/* Give up a cluster that could not be opened. If gateways have begun, they still use its memory,
 * which is then kept until the program ends. */
static void abandon_unopened_cluster(domus_cluster *cluster)
{
    /* acquire: pairs with the release in the gateways' on_mount, so that an ended gateway has
     * finished with the cluster */
    bool is_used = atomic_load_explicit(&cluster->ended, memory_order_acquire) != cluster->missed;

    for (uint32_t i = 0; cluster->addresses != NULL && i < cluster->gateways; i++) {
        if (cluster->addresses[i].house == NULL)
            continue;
        is_used = true;
        (void)domus_outside_stop(cluster->system, cluster->addresses[i]);
    }
    if (!is_used)
        domus_cluster_close(cluster);
}

int domus_cluster_check(const domus_cluster_options *options, char *error, size_t error_size)
{
    domus_cluster *cluster = calloc(1, sizeof *cluster);

    if (cluster == NULL)
        return -ENOMEM;
    int result = check_options_and_prepare_cluster(cluster, options, error, error_size);
    domus_cluster_close(cluster);
    return result;
}

int domus_cluster_open(struct domus_system *system, const domus_cluster_options *options,
                       char *error, size_t error_size, domus_cluster **ret_cluster)
{
    domus_cluster *cluster = calloc(1, sizeof *cluster);

    if (cluster == NULL)
        return -ENOMEM;
    cluster->system = system;
    cluster->gateways = domus_system_threads(system);
    cluster->lock = (domi_lock)DOMI_LOCK_FREE;
    cluster->names_lock = (domi_lock)DOMI_LOCK_FREE;
    cluster->wide.lock = (domi_lock)DOMI_LOCK_FREE;
    int result = check_options_and_prepare_cluster(cluster, options, error, error_size);
    if (result == 0)
        result = open_kinds_of_grains(cluster, error, error_size);
    if (result == 0) {
        cluster->addresses = calloc(cluster->gateways, sizeof *cluster->addresses);
        result = cluster->addresses != NULL ? 0 : -ENOMEM;
    }
    if (result == 0)
        result = spawn_gateways(cluster);
    if (result != 0) {
        abandon_unopened_cluster(cluster);
        return result;
    }
    /* release: pairs with the load in domi_cluster_is_open(), which lets gateways read the
     * addresses */
    atomic_store_explicit(&cluster->is_open, true, memory_order_release);
    domi_cluster_show_figures(cluster);
    *ret_cluster = cluster;
    return 0;
}

void domus_cluster_leave(domus_cluster *cluster)
{
    int error =
        domus_outside_ask(cluster->system, cluster->addresses[0], &domi_leave_type, NULL,
                          cluster->options.heartbeat_ns + cluster->options.down_after_ns, NULL);

    /* a test kit moves the time itself, so nobody can wait: the node is told to leave by a
     * notice */
    if (error == -EOPNOTSUPP)
        (void)domus_outside_notice(cluster->system, cluster->addresses[0], &domi_leave_type, NULL);
}

void domus_cluster_close(domus_cluster *cluster)
{
    if (cluster == NULL)
        return;
    domi_cluster_hide_figures(cluster);
    for (uint32_t i = 0; i < cluster->nodes_used; i++)
        free(cluster->nodes[i]);
    free(cluster->listed);
    domi_wide_free(&cluster->wide);
    domus_picklers_free(cluster->picklers);
    free(cluster->parts);
    free(cluster->kinds);
    free(cluster->addresses);
    free(cluster->servers);
    if (cluster->jwt != NULL)
        explicit_bzero(cluster->jwt, strlen(cluster->jwt));
    free(cluster->jwt);
    explicit_bzero(cluster->texts, sizeof cluster->texts);
    free(cluster);
}
