/* How short memory is, and what the system does about it (`memory` in config/domus.yaml).
 *
 * What is measured is the memory of the process's cgroup against its limit (v1 or v2, without file
 * cache), and the process's resident set against memory.limit; where there is neither limit,
 * against the memory of the machine. What slabs hold free for use is not counted. It is measured
 * every memory.interval while threads are awake, and as the system grows.
 *
 * From memory.high on nothing more is let in: acceptors pause, channels stop reading (TCP slows
 * their peers), and what foreign threads send is refused with -EBUSY (domus_outside_notice(),
 * _ask(), _publish()). From memory.critical on, asks and notices are refused with -EBUSY
 * everywhere: domus_notice() returns it, an ask resumes with it. Replies, exceptions and events
 * never are, nor what is passed on (domus_forward(), domus_kept_forward()). Halfway between
 * memory.critical and the limit whatever would take more memory fails, asks and notices with
 * -EBUSY, all else with -ENOMEM: the process is not killed. A level ends five percent of itself
 * below where it begins, and all that paused goes on by itself. Who was refused tries again later,
 * by a timer.
 *
 * Messages go back to the kernel when they are handled; what actors, conversations, timers and
 * watches took once is kept for the next ones (it is not counted while it is free). So
 * these end a quarter of the way from memory.critical to the limit: what would need more of them
 * than there were fails with -ENOMEM, and messages have the rest. */
#ifndef DOMUS_MEMORY_H
#define DOMUS_MEMORY_H

#include <domus/export.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_system;

typedef enum domus_memory_level {
    DOMUS_MEMORY_NORMAL,
    DOMUS_MEMORY_HIGH,
    DOMUS_MEMORY_CRITICAL,
} domus_memory_level;

/* As last measured. The structure grows only at its end. */
typedef struct domus_memory {
    domus_memory_level level;
    uint64_t used_bytes;  /* of what is fullest beside its limit */
    uint64_t limit_bytes; /* its limit; 0: nothing is measured */
    uint64_t highs;       /* how often memory.high was reached */
    uint64_t criticals;   /* ... and memory.critical */
    uint64_t fulls;       /* ... and where allocations fail */
    uint64_t looks;       /* measurements */
} domus_memory;

/* Thread-safety: any thread, from new until domus_system_free(). */
DOMUS_API void domus_system_memory(const struct domus_system *system, domus_memory *ret_memory);

#ifdef __cplusplus
}
#endif

#endif
