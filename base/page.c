/* Makes pages, lets borrowed ones own their bytes, and frees them. */
#include "base/page.h"

#include "base/check.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#define KEPT_MAX 256u /* most small pages that a thread keeps for later use */
/* most bytes of a slice that is copied instead of keeping its whole page */
#define COPIED_MAX  16384u
#define COPIED_PART 8u /* a slice is copied if it is less than 1/8 of its page */

static_assert(sizeof(domi_lender) <= DOMI_PAGE_ROOM, "a borrower has room for its lender");

/* Bounds of the larger pages that a thread keeps. A service that sends files takes one page after
 * the other: for some KiB the C library would look through its lists, and 128 KiB, a piece of a
 * large file, it would give back to the kernel and take again, with a page fault for each 4 KiB. */
#define LARGE_SUM   (512u * 1024) /* most bytes of larger pages that a thread keeps in all */
#define LARGE_BYTES (136u * 1024) /* most bytes of one larger page that a thread keeps */
/* a kept page is used again if the new user leaves at most 1/8 of it unused */
#define SPARE_PART 8u

/* The small pages that this thread keeps for later, linked by `memory`. */
static _Thread_local domi_page *kept;
/* number of further small pages that the thread may keep */
static _Thread_local uint32_t kept_room;
/* larger pages that the thread keeps, linked by `memory` */
static _Thread_local domi_page *large;
/* bytes of further larger pages that the thread may keep */
static _Thread_local size_t large_room;

void domi_pages_begin_to_keep_freed_pages(void)
{
/* under AddressSanitizer no page is kept, so that it sees a use after free */
#ifndef __SANITIZE_ADDRESS__
    kept_room = KEPT_MAX;
    large_room = LARGE_SUM;
#endif
}

/* Take the first page out of a list of kept pages. */
static domi_page *take_first_page_of_list(domi_page **list)
{
    domi_page *page = *list;

    *list = (domi_page *)(void *)page->memory;
    return page;
}

static void add_page_to_list(domi_page **list, domi_page *page)
{
    page->memory = (char *)*list;
    *list = page;
}

void domi_pages_free_kept(void)
{
    kept_room = 0;
    large_room = 0;
    while (kept != NULL)
        domi_memory_free(take_first_page_of_list(&kept));
    while (large != NULL)
        domi_memory_free(take_first_page_of_list(&large));
}

static domi_page *make_small_page(void)
{
    domi_page *page;

    if (kept != NULL) {
        page = take_first_page_of_list(&kept);
        kept_room++;
        page->memory = NULL;
    } else {
        page = domi_memory_new_bytes(sizeof *page + DOMI_PAGE_ROOM);
        if (page == NULL)
            return NULL;
        page->small = true;
        page->holds = false;
        page->memory = NULL;
    }
    atomic_store_explicit(&page->count, 1, memory_order_relaxed);
    return page;
}

/* Returns memory for a page with `size` bytes, from the larger pages that the thread keeps or from
 * the heap. Only the page that was kept last is looked at. */
static domi_page *make_large_page(size_t size)
{
    /* exactly `size` bytes of the page are usable, so that a sanitizer sees an access behind
     * them */
    size_t bytes = offsetof(domi_page, room) + size;
    size_t least = bytes + DOMI_MEMORY_HEAD;

    if (large == NULL || domi_memory_bytes_of_block(large) < least ||
        domi_memory_bytes_of_block(large) > least + least / SPARE_PART)
        return domi_memory_new_bytes(bytes);
    large_room += domi_memory_bytes_of_block(large);
    return take_first_page_of_list(&large);
}

domi_page *domi_page_new(size_t size)
{
    domi_page *page;

    if (size <= DOMI_PAGE_ROOM) {
        page = make_small_page();
    } else {
        page = make_large_page(size);
        if (page != NULL) {
            atomic_init(&page->count, 1);
            page->small = page->holds = false;
            page->memory = NULL;
        }
    }
    if (page == NULL)
        return NULL;
    page->borrowed = false;
    page->face.data = page->room;
    return page;
}

