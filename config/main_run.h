/* Running a program: start its system, answer signals, print what they ask for, and
 * stop the system. */
#ifndef DOMI_CONFIG_MAIN_RUN_H
#define DOMI_CONFIG_MAIN_RUN_H

#include "config/main_options.h"

#include <domus/main.h>

/* Run the program with a configuration that was read from its arguments and checked. Returns its
 * exit status. */
int domi_main_run(const struct domi_arguments *arguments, const domus_yaml *yaml);

#endif
