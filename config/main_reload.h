/* A reload reads the configuration again, from the files and options of the start.
 *
 * It is all or nothing: when all sources are right, every key that has changed is live, and the
 * program agrees, the new configuration holds. Otherwise the log says why, and nothing has changed.
 * Files of fronts (certificates) are read again in each case. Thread: the main thread of
 * domus_main(). */
#ifndef DOMI_CONFIG_MAIN_RELOAD_H
#define DOMI_CONFIG_MAIN_RELOAD_H

#include "config/main_options.h"
#include "config/sink.h"

#include <stdbool.h>

/* Reload the configuration. `start` is the reader of the start, in whose terms the observation port
 * shows the values. Returns whether the new configuration holds. */
bool domi_reload_config(const struct domi_arguments *arguments, domus_system *system,
                        const domus_yaml *start, domi_sink *sink);

#endif
