/* A system of two threads in a memory cgroup made of files: a gigabyte, of which a test says how
 * much is used. One at a time. */
#ifndef DOMT_PRESSED_H
#define DOMT_PRESSED_H

#include "tests/runtime/running.h"
#include "tests/support/tree.h"

/* What stands before the system's `/proc` and `/sys`; the cgroup is `a`, of v2. */
extern domt_tree domt_pressed_tree;

/* Started with a tenth used, a look every 5 ms, and a listener `echo` that nobody serves yet.
 * `enabled`: memory is measured. */
domus_system *domt_pressed_start(bool enabled, const domus_hooks *hooks);
void domt_pressed_end(void);

void domt_pressed_use(uint64_t percent);
domus_memory domt_pressed_memory(void);

#endif
