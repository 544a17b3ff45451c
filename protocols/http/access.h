/* The queue of an access log, and the functions that write its lines.
 *
 * The queue has several rings. A thread always uses the same ring, so it mostly has it for itself;
 * a flag keeps a second thread out, which then drops its line rather than wait. One reader takes
 * lines from all rings. A ring holds complete lines only: `head` moves on only after a complete
 * one. */
#ifndef DOMI_PROTOCOLS_HTTP_ACCESS_H
#define DOMI_PROTOCOLS_HTTP_ACCESS_H

#include <domus/http_access.h>

#include <stdalign.h>

#define DOMI_HTTP_ACCESS_LINE_MAX 6144u /* bytes of a line of an access log, at most */

typedef struct domi_http_access_ring {
    alignas(64) uint64_t head; /* bytes that were written into the ring so far */
    bool is_taken;             /* a thread is putting a line into the ring */
    char *bytes;               /* memory of the ring; NULL: no thread has used the ring yet */
    alignas(64) uint64_t tail; /* bytes that were read from the ring so far */
} domi_http_access_ring;

typedef struct domi_http_access_queue {
    uint32_t ring_bytes;
    bool is_open;     /* an actor writes the lines of this queue, so no second one may begin */
    uint64_t dropped; /* number of lines of the log that were dropped */
    uint32_t next;    /* index of the ring from which the next lines are read */
    domi_http_access_ring rings[DOMUS_HTTP_ACCESS_QUEUES];
} domi_http_access_queue;

/* Get the queue of an access log; the first call makes it. Returns NULL without memory. */
domi_http_access_queue *domi_http_access_get_queue(domus_http_access *access);

/* Add a line to the queue of an access log, or count it as dropped. */
void domi_http_access_put_line(domi_http_access_queue *queue, const char *line, size_t size);

/* Remove complete lines from the queue of an access log, as many as fit into `to`. Returns their
 * bytes. */
size_t domi_http_access_take_lines(domi_http_access_queue *queue, char *to, size_t room);

/* Count lines of the log as dropped: those in `lines`, or one line for which there was no
 * memory. */
void domi_http_access_count_dropped_lines(domi_http_access_queue *queue, const char *lines,
                                          size_t size);

/* The parts of a request that its line in the access log shows, copied when the request enters the
 * chain. */
typedef struct domi_http_access_note {
    domus_endpoint client;
    /* bytes of the request's target; `texts` has this and the other texts one behind the other */
    uint32_t target_size;
    uint32_t referer_size;
    uint32_t agent_size;
    char texts[];
} domi_http_access_note;

/* Write a line of the access log, with its line feed. `note` is NULL for bytes that are no request.
 * Returns the line's size. */
size_t domi_http_access_write_line(const domus_http_access *access,
                                   const domus_http_exchange *exchange,
                                   const domi_http_access_note *note, int64_t utc_s,
                                   char to[DOMI_HTTP_ACCESS_LINE_MAX]);

/* Returns how many bytes of a request's target a line of the log shows, at most. */
static inline uint32_t domi_http_access_max_target_shown(const domus_http_access *access)
{
    return access->target_max != 0 ? access->target_max : 1024;
}

#endif
