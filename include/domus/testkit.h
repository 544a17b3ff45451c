/* A test kit: a whole system in one OS thread, on virtual time, in an order that a seed picks.
 *
 * The system has as many threads as its configuration says, but they are simulated: no OS thread is
 * made, no ring of the kernel, no socket, and nothing sleeps. A step is one phase of one thread:
 * io, channels, or state, in which each actor that was ready has one run; or it is one turn that a
 * runner of a pool gives (domus/pools.h; spares do not begin). The thread or runner that moves next
 * is drawn from the seed, and so is what a policy leaves to chance, and nothing else is left to
 * chance: the same seed and the same calls give the same run, byte for byte in its trace, on every
 * machine. Another seed gives another interleaving, so a test that runs for many seeds meets the
 * races that a real machine shows once a month:
 *
 *     static int test(uint64_t seed, void *context) { ... a kit of this seed, 0 when all is well }
 *
 *     uint64_t seed;
 *     int result = domus_testkit_sweep(1, 1000, test, NULL, &seed);
 *
 * and `DOMUS_SEED=17 ./program` runs only the seed that failed.
 *
 * Time is virtual. It stands still while any thread has something to do, and goes on, from timer to
 * timer, only in domus_testkit_advance(), in the expectations of probes, and in
 * domus_testkit_stop(): an hour passes in no time.
 *
 * A probe is an actor that the test speaks through: it keeps whatever it receives, of any type and
 * as long as there is memory, until the test expects it, and sends, asks and replies what the test
 * tells it to.
 *
 * Channels work as in a real system, in a simulated network that the test can make slow and
 * unreliable; scripted peers are the other side (domus/testkit_net.h). A descriptor of the kernel
 * means nothing there, so domus_watch_fd() answers -EOPNOTSUPP. A kit has no blocking work
 * (-EOPNOTSUPP) and no deadlines of phases (a phase takes no time). Actors must not block, read
 * clocks of their own or draw chance of their own; else the same seed is another run.
 *
 * Thread-safety of all functions here: one thread at a time for each kit and its probes; never from
 * a handler (-EBUSY, or nothing happens). Kits know nothing of each other. */
#ifndef DOMUS_TESTKIT_H
#define DOMUS_TESTKIT_H

#include <domus/domus.h>
#include <domus/endpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A test kit, which is a simulated system; and a probe, which is an actor of it that the test
 * plays. */
typedef struct domus_testkit domus_testkit;
typedef struct domus_probe domus_probe;

/* The virtual time in ns at which a test kit begins. */
#define DOMUS_TESTKIT_START_NS UINT64_C(1000000000)

/* The number of simulated threads if the configuration does not say it (system.threads 0). */
#define DOMUS_TESTKIT_THREADS 3u

/* Most steps that may be taken without any time passing; beyond it actors are taken to keep each
 * other busy for ever. */
#define DOMUS_TESTKIT_STEPS_MAX 1000000u

/* The number of lines that the trace of a kit keeps, which are the newest ones. */
#define DOMUS_TESTKIT_TRACE_MAX 4096u

/* Most bytes of a line of domus_testkit_replay() and domus_testkit_error(), NUL included. */
#define DOMUS_TESTKIT_TEXT_MAX 512u

/* Make a kit; its system runs as after domus_system_start(). `config` is copied; NULL: the
 * defaults. Most of it has an effect. These parts have none: io.backend, memory, the keys that tune
 * real threads (system.cpus, scheduler.ioRatio, idle, steal.minRun, steal.patience), stalls, and
 * the socket options that no simulated socket has. If the numbers of io.buffers or of io's entries
 * are the defaults, small ones take their place (64 buffers of 256 bytes, 64 entries and 256
 * completions), so that streams come in many pieces and queues fill. To meet finer interleavings,
 * set scheduler.messages_per_run_max low: 1 is the least.
 *
 * Ownership: the caller's, until domus_testkit_free().
 * Returns 0; -EINVAL (`error` has one line, as of domus_config_check()); -ENOMEM. */
DOMUS_API int domus_testkit_new(const domus_config *config, uint64_t seed, char *error,
                                size_t error_size, domus_testkit **ret_kit);

/* Stop the system (as domus_testkit_stop(), if that was not called) and free kit, system and
 * probes. NULL is allowed. */
DOMUS_API void domus_testkit_free(domus_testkit *kit);

