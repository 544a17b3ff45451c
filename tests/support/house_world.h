/* A world of managers without threads, on which the tests of house/ are built.
 *
 * n homes and, behind them, one outside manager live in one OS thread, and a test steps them by
 * hand. There is no io and no clock: the test sets the time. A step does what an iteration of a
 * thread does with houses (arrivals, mount, timers, the channels queue, the state queue, what was
 * freed for others), so a test can put anything between two steps of any home. Agents are actors
 * that run whatever function they are sent, because the verbs of an actor are called from within a
 * handler. */
#ifndef DOMT_HOUSE_WORLD_H
#define DOMT_HOUSE_WORLD_H

#include "house/dispatch/phases.h"
#include "house/message/manager.h"

#include <domus/config.h>
#include <domus/domus.h>

#define DOMT_HOMES_MAX 64

typedef struct domt_world {
    domus_config config; /* a test may change it until domt_world_start() */
    uint32_t homes;
    bool started;
    domi_manager *managers[DOMT_HOMES_MAX + 1]; /* the outside is managers[homes] */
    uint32_t wakes[DOMT_HOMES_MAX + 1];         /* calls of the hook `wake`, by manager */
} domt_world;

/* The hooks of the managers of a world, which have neither io nor a system. */
extern const domi_runtime_hooks domt_hooks_of_world;

/* Fill in the default configuration; no manager is made yet. */
void domt_world_init(domt_world *world, uint32_t homes);

/* Make the managers. Returns 0; -ENOMEM, and then no manager is left. */
int domt_world_start(domt_world *world);

/* Give all managers to the calling thread; the threads that used them must have ended. */
void domt_world_own(domt_world *world);

/* End each manager as a stopped system does, and free all of them. The managers become the calling
 * thread's. */
void domt_world_end(domt_world *world);

/* Init and start a world; an error fails the test. Without belts, each message of another home
 * comes by the inbox. */
void domt_world_open(domt_world *world, uint32_t homes);
void domt_world_open_without_belts(domt_world *world, uint32_t homes);

domi_manager *domt_outside(domt_world *world);

/* The parts of an iteration. domt_run_state() runs once each house that is ready when it begins. */
uint32_t domt_events(domi_manager *home);
uint32_t domt_run_state(domi_manager *home);

/* Run one iteration of one home. Returns how much work it found. */
uint32_t domt_iterate(domi_manager *home);

/* Run iterations of all homes until none has anything to do; fails after very many. */
void domt_settle(domt_world *world);

/* Let time pass on all managers: in one jump, or in steps of a tick with a settle after each. */
void domt_jump(domt_world *world, uint64_t ns);
void domt_pass(domt_world *world, uint64_t ns);

/* Spawn an actor on `home` from the thread of `from`; a failure fails the test. */
domus_address domt_spawn(domi_manager *from, domi_manager *home, const domus_behaviour *behaviour,
                         const void *state);

/* Send a notice without a sender from the thread of `from`, as domus_outside_notice() does. */
int domt_notice(domi_manager *from, domus_address to, const domus_type *type, const void *payload);

/* A payload of 8 bytes. The release function counts payloads of this type, and of each other type
 * that uses the function. */
extern const domus_type domt_counted; /* payload: 8 bytes */
extern unsigned domt_releases;
void domt_count_release(void *payload);

/* The message for an agent, which comes as a notice or as an ask from another agent: the agent's
 * handler calls `function` and returns its result. */
typedef struct domt_call {
    int (*function)(domus_stack *stack, void *context);
    void *context;
} domt_call;

extern const domus_type domt_call_type;
extern const domus_behaviour domt_agent; /* an agent has no state and no frame */

/* Send a call to an agent by a notice; a refusal fails the test. */
void domt_send(domi_manager *from, domus_address agent, int (*function)(domus_stack *, void *),
               void *context);

/* Send a call to an agent, and let the world settle. */
void domt_do(domt_world *world, domus_address agent, int (*function)(domus_stack *, void *),
             void *context);

/* domt_sum() adds up one counter of all managers. The other function counts the objects of a slab
 * that are neither free nor on their way home: in a quiet world these have leaked. */
uint64_t domt_sum(const domt_world *world, size_t offset_in_counters);
#define DOMT_SUM(world, counter) domt_sum((world), offsetof(domi_counters, counter))
uint64_t domt_handled(const domt_world *world, uint32_t kind);
uint64_t domt_in_use(domt_world *world, uint32_t slab);
uint64_t domt_in_use_all(domt_world *world);

/* Returns how many bytes all slabs and slots of the world have mapped. */
uint64_t domt_mapped_bytes(const domt_world *world);

#endif
