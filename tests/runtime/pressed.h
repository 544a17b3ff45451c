/* A system of two threads in a memory cgroup that is made of plain files: its limit is a gigabyte,
 * and the test sets how much of it is used. A test has one such system at a time. */
#ifndef DOMT_PRESSED_H
#define DOMT_PRESSED_H

#include "tests/runtime/running.h"
#include "tests/support/tree.h"

/* The directory below which the system finds `/proc` and `/sys`; there its cgroup is `a`, of
 * version 2. */
extern domt_tree domt_pressed_tree;

/* Start the system: a tenth of the memory limit is used, the system looks at memory every 5 ms, and
 * it has a pool `work` and a listener `echo` without actors. Memory is only measured if `enabled`
 * is true. */
domus_system *domt_pressed_start(bool enabled, const domus_hooks *hooks);
void domt_pressed_end(void);

/* Set how many percent of the memory limit are used. The library itself holds all of that, or all
 * but `foreign_percent` of the limit. */
void domt_pressed_set_used_percent(uint64_t percent);
void domt_pressed_set_used_and_foreign(uint64_t percent, uint64_t foreign_percent);
domus_memory domt_pressed_read_memory(void);

/* Start the system as domt_pressed_start() does, and keep the lines that it logs.
 * domt_pressed_count_lines() returns how many kept lines contain `part`. */
domus_system *domt_pressed_start_logged(bool enabled);
uint32_t domt_pressed_count_lines(const char *part);

/* Spawn an actor on `thread` that every 2 ms spawns another actor, whose state is large enough to
 * need memory of the heap, and stops it. domt_pressed_error_of_spawns() returns the result of its
 * last spawn; 0 before the first one. */
void domt_pressed_begin_large_spawns(uint32_t thread);
int domt_pressed_error_of_spawns(void);

/* Serve an echo at the listener `echo` of the system. */
void domt_pressed_serve_echo(void);

/* Connect to the echo. Returns the socket. */
int domt_pressed_connect(void);

/* Send a byte to the echo. */
void domt_pressed_send_byte(int fd);

/* Returns whether a byte comes back from the echo within `ms` milliseconds. */
bool domt_pressed_is_byte_echoed(int fd, int ms);

#endif
