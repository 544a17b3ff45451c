/* Tables of figures (domus/figures.h): what the system's control does with all of them. */
#ifndef DOMI_RUNTIME_CONTROL_FIGURES_H
#define DOMI_RUNTIME_CONTROL_FIGURES_H

#include "runtime/system/system.h"

/* End all tables of figures that are left in a system, because the system is freed. */
void domi_figures_end_all_tables(domus_system *system);

/* Print all tables of figures except lists, each with its first rows, into `at` (NUL-terminated,
 * cut at `size` bytes). Returns the length of the whole text in bytes. */
size_t domi_figures_print_all_tables(domus_system *system, char *at, size_t size);

#endif
