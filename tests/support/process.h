/* Programs that a test starts, free ports, and figures of processes. Each function checks that it
 * succeeds. */
#ifndef DOMT_PROCESS_H
#define DOMT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Start a program of PATH, and throw away its output. `arguments` end with NULL. */
pid_t domt_process_start(const char *const *arguments);

/* Send SIGTERM to the program, and wait for its end. */
void domt_process_end(pid_t program);

/* True if PATH has the program; otherwise a line says that its part of the test is left out. */
bool domt_has_program(const char *name);

/* Returns a port of 127.0.0.1 that was free a moment ago, for programs that cannot choose a
 * port. */
uint16_t domt_free_port(void);

/* Returns the resident memory of a process in bytes. */
uint64_t domt_resident_bytes(pid_t process);

/* Compare two uint64_t, for qsort(3). */
int domt_compare_u64(const void *one, const void *other);
int domt_compare_double(const void *one, const void *other);

#endif
