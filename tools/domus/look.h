/* Reads looks at a program for the doctor (protocols/observe/doctor/look.h) from the JSON of
 * /profile?machine=1. That text may come from a hostile program or a broken file: an invalid figure
 * counts as 0, and names are made printable. */
#ifndef DOMUS_TOOL_LOOK_H
#define DOMUS_TOOL_LOOK_H

#include "protocols/observe/doctor/look.h"
#include "tools/domus/port.h"

#include <stdbool.h>
#include <stddef.h>

/* Read a look at a program from its JSON text. Returns NULL; or a sentence that tells why there is
 * none. domi_look_free_lists() frees the look. */
const char *look_read_text(const char *text, size_t size, domi_look *ret_look);

/* Take a look at a program through its port, within `ms`. Returns whether that succeeded; otherwise
 * the port's `error` is set. */
bool look_request_from_port(port *from, long ms, domi_look *ret_look);

/* Read a look at a program from a file of at most PORT_TEXT_MAX bytes. Returns whether that
 * succeeded; otherwise the error was printed. */
bool look_load_file(const char *name, domi_look *ret_look);

#endif
