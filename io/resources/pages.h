/* The pages whose slices wait for peers on one thread.
 *
 * One page may wait for many peers: a value that all want, or a message that was encoded once.
 * Its memory is counted once on the thread, when the first slice of it is queued, until the last
 * one has left, and as a whole, because each slice keeps the whole page. So the sum is never
 * less than the memory that the queues of the thread hold. A table finds a page by its address.
 * Owner thread. */
#ifndef DOMI_IO_RESOURCES_PAGES_H
#define DOMI_IO_RESOURCES_PAGES_H

#include <domus/slice.h>

/* A page of which slices are in buffers of this thread. */
typedef struct domi_queued_page {
    const domus_page *page;
    struct domi_queued_page *next; /* the next page in the same list of the hash table */
    uint64_t bytes;                /* memory of the page */
    uint32_t buffers;              /* buffers that have slices of the page */
    uint32_t waiting;              /* buffers of these whose slices are counted as queued */
} domi_queued_page;

typedef struct domi_queued_pages {
    domi_queued_page **lists;
    uint32_t lists_count; /* a power of 2, or 0 */
    uint32_t count;       /* pages */
    uint64_t bytes;       /* memory of the pages whose slices wait to be sent */
    /* the most of `bytes` that counts against all channels; the excess is `beyond` */
    uint64_t bytes_most;
    uint64_t beyond;
} domi_queued_pages;

/* A buffer gets a slice of the page. NULL: no memory. */
domi_queued_page *domi_pages_join(domi_queued_pages *pages, const domus_page *page);

/* The buffer is freed. */
void domi_pages_leave(domi_queued_pages *pages, domi_queued_page *of);

/* True if a slice of the page waits already. */
bool domi_pages_has(const domi_queued_pages *pages, const domus_page *page);

/* Note that one slice more of the page waits, or one less. A page counts once, however many slices
 * of it wait, so this returns by how many bytes the sum of all pages grows or shrinks: the size of
 * the page for its first or last slice, and 0 for others. */
uint64_t domi_pages_add_slice(domi_queued_pages *pages, domi_queued_page *of);
uint64_t domi_pages_remove_slice(domi_queued_pages *pages, domi_queued_page *of);

/* Set how many bytes of pages may hinder others. */
void domi_pages_set_most(domi_queued_pages *pages, uint64_t bytes);

/* Free the table. No page may be left. */
void domi_pages_end(domi_queued_pages *pages);

#endif
