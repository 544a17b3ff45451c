/* Windows: the bytes that a stage has not used yet.
 *
 * A window has memory only while it has bytes or some pass through it, because most channels are
 * idle, and the memory is bounded by DOMI_WINDOW_ROOM. Under AddressSanitizer the memory behind the
 * bytes is poisoned, so a stage that reads too far is found. One thread at a time. */
#ifndef DOMI_IO_WIRE_WINDOW_H
#define DOMI_IO_WIRE_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most bytes in a window. A stage gets at most half of them, and is only called while the stage
 * behind it has less than half, so it can always pass on DOMUS_WINDOW_MAX bytes. */
#define DOMI_WINDOW_ROOM 131072u

typedef struct domi_window {
    char *memory;   /* the memory of the window; NULL: the window has no bytes */
    uint32_t begin; /* offset in `memory` of the first byte that the window holds */
    uint32_t size;  /* number of bytes that the window holds */
    uint32_t room;  /* size of the window's `memory` in bytes */
    /* number of bytes that have to be in the window before `decode` is called again */
    uint32_t need;
    bool stuck; /* `decode` has seen all bytes of the window, and is not called before more come */
} domi_window;

static inline const char *domi_window_first_byte(const domi_window *window)
{
    return window->memory + window->begin;
}

/* Append a copy of `size` bytes to those in the window; all together are at most DOMI_WINDOW_ROOM.
 * Returns 0; -ENOMEM. */
int domi_window_append_bytes(domi_window *window, const char *bytes, size_t size);

/* Make space for `size` bytes (at least 1) behind those in the window; all together are at most
 * DOMI_WINDOW_ROOM. The caller writes there, and then adds at most so many bytes to the window with
 * domi_window_add_written_bytes(). Returns NULL without memory. */
char *domi_window_make_space(domi_window *window, size_t size);
void domi_window_add_written_bytes(domi_window *window, size_t size);

/* Remove `size` bytes from the front of the window, because a stage has used them. */
void domi_window_remove_first_bytes(domi_window *window, uint32_t size);

/* Remove `size` bytes from the end of the window, because they were not used. */
void domi_window_remove_last_bytes(domi_window *window, uint32_t size);

/* Free the memory of the window if it has no bytes, and move its bytes to less memory if they have
 * far too much, because nothing more comes for a while. Without memory for that they stay. */
void domi_window_shrink_memory(domi_window *window);

/* Return the memory of the window, which then belongs to the caller; no byte is in the window any
 * more. */
char *domi_window_give_memory_away(domi_window *window);

/* Free the memory of the window, with its bytes. */
void domi_window_free_memory(domi_window *window);

#endif
