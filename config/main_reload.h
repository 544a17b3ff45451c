/* A reload reads the configuration again, from the files and options of the start.
 *
 * Nothing of the present configuration is touched: either all sources are right and there is a new
 * reader, or the log says what is wrong. Thread: the main thread of domus_main(). */
#ifndef DOMI_CONFIG_MAIN_RELOAD_H
#define DOMI_CONFIG_MAIN_RELOAD_H

#include "config/main_options.h"
#include "config/sink.h"

#include <stdbool.h>

/* Read everything again. Returns the new reader, which the caller frees; NULL if something is
 * wrong, and then the errors are in the log. */
domus_yaml *domi_reload_read(const struct domi_arguments *arguments, domi_sink *sink);

/* Log which keys of domus differ between `before` and `now` and are not taken, because they count
 * only at a start. */
void domi_reload_log_kept(const domus_config *before, const domus_config *now, domi_sink *sink);

#endif
