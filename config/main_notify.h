/* How a program of domus_main() tells systemd, or a supervisor that speaks as it does, of its
 * states: that it is ready, reads its configuration again, stops, what it does, and that its
 * threads go on (docs/systemd.md).
 *
 * Without $NOTIFY_SOCKET all of this does nothing, and there is no thread. It belongs to the
 * process, which has one domus_main() at a time. Thread: the main thread. */
#ifndef DOMI_CONFIG_MAIN_NOTIFY_H
#define DOMI_CONFIG_MAIN_NOTIFY_H

#include "config/sink.h"

#include <domus/main.h>

#include <stdbool.h>

/* Read the variables of the supervisor, and take them out of the environment. A fault of theirs is
 * told by domi_main_notify_ready(). */
void domi_main_notify_read(void);

/* The program has started and serves. From here on a thread looks at the threads of `system`, and
 * tells the supervisor of them. */
void domi_main_notify_ready(domus_system *system, domi_sink *sink);

/* The program reads its configuration again, and has read it. `is_taken` is false if nothing was
 * changed, because it is wrong. */
void domi_main_notify_reloading(void);
void domi_main_notify_reloaded(bool is_taken);

/* The program begins to stop, which may take as long as its configuration says. */
void domi_main_notify_stopping(void);

/* The system has stopped, and is about to be freed. */
void domi_main_notify_end(void);

#endif
