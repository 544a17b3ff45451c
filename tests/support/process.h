/* Starts programs for a test, finds free ports, and reads figures of processes. A step that fails
 * fails the test. */
#ifndef DOMT_PROCESS_H
#define DOMT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Start a program that is found in PATH; its output is thrown away. `arguments` end with NULL. */
pid_t domt_process_start_program(const char *const *arguments);

/* Send SIGTERM to a program that domt_process_start_program() has started, and wait for its end. */
void domt_process_terminate(pid_t program);

/* Returns whether a directory of PATH has the program; if not, a line says that the part of the
 * test which needs the program is left out. */
bool domt_path_has_program(const char *name);

/* Returns a port of 127.0.0.1 that was free a moment ago, for a program that cannot choose its port
 * itself. */
uint16_t domt_find_free_port(void);

/* Returns the resident memory of a process in bytes. */
uint64_t domt_resident_bytes(pid_t process);

/* Compare two uint64_t (or two double), as a comparison function for qsort(3). */
int domt_compare_u64(const void *one, const void *other);
int domt_compare_double(const void *one, const void *other);

#endif
