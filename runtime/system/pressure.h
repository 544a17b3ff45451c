/* A look at memory measures it, and writes the words of levels.h.
 *
 * A look measures (runtime/os/footprint.h), tells the library's own memory from foreign memory
 * (runtime/system/budget.h) and sets two levels. A thread that is awake takes a look every
 * memory.interval, and sooner if the memory in use grows fast or is near a mark. A look is also due
 * as the system allocates: at 10 million messages a second a gigabyte is gone in less than a tenth
 * of a second. Therefore the functions that allocate count bytes (base/memory.h), and a look is due
 * when a quarter of the way to the next mark has been allocated. */
#ifndef DOMI_RUNTIME_SYSTEM_PRESSURE_H
#define DOMI_RUNTIME_SYSTEM_PRESSURE_H

#include "house/message/manager.h"
#include "runtime/system/levels.h"

struct domus_system;

void domi_pressure_init(struct domus_system *system);

/* Find the limits of memory, and begin to measure it; called before the threads start. A simulated
 * system has no limits. A test may set `root` before this call. */
void domi_pressure_begin_to_measure(struct domus_system *system);

/* Let memory count as normal from now on, because it is not measured any more; called after the
 * threads have ended. */
void domi_pressure_end_measuring(struct domus_system *system);

/* Returns how the io of a thread has to behave at the present levels of memory. */
domi_io_pressure domi_pressure_get_state_for_io(const domi_pressure *pressure);

/* Read the levels of memory and their figures. Returns the number of the change that has set them.
 * It is called as domi_runtime_hooks.read_memory. */
uint32_t domi_pressure_read_levels(const domi_manager *manager, domus_memory_change *ret_change);

/* Take a look: measure memory, set the levels, and give back what the heap has free if memory is
 * short. Any thread that holds no lock may call it; it returns at once if another thread takes a
 * look. */
void domi_pressure_look_at_memory(struct domus_system *system);

/* Take a look at memory if one is due, and if the levels have changed, wake watchers and report it.
 * A thread that is awake calls this once a tick. */
void domi_pressure_look_if_due(struct domus_system *system, uint32_t thread, uint64_t now_ns);

#endif
