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

#define DOMI_EPOLL_REPORTS_MAX 64 /* most reports of one call of epoll_wait(2) */

typedef struct domi_epoll_buffer {
    void *data;    /* start of the memory of a provided buffer */
    uint32_t size; /* size of that memory in bytes */
} domi_epoll_buffer;

typedef struct domi_epoll_entry domi_epoll_entry;

typedef struct domi_epoll {
    domi_interests interests;  /* the events for which each descriptor is watched (interest.h) */
    domi_epoll_entry *entries; /* operations that are queued (epoll.c) */
    domi_gathered *gathered;   /* places for gathered sends, one for each entry */
    uint32_t entry_count;      /* number of entries in use */
    uint32_t entry_capacity;   /* number of entries for which there is room */

    domi_completion_queue queue;
    uint32_t full; /* number of completions from which on no more reports are handled */

    domi_epoll_buffer *buffers; /* all provided buffers, by index */
    /* indices of the buffers that receives may take, the last one first */
    uint16_t *free;
    uint16_t *staged;      /* indices of the buffers that were given and not published yet */
    uint32_t free_count;   /* number of entries of `free` */
    uint32_t staged_count; /* number of entries of `staged` */

    /* the events that the last epoll_wait(2) returned */
    struct epoll_event reports[DOMI_EPOLL_REPORTS_MAX];
    uint32_t report_next;  /* index of the first report that is not handled yet */
    uint32_t report_count; /* number of entries of `reports` in use */
    bool waits_in_ms;      /* the kernel has no epoll_pwait2(2) */
    int failed;            /* the errno that every enter returns; 0: the ring works */
} domi_epoll;

/* Queue a completion. Without memory for it, it is lost, and so the ring has failed. */
void domi_epoll_complete(domi_epoll *ring, uint64_t user_data, int result, uint32_t flags,
                         uint16_t buffer);

/* End an operation with `result`: domi_epoll_end_input() the one that waits for input,
 * domi_epoll_end_output() the send that waits. */
void domi_epoll_end_input(domi_epoll *ring, domi_interest *interest, int result);
void domi_epoll_end_output(domi_epoll *ring, domi_interest *interest, int result);

/* Ask the kernel for reports, and wait for the first one at most `timeout_ns`. All reports of the
 * last call must have been handled. An interruption brings no report. */
void domi_epoll_look(domi_epoll *ring, uint64_t timeout_ns);

/* Handle the reports of the last domi_epoll_look(), until the queue of completions is full. */
void domi_epoll_handle_reports(domi_epoll *ring);

#endif
