/* The functions of domus/slice.h that treat slices. */
#include "base/page.h"

#include <errno.h>
#include <string.h>

static void release(void *payload)
{
    domus_slice_free(*(domus_slice *)payload);
}

const domus_type domus_slice_type = {
    .name = "slice", .size = sizeof(domus_slice), .release = release};

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
        domi_page *page = domi_page_of(slice);
        int error = domi_page_own(page);
        if (error != 0)
            return error;
        domi_page_count(page);
    }
    *ret_slice = slice;
    return 0;
}

void domus_slice_free(domus_slice slice)
{
    if (slice.page != NULL)
        domi_page_drop(domi_page_of(slice));
}

int domus_slice_split(domus_slice *slice, uint32_t at, domus_slice *ret_rest)
{
    domus_slice rest = {NULL, 0, 0};

    if (at > slice->size)
        return -EINVAL;
    if (at < slice->size) {
        int error = domus_slice_keep(*slice, &rest);
        if (error != 0)
            return error;
        rest.offset += at;
        rest.size -= at;
    }
    slice->size = at;
    *ret_rest = rest;
    return 0;
}

/* Returns the bytes of all pieces together; UINT64_MAX if they do not follow each other in one
 * page. */
static bool are_adjacent(const domus_slice *pieces, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        if (pieces[i].page != pieces[0].page ||
            pieces[i].offset != pieces[i - 1].offset + pieces[i - 1].size)
            return false;
    }
    return true;
}

static void free_all(const domus_slice *pieces, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        domus_slice_free(pieces[i]);
}

int domus_slice_join(const domus_slice *pieces, uint32_t count, domus_slice *ret_slice)
{
    uint64_t size = 0;

    for (uint32_t i = 0; i < count; i++)
        size += pieces[i].size;
    if (size > DOMUS_SLICE_MAX)
        return -EMSGSIZE;
    if (size == 0) {
        free_all(pieces, count);
        *ret_slice = (domus_slice){NULL, 0, 0};
        return 0;
    }
    if (are_adjacent(pieces, count)) {
        *ret_slice = (domus_slice){pieces[0].page, pieces[0].offset, (uint32_t)size};
        free_all(pieces + 1, count - 1);
        return 0;
    }
    domi_page *page = domi_page_new(size);
    if (page == NULL)
        return -ENOMEM;
    char *end = page->room;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(end, domus_slice_data(pieces[i]), pieces[i].size);
        end += pieces[i].size;
    }
    free_all(pieces, count);
    *ret_slice = (domus_slice){&page->face, 0, (uint32_t)size};
    return 0;
}

bool domus_slice_equals(domus_slice slice, const void *data, size_t size)
{
    return slice.size == size && (size == 0 || memcmp(domus_slice_data(slice), data, size) == 0);
}
