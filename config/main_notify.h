/* How a program of domus_main() tells systemd, or a supervisor that speaks as it does, of its
 * states: that it is ready, reads its configuration again, stops, what it does, and that its
 * threads go on (docs/systemd.md).
 *
 * A message that the supervisor does not take at once is sent again until it does; nobody waits for
 * that, but the end for a second. Without $NOTIFY_SOCKET all of this does nothing, and there is no
 * thread. It belongs to the process, which has one domus_main() at a time. Thread: the main thread.
 */
#ifndef DOMI_CONFIG_MAIN_NOTIFY_H
#define DOMI_CONFIG_MAIN_NOTIFY_H

#include "config/sink.h"

#include <domus/main.h>

#include <stdbool.h>

/* Read the variables of the supervisor, and take them out of the environment. A fault of theirs is
 * told by domi_main_notify_begin(). */
void domi_main_notify_read_variables(void);

/* Make the thread that tells the supervisor, and the watchdog of `system`, which has started.
 * Returns 0; a negative errno, and `error` says why: then the start has to fail, because a program
 * that is ready and feeds no watchdog would be ended later. */
int domi_main_notify_begin(domus_system *system, domi_sink *sink, char *error, size_t error_size);

/* Tell the supervisor that the program has started and serves. From here on the threads of the
 * system are looked at. */
void domi_main_notify_send_ready(void);

/* Tell the supervisor that the program reads its configuration again, and that it has read it.
 * `is_taken` is false if nothing was changed, because the configuration is wrong. */
void domi_main_notify_send_reloading(void);
void domi_main_notify_send_reloaded(bool is_taken);

/* Tell the supervisor that the program begins to stop. The program asks for more time until
 * domi_main_notify_close(). */
void domi_main_notify_send_stopping(void);

/* End the looks at the system, which has stopped, and is about to be freed: nobody looks at it or
 * at the log from here on. */
void domi_main_notify_end(void);

/* Close all of this, when the program is about to return, also after a start that failed. */
void domi_main_notify_close(void);

#endif
