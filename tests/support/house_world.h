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
    domus_config config; /* a test may change the configuration until domt_world_start() */
    uint32_t homes;
    bool started;
    domi_manager *managers[DOMT_HOMES_MAX +
                           1]; /* the homes, and behind them the outside manager, managers[homes] */
    uint32_t wakes[DOMT_HOMES_MAX + 1]; /* number of calls of the hook `wake`, for each manager */
} domt_world;

/* Hooks for the managers of a world, which has neither io nor a system behind it. */
extern const domi_runtime_hooks domt_hooks_of_world;

/* Fill in a world with the default configuration; domt_world_start() makes its managers. */
void domt_world_init(domt_world *world, uint32_t homes);

/* Make the managers of a world. Returns 0; -ENOMEM, and then no manager is left. */
int domt_world_start(domt_world *world);

/* Make the calling thread the owner of all managers of a world; other threads that used them must
 * have ended. */
void domt_world_become_owner(domt_world *world);

/* Take over all managers of a world, end them as a stopped system does, and free them. */
void domt_world_end(domt_world *world);

/* Init and start a world; an error fails the test. In a world without belts, each message between
 * two homes goes through the inbox. */
void domt_world_open(domt_world *world, uint32_t homes);
void domt_world_open_without_belts(domt_world *world, uint32_t homes);

domi_manager *domt_outside_manager(domt_world *world);

/* Two parts of an iteration of a home: domt_take_arrivals_and_timers() takes arrivals, mounts
 * actors and fires timers; domt_run_state_queue() runs once each house that is in the state queue
 * when the call begins. */
uint32_t domt_take_arrivals_and_timers(domi_manager *home);
uint32_t domt_run_state_queue(domi_manager *home);

/* Run one iteration of one home. Returns a count of the work that was done; 0: there was none. */
uint32_t domt_iterate_home(domi_manager *home);

/* Run iterations of all homes until no home has anything to do; the test fails if that takes too
 * many iterations. */
void domt_settle_world(domt_world *world);

/* Set the time of all managers forward by `ns`: domt_advance_time_without_runs() at once and
 * without running any home, domt_pass_time() in steps of one tick of the timer wheel with
 * domt_settle_world() after each. */
void domt_advance_time_without_runs(domt_world *world, uint64_t ns);
void domt_pass_time(domt_world *world, uint64_t ns);

/* Spawn an actor on `home`, called as the thread of the manager `from`; a failure fails the
 * test. */
domus_address domt_spawn(domi_manager *from, domi_manager *home, const domus_behaviour *behaviour,
                         const void *state);

/* Send a notice without a sender, called as the thread of the manager `from`, as
 * domus_outside_notice() does. */
int domt_send_notice(domi_manager *from, domus_address to, const domus_type *type,
                     const void *payload);

/* A type with a payload of 8 bytes, and its release function, which counts its calls in
 * domt_releases. Tests may give the same function to other types. */
extern const domus_type domt_counted;
extern unsigned domt_releases;
void domt_count_release(void *payload);

/* The message for an agent (an actor with the behaviour domt_agent), as a notice or as an ask: its
 * handler calls `function` and returns the result. */
typedef struct domt_call {
    int (*function)(domus_stack *stack, void *context);
    void *context;
} domt_call;

extern const domus_type domt_call_type;
extern const domus_behaviour
    domt_agent; /* a behaviour without state and frame, which handles domt_call_type */

/* Let an agent call `function`: send a domt_call as a notice. A refusal fails the test. */
void domt_send_function_to_call(domi_manager *from, domus_address agent,
                                int (*function)(domus_stack *, void *), void *context);

/* Let an agent call `function`, as domt_send_function_to_call() does, and then let the world settle
 * (domt_settle_world()). */
void domt_run_as_actor(domt_world *world, domus_address agent,
                       int (*function)(domus_stack *, void *), void *context);

/* Sums over all managers of a world: domt_sum_counter() of one counter, domt_sum_handled_messages()
 * of the messages of one kind that were handled, domt_count_objects_in_use() of the objects of a
 * slab that are neither free nor on their way back to their home. In a world at rest, objects in
 * use have leaked. */
uint64_t domt_sum_counter(const domt_world *world, size_t offset_in_counters);
#define DOMT_SUM(world, counter) domt_sum_counter((world), offsetof(domi_counters, counter))
uint64_t domt_sum_handled_messages(const domt_world *world, uint32_t kind);
uint64_t domt_count_objects_in_use(domt_world *world, uint32_t slab);
uint64_t domt_count_all_objects_in_use(domt_world *world);

/* Returns how many bytes all slabs and slots of the world have mapped. */
uint64_t domt_world_mapped_bytes(const domt_world *world);

#endif
