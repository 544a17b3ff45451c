/* The functions of domus/slice.h that work on slices (the appenders are in appender.c). */
#include "base/page.h"

#include <errno.h>
#include <string.h>

static void release_slice(void *payload)
{
    domus_slice_free(*(domus_slice *)payload);
}

const domus_type domus_slice_type = {
    .name = "slice", .size = sizeof(domus_slice), .release = release_slice};

int domus_slice_copy(const void *data, size_t size, domus_slice *ret_slice)
{
    domi_page *page;

    if (size > DOMUS_SLICE_MAX)
        return -EMSGSIZE;
    if (size == 0) {
        *ret_slice = (domus_slice){NULL, 0, 0};
        return 0;
    }
    page = domi_page_new(size);
    if (page == NULL)
        return -ENOMEM;
    memcpy(page->room, data, size);
    *ret_slice = (domus_slice){&page->face, 0, (uint32_t)size};
    return 0;
}

int domus_slice_keep(domus_slice slice, domus_slice *ret_slice)
{
    if (slice.page != NULL) {
        domi_page *page = domi_page_of_slice(slice);
        int error = domi_page_own_borrowed_bytes(page);
        if (error != 0)
            return error;
        domi_page_add_owner(page);
    }
    *ret_slice = slice;
    return 0;
}

void domus_slice_free(domus_slice slice)
{
    if (slice.page != NULL)
        domi_page_drop_owner(domi_page_of_slice(slice));
}

int domus_slice_split(domus_slice *slice, uint32_t at, domus_slice *ret_rest)
{
    domus_slice rest = {NULL, 0, 0};

    if (at > slice->size)
        return -EINVAL;
    if (at == 0) { /* the rest is all of `slice`, so its page goes to the rest */
        rest = *slice;
        *slice = (domus_slice){NULL, 0, 0};
    } else if (at < slice->size) {
        int error = domus_slice_keep(*slice, &rest);
        if (error != 0)
            return error;
        rest.offset += at;
        rest.size -= at;
        slice->size = at;
    }
    *ret_rest = rest;
    return 0;
}

/* Returns the one slice that shows the bytes of all pieces, if they follow each other in one page;
 * otherwise the empty one. Pieces without bytes may lie anywhere. */
static domus_slice find_slice_of_all_pieces(const domus_slice *pieces, uint32_t count)
{
    domus_slice whole = {NULL, 0, 0};

    for (uint32_t i = 0; i < count; i++) {
        const domus_slice *piece = &pieces[i];
        if (whole.size == 0)
            whole = *piece;
        else if (piece->page == whole.page && piece->offset == whole.offset + whole.size)
            whole.size += piece->size;
        else if (piece->size != 0)
            return (domus_slice){NULL, 0, 0};
    }
    return whole;
}

/* Free the pieces that were joined, except one that owns the page `kept` (NULL: free all of
 * them). */
static void free_pieces_of_joined_slice(const domus_slice *pieces, uint32_t count,
                                        const domus_page *kept)
{
    for (uint32_t i = 0; i < count; i++) {
        if (kept != NULL && pieces[i].page == kept)
            kept = NULL;
        else
            domus_slice_free(pieces[i]);
    }
}

int domus_slice_join(const domus_slice *pieces, uint32_t count, domus_slice *ret_slice)
{
    uint64_t size = 0;

    for (uint32_t i = 0; i < count; i++)
        size += pieces[i].size;
    if (size > DOMUS_SLICE_MAX)
        return -EMSGSIZE;
    domus_slice whole = find_slice_of_all_pieces(pieces, count);
    if (whole.size == size) {
        if (size == 0)
            whole = (domus_slice){NULL, 0, 0};
        free_pieces_of_joined_slice(pieces, count, whole.page);
        *ret_slice = whole;
        return 0;
    }
    domi_page *page = domi_page_new((size_t)size);
    if (page == NULL)
        return -ENOMEM;
    char *end = page->room;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(end, domus_slice_data(pieces[i]), pieces[i].size);
        end += pieces[i].size;
    }
    free_pieces_of_joined_slice(pieces, count, NULL);
    *ret_slice = (domus_slice){&page->face, 0, (uint32_t)size};
    return 0;
}

bool domus_slice_equals(domus_slice slice, const void *data, size_t size)
{
    return slice.size == size && (size == 0 || memcmp(domus_slice_data(slice), data, size) == 0);
}
