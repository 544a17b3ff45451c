/* Memory: how much of it is used, and what the system does when it is short (section `memory`
 * in config/domus.yaml).
 *
 * The system measures the memory of the process's cgroup against the cgroup's limit (v1 or v2,
 * without file cache), and the process's resident set against memory.limit; if there is neither
 * limit, against the memory of the machine. Free objects in the library's slabs are not counted. It
 * measures every memory.interval (100 ms) while threads are awake, and sooner as the system grows
 * or comes near the next mark.
 *
 * Used memory is either own or foreign. The library's own memory is what its threads have taken
 * since they run: messages, buffers, queued bytes, actors, and, where the cgroup's limit counts
 * them (v2), the kernel's socket buffers. All other memory is foreign: the application's memory,
 * that of other processes in the cgroup, and what the system took at its start. The library's
 * budget is memory.high of the limit less the foreign memory; its last budget is memory.critical of
 * the limit less the foreign memory. Neither is less than an eighth of the limit. The library acts
 * by its own memory:
 *
 * - Above the budget nothing more is let in from outside: acceptors pause, and messages of foreign
 *   threads are refused with -EBUSY (domus_outside_notice(), _ask(), _publish()). A channel is
 *   reset if its peer has taken nothing for memory.resetAfter, or less than a sixteenth of the
 *   bytes that wait for it. The channels that hold most are reset first, until own memory is below
 *   the budget; their on_close gets -ENOBUFS. Other channels go on.
 * - Above the last budget asks and notices are refused with -EBUSY everywhere: domus_notice()
 *   returns this error, and an ask resumes with it. Replies, exceptions, events and messages that
 *   are passed on (domus_forward(), domus_kept_forward()) are never refused. Each channel goes on
 *   reading, one piece at a time, so that a request that frees memory gets in.
 * - When own and foreign memory together are halfway between memory.critical and the limit,
 *   acceptors pause, and everything that needs more memory fails: asks and notices with -EBUSY,
 *   everything else with -ENOMEM. So the process is not killed for what comes in through the
 *   library; it can still be killed for memory that the application or other processes of the
 *   cgroup take.
 *
 * If memory is short only because of foreign memory, the library logs one line when this begins and
 * one when it ends. A level ends at 95 percent of the mark at which it begins, and everything that
 * paused goes on by itself. An actor that was refused tries again later, by a timer.
 *
 * Bytes that are queued for peers have a bound for each thread: all threads share memory.queued of
 * the budget in equal parts. The number of bytes that a channel may have queued while it is still
 * read becomes less as the thread's bound fills up: it is an eighth of what is free of the first
 * half of the bound. The second half is kept for channels that have nothing queued. An actor may
 * still write up to channel.sendMax, but gets -ENOBUFS when three quarters of the bound are used;
 * the last quarter takes answers of at most io.buffers.size bytes to peers for which nothing else
 * waits. The memory of a slice (domus/slice.h) counts once on a thread, however many peers it
 * waits for. When three quarters are used, channels whose peers take next to nothing are reset, as
 * above the budget.
 *
 * The memory of messages goes back to the kernel some time after they were handled. The memory
 * of actors, conversations, timers and watches is kept for the next ones (it is not counted
 * while it is free). So, if own memory is above the budget, the library makes no more room for
 * actors, conversations, timers and watches from a quarter of the way between memory.critical
 * and the limit on: then -ENOMEM is the answer when no free one is left, and messages have the
 * rest of the memory. */
#ifndef DOMUS_MEMORY_H
#define DOMUS_MEMORY_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_system;

/* A level of memory. The level of all used memory is measured against memory.high and
 * memory.critical of the limit; the level of own memory against the budget and the last budget. */
typedef enum domus_memory_level {
    DOMUS_MEMORY_NORMAL,
    DOMUS_MEMORY_HIGH,
    DOMUS_MEMORY_CRITICAL,
} domus_memory_level;

/* The figures of the last measurement. The structure grows only at its end, with a minor
 * version. */
typedef struct domus_memory {
    domus_memory_level level; /* level of all used memory, own and foreign (used_bytes) */
    /* bytes that are used under the limit that is nearest to being reached */
    uint64_t used_bytes;
    uint64_t limit_bytes; /* the limit that is nearest to being reached; 0: nothing is measured */
    uint64_t highs;       /* how often the level memory.high was reached */
    uint64_t criticals;   /* how often the level memory.critical was reached */
    uint64_t fulls;       /* how often the mark was reached beyond which allocations fail */
    uint64_t looks;       /* number of measurements of memory so far */
    domus_memory_level own_level; /* level of own memory (own_bytes) against the two budgets */
    uint64_t own_bytes;           /* the part of used_bytes that is own memory */
    uint64_t foreign_bytes;       /* the part of used_bytes that is foreign memory */
    /* the budget: own bytes above which nothing more is let in from outside */
    uint64_t budget_bytes;
    /* the last budget: own bytes above which asks and notices are refused */
    uint64_t last_budget_bytes;
    /* channels of all threads that were reset because memory was short */
    uint64_t channels_reset;
    uint64_t channels_reset_bytes; /* bytes that the channels of `channels_reset` held */
} domus_memory;

/* The payload of an event of domus_memory_type, which a watch on memory brings. The figures are
 * those of the last measurement. */
typedef struct domus_memory_change {
    domus_memory_level level;     /* level of own and foreign memory together */
    domus_memory_level own_level; /* level of own memory, by which the library acts */
    uint64_t limit_bytes;
    uint64_t own_bytes;
    uint64_t foreign_bytes;
} domus_memory_change;

DOMUS_API extern const domus_type domus_memory_type;

/* Watch memory: this actor gets an event of domus_memory_type at each change of one of the two
 * levels. Then it may give up memory that it holds, or refuse work for which it would need more;
 * this is foreign memory for the library, and only the application knows what it can do without. If
 * memory is short already, the first event comes at once. An event is never refused for lack of
 * memory. At most one event for each actor is under way, and it tells the levels at the time when
 * it is handled, so quick changes may be told as one. While all threads sleep, an event may come a
 * second late. A watch ends when its actor ends or restarts.
 *
 * Thread-safety: only from within a handler, with the stack that the handler was given.
 * Returns 0; -EALREADY when this actor watches memory already; -ENOMEM. */
DOMUS_API int domus_watch_memory(domus_stack *stack);

/* End this actor's watch on memory: no event of it is handled after this. Returns 0; -ENOENT when
 * there is no watch. */
DOMUS_API int domus_unwatch_memory(domus_stack *stack);

/* Count `bytes` as the library's own memory, instead of the `*counted` bytes that counted before
 * (at first 0), on the system to which this thread belongs. It is for stages whose connections take
 * memory from another library, by estimate (domus/tls.h does so): otherwise it is foreign memory,
 * and nobody is kept out because of it. Fewer bytes are never refused, and 0 ends it. On a thread
 * of no system nothing counts.
 *
 * Thread-safety: always the same thread for one `counted`.
 * Returns 0; -ENOMEM when memory is full: then `*counted` is as it was. */
DOMUS_API int domus_memory_count(uint64_t *counted, uint64_t bytes);

/* Get the figures of the last measurement. Thread-safety: any thread, from domus_system_new()
 * until domus_system_free(). */
DOMUS_API void domus_system_memory(const struct domus_system *system, domus_memory *ret_memory);

#ifdef __cplusplus
}
#endif

#endif