/* Returns the kit's system, for domus_outside_*() (between steps), domus_system_profile() and all
 * other functions that take a system, except domus_system_free(). Messages that are put take effect
 * in the steps that follow.
 * Ownership: the kit's. */
DOMUS_API domus_system *domus_testkit_system(domus_testkit *kit);

/* Take one step. Returns true if there was one to take; false if nothing but timers is left. */
DOMUS_API bool domus_testkit_step(domus_testkit *kit);

/* Take steps until nothing is left but timers. No time passes.
 *
 * Returns 0; -ETIMEDOUT after DOMUS_TESTKIT_STEPS_MAX steps: domus_testkit_error() says which
 * actors still run. */
DOMUS_API int domus_testkit_run(domus_testkit *kit);

/* Let `by_ns` pass: all that is due in that time happens in its order and at its time, and
 * afterwards nothing is left but later timers.
 *
 * Returns 0; -ETIMEDOUT as of domus_testkit_run(), and the time stands where that happened; -ERANGE
 * when time would end. */
DOMUS_API int domus_testkit_advance(domus_testkit *kit, uint64_t by_ns);

/* A function that finds the addresses of a name in a test kit. It writes at most `max` endpoints,
 * whose port is 0, to `ret_endpoints`. Returns their number; -ENODATA if the name has none; another
 * negative errno. */
typedef int domus_testkit_resolver(void *context, const char *name, domus_endpoint *ret_endpoints,
                                   uint32_t max);

/* Let domus_connect() find names by `resolver` from now on; without it names fail with -EOPNOTSUPP.
 * The function runs within the step of the thread that asks, each time when a name is asked for.
 * NULL: there is no resolver any more. */
DOMUS_API void domus_testkit_resolve_with(domus_testkit *kit, domus_testkit_resolver *resolver,
                                          void *context);

/* Returns the time at which the next timer is due, or something happens in the simulated network,
 * for those who drive several kits on one time line. The time is known when nothing but timers is
 * left: after domus_testkit_run() and domus_testkit_advance(). UINT64_MAX: there is nothing to wait
 * for. */
DOMUS_API uint64_t domus_testkit_due_ns(const domus_testkit *kit);

/* Let `by_ns` pass at once, as for a process that was stopped and goes on: all that has become due
 * happens afterwards, at the new time. Takes steps until nothing but later timers is left.
 * Returns as domus_testkit_advance(). */
DOMUS_API int domus_testkit_jump(domus_testkit *kit, uint64_t by_ns);

/* Returns the virtual time, which actors see by domus_now_ns(). */
DOMUS_API uint64_t domus_testkit_now_ns(const domus_testkit *kit);

/* Stop the system as domus_system_stop() does: drain, end all threads, run on_stop of every actor;
 * its steps are drawn from the seed too. Afterwards there are no steps; profile, trace and what
 * probes have received can still be looked at.
 *
 * Returns how many channels were reset, as domus_system_stop() does. */
DOMUS_API int domus_testkit_stop(domus_testkit *kit);

/* Returns the trace: one line for each step that did something, and for each message that a probe
 * received:
 *
 *     17 1.000000000 thread 2 state of client#3, counter#0: runs 2, replies 1, notices 3
 *     18 1.250000000 probe 0 receives the ask increment
 *
 * A line begins with the number of the step and the time in seconds. The line of a thread has its
 * phase, the state actors that ran, numbered in the order in which they first ran, and the changes
 * of the thread's counters, in the words of domus_profile. Probes are numbered in the order in
 * which they were made. A trace holds no pointers and no real time. Only the newest
 * DOMUS_TESTKIT_TRACE_MAX lines are kept; if there were more, the first line says how many are
 * gone.
 *
 * Ownership: the kit's; valid until the next call of this function. */
DOMUS_API const char *domus_testkit_trace(domus_testkit *kit);

/* Returns one line about the last call, on the kit or one of its probes, that failed; "" at first.
 * Ownership: the kit's. */
DOMUS_API const char *domus_testkit_error(const domus_testkit *kit);

/* --- seeds ----------------------------------------------------------------------------------- */

/* Returns the seed of a test: the value of DOMUS_SEED in the environment (decimal, or 0x...), or
 * `preset` if that is not set.
 * Thread-safety: any thread. */
DOMUS_API uint64_t domus_testkit_seed(uint64_t preset);

