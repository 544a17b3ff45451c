/* `domus top` on a terminal, by ncurses. */
#ifndef DOMUS_TOOL_SCREEN_H
#define DOMUS_TOOL_SCREEN_H

#include "tools/domus/view.h"

/* Show the threads and behaviours of a program, with a sample each `interval_ms`, until the user
 * ends it, or `count` samples were shown (0: no limit). The terminal is restored when this returns.
 * Returns the exit status. */
int screen_show_program_until_end(view *shown, port *from, long interval_ms, long count);

#endif
