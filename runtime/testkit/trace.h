/* The trace of a kit: a line for each step that did something, and for each message of a probe. */
#ifndef DOMI_RUNTIME_TESTKIT_TRACE_H
#define DOMI_RUNTIME_TESTKIT_TRACE_H

#include "runtime/testkit/kit.h"

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
