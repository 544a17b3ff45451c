/* The two ways in which a trace is written: of a system, with memory that is allocated for it, and
 * of the process after a crash, with memory that was there before.
 *
 * In both each thread is copied and then written, one after the other, so the threads of a trace
 * end at slightly different times. */
#include "base/clock.h"
#include "base/memory.h"
#include "runtime/os/raw_files.h"
#include "runtime/trace/perfetto.h"

#include <domus/trace.h>

#include <errno.h>

static uint64_t read_monotonic_ns(void)
{
    struct timespec now = domi_clock_deadline_after(0);

    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Returns how many places the largest ring among the recorders of `owner` has; 0: it has no
 * recorder. */
static uint64_t count_places_of_largest_ring(const void *owner)
{
    uint64_t most = 0;
    uint32_t index = 0;

    for (domi_recorder *at; (at = domi_recorder_next_of_owner(owner, &index)) != NULL;) {
        if (at->mask + 1 > most)
            most = at->mask + 1;
    }
    return most;
}

/* Write the records of all recorders of `owner` to a trace. `records` has room for each ring; NULL:
 * each recorder's own memory is used. */
static void write_records_of_owner(domi_perfetto *perfetto, const void *owner, uint64_t since_ns,
                                   domi_record *records)
{
    domi_record open[DOMI_RECORD_DEPTHS];
    uint32_t index = 0;

    for (domi_recorder *at; (at = domi_recorder_next_of_owner(owner, &index)) != NULL;) {
        domi_record *to = records != NULL ? records : at->scratch;
        if (perfetto->error != 0)
            return;
        domi_recorder_copy_open_things(at, open);
        uint32_t count = domi_recorder_copy_records(at, since_ns, to);
        domi_perfetto_write_thread(perfetto, at, to, count, open);
    }
}

int domus_trace_write(const struct domus_system *system, uint64_t since_ns, domus_trace_sink *sink,
                      void *context)
{
    size_t bytes = (size_t)count_places_of_largest_ring(system) * sizeof(domi_record);

    if (bytes == 0)
        return -ENODATA;
    domi_record *records = domi_memory_map_pages(bytes);
    domi_perfetto *perfetto = domi_memory_new_bytes(sizeof *perfetto);
    int result = -ENOMEM;
    if (records != NULL && perfetto != NULL) {
        domi_perfetto_begin_trace(perfetto, sink, context, program_invocation_short_name,
                                  read_monotonic_ns());
        write_records_of_owner(perfetto, system, since_ns, records);
        result = domi_perfetto_end_trace(perfetto);
    }
    domi_memory_free(perfetto);
    if (records != NULL)
        domi_memory_unmap_pages(records, bytes);
    return result;
}

/* ---- After a crash --------------------------------------------------------------------------- */

/* Write bytes of a trace to a descriptor. It is called as a domus_trace_sink. */
static int write_bytes_to_descriptor(void *fd, const void *bytes, size_t length)
{
    return domi_write_all_bytes(*(const int *)fd, bytes, length);
}

int domus_trace_crash_write(int fd)
{
    /* the trace is static, because the stack of a signal handler may be small; only one thread
     * comes to this point */
    static domi_perfetto perfetto;
    int kept = errno;
    int result = -EBUSY;

    if (domi_recorders_begin_crash()) {
        result = -ENODATA;
        if (count_places_of_largest_ring(NULL) != 0) {
            domi_perfetto_begin_trace(&perfetto, write_bytes_to_descriptor, &fd,
                                      program_invocation_short_name, read_monotonic_ns());
            write_records_of_owner(&perfetto, NULL, 0, NULL);
            result = domi_perfetto_end_trace(&perfetto);
        }
    }
    errno = kept;
    return result;
}
