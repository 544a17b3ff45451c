/* A trace of a stall: what all threads did before and during it, in the file of
 * profile.stallFile. */
#ifndef DOMI_RUNTIME_SYSTEM_STALL_TRACE_H
#define DOMI_RUNTIME_SYSTEM_STALL_TRACE_H

#include <stdint.h>

struct domus_system;

/* least time between two files with traces of stalls: 60 s */
#define DOMI_STALL_TRACE_EVERY_NS UINT64_C(60000000000)
/* records that ended more than 10 s before a file is written are left out of the file */
#define DOMI_STALL_TRACE_BEFORE_NS UINT64_C(10000000000)
/* most bytes of a file with the trace of a stall */
#define DOMI_STALL_TRACE_BYTES_MAX (UINT64_C(64) << 20)

/* Write the trace of a stall into the file of profile.stallFile, and log that. Nothing is written
 * without that key, while spans are not recorded, or if the last file was written just now. Called
 * by the monitor, which looks at nothing else meanwhile. */
void domi_stall_trace_write_file(struct domus_system *system, uint64_t now_ns);

#endif
