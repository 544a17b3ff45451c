/* Implements the verb of domus/pool.h: reads the options and addresses of a pool. */
#include "io/connectors/pool.h"

#include "base/pipeline.h"
#include "house/family/behaviour.h"
#include "house/family/birth.h"
#include "io/connectors/connect.h"

#include <domus/pipeline.h>
#include <domus/router.h>

#include <errno.h>
#include <string.h>

#define HOUR_NS UINT64_C(3600000000000)
#define MS      UINT64_C(1000000)

/* Read one address of a pool from the `size` bytes at `text`. */
static int read_pool_address(const char *text, size_t size, domi_target *ret_target)
{
    while (size != 0 && *text == ' ') {
        text++;
        size--;
    }
    while (size != 0 && text[size - 1] == ' ')
        size--;
    if (size >= sizeof ret_target->text)
        return -E2BIG;
    memcpy(ret_target->text, text, size);
    ret_target->text[size] = '\0';
    return domi_connect_check_text_of_place(ret_target->text);
}

static int read_pool_addresses(const char *to, domi_connection_pool *pool)
{
    for (bool more = true; more;) {
        size_t size = strcspn(to, ",");
        if (pool->targets_count == DOMUS_POOL_ADDRESSES_MAX)
            return -E2BIG;
        int error = read_pool_address(to, size, &pool->targets[pool->targets_count]);
        if (error != 0)
            return error;
        pool->targets_count++;
        more = to[size] == ',';
        to += size + 1;
    }
    return 0;
}

/* Replace each 0 in the options of a pool by its default. */
static void set_default_pool_options(domus_pool_options *options)
{
    if (options->connections_min == 0 && !options->on_demand)
        options->connections_min = 1;
    if (options->connections_max == 0)
        options->connections_max = options->on_demand ? 1 : options->connections_min;
    if (options->queue_max == 0)
        options->queue_max = DOMUS_POOL_QUEUE_MAX;
    if (options->wait_ns == 0)
        options->wait_ns = DOMUS_POOL_WAIT_NS;
    if (options->backoff_min_ns == 0)
        options->backoff_min_ns = DOMUS_POOL_BACKOFF_MIN;
    if (options->backoff_max_ns == 0)
        options->backoff_max_ns = options->backoff_min_ns > DOMUS_POOL_BACKOFF_MAX
                                      ? options->backoff_min_ns
                                      : DOMUS_POOL_BACKOFF_MAX;
    if (options->tries_max == 0)
        options->tries_max = DOMUS_POOL_TRIES_MAX;
}

static bool are_pool_options_valid(const domus_pool_options *options)
{
    const domus_behaviour *behaviour = options->behaviour;

    return behaviour != NULL && behaviour->kind == DOMUS_CHANNELS && behaviour->pipeline != NULL &&
           !behaviour->shares_state && (!options->on_demand || options->connections_min == 0) &&
           options->connections_min <= options->connections_max &&
           options->connections_max <= DOMUS_POOL_CONNECTIONS_MAX &&
           options->backoff_min_ns >= MS && options->backoff_min_ns <= options->backoff_max_ns &&
           options->backoff_max_ns <= HOUR_NS && options->tries_max <= UINT8_MAX;
}

int domi_pool_prepare_state(const char *to, const domus_pool_options *options,
                            domi_connection_pool *ret_pool)
{
    memset(ret_pool, 0, sizeof *ret_pool);
    if (to == NULL || options == NULL)
        return -EINVAL;
    ret_pool->options = *options;
    if (options->channel != NULL)
        ret_pool->channel = *options->channel;
    ret_pool->options.channel = NULL;
    set_default_pool_options(&ret_pool->options);
    if (!are_pool_options_valid(&ret_pool->options))
        return -EINVAL;
    int error = domi_behaviour_check(options->behaviour);
    if (error == 0)
        error = domi_front_check_stages(options->front, options->behaviour);
    return error != 0 ? error : read_pool_addresses(to, ret_pool);
}

int domus_pool_open(domus_stack *stack, const char *to, const domus_pool_options *options,
                    domus_address *ret_address)
{
    domi_connection_pool pool;
    int error = domi_pool_prepare_state(to, options, &pool);

    if (error != 0)
        return error;
    if (options->per_thread)
        return domus_spawn_many(stack, &domi_pool_behaviour, &pool, DOMUS_PER_THREAD, NULL, NULL,
                                ret_address);
    return domus_spawn(stack, &domi_pool_behaviour, &pool, ret_address);
}
