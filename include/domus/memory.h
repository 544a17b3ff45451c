/* How short memory is, and what the system does about it (`memory` in config/domus.yaml).
 *
 * What is measured is the memory of the process's cgroup against its limit (v1 or v2, without file
 * cache), and the process's resident set against memory.limit; where there is neither limit,
 * against the memory of the machine. What slabs hold free for use is not counted. It is measured
 * every memory.interval while threads are awake, and as the system grows.
 *
 * What is used is told apart. The library's own memory is what its threads have taken since they
 * run: messages, buffers, queued bytes, actors, and, where the cgroup's limit counts them (v2), the
 * kernel's socket buffers. All else is foreign: the application's memory, its neighbours' in the
 * cgroup, and what the system took at its start. The library's budget is memory.high of the limit
 * less the foreign memory, its last budget is memory.critical less the foreign memory; neither is
 * less than an eighth of the limit. What the library does goes by its own memory:
 *
 * - Above the budget nothing more is let in from outside: acceptors pause, and what foreign threads
 *   send is refused with -EBUSY (domus_outside_notice(), _ask(), _publish()). Channels whose peers
 *   have taken nothing, or less than a sixteenth of what waits for them, for memory.resetAfter are
 *   reset, those that hold most first, until it is below; their on_close gets -ENOBUFS. Other
 *   channels go on.
 * - Above the last budget asks and notices are refused with -EBUSY everywhere: domus_notice()
 *   returns it, an ask resumes with it. Replies, exceptions and events never are, nor what is
 *   passed on (domus_forward(), domus_kept_forward()). Each channel goes on reading, one piece at a
 *   time, so that a request that frees memory gets in.
 * - Halfway between memory.critical and the limit, whoever holds the memory, acceptors pause and
 *   whatever would take more memory fails, asks and notices with -EBUSY, all else with -ENOMEM. So
 *   what comes in through the library does not get the process killed; the application itself and
 *   its neighbours still can.
 *
 * Foreign memory alone is only logged, once, and when that is over. A level ends five percent of
 * its mark below where it begins, and all that paused goes on by itself. An actor that was refused
 * tries again later, by a timer.
 *
 * Bytes queued for peers have a bound for each thread, its part of memory.queued of the budget.
 * What a channel may have queued and still be read gets less as the bound fills up (an eighth of
 * what is free of its first half); the other half is kept for channels that have nothing queued. An
 * actor may still write up to channel.sendMax, and gets -ENOBUFS when three quarters of the bound
 * are reached; the last quarter takes answers of at most io.buffers.size to peers for which nothing
 * else waits. From there on, too, connections are reset whose peers take next to nothing, as above
 * the budget.
 *
 * Messages go back to the kernel when they are handled; what actors, conversations, timers and
 * watches took once is kept for the next ones (it is not counted while it is free). So these end a
 * quarter of the way from memory.critical to the limit, if the library is above its budget: what
 * would need more of them than there were fails with -ENOMEM, and messages have the rest. */
#ifndef DOMUS_MEMORY_H
#define DOMUS_MEMORY_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_system;

/* Of all that is used, against memory.high and memory.critical of the limit; or of the library's
 * own memory, against its budget and its last budget. */
typedef enum domus_memory_level {
    DOMUS_MEMORY_NORMAL,
    DOMUS_MEMORY_HIGH,
    DOMUS_MEMORY_CRITICAL,
} domus_memory_level;

/* As last measured. The structure grows only at its end. */
typedef struct domus_memory {
    domus_memory_level level;      /* of used_bytes, whoever holds them */
    uint64_t used_bytes;           /* of what is fullest beside its limit */
    uint64_t limit_bytes;          /* its limit; 0: nothing is measured */
    uint64_t highs;                /* how often memory.high was reached */
    uint64_t criticals;            /* ... and memory.critical */
    uint64_t fulls;                /* ... and where allocations fail */
    uint64_t looks;                /* measurements */
    domus_memory_level own_level;  /* of own_bytes against the two budgets: what the library does */
    uint64_t own_bytes;            /* of used_bytes, what the library holds */
    uint64_t foreign_bytes;        /* ... and the rest: the application, and its neighbours */
    uint64_t budget_bytes;         /* of own_bytes: beyond it nothing more is let in */
    uint64_t last_budget_bytes;    /* ... and beyond it asks and notices are refused */
    uint64_t channels_reset;       /* because memory was short, of all threads */
    uint64_t channels_reset_bytes; /* ... and what they held */
} domus_memory;

/* What a watch on memory brings: an event of domus_memory_type with this payload. The figures are
 * those of the last look. */
typedef struct domus_memory_change {
    domus_memory_level level;     /* of own_bytes and foreign_bytes together, whoever holds them */
    domus_memory_level own_level; /* of own_bytes: what the library does about it, see above */
    uint64_t limit_bytes;
    uint64_t own_bytes;
    uint64_t foreign_bytes;
} domus_memory_change;

DOMUS_API extern const domus_type domus_memory_type;

/* Hear of each change of one of both levels, by an event of domus_memory_type, so that the actor
 * may give up what it holds, or refuse what would make it hold more: to the library that is foreign
 * memory, of which only the application knows what can be missed. If memory is short already, the
 * first event comes at once. An event is never refused for want of memory; at most one of an actor
 * is under way, and it tells what is so when it is handled, so changes that follow on each other
 * quickly may be told as one. While all threads sleep a change may be told a second late. A watch
 * ends with its actor, and when it restarts.
 *
 * Thread-safety: from within a handler, with the stack that it was given.
 * Returns 0; -EALREADY when this actor watches; -ENOMEM. */
DOMUS_API int domus_watch_memory(domus_stack *stack);

/* Take the watch back: no event of it is handled after this. Returns 0; -ENOENT. */
DOMUS_API int domus_unwatch_memory(domus_stack *stack);

/* Thread-safety: any thread, from new until domus_system_free(). */
DOMUS_API void domus_system_memory(const struct domus_system *system, domus_memory *ret_memory);

#ifdef __cplusplus
}
#endif

#endif
