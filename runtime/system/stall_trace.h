/* A trace of a stall: what all threads did up to it, in the file of profile.stallFile. */
#ifndef DOMI_RUNTIME_SYSTEM_STALL_TRACE_H
#define DOMI_RUNTIME_SYSTEM_STALL_TRACE_H

#include <stdint.h>

struct domus_system;

#define DOMI_STALL_TRACE_EVERY_NS UINT64_C(60000000000) /* at most one file in 60 s */
#define DOMI_STALL_TRACE_BEFORE_NS                                                                 \
    UINT64_C(10000000000) /* older records are left out: those that ended 10 s before */
#define DOMI_STALL_TRACE_BYTES_MAX (UINT64_C(64) << 20) /* bytes of a file; the rest is cut */

/* Write the file, if the configuration names one, spans are recorded, and the last one was not
 * written just now; the log tells of it. The monitor, which looks at nothing else meanwhile. */
void domi_stall_trace_write(struct domus_system *system, uint64_t now_ns);

#endif
