/* A system of two threads in a memory cgroup made of files: its limit is a gigabyte, and a test
 * says how much is used. There is one such system at a time. */
#ifndef DOMT_PRESSED_H
#define DOMT_PRESSED_H

#include "tests/runtime/running.h"
#include "tests/support/tree.h"

/* The directory in place of the root in which the system finds `/proc` and `/sys`; its cgroup is
 * `a`, of v2. */
extern domt_tree domt_pressed_tree;

/* Start the system with a tenth of the memory used, a look every 5 ms, a pool `work`, and a
 * listener `echo` that no actor serves yet. Memory is measured if `enabled`. */
domus_system *domt_pressed_start(bool enabled, const domus_hooks *hooks);
void domt_pressed_end(void);

/* Set how much of the limit is used. The library holds all of it, or all but `foreign_percent` of
 * the limit. */
void domt_pressed_use(uint64_t percent);
void domt_pressed_use_with(uint64_t percent, uint64_t foreign_percent);
domus_memory domt_pressed_memory(void);

/* Start the system and keep the lines that it logs. domt_pressed_lines() returns how many of them
 * contain `part`. */
domus_system *domt_pressed_start_logged(bool enabled);
uint32_t domt_pressed_lines(const char *part);

/* From now on an actor on `thread` spawns, every 2 ms, another one with so much state that it takes
 * heap, and stops it. domt_pressed_spawn_error() returns the error of the last spawn; 0 also before
 * the first one. */
void domt_pressed_spawn_large(uint32_t thread);
int domt_pressed_spawn_error(void);

/* Serve an echo; connect to it, send it a byte, and wait until the byte comes back. */
void domt_pressed_serve(void);
int domt_pressed_connect(void);
void domt_pressed_say(int fd);
bool domt_pressed_hears(int fd, int ms);

#endif
