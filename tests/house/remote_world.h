/* A world of two homes with a gateway on each, and node 7, whose actors the tests play. */
#ifndef DOMT_HOUSE_REMOTE_WORLD_H
#define DOMT_HOUSE_REMOTE_WORLD_H

#include "house/directory/remote.h"
#include "house/directory/router.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <domus/remote.h>

#include <errno.h>

#define DOMT_NODE UINT64_C(7)
#define DOMT_MS   UINT64_C(1000000)

/* A record of what a gateway was given: the last message of each kind, and how many there were. */
typedef struct domt_carried {
    unsigned asks, notices, cancels, watches, stops, last_stops, answers, joins;
    int target_error;         /* last result of domus_remote_target() */
    domus_remote_name target; /* target of the last message, stop, watch or join that came */
    domus_address sender;
    const domus_type *type;
    uint64_t value; /* the first 8 bytes of the last payload */
    domus_kept kept[4];
    domus_kept cancelled;
    bool room;
    int answer_error; /* error of the last answer to an ask that was sent as a remote actor */
    uint64_t answer_tag, answer_value;
} domt_carried;

extern domt_world domt_remote;
extern domi_remotes domt_remotes;
extern domi_routers domt_remote_routers;
extern domus_address domt_gateways[2], domt_agents[2];
extern domt_carried domt_carried_by[2]; /* the record of each home's gateway */

/* a type of 8 bytes, whose releases are counted (domt_releases) */
extern const domus_type domt_word;
extern const domus_type domt_plain; /* a type of 8 bytes without a release */

/* Open the world, with `options` for its addresses (NULL: the defaults), and node 7. */
void domt_remote_open_world(const domus_remote_options *options);

/* End the world, and check that nothing is left. */
void domt_remote_close_world(void);

/* domt_remote_name_of_number() returns the name of remote actor `number` of node 7 that belongs to
 * the gateway of `home`, domt_remote_address() its address. */
domus_remote_name domt_remote_name_of_number(uint32_t number, uint16_t home);
domus_address domt_remote_address(uint32_t number, uint16_t home);

bool domt_is_same_name(const domus_remote_name *one, const domus_remote_name *other);

/* Let the gateway of a home run a function, or its agent, and settle. */
void domt_run_as_gateway(uint32_t home, int (*function)(domus_stack *, void *), void *context);
void domt_run_as_agent(uint32_t home, int (*function)(domus_stack *, void *), void *context);

/* The conversation of each gateway by which it sends asks as remote actors. */
extern domus_conversation domt_askers[2];

#endif
