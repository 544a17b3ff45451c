/* The pages whose slices wait for peers on one thread.
 *
 * One page may wait for many peers: a value that all want, or a message that was encoded once. Its
 * memory is counted once on the thread, from the moment when its first slice is queued until its
 * last one has left, and as a whole, because each slice keeps the whole page. So the sum is never
 * less than the memory that the queues of the thread hold. A table finds a page by its address.
 * Owner thread. */
#ifndef DOMI_IO_RESOURCES_PAGES_H
#define DOMI_IO_RESOURCES_PAGES_H

#include <domus/slice.h>

/* A page whose slices are in buffers of this thread. */
typedef struct domi_queued_page {
    const domus_page *page;
    struct domi_queued_page *next; /* the next page in the same list of the table */
    uint64_t bytes;                /* size of the page in bytes */
    uint32_t buffers; /* number of buffers of this thread that have slices of the page */
    /* number of buffers with slices of the page whose bytes are counted as queued */
    uint32_t waiting;
} domi_queued_page;

typedef struct domi_queued_pages {
    domi_queued_page **lists;
    uint32_t lists_count; /* number of lists in the table of pages; a power of 2, or 0 */
    uint32_t count;       /* number of pages in the table */
    uint64_t bytes;       /* sum of the sizes of the pages whose slices wait to be sent */
    /* most of `bytes` that counts against all channels; the rest is `beyond` */
    uint64_t bytes_most;
    uint64_t beyond;
} domi_queued_pages;

/* Record that a buffer has got a slice of the page. Returns the entry of the page in the table;
 * NULL: no memory. */
domi_queued_page *domi_pages_add_buffer_of_page(domi_queued_pages *pages, const domus_page *page);

/* Record that a buffer with a slice of the page is freed. */
void domi_pages_remove_buffer_of_page(domi_queued_pages *pages, domi_queued_page *of);

/* True if a slice of the page waits to be sent already. */
bool domi_pages_has_waiting_slice(const domi_queued_pages *pages, const domus_page *page);

/* Count one more waiting slice of the page, or one less. A page counts once, however many of its
 * slices wait, so these return the number of bytes by which the sum of all pages grows or shrinks:
 * the size of the page for its first or last slice, and 0 for others. */
uint64_t domi_pages_count_waiting_slice(domi_queued_pages *pages, domi_queued_page *of);
uint64_t domi_pages_uncount_waiting_slice(domi_queued_pages *pages, domi_queued_page *of);

/* Set how many bytes of pages may count against all channels. */
void domi_pages_set_most_bytes(domi_queued_pages *pages, uint64_t bytes);

/* Free the table of pages. No page may be left in it. */
void domi_pages_free_table(domi_queued_pages *pages);

#endif
