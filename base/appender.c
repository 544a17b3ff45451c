/* The appenders of domus/slice.h: a page that doubles while it is written. Large ones grow without
 * a copy (domi_memory_grow_block()), so that no turn is long because of one. */
#include "base/memory.h"
#include "base/page.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ROOM_LEAST 256u /* bytes of the first page of an appender */

static domi_page *get_page_of_appender(const domus_appender *appender)
{
    return (domi_page *)(void *)appender->page;
}

static int drop_appended_bytes_and_set_error(domus_appender *appender, int error)
{
    uint32_t size_max = appender->size_max;

    domus_append_drop(appender);
    *appender = (domus_appender){.size_max = size_max, .error = error};
    return error;
}

/* Returns how many bytes an appender may hold. */
static uint32_t get_size_limit_of_appender(const domus_appender *appender)
{
    uint32_t most = appender->size_max;

    return most == 0 || most > DOMUS_SLICE_MAX ? DOMUS_SLICE_MAX : most;
}

/* Make room for at least `size` bytes more in an appender. */
static int reserve_room_in_appender(domus_appender *appender, uint32_t size)
{
    uint32_t most = get_size_limit_of_appender(appender);
    uint64_t room = appender->room == 0 ? ROOM_LEAST : 2 * (uint64_t)appender->room;

    if (room < size)
        room = size;
    if (room > most)
        room = most;
    domi_page *page = appender->page != NULL
                          ? domi_page_grow(get_page_of_appender(appender), (size_t)room)
                          : domi_page_new((size_t)room);
    if (page == NULL)
        return drop_appended_bytes_and_set_error(appender, -ENOMEM);
    appender->page = &page->face;
    appender->room = (uint32_t)room;
    return 0;
}

char *domus_append_room(domus_appender *appender, size_t size)
{
    uint32_t most = get_size_limit_of_appender(appender);

    if (appender->error != 0)
        return NULL;
    if (size > most || appender->size > most - size) {
        (void)drop_appended_bytes_and_set_error(appender, -EMSGSIZE);
        return NULL;
    }
    if ((appender->page == NULL || appender->room - appender->size < size) &&
        reserve_room_in_appender(appender, appender->size + (uint32_t)size) != 0)
        return NULL;
    return get_page_of_appender(appender)->room + appender->size;
}

void domus_append_written(domus_appender *appender, size_t size)
{
    if (appender->error != 0)
        return;
    if (size > appender->room - appender->size)
        (void)drop_appended_bytes_and_set_error(appender, -EINVAL);
    else
        appender->size += (uint32_t)size;
}

/* Returns the offset at which the bytes at `data` begin in the page of the appender, or UINT64_MAX
 * if they do not lie in that page. */
static uint64_t find_offset_of_bytes_in_page(const domus_appender *appender, const void *data)
{
    uint64_t at = appender->page != NULL
                      ? (uint64_t)((uintptr_t)data - (uintptr_t)appender->page->data)
                      : UINT64_MAX;

    return at < appender->room ? at : UINT64_MAX;
}

int domus_append(domus_appender *appender, const void *data, size_t size)
{
    if (size == 0)
        return appender->error;
    uint64_t own = find_offset_of_bytes_in_page(appender, data);
    char *end = domus_append_room(appender, size);
    if (end == NULL)
        return appender->error;
    if (own != UINT64_MAX) /* room for the new bytes may have moved the appender to another page */
        memmove(end, appender->page->data + own, size);
    else
        memcpy(end, data, size);
    appender->size += (uint32_t)size;
    return 0;
}

/* Append a text of `size` bytes that is too long for the buffer of the caller. The text is made
 * elsewhere first, because the arguments may show bytes of the appender. */
static int append_text_longer_than_buffer(domus_appender *appender, int size, const char *format,
                                          va_list list)
{
    char *text = domi_memory_new_bytes((size_t)size + 1);

    if (text == NULL)
        return drop_appended_bytes_and_set_error(appender, -ENOMEM);
    vsnprintf(text, (size_t)size + 1, format, list);
    int error = domus_append(appender, text, (size_t)size);
    domi_memory_free(text);
    return error;
}

int domus_append_text(domus_appender *appender, const char *format, ...)
{
    va_list list;
    char text[256];

    if (appender->error != 0)
        return appender->error;
    va_start(list, format);
    int size = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (size < 0)
        return drop_appended_bytes_and_set_error(appender, -EINVAL);
    if ((size_t)size < sizeof text)
        return domus_append(appender, text, (size_t)size);
    va_start(list, format);
    int error = append_text_longer_than_buffer(appender, size, format, list);
    va_end(list);
    return error;
}

int domus_append_end(domus_appender *appender, domus_slice *ret_slice)
{
    int error = appender->error;

    if (error != 0) {
        /* a user may have set the appender's error after appending: free what was appended */
        domus_append_drop(appender);
        return error;
    }
    *ret_slice = (domus_slice){NULL, 0, 0};
    if (appender->size != 0)
        *ret_slice = (domus_slice){appender->page, 0, appender->size};
    else
        domus_append_drop(appender);
    *appender = (domus_appender){.size_max = appender->size_max};
    return 0;
}

void domus_append_drop(domus_appender *appender)
{
    if (appender->page != NULL)
        domi_page_drop_owner(get_page_of_appender(appender));
    *appender = (domus_appender){.size_max = appender->size_max};
}
