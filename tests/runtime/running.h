/* Real systems for tests: made, started, fed, read and ended in one line each.
 *
 * domt_end() holds what every test has to hold: all channels drained, and nobody woke by the cap
 * and found work. Handlers run on the system's threads, so they count into atomics, and the test
 * asserts the sums. */
#ifndef DOMT_RUNNING_H
#define DOMT_RUNNING_H

#include <domus/domus.h>

#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <stdatomic.h>

#define DOMT_MS UINT64_C(1000000)

/* The default configuration with so many threads. They are not pinned, because tests
 * share few CPUs. */
domus_config domt_config(uint32_t threads);

/* Behaviours that have these as on_mount and on_stop count how many actors were
 * mounted and stopped. */
extern _Atomic uint64_t domt_mounted, domt_stopped;
int domt_count_mount(domus_stack *stack, void *self);
void domt_count_stop(domus_stack *stack, void *self);

/* Handlers that give back what a channel got, and that do nothing with a message or an answer. */
int domt_echo(domus_stack *stack, void *self, const void *payload);
int domt_ignore_message(domus_stack *stack, void *self, const void *payload);
int domt_ignore_answer(domus_stack *stack, void *self, const domus_answer *answer);

/* Make and start a system; the second with the configuration of domt_config(). */
domus_system *domt_start(const domus_config *config);
domus_system *domt_start_threads(uint32_t threads);

/* Stop and free a system, and hold what every test has to hold. */
void domt_end(domus_system *system);

domus_address domt_spawn(domus_system *system, uint32_t thread, const domus_behaviour *behaviour,
                         const void *state);

/* Spawn a detached actor without a state. */
domus_address domt_spawn_detached(domus_system *system, const domus_behaviour *behaviour);

/* Listen at any port of loopback for channels of this behaviour, for an actor on thread 0. Returns
 * where. `channel` is used as long as the system lives, and one system at a time is served so. */
domus_endpoint domt_serve(domus_system *system, const domus_behaviour *channel);

/* Give a configuration the listener `front`, at any port of loopback; serve it with this behaviour
 * and state. domt_serve_front() returns the port. */
void domt_listen(domus_config *config);
uint16_t domt_serve_front(domus_system *system, const domus_behaviour *behaviour,
                          const void *state);

void domt_notice(domus_system *system, domus_address to, const domus_type *type,
                 const void *payload);

/* The counters of one thread, and the sums over all. */
domus_profile domt_profile(const domus_system *system, uint32_t thread);
domus_profile domt_profile_all(const domus_system *system);

uint64_t domt_now_ns(void);
void domt_pause_ns(uint64_t ns);

/* How many entries a directory has; /proc/self/fd tells what is open in this process. */
uint32_t domt_entries(const char *directory);

/* Look every 0.2 ms; the test fails when it takes more than `seconds`. */
#define DOMT_WAIT_FOR(seconds, condition)                                                          \
    do {                                                                                           \
        uint64_t until_ns_ = domt_now_ns() + (seconds)*UINT64_C(1000000000);                       \
        while (!(condition)) {                                                                     \
            ck_assert_msg(domt_now_ns() < until_ns_, "waited in vain for: %s", #condition);        \
            domt_pause_ns(200000);                                                                 \
        }                                                                                          \
    } while (0)

#endif
