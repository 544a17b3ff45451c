/* Real systems for tests, with functions that make, start, use, read and end one in a line each.
 *
 * domt_end_system() checks what must hold in every test: all channels were drained, and no thread
 * slept until the cap while it had work. Handlers run on the system's threads, so they count into
 * atomics, and the test asserts the sums. */
#ifndef DOMT_RUNNING_H
#define DOMT_RUNNING_H

#include <domus/domus.h>

#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <stdatomic.h>

#define DOMT_MS UINT64_C(1000000)

/* Returns the default configuration with this number of threads. They are not pinned, because tests
 * share few CPUs. */
domus_config domt_config_of_threads(uint32_t threads);

/* Functions for on_mount and on_stop of a behaviour, which count in domt_mounted and domt_stopped
 * how many actors were mounted and stopped. */
extern _Atomic uint64_t domt_mounted, domt_stopped;
int domt_count_mount(domus_stack *stack, void *self);
void domt_count_stop(domus_stack *stack, void *self);

/* Handlers for behaviours of tests: domt_on_read_echo() sends back the bytes that a channel has
 * read, the others do nothing with a message or an answer. */
int domt_on_read_echo(domus_stack *stack, void *self, const void *payload);
int domt_ignore_message(domus_stack *stack, void *self, const void *payload);
int domt_ignore_answer(domus_stack *stack, void *self, const domus_answer *answer);

/* Make and start a system: with this configuration, or with that of domt_config_of_threads(). A
 * failure fails the test. */
domus_system *domt_start_system(const domus_config *config);
domus_system *domt_start_system_of_threads(uint32_t threads);

/* Stop and free a system. Check that all its channels were drained, and that no thread slept until
 * the cap while it had work. */
void domt_end_system(domus_system *system);

domus_address domt_spawn(domus_system *system, uint32_t thread, const domus_behaviour *behaviour,
                         const void *state);

/* Spawn a detached actor without a state, from the calling foreign thread. */
domus_address domt_spawn_detached(domus_system *system, const domus_behaviour *behaviour);

/* Listen at any port of 127.0.0.1 for channels of this behaviour, by an actor on thread 0. Returns
 * the endpoint. `channel` must live as long as the system, and only one system at a time can be
 * served in this way. */
domus_endpoint domt_serve_channel_at_any_port(domus_system *system, const domus_behaviour *channel);

/* domt_add_front_listener() adds the listener `front`, at any port of 127.0.0.1, to a
 * configuration. domt_serve_front_listener() serves it with this behaviour and state, and returns
 * the port.
 */
void domt_add_front_listener(domus_config *config);
uint16_t domt_serve_front_listener(domus_system *system, const domus_behaviour *behaviour,
                                   const void *state);

void domt_send_notice(domus_system *system, domus_address to, const domus_type *type,
                      const void *payload);

/* Returns the counters of one thread of a system, or the sums over all its threads. */
domus_profile domt_profile_of_thread(const domus_system *system, uint32_t thread);
domus_profile domt_profile_of_all_threads(const domus_system *system);

uint64_t domt_now_ns(void);
void domt_pause_ns(uint64_t ns);

/* Returns how many entries a directory has. For /proc/self/fd this is the number of descriptors
 * that this process has open. */
uint32_t domt_count_directory_entries(const char *directory);

/* Wait until the condition holds; it is tested every 0.2 ms, and the test fails after `seconds`. */
#define DOMT_WAIT_FOR(seconds, condition)                                                          \
    do {                                                                                           \
        uint64_t until_ns_ = domt_now_ns() + (seconds)*UINT64_C(1000000000);                       \
        while (!(condition)) {                                                                     \
            ck_assert_msg(domt_now_ns() < until_ns_, "waited in vain for: %s", #condition);        \
            domt_pause_ns(200000);                                                                 \
        }                                                                                          \
    } while (0)

#endif
