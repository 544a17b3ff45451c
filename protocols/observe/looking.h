/* Takes looks of the observed system for the doctor (doctor/look.h), and writes the part of them
 * that /profile shows with ?machine=1. */
#ifndef DOMI_PROTOCOLS_OBSERVE_LOOKING_H
#define DOMI_PROTOCOLS_OBSERVE_LOOKING_H

#include "protocols/observe/doctor/look.h"

#include <domus/domus.h>

/* Take a look at the observed system. Returns 0; -ENOMEM. domi_look_free_lists() frees the look. */
int domi_take_look_at_program(domus_system *system, domi_look *ret_look);

/* Write `,"machine":{...}`, the figures of a look that the rest of /profile lacks:
 *
 *   {"cpus": 2, ..., "backend": "uring", "backend_why": "", "settings": {"scheduler.ioRatio": 50,
 *    ...}, "threads": [{"cpu_ns": 1, "waiting_ns": 1}, ...]} */
void domi_write_look_as_json(domus_appender *json, domus_system *system);

#endif
