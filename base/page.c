/* Makes pages, lets borrowed ones own their bytes, and frees them. */
#include "base/page.h"

#include "base/check.h"
#include "base/memory.h"

#include <errno.h>
#include <string.h>

static domi_page *make(size_t room)
{
    domi_page *page = domi_memory_new(sizeof *page + room);

    if (page != NULL)
        atomic_init(&page->count, 1);
    return page;
}

domi_page *domi_page_new(size_t size)
{
    domi_page *page = make(size);

    if (page != NULL)
        page->face.data = page->room;
    return page;
}

domi_page *domi_page_borrower(void)
{
    domi_page *page = make(DOMI_PAGE_ROOM);

    if (page != NULL)
        page->borrowed = true;
    return page;
}

int domi_page_own(domi_page *page)
{
    char *memory = page->room;

    if (!page->borrowed)
        return 0;
    if (page->size > DOMI_PAGE_ROOM) {
        memory = page->memory = domi_memory_new(page->size);
        if (memory == NULL)
            return -ENOMEM;
    }
    if (page->size != 0)
        memcpy(memory, page->face.data, page->size);
    page->face.data = memory;
    page->borrowed = false;
    return 0;
}

void domi_page_drop(domi_page *page)
{
    if (page->borrowed) {
        uint32_t count = atomic_load_explicit(&page->count, memory_order_relaxed) - 1;
        atomic_store_explicit(&page->count, count, memory_order_relaxed);
        if (count != 0)
            return;
    } else if (atomic_fetch_sub_explicit(&page->count, 1, memory_order_acq_rel) != 1) {
        /* acq_rel: what other threads did with the bytes happens before they are freed */
        return;
    }
    domi_memory_free(page->memory);
    domi_memory_free(page);
}
