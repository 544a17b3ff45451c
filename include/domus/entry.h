/* Entry points: processes (domus/process.h) that foreign threads spawn by a name.
 *
 * A program tells a system which entry points it has before the system starts. Each is a name for
 * one method of one process. From then on whoever knows the name can begin such a process, with an
 * input, without knowing its functions. */
#ifndef DOMUS_ENTRY_H
#define DOMUS_ENTRY_H

#include <domus/process.h>
#include <domus/system.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_ENTRIES_MAX 256u /* most entry points of a system */

/* One entry point: a name under which foreign threads spawn a process. All that it points to must
 * stay constant for the life of the system. */
typedef struct domus_entry {
    const char *name; /* name of the entry point, 1..DOMUS_PROCESS_METHOD_MAX bytes */
    const domus_process *process;
    const char *method; /* the method that the process's init function gets; NULL: `name` */
    /* the type that the input of a spawn has to have; NULL: the process takes no input */
    const domus_type *input;
} domus_entry;

/* Make an entry point known. The entry is copied, but not what it points to.
 *
 * Returns 0; -EINVAL without a name or a step, for too large a state, and for an input whose type
 * has a `release`; -EMSGSIZE for too long a name or method or too large an input; -EEXIST when the
 * name is taken; -ENOSPC beyond DOMUS_ENTRIES_MAX; -EALREADY when the system has started; -ENOMEM.
 * Thread-safety: one thread at a time, before domus_system_start(). */
DOMUS_API int domus_entry_add(domus_system *system, const domus_entry *entry);

/* Options of a spawn by an entry point. All fields may be 0. The structure grows only at its end,
 * with a minor version. */
typedef struct domus_entry_options {
    /* options of the new actor, as of domus_outside_spawn_with(); NULL: all defaults */
    const domus_spawn_options *spawn;
    /* the actor that gets the value of domus_process_done(), as a notice of the process; nobody:
     * the value is released */
    domus_address result_to;
} domus_entry_options;

/* Spawn the process of the entry point called `name`, with a copy of `input`, whose type the entry
 * names. `options` may be NULL.
 *
 * Returns 0; -ENOENT without such an entry point; -EINVAL when `type` is not the type that the
 * entry names, and as domus_outside_spawn_with(); -EAGAIN as that; -ENOMEM; -ESHUTDOWN when the
 * system does not run, or stops; -ECHILD. Thread-safety: any thread. */
DOMUS_API int domus_outside_process_spawn(domus_system *system, const char *name,
                                          const domus_type *type, const void *input,
                                          const domus_entry_options *options,
                                          domus_address *ret_address);

#ifdef __cplusplus
}
#endif

#endif
