/* The table of the pages whose slices wait for peers: lists by the address of the page. It doubles
 * when it has as many pages as lists; without memory for that the lists become longer. */
#include "io/resources/pages.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/page.h"

#define LISTS_LEAST 16u
/* number of lists above which the table is freed when it becomes empty */
#define LISTS_KEPT 1024u

static domi_queued_page **find_list_of_page(const domi_queued_pages *pages, const domus_page *page)
{
    uint64_t hash = (uint64_t)(uintptr_t)page * UINT64_C(0x9e3779b97f4a7c15);

    return &pages->lists[hash >> 32 & (pages->lists_count - 1)];
}

static domi_queued_page *find_page_in_table(const domi_queued_pages *pages, const domus_page *page)
{
    domi_queued_page *at = pages->lists_count != 0 ? *find_list_of_page(pages, page) : NULL;

    while (at != NULL && at->page != page)
        at = at->next;
    return at;
}

static void put_page_into_table(const domi_queued_pages *pages, domi_queued_page *made)
{
    domi_queued_page **list = find_list_of_page(pages, made->page);

    made->next = *list;
    *list = made;
}

/* Make room for one more page in the table. Returns false if there is no table and no memory for
 * one. */
static bool make_room_for_page(domi_queued_pages *pages)
{
    domi_queued_pages grown = *pages;

    if (pages->count < pages->lists_count)
        return true;
    grown.lists_count = pages->lists_count == 0 ? LISTS_LEAST : 2 * pages->lists_count;
    grown.lists = domi_memory_new(grown.lists_count * sizeof(domi_queued_page *));
    if (grown.lists == NULL)
        return pages->lists_count != 0;
    for (uint32_t i = 0; i < pages->lists_count; i++) {
        while (pages->lists[i] != NULL) {
            domi_queued_page *moved = pages->lists[i];
            pages->lists[i] = moved->next;
            put_page_into_table(&grown, moved);
        }
    }
    domi_memory_free(pages->lists);
    *pages = grown;
    return true;
}

domi_queued_page *domi_pages_add_buffer_of_page(domi_queued_pages *pages, const domus_page *page)
{
    domi_queued_page *at = find_page_in_table(pages, page);

    if (at == NULL) {
        at = make_room_for_page(pages) ? domi_memory_new(sizeof *at) : NULL;
        if (at == NULL)
            return NULL;
        at->page = page;
        at->bytes = domi_page_bytes_of_memory(page);
        put_page_into_table(pages, at);
        pages->count++;
    }
    at->buffers++;
    return at;
}

void domi_pages_remove_buffer_of_page(domi_queued_pages *pages, domi_queued_page *of)
{
    domi_queued_page **at = find_list_of_page(pages, of->page);

    if (--of->buffers != 0)
        return;
    DOMI_CHECK(of->waiting == 0);
    while (*at != of)
        at = &(*at)->next;
    *at = of->next;
    domi_memory_free(of);
    if (--pages->count == 0 && pages->lists_count > LISTS_KEPT)
        domi_pages_free_table(pages);
}

bool domi_pages_has_waiting_slice(const domi_queued_pages *pages, const domus_page *page)
{
    const domi_queued_page *at = find_page_in_table(pages, page);

    return at != NULL && at->waiting != 0;
}

static void update_bytes_beyond_bound(domi_queued_pages *pages)
{
    pages->beyond = pages->bytes > pages->bytes_most ? pages->bytes - pages->bytes_most : 0;
}

uint64_t domi_pages_count_waiting_slice(domi_queued_pages *pages, domi_queued_page *of)
{
    if (of->waiting++ != 0)
        return 0;
    pages->bytes += of->bytes;
    update_bytes_beyond_bound(pages);
    return of->bytes;
}

uint64_t domi_pages_uncount_waiting_slice(domi_queued_pages *pages, domi_queued_page *of)
{
    DOMI_CHECK(of->waiting != 0);
    if (--of->waiting != 0)
        return 0;
    pages->bytes -= of->bytes;
    update_bytes_beyond_bound(pages);
    return of->bytes;
}

void domi_pages_set_most_bytes(domi_queued_pages *pages, uint64_t bytes)
{
    pages->bytes_most = bytes;
    update_bytes_beyond_bound(pages);
}

void domi_pages_free_table(domi_queued_pages *pages)
{
    DOMI_CHECK(pages->count == 0);
    domi_memory_free(pages->lists);
    pages->lists = NULL;
    pages->lists_count = 0;
}
