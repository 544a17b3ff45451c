/* Keeps a pool of connections for each origin that a client uses, and ends the pools that were idle
 * for the longest time. */
#include "protocols/http/client_parts.h"

#include "protocols/http/chars.h"

#include <domus/pool.h>

#include <errno.h>
#include <stdio.h>

static bool is_address_of_nobody(domus_address address)
{
    return address.house == NULL;
}

static bool are_addresses_equal(domus_address one, domus_address other)
{
    return one.house == other.house && one.lease == other.lease;
}

/* Returns the origin whose pool this is; NULL if the pool has ended. */
static domi_http_origin *find_origin_of_pool(domi_http_origins *origins, domus_address pool)
{
    for (uint32_t i = 0; i < origins->options.origins_max; i++) {
        if (are_addresses_equal(origins->list[i].pool, pool))
            return &origins->list[i];
    }
    return NULL;
}

static bool is_origin_of_url(const domi_http_origin *origin, const domus_http_url *url)
{
    const domus_http_url own = {.host = origin->host,
                                .host_size = origin->host_size,
                                .port = origin->port,
                                .secure = origin->secure};

    return !is_address_of_nobody(origin->pool) && domus_http_url_same_origin(&own, url);
}

/* Free a place for another origin: end the pool that was idle longest, which goes on until the
 * bodies from it are read. Returns the free place; NULL if no pool is idle, or too many are
 * ending. */
static domi_http_origin *find_or_free_place_for_origin(domus_stack *stack,
                                                       domi_http_origins *origins)
{
    domi_http_origin *oldest = NULL;

    for (uint32_t i = 0; i < origins->options.origins_max; i++) {
        domi_http_origin *origin = &origins->list[i];
        if (is_address_of_nobody(origin->pool))
            return origin;
        if (origin->under_way == 0 && (oldest == NULL || origin->used < oldest->used))
            oldest = origin;
    }
    if (oldest == NULL || origins->leaving == origins->options.origins_max)
        return NULL;
    if (domus_notice(stack, oldest->pool, &domus_pool_drain_type, NULL) != 0)
        return NULL;
    origins->leaving++;
    oldest->pool = (domus_address){NULL, 0};
    return oldest;
}

static int open_pool_for_origin(domus_stack *stack, const domi_http_origins *origins,
                                const domus_http_url *url, domus_address *ret_pool)
{
    const domus_http_client_options *own = &origins->options;
    const domus_pool_options options = {
        .behaviour = own->connection,
        .connections_max = own->connections_max,
        .queue_max = own->queue_max,
        .connect_timeout_ns = own->connect_timeout_ns,
        .backoff_min_ns = own->backoff_ns,
        .backoff_max_ns = own->backoff_ns,
        .repeatable = domus_http_repeatable,
        .tries_max = own->tries_max,
        .on_demand = true,
        .channel = &origins->channel,
        .front = url->secure ? own->secure : NULL,
    };
    char to[DOMUS_HTTP_HOST_MAX + sizeof ":65535"];

    (void)snprintf(to, sizeof to, "%.*s:%u", (int)url->host_size, url->host, url->port);
    int error = domus_pool_open(stack, to, &options, ret_pool);
    if (error != 0)
        return error;
    error = domus_watch_actor(stack, *ret_pool, NULL);
    if (error != 0)
        (void)domus_stop(stack, *ret_pool);
    return error;
}

int domi_http_find_pool_of_origin(domus_stack *stack, domi_http_origins *origins,
                                  const domus_http_url *url, domus_address *ret_pool)
{
    domus_address pool;

    if (url->secure && origins->options.secure == NULL)
        return -EPROTONOSUPPORT;
    for (uint32_t i = 0; i < origins->options.origins_max; i++) {
        if (is_origin_of_url(&origins->list[i], url)) {
            *ret_pool = origins->list[i].pool;
            return 0;
        }
    }
    domi_http_origin *origin = find_or_free_place_for_origin(stack, origins);
    if (origin == NULL)
        return -EBUSY;
    int error = open_pool_for_origin(stack, origins, url, &pool);
    if (error != 0)
        return error;
    *origin = (domi_http_origin){
        .pool = pool, .host_size = url->host_size, .port = url->port, .secure = url->secure};
    memcpy(origin->host, url->host, url->host_size);
    *ret_pool = pool;
    return 0;
}

void domi_http_count_begun_request_of_pool(domi_http_origins *origins, domus_address pool)
{
    domi_http_origin *origin = find_origin_of_pool(origins, pool);

    if (origin == NULL)
        return;
    origin->used = ++origins->requests;
    origin->under_way++;
}

void domi_http_count_ended_request_of_pool(domi_http_origins *origins, domus_address pool)
{
    domi_http_origin *origin = find_origin_of_pool(origins, pool);

    if (origin != NULL)
        origin->under_way--;
}

void domi_http_free_origin_of_ended_pool(domi_http_origins *origins, const domus_down *down)
{
    domi_http_origin *origin = find_origin_of_pool(origins, down->who);

    if (origin != NULL)
        origin->pool = (domus_address){NULL, 0};
    else if (origins->leaving != 0)
        origins->leaving--;
}
