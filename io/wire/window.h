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

/* Bytes in a window at most. A stage is shown half of them, and is only called while the stage
 * behind it has less than half, so it can always pass on DOMUS_WINDOW_MAX bytes. */
#define DOMI_WINDOW_ROOM 131072u

typedef struct domi_window {
    char *memory;   /* the buffer; NULL: the window has no bytes */
    uint32_t begin; /* where the window's first byte lies in `memory` */
    uint32_t size;  /* bytes in the window */
    uint32_t room;  /* bytes of `memory` */
    uint32_t need;  /* `decode` is not called before this many bytes are there */
    bool stuck;     /* `decode` has seen all bytes, and is not called before more come */
} domi_window;

static inline const char *domi_window_bytes(const domi_window *window)
{
    return window->memory + window->begin;
}

/* Copy `size` bytes behind those in the window; together they are at most DOMI_WINDOW_ROOM. Returns
 * 0; -ENOMEM. */
int domi_window_put(domi_window *window, const char *bytes, size_t size);

/* Make space for `size` bytes (1 and more) behind those in the window, with the same bound.
 * The caller writes there, and then counts up to so many bytes with domi_window_fill().
 * NULL: no memory. */
char *domi_window_space(domi_window *window, size_t size);
void domi_window_fill(domi_window *window, size_t size);

/* Take `size` bytes off the front of the window, which a stage has used. */
void domi_window_take(domi_window *window, uint32_t size);

/* Take `size` bytes off the end of the window. */
void domi_window_cut(domi_window *window, uint32_t size);

/* Nothing more comes for a while: free the memory if there are no bytes, and move them to less if
 * they have far too much. Without memory they stay. */
void domi_window_shrink(domi_window *window);

/* Give the memory away; no byte is in the window any more. */
char *domi_window_give(domi_window *window);

/* Free the memory. */
void domi_window_clear(domi_window *window);

#endif
