/* The output of stages, bytes for the peer: one block that is used again and again, and slices that
 * stand between its bytes without being copied. One thread at a time. */
#ifndef DOMI_IO_WIRE_OUT_H
#define DOMI_IO_WIRE_OUT_H

#include <domus/slice.h>

typedef struct domi_out_piece {
    uint32_t at; /* offset of the byte of the block before which the slice stands */
    domus_slice slice;
} domi_out_piece;

typedef struct domi_out {
    char *bytes;
    uint32_t size;
    uint32_t room;
    domi_out_piece *pieces;
    uint32_t pieces_count;
    uint32_t pieces_room;
} domi_out;

/* Make room for `size` bytes in the block of an output. NULL: no memory. */
char *domi_out_make_room(domi_out *out, size_t size);
int domi_out_append_bytes(domi_out *out, const void *data, size_t size);
int domi_out_append_slice(domi_out *out, domus_slice slice);

/* Remove everything from an output that stands behind `size` bytes and `pieces` slices. */
void domi_out_cut_back(domi_out *out, uint32_t size, uint32_t pieces);

static inline bool domi_out_is_empty(const domi_out *out)
{
    return out->size == 0 && out->pieces_count == 0;
}

/* Returns the number of bytes of an output, in the block and the slices. */
uint64_t domi_out_count_bytes(const domi_out *out);

/* Remove all bytes of an output, and free its memory if it is large or if `all` is true. */
void domi_out_remove_all(domi_out *out, bool all);

/* --- what is there, in the order in which it goes to the peer --------------------------------- */

/* A place in an output. {0} is its start. */
typedef struct domi_out_cursor {
    uint32_t done;   /* number of bytes of the block before the place of the cursor */
    uint32_t pieces; /* number of slices before the place of the cursor */
} domi_out_cursor;

/* A part of an output: bytes that lie behind each other in memory. */
typedef struct domi_out_part {
    const char *bytes;
    size_t size; /* number of bytes of the part, at least 1 */
    /* the slice to which the part's bytes belong; NULL: they lie in the block */
    domi_out_piece *of;
} domi_out_part;

/* Get the part of an output at the cursor, and move the cursor behind it. Returns false at the
 * end. */
bool domi_out_get_next_part(const domi_out *out, domi_out_cursor *cursor, domi_out_part *ret_part);

#endif
