/* Functions that the files of the test kit share: steps of threads, runners of pools, probes, and
 * the trace. */
#ifndef DOMI_RUNTIME_TESTKIT_PARTS_H
#define DOMI_RUNTIME_TESTKIT_PARTS_H

#include "runtime/testkit/kit.h"

/* ---- steps.c ----------------------------------------------------------------------------------*/

/* The simulator: it takes the steps of the simulated threads, and moves the time. */

/* Take one step of a thread or runner of the kit, which is drawn at random. Returns false if none
 * has anything to do. */
bool domi_testkit_take_step(domus_testkit *kit);

/* Take steps, and move the time to `until_ns` at most, until nothing is left to do or `is_done`
 * (may be NULL) returns true.
 *
 * Returns 0 when `is_done` returned true; -ETIME when `until_ns` has come or no timer is left
 * (without `is_done` this is the normal end); -ETIMEDOUT after too many steps without an end, and
 * then the kit's error says which threads and actors still run. */
int domi_testkit_run_until(domus_testkit *kit, bool (*is_done)(const void *context),
                           const void *context, uint64_t until_ns);

/* Returns the time at which the next timer of a thread or event of the network is due; UINT64_MAX:
 * never. Called only when no step can be taken. */
uint64_t domi_testkit_time_of_next_event(const domus_testkit *kit);

/* Prepare the simulated thread of `manager` for something that the test does between steps: if the
 * thread sleeps, it is woken and gets the kit's present time. */
void domi_testkit_wake_thread_for_test(domus_testkit *kit, const domi_manager *manager);

/* The functions of runtime that the managers of simulated threads call. */
extern const domi_runtime_hooks domi_hooks_of_testkit;

/* Take steps until a condition of the system holds. It is called as domi_simulator.wait
 * (runtime/system/system.h). */
bool domi_testkit_run_until_condition(domi_simulator *simulator,
                                      bool (*is_done)(const domus_system *system),
                                      uint64_t until_ns);

/* ---- runners.c --------------------------------------------------------------------------------*/

/* Runners of pools in a test kit. A runner is chosen for a step at random, as a thread is, and then
 * gives one turn. Spares do not begin, because a handler in a kit never blocks. */

/* Begin the simulated runners of all pools, with random numbers that follow from `seed`. Returns 0;
 * -ENOMEM. */
int domi_kit_runners_begin(domus_testkit *kit, uint64_t seed);

/* True if the simulated runner with this index (0..kit->runner_count-1) has something to do. */
bool domi_kit_can_runner_take_step(const domus_testkit *kit, uint32_t index, uint64_t now_ns);

/* Take a step of the simulated runner with this index, which must have something to do. */
void domi_kit_take_runner_step(domus_testkit *kit, uint32_t index);

/* Returns the time at which the next timer of any pool is due; UINT64_MAX: never. */
uint64_t domi_kit_time_of_next_pool_timer(const domus_testkit *kit);

/* True if all simulated runners have left their loops. */
bool domi_kit_runners_have_left(const domus_testkit *kit);

/* ---- probe.c ----------------------------------------------------------------------------------*/

/* Parcels, which are the messages that a probe has received (kit.h), and the end of a probe. The
 * functions for users are in domus/testkit.h. */

static inline void domi_parcel_release_payload(domi_parcel *parcel)
{
    if (parcel->owns && parcel->type->release != NULL)
        parcel->type->release(parcel->payload);
}

/* Free a probe, with the messages that it has received and the test did not expect. */
void domi_probe_free(domus_probe *probe);

/* ---- trace.c ----------------------------------------------------------------------------------*/

/* The trace of a kit. Each step in which a thread has counted something, each message of a probe,
 * and each event of the network is a line. */

/* Make the memory of a kit's trace. Returns 0; -ENOMEM. */
int domi_trace_init(domi_trace *trace);
void domi_trace_fini(domi_trace *trace);

/* Record the ready actors of a thread for the trace's next line. Called before phase 3 of the
 * thread, in which each of them runs once. */
void domi_trace_record_ready_actors(domus_testkit *kit, uint32_t index);

/* Add a line to the trace with what a thread has done since the last call for it. */
void domi_trace_record_step(domus_testkit *kit, uint32_t index, const char *phase);

/* Add a line to the trace for the turn that a simulated runner has given. */
void domi_trace_record_turn(domus_testkit *kit, uint32_t index);

/* Add a line to the trace for a message that a probe has received, or, if `type` is NULL, for a
 * failed ask of the probe. */
void domi_trace_record_probe(domus_testkit *kit, uint32_t number, const char *kind,
                             const domus_type *type, int error);

/* Add a line to the trace for an event of the network. It is called as domi_net.note; `kit` is the
 * test kit. */
void domi_trace_record_network(void *kit, const domi_net_note *note);

#endif
