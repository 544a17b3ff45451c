/* A pool of connections (domus/pool.h): the state of its actor.
 *
 * A pool is a channels actor, so it and its connections live on one thread: it reads in its
 * channels how much they have to do, and an ask that a connection has not answered comes back to it
 * in its own envelope. Each connection has a place. The event of a timer makes a new connection for
 * a place; it connects at once, or, if every address is left out, waits until the first one is not.
 * Owner thread, except domi_pool_prepare_state(). */
#ifndef DOMI_IO_CONNECTORS_POOL_H
#define DOMI_IO_CONNECTORS_POOL_H

#include "io/channels/channel.h"

#include <domus/pool.h>

typedef enum domi_place_state {
    DOMI_PLACE_FREE,  /* state of a place: it has no connection, and none is wanted */
    DOMI_PLACE_WAITS, /* state of a place: its timer is armed, and will make a connection */
    DOMI_PLACE_CONNECTS,
    DOMI_PLACE_OPEN,
} domi_place_state;

/* A place of the pool for one connection. */
typedef struct domi_place {
    domi_place_state state;
    uint32_t target; /* index of the place's address in the pool; valid in CONNECTS and OPEN */
    domus_address channel;
    uint64_t opened_ns; /* time at which the place's connection was made */
    /* last data of the place's connection, set at its end if the pool is on demand */
    domi_last_word last_word;
    /* the end of the place's connection was counted as a failure of the address before the event of
     * the end came */
    bool is_blamed;
} domi_place;

/* An address to which the pool connects, with its failures. */
typedef struct domi_target {
    char text[DOMUS_POOL_ADDRESS_SIZE];
    uint32_t connections;  /* number of connections to this address that exist or are being made */
    uint32_t failures;     /* number of failures of this address in a row */
    uint64_t out_until_ns; /* time until which this address is left out */
} domi_target;

typedef struct domi_connection_pool {
    /* options of the pool, with every default filled in; their field `channel` is not used */
    domus_pool_options options;
    domus_channel_options channel;
    uint64_t random;
    uint64_t lost_ns; /* time at which the pool lost its last connection, or began */
    uint32_t open;    /* number of the pool's places in the state OPEN */
    /* index of the place at which the next search for the connection with the fewest asks begins */
    uint32_t next;
    uint32_t targets_count;
    bool draining;
    /* for a pool on demand: error with which its last connection was lost, or could not be made */
    int error;
    domus_pool_status counted; /* the counters that the pool shows in its status */
    domi_place places[DOMUS_POOL_CONNECTIONS_MAX];
    domi_target targets[DOMUS_POOL_ADDRESSES_MAX];
} domi_connection_pool;

extern const domus_behaviour domi_pool_behaviour;

/* Fill the state of a pool that is to be spawned, from its options and addresses. Any thread.
 * Returns as domus_pool_open(). */
int domi_pool_prepare_state(const char *to, const domus_pool_options *options,
                            domi_connection_pool *ret_pool);

/* Find asks to one address that were not sent yet, for channels and for pools: implements
 * domi_io_hooks.unsent_asks. A cancel finds an ask to a pool in the channel to which the pool has
 * given the ask. */
bool domi_pool_find_list_of_unsent_asks(domi_house *house, uint32_t index, domi_node ***ret_list,
                                        uint32_t **ret_count);

/* Return the mail of an actor that ends: implements domi_io_hooks.return_mail. Asks for the peer of
 * a channel of a pool go back to the pool. An ask that waits in a pool, and that may have been done
 * before, fails with -EPIPE. */
void domi_pool_return_mail_of_ending_actor(domi_manager *manager, domi_house *house);

#endif