/* Returns a new page of the larger kind, with the first bytes of a small page copied into it. */
static domi_page *grow_small_page(domi_page *page, size_t size)
{
    domi_page *grown = domi_page_new(size > DOMI_PAGE_ROOM ? size : DOMI_PAGE_ROOM);

    if (grown == NULL)
        return NULL;
    memcpy(grown->room, page->room, DOMI_PAGE_ROOM);
    domi_page_drop_owner(page);
    return grown;
}

domi_page *domi_page_grow(domi_page *page, size_t size)
{
    if (page->small)
        return grow_small_page(page, size);
    domi_page *grown = domi_memory_grow_block(page, offsetof(domi_page, room) + size);
    if (grown != NULL)
        grown->face.data = grown->room;
    return grown;
}

domi_page *domi_page_new_borrower(void)
{
    domi_page *page = make_small_page();

    if (page != NULL)
        page->borrowed = true;
    return page;
}

/* Returns the lender of a page: what the page has to call when it no longer borrows the lender's
 * bytes. */
static domi_lender get_lender_of_page(const domi_page *page)
{
    domi_lender lender = {NULL, NULL};

    if (page->holds)
        /* read by a copy, because the page's `room` is not aligned for a lender */
        memcpy(&lender, page->room, sizeof lender);
    return lender;
}

static void return_bytes_to_lender(domi_lender lender)
{
    if (lender.give_back != NULL)
        lender.give_back(lender.bytes);
}

int domi_page_own_borrowed_bytes(domi_page *page)
{
    char *memory = page->room;

    if (!page->borrowed)
        return 0;
    domi_lender lender = get_lender_of_page(page);
    if (page->size > DOMI_PAGE_ROOM) {
        memory = page->memory = domi_memory_new_bytes(page->size);
        if (memory == NULL)
            return -ENOMEM;
    }
    if (page->size != 0)
        memcpy(memory, page->face.data, page->size);
    page->face.data = memory;
    page->borrowed = page->holds = false;
    return_bytes_to_lender(lender);
    return 0;
}

void domi_page_keep_bytes_of_lender(domi_page *page, domi_lender lender)
{
    DOMI_CHECK(page->borrowed && !page->holds && page->small);
    memcpy(page->room, &lender, sizeof lender);
    page->holds = true;
}

void domi_page_adopt_block_of_bytes(domi_page *page, char *memory)
{
    DOMI_CHECK(page->borrowed && !page->holds);
    page->memory = memory;
    page->borrowed = false;
}

size_t domi_page_bytes_of_memory(const domus_page *page)
{
    const domi_page *whole = (const domi_page *)(const void *)page;

    return domi_memory_bytes_of_block(whole) +
           (whole->memory != NULL ? domi_memory_bytes_of_block(whole->memory) : 0);
}

bool domi_page_is_slice_better_copied(domus_slice slice)
{
    return slice.size <= COPIED_MAX &&
           slice.size < domi_page_bytes_of_memory(slice.page) / COPIED_PART;
}

void domi_page_drop_owner(domi_page *page)
{
    if (page->borrowed) {
        uint32_t count = atomic_load_explicit(&page->count, memory_order_relaxed) - 1;
        atomic_store_explicit(&page->count, count, memory_order_relaxed);
        if (count != 0)
            return;
        return_bytes_to_lender(get_lender_of_page(page));
        page->holds = false;
    } else if (atomic_load_explicit(&page->count, memory_order_acquire) != 1 &&
               atomic_fetch_sub_explicit(&page->count, 1, memory_order_acq_rel) != 1) {
        /* A caller that reads a count of 1 is the last owner, and needs no exchange, because nobody
         * else can add an owner. acquire: what other threads did with the bytes happens before they
         * are freed. */
        return;
    }
    domi_memory_free(page->memory);
    if (page->small && kept_room != 0) {
        add_page_to_list(&kept, page);
        kept_room--;
        return;
    }
    size_t bytes = domi_memory_bytes_of_block(page);
    if (!page->small && bytes <= LARGE_BYTES && bytes <= large_room) {
        add_page_to_list(&large, page);
        large_room -= bytes;
        return;
    }
    domi_memory_free(page);
}