/* Run `test` for the seeds `first` .. `first + count - 1`, until one returns other than 0; if
 * DOMUS_SEED is set, only for that seed. `ret_seed` (may be NULL) gets the last seed that ran.
 * Returns what the last test returned. Thread-safety: any thread. */
DOMUS_API int domus_testkit_sweep(uint64_t first, uint64_t count,
                                  int (*test)(uint64_t seed, void *context), void *context,
                                  uint64_t *ret_seed);

/* Write the command that runs this program with `seed` again, `DOMUS_SEED=17 ./program`, into
 * `text` (NUL-terminated, cut at `size`). Returns `text`. Thread-safety: any thread. */
DOMUS_API const char *domus_testkit_replay(uint64_t seed, char *text, size_t size);

/* --- probes ---------------------------------------------------------------------------------- */

/* Make a probe: an actor on the next thread, round robin. It can be sent to at once.
 *
 * Ownership: the kit's, until domus_testkit_free(). It stops as any actor does (domus_stop(),
 * domus_outside_stop(), the end of the system); what it had received can be expected even then.
 * Returns 0; -ENOMEM; -ESHUTDOWN after domus_testkit_stop(). */
DOMUS_API int domus_probe_new(domus_testkit *kit, domus_probe **ret_probe);

DOMUS_API domus_address domus_probe_address(const domus_probe *probe);

/* Take steps, and let time pass when there are none, until the probe has received a message; then
 * take the message: `ret_payload` (may be NULL) gets type->size bytes. Then the caller owns what
 * the payload owns; without `ret_payload` that is released. Asks, notices, events and replies to
 * domus_probe_ask() are all expected like this, in the order in which the probe handled them.
 *
 * Returns 0; -EBADMSG when something else came first (it stays the first); -ETIMEDOUT when nothing
 * had come after `within_ns` of virtual time, or as domus_testkit_run(); -ENOMEM when there was no
 * memory for something that came. In each case domus_testkit_error() has a line. */
DOMUS_API int domus_probe_expect(domus_probe *probe, const domus_type *type, uint64_t within_ns,
                                 void *ret_payload);

/* Expect, as domus_probe_expect() does, that an ask of the probe fails with `error` (a negative
 * errno). */
DOMUS_API int domus_probe_expect_error(domus_probe *probe, int error, uint64_t within_ns);

/* Let `within_ns` of virtual time pass, in which the probe receives nothing.
 * Returns 0; -EBADMSG at once when it had or received a message (which stays); -ETIMEDOUT as of
 * domus_testkit_run(). */
DOMUS_API int domus_probe_expect_nothing(domus_probe *probe, uint64_t within_ns);

/* Returns the sender of the message that was expected last. It is nobody for events, failures, and
 * messages from outside. */
DOMUS_API domus_address domus_probe_sender(const domus_probe *probe);

/* Send a notice as the probe: the receiver's domus_sender() is domus_probe_address(). Rules and
 * errors as of domus_notice(); -ESTALE also when the probe itself has stopped. */
DOMUS_API int domus_probe_send(domus_probe *probe, domus_address to, const domus_type *type,
                               const void *payload);

/* Ask as the probe, like domus_ask() and domus_ask_within(). The reply is expected by
 * domus_probe_expect(), a failure by domus_probe_expect_error(). Several may be under way.
 *
 * Returns 0: it will be answered; -ENOMEM; -EMSGSIZE; -ESTALE when the probe itself has stopped. */
DOMUS_API int domus_probe_ask(domus_probe *probe, domus_address to, const domus_type *type,
                              const void *payload);

DOMUS_API int domus_probe_ask_within(domus_probe *probe, domus_address to, const domus_type *type,
                                     const void *payload, uint64_t timeout_ns);

/* Answer the oldest ask that was expected and has no answer yet, or let it fail with `error` (a
 * negative errno). Asks that were not answered fail with -ESTALE when the probe stops. All asks
 * that a probe made or has to answer count as its conversations (scheduler.conversationsMax).
 *
 * Returns 0; -EINVAL when there is none (or `error` is none); -EMSGSIZE; -ENOENT when nobody waits
 * for the answer any more (it is the next one's turn then); -ESTALE when the probe has stopped. */
DOMUS_API int domus_probe_reply(domus_probe *probe, const domus_type *type, const void *payload);
DOMUS_API int domus_probe_fail(domus_probe *probe, int error);

#ifdef __cplusplus
}
#endif

#endif
