/* Objects are laid out by cache lines, for pointers of 8 bytes. The macros of this file state such
 * a layout, and let it hold with pointers of 4 bytes, too.
 *
 * With pointers of 8 bytes no macro of this file changes a layout: DOMI_KEEP_PLACE() is nothing
 * then, and DOMI_TAKES() is an equality. */
#ifndef DOMI_BASE_WIDTH_H
#define DOMI_BASE_WIDTH_H

#include <stdalign.h>
#include <stdint.h>

#if UINTPTR_MAX > UINT32_MAX
#define DOMI_POINTER_BITS 64
#define DOMI_KEEP_PLACE(bytes)
#else
#define DOMI_POINTER_BITS      32
/* Keep the place of a field that follows pointers: with pointers of 4 bytes it is aligned to
 * `bytes`, so that it has the place that it has with pointers of 8 bytes. */
#define DOMI_KEEP_PLACE(bytes) alignas(bytes)
#endif

/* True if `size` is `bytes`. With pointers of 4 bytes `size` may be less, because the room for the
 * object is not made smaller there. */
#define DOMI_TAKES(size, bytes) (DOMI_POINTER_BITS == 64 ? (size) == (bytes) : (size) <= (bytes))

#endif
