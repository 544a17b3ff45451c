/* Pages: the counted memory behind slices (domus/slice.h).
 *
 * A page owns its bytes, or it borrows them from a receive buffer while a message that was decoded
 * there is handled. Only the thread of the buffer has slices of a borrowed page, so its count is
 * changed without atomic operations; the page becomes an owner, with a copy of its bytes, before
 * any other thread can see it, and stays one. The slices of it stay as they are: they name the page
 * and an offset. */
#ifndef DOMI_BASE_PAGE_H
#define DOMI_BASE_PAGE_H

#include <domus/slice.h>

#include <stdatomic.h>

/* Bytes for which a borrowing page has room of its own, so that it can own the bytes of a small
 * message without a further allocation. */
#define DOMI_PAGE_ROOM 216u

typedef struct domi_page {
    domus_page face;        /* pointer to the bytes of the page */
    _Atomic uint32_t count; /* number of slices that own the page, plus one while it borrows */
    uint32_t size; /* number of the borrowed bytes that slices of a borrowed page may show */
    /* block of the heap with the page's bytes, if they have one of their own; else NULL */
    char *memory;
    bool borrowed;
    bool holds; /* whether `room` of a borrowed page contains a domi_lender */
    /* whether `room` has DOMI_PAGE_ROOM bytes, so that the page may be kept for a later message */
    bool small;
    /* bytes of a page that was made with them; DOMI_PAGE_ROOM bytes of a page that began as a
     * borrower */
    char room[];
} domi_page;

/* The lender of a borrowed page, to which it gives memory back with its last slice
 * (domi_page_keep_bytes_of_lender()). */
typedef struct domi_lender {
    void (*give_back)(void *bytes);
    void *bytes;
} domi_lender;

/* Small pages that a thread keeps instead of freeing them, so that a message that outlives its turn
 * costs no allocation. A thread of a system has one (domi_pages_begin_to_keep_freed_pages()), and
 * other threads none. */
void domi_pages_begin_to_keep_freed_pages(void);
void domi_pages_free_kept(void);

/* Make a page with room for `size` bytes, which belongs to one slice. Returns NULL without
 * memory. */
domi_page *domi_page_new(size_t size);

/* Grow a page of domi_page_new() that has one slice to room for `size` bytes, which are more than
 * it has. Returns the page, which may have moved; NULL without memory, and then the old page is as
 * it was. */
domi_page *domi_page_grow(domi_page *page, size_t size);

/* Make a page that borrows nothing yet, and has a count of 1 for the borrower. Returns NULL without
 * memory. */
domi_page *domi_page_new_borrower(void);

/* Let a page own its bytes, by a copy if it borrows them. Returns 0; -ENOMEM. */
int domi_page_own_borrowed_bytes(domi_page *page);

/* Let a page that borrows its bytes keep them where they lie, because there is no memory for a
 * copy: it calls lender.give_back(lender.bytes) when it has a copy or no slices any more. Both
 * happen on the thread that has made the page. */
void domi_page_keep_bytes_of_lender(domi_page *page, domi_lender lender);

/* Make a page that borrows its bytes the owner of the block of the heap in which these bytes
 * lie. */
void domi_page_adopt_block_of_bytes(domi_page *page, char *memory);

/* Returns how many bytes of memory a page that owns its bytes takes. Any owner's thread. */
size_t domi_page_bytes_of_memory(const domus_page *page);

/* True if the slice, which owns its bytes, is so small a part of its page that a copy of the slice
 * is better than keeping the whole page. */
bool domi_page_is_slice_better_copied(domus_slice slice);

/* Give back one count of a page, which then has one owner fewer. The last count frees the page. */
void domi_page_drop_owner(domi_page *page);

/* Let a page that only its borrower counts on (no slice owns it) show the `size` bytes at
 * `data`. */
static inline void domi_page_show_borrowed_bytes(domi_page *page, const char *data, uint32_t size)
{
    page->face.data = data;
    page->size = size;
}

static inline domi_page *domi_page_of_slice(domus_slice slice)
{
    return (domi_page *)(uintptr_t)slice.page;
}

/* Count one more slice of a page. Relaxed: the caller owns a slice already, so the page cannot be
 * freed meanwhile. */
static inline void domi_page_add_owner(domi_page *page)
{
    if (page->borrowed)
        atomic_store_explicit(&page->count,
                              atomic_load_explicit(&page->count, memory_order_relaxed) + 1,
                              memory_order_relaxed);
    else
        atomic_fetch_add_explicit(&page->count, 1, memory_order_relaxed);
}

/* True if the page's maker is its only owner: no slice owns the page, so no other thread can see
 * it. */
static inline bool domi_page_is_unshared(domi_page *page)
{
    return atomic_load_explicit(&page->count, memory_order_relaxed) == 1;
}

#endif
