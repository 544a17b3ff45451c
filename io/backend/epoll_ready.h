/* The ring of the epoll backend, and how reports of the kernel become completions.
 *
 * The kernel reports which descriptors are ready. Each report is handled by one of these functions
 * within a bound, so that a busy descriptor cannot hold up the others: a receive brings at most 8
 * pieces or datagrams, an accept at most 16 connections. A report is only a hint: no call here ever
 * waits, so a report that comes too late does no harm. Owner thread. */
#ifndef DOMI_IO_BACKEND_EPOLL_READY_H
#define DOMI_IO_BACKEND_EPOLL_READY_H

#include "io/backend/completion_queue.h"
#include "io/backend/gathered.h"
#include "io/backend/interest.h"

#include <sys/epoll.h>

#define DOMI_EPOLL_REPORTS_MAX 64 /* most reports that one call of epoll_wait(2) brings */

typedef struct domi_epoll_buffer {
    void *data;    /* start of the memory of a provided buffer */
    uint32_t size; /* size of the memory of that provided buffer in bytes */
} domi_epoll_buffer;

typedef struct domi_epoll_entry domi_epoll_entry;

typedef struct domi_epoll {
    /* the interests of the epoll backend: the events for which each descriptor is watched
     * (interest.h) */
    domi_interests interests;
    /* operations that wait for the next enter of the epoll backend (epoll.c) */
    domi_epoll_entry *entries;
    /* places for the messages of gathered sends, one for each queued operation (gathered.h) */
    domi_gathered *gathered;
    uint32_t entry_count;    /* number of queued operations in `entries` */
    uint32_t entry_capacity; /* number of queued operations for which `entries` has room */

    domi_completion_queue queue;
    /* number of waiting completions from which on no more reports of epoll are handled */
    uint32_t full;

    domi_epoll_buffer *buffers; /* all provided buffers of the thread, by index */
    /* indices of the provided buffers that receives may take, the last one first */
    uint16_t *free;
    /* indices of the provided buffers that were given back and not published yet */
    uint16_t *staged;
    uint32_t free_count;   /* number of provided buffers in `free` */
    uint32_t staged_count; /* number of provided buffers in `staged` */

    /* the events that the last epoll_wait(2) returned */
    struct epoll_event reports[DOMI_EPOLL_REPORTS_MAX];
    uint32_t report_next;  /* index of the first report that is not handled yet */
    uint32_t report_count; /* number of reports that the last epoll_wait(2) returned */
    bool waits_in_ms; /* the kernel has no epoll_pwait2(2), so waits are rounded to milliseconds */
    int failed;       /* the errno that every enter of this ring returns; 0: the ring works */
} domi_epoll;

/* Queue the completion of an operation. If there is no memory for it, the completion is lost, and
 * so the ring has failed. */
void domi_epoll_queue_completion(domi_epoll *ring, uint64_t user_data, int result, uint32_t flags,
                                 uint16_t buffer);

/* End an operation that waits for a descriptor with `result`: domi_epoll_end_input_operation() ends
 * the one that waits for input, domi_epoll_end_waiting_send() the send that waits for room. */
void domi_epoll_end_input_operation(domi_epoll *ring, domi_interest *interest, int result);
void domi_epoll_end_waiting_send(domi_epoll *ring, domi_interest *interest, int result);

/* Ask the kernel by epoll_wait(2) which descriptors are ready, and wait for the first report at
 * most `timeout_ns`. All reports of the last call must have been handled. An interruption brings no
 * report. */
void domi_epoll_fetch_reports(domi_epoll *ring, uint64_t timeout_ns);

/* Handle the reports of the last domi_epoll_fetch_reports(), until the queue of completions is
 * full. */
void domi_epoll_handle_reports(domi_epoll *ring);

#endif
