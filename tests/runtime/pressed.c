/* See the header. */
#include "tests/runtime/pressed.h"

#include "runtime/system.h"

#include <stdio.h>

#define MIB UINT64_C(1048576)

domt_tree domt_pressed_tree;
static domus_system *pressed;

void domt_pressed_use(uint64_t percent)
{
    char text[32];

    snprintf(text, sizeof text, "%llu\n", (unsigned long long)(percent * MIB * 10));
    domt_tree_write(&domt_pressed_tree, "sys/fs/cgroup/a/memory.current", text);
}

domus_system *domt_pressed_start(bool enabled, const domus_hooks *hooks)
{
    domus_listener_config listener = {.name = "echo", .address = "127.0.0.1:0", .backlog = 64};
    domus_config config = domt_config(2);
    char error[256];

    config.memory.interval_ns = 5 * DOMT_MS;
    config.memory.enabled = enabled;
    config.scheduler.mailbox_max = 65535;
    config.listeners = &listener;
    config.listener_count = 1;
    domt_tree_make(&domt_pressed_tree);
    domt_tree_write(&domt_pressed_tree, "proc/self/cgroup", "0::/a\n");
    domt_tree_write(&domt_pressed_tree, "sys/fs/cgroup/a/memory.max", "1048576000\n");
    domt_tree_write(&domt_pressed_tree, "sys/fs/cgroup/a/memory.stat", "inactive_file 0\n");
    domt_pressed_use(10);
    ck_assert_int_eq(domus_system_new_with(&config, hooks, error, sizeof error, &pressed), 0);
    pressed->pressure.root = domt_pressed_tree.root;
    ck_assert_int_eq(domus_system_start(pressed), 0);
    return pressed;
}

void domt_pressed_end(void)
{
    domt_end(pressed);
    domt_tree_remove(&domt_pressed_tree);
}

domus_memory domt_pressed_memory(void)
{
    domus_memory now;

    domus_system_memory(pressed, &now);
    return now;
}
