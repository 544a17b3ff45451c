/* A trace of a stall: what all threads did before and during it, in the file of
 * profile.stallFile. */
#ifndef DOMI_RUNTIME_SYSTEM_STALL_TRACE_H
#define DOMI_RUNTIME_SYSTEM_STALL_TRACE_H

#include <stdint.h>

struct domus_system;

#define DOMI_STALL_TRACE_EVERY_NS UINT64_C(60000000000) /* least time between two files: 60 s */
/* older records are left out of a file: those that ended more than 10 s before it is written */
#define DOMI_STALL_TRACE_BEFORE_NS UINT64_C(10000000000)
#define DOMI_STALL_TRACE_BYTES_MAX (UINT64_C(64) << 20) /* most bytes of a file */

/* Write the file of profile.stallFile, and log that. Nothing is written without that key, while
 * spans are not recorded, or if the last file was written just now. Called by the monitor, which
 * looks at nothing else meanwhile. */
void domi_stall_trace_write(struct domus_system *system, uint64_t now_ns);

#endif
