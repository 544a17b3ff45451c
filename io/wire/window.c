/* Keeps bytes in windows: appends at the end, takes from the front, and moves the rest only when
 * the end of the memory is reached. */
#include "io/wire/window.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/poison.h"

#include <domus/stage.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

#define ROOM_LEAST 256u /* least size of the memory of a window in bytes */
/* size in bytes from which on the memory of a window is made smaller */
#define SHRINK_LEAST 4096u

static_assert(DOMI_WINDOW_ROOM == 2 * DOMUS_WINDOW_MAX, "what domi_window_make_space() relies on");
static_assert(DOMI_WINDOW_ROOM % ROOM_LEAST == 0, "the room doubles up to the limit");

/* Let AddressSanitizer report code that reads behind the bytes of a window. */
static void poison_memory_behind_bytes(const domi_window *window)
{
    char *end = window->memory + window->begin + window->size;

    DOMI_UNPOISON(window->memory, window->room);
    DOMI_POISON(end, (size_t)(window->memory + window->room - end));
}

/* Move the bytes of a window to memory with room for at least `size` bytes. */
static int move_window_to_larger_memory(domi_window *window, uint32_t size)
{
    uint32_t room = ROOM_LEAST;

    while (room < size)
        room *= 2;
    char *memory = domi_memory_new_bytes(room);
    if (memory == NULL)
        return -ENOMEM;
    if (window->size != 0)
        memcpy(memory, domi_window_first_byte(window), window->size);
    domi_window_free_memory(window);
    window->memory = memory;
    window->begin = 0;
    window->room = room;
    poison_memory_behind_bytes(window);
    return 0;
}

/* True if the end of a window's memory is reached before half as many bytes were taken as have to
 * be moved. Then the window gets more room, so that a stage that takes byte by byte does not cause
 * a move for each byte. */
static bool needs_window_more_room(const domi_window *window)
{
    return window->begin < window->size / 2 && window->room < DOMI_WINDOW_ROOM;
}

char *domi_window_make_space(domi_window *window, size_t size)
{
    uint32_t all = window->size + (uint32_t)size;

    DOMI_CHECK(size != 0 && size <= DOMI_WINDOW_ROOM && all <= DOMI_WINDOW_ROOM);
    if (all > window->room ||
        (window->begin + all > window->room && needs_window_more_room(window))) {
        int error =
            move_window_to_larger_memory(window, all > window->room ? all : 2 * window->room);
        if (error != 0)
            return NULL;
    }
    DOMI_UNPOISON(window->memory, window->room);
    if (window->begin + all > window->room) {
        memmove(window->memory, domi_window_first_byte(window), window->size);
        window->begin = 0;
    }
    return window->memory + window->begin + window->size;
}

void domi_window_add_written_bytes(domi_window *window, size_t size)
{
    DOMI_CHECK(size <= window->room - window->begin - window->size);
    window->size += (uint32_t)size;
    window->stuck = false;
    poison_memory_behind_bytes(window);
}

int domi_window_append_bytes(domi_window *window, const char *bytes, size_t size)
{
    if (size == 0)
        return 0;
    char *end = domi_window_make_space(window, size);
    if (end == NULL)
        return -ENOMEM;
    memcpy(end, bytes, size);
    domi_window_add_written_bytes(window, size);
    return 0;
}

void domi_window_remove_first_bytes(domi_window *window, uint32_t size)
{
    DOMI_CHECK(size <= window->size);
    window->begin += size;
    window->size -= size;
    window->need = 0;
    window->stuck = false;
    if (window->size == 0)
        window->begin = 0;
}

void domi_window_remove_last_bytes(domi_window *window, uint32_t size)
{
    DOMI_CHECK(size <= window->size);
    window->size -= size;
    if (window->memory != NULL)
        poison_memory_behind_bytes(window);
}

void domi_window_shrink_memory(domi_window *window)
{
    if (window->size == 0)
        domi_window_free_memory(window);
    else if (window->room > SHRINK_LEAST && window->size <= window->room / 8)
        (void)move_window_to_larger_memory(window, window->size);
}

char *domi_window_give_memory_away(domi_window *window)
{
    char *memory = window->memory;

    DOMI_UNPOISON(memory, window->room);
    *window = (domi_window){0};
    return memory;
}

void domi_window_free_memory(domi_window *window)
{
    if (window->memory != NULL)
        DOMI_UNPOISON(window->memory, window->room);
    domi_memory_free(window->memory);
    window->memory = NULL;
    window->begin = window->room = 0;
}
