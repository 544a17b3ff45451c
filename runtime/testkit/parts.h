/* The parts of the test kit: its steps, the runners of pools, probes, and the trace. */
#ifndef DOMI_RUNTIME_TESTKIT_PARTS_H
#define DOMI_RUNTIME_TESTKIT_PARTS_H

#include "runtime/testkit/kit.h"

/* ---- steps.c ----------------------------------------------------------------------------------*/

/* The simulator: it takes the steps of the threads, and lets time pass. */

/* Take one step of some thread. Returns false if no thread has anything to do. */
bool domi_testkit_step(domus_testkit *kit);

/* Take steps until nothing is left to do, or until `is_done` (may be NULL) returns true. Meanwhile
 * time goes on, to `until_ns` at most.
 *
 * Returns 0 when `is_done` returned true; -ETIME when `until_ns` has come or no timer is left
 * (without `is_done` this is the normal end); -ETIMEDOUT after too many steps, and then the kit's
 * error says which threads and actors still run. */
int domi_testkit_pass(domus_testkit *kit, bool (*is_done)(const void *context), const void *context,
                      uint64_t until_ns);

/* Returns when the next timer is due, or something happens in the network; UINT64_MAX: never.
 * Called only when there is no step to take. */
uint64_t domi_testkit_due_ns(const domus_testkit *kit);

/* Prepare the simulated thread of `manager` so that the test can act for it between steps: if the
 * thread sleeps it is woken, and it sees the kit's present time. */
void domi_testkit_rouse(domus_testkit *kit, const domi_manager *manager);

/* The hooks of the managers of simulated threads. */
extern const domi_runtime_hooks domi_hooks_of_testkit;

/* This function is domi_simulator.wait (runtime/system/system.h). */
bool domi_testkit_wait(domi_simulator *simulator, bool (*is_done)(const domus_system *system),
                       uint64_t until_ns);

/* ---- runners.c --------------------------------------------------------------------------------*/

/* The runners of pools in a test kit: each is drawn by the seed, as a thread is, and then gives one
 * turn. Spares do not begin, because a handler of a kit never blocks. */

/* Let the runners of all pools begin, with chance that follows from `seed`. Returns 0; -ENOMEM. */
int domi_kit_runners_begin(domus_testkit *kit, uint64_t seed);

/* True if runner `index`, 0..kit->runner_count-1, has something to do. */
bool domi_kit_runner_can_move(const domus_testkit *kit, uint32_t index, uint64_t now_ns);

/* Take a step of a runner that can move. */
void domi_kit_runner_step(domus_testkit *kit, uint32_t index);

/* The time at which a timer of a pool is due next; UINT64_MAX: never. */
uint64_t domi_kit_runners_due_ns(const domus_testkit *kit);

/* True if all of them have left their loops. */
bool domi_kit_runners_have_left(const domus_testkit *kit);

/* ---- probe.c ----------------------------------------------------------------------------------*/

/* Parcels, which are the messages that a probe has received, and the end of a probe.
 * domus/testkit.h has the calls of users. */

static inline void domi_parcel_release(domi_parcel *parcel)
{
    if (parcel->owns && parcel->type->release != NULL)
        parcel->type->release(parcel->payload);
}

/* Free a probe and everything that it received and the test did not expect. */
void domi_probe_free(domus_probe *probe);

/* ---- trace.c ----------------------------------------------------------------------------------*/

/* The trace of a kit: a line for each step that did something, and for each message of a probe. */

/* Returns 0; -ENOMEM. */
int domi_trace_init(domi_trace *trace);
void domi_trace_fini(domi_trace *trace);

/* Note the actors that are ready, for the next line. Called before a phase 3 of thread `index`, in
 * which each of them runs once. */
void domi_trace_note_ready(domus_testkit *kit, uint32_t index);

/* Note what thread `index` has done since this was called last. */
void domi_trace_note_step(domus_testkit *kit, uint32_t index, const char *phase);

/* Note the turn that runner `index` of the kit has given. */
void domi_trace_note_turn(domus_testkit *kit, uint32_t index);

/* Probe `number` received a message, or (`type` is NULL) its ask failed with `error`. */
void domi_trace_note_probe(domus_testkit *kit, uint32_t number, const char *kind,
                           const domus_type *type, int error);

/* Record an event of the network: implements domi_net.note; `kit` is the kit. */
void domi_trace_note_net(void *kit, const domi_net_note *note);

#endif
