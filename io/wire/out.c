/* Gathers the output of stages in a block that doubles, and keeps the slices that are too long to
 * be copied. */
#include "io/wire/out.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/page.h"

#include <errno.h>
#include <string.h>

#define ROOM_LEAST 1024u /* size of the first block of an output in bytes */
/* size in bytes above which the empty block of an output is freed */
#define ROOM_KEPT (64u * 1024)
/* size in bytes from which on a slice that owns its bytes is kept, and not copied */
#define SLICE_LEAST 2048u

static int grow_block_of_output(domi_out *out, size_t size)
{
    size_t room = out->room == 0 ? ROOM_LEAST : 2 * (size_t)out->room;

    if (size >= UINT32_MAX - out->size)
        return -ENOMEM;
    if (room < out->size + size + 1)
        room = out->size + size + 1;
    if (room > UINT32_MAX)
        room = UINT32_MAX;
    char *bytes = domi_memory_new_bytes(room);
    if (bytes == NULL)
        return -ENOMEM;
    if (out->size != 0)
        memcpy(bytes, out->bytes, out->size);
    domi_memory_free(out->bytes);
    out->bytes = bytes;
    out->room = (uint32_t)room;
    return 0;
}

char *domi_out_make_room(domi_out *out, size_t size)
{
    /* the comparison is >= and not >, so that there is a block also for no bytes */
    if (DOMI_UNLIKELY(size >= out->room - out->size) && grow_block_of_output(out, size) != 0)
        return NULL;
    return out->bytes + out->size;
}

int domi_out_append_bytes(domi_out *out, const void *data, size_t size)
{
    if (size == 0)
        return 0;
    char *end = domi_out_make_room(out, size);
    if (DOMI_UNLIKELY(end == NULL))
        return -ENOMEM;
    memcpy(end, data, size);
    out->size += (uint32_t)size;
    return 0;
}

static int grow_pieces_of_output(domi_out *out)
{
    uint32_t room = out->pieces_room == 0 ? 4 : 2 * out->pieces_room;
    domi_out_piece *pieces = domi_memory_new(room * sizeof *pieces);

    if (pieces == NULL)
        return -ENOMEM;
    if (out->pieces_count != 0)
        memcpy(pieces, out->pieces, out->pieces_count * sizeof *pieces);
    domi_memory_free(out->pieces);
    out->pieces = pieces;
    out->pieces_room = room;
    return 0;
}

int domi_out_append_slice(domi_out *out, domus_slice slice)
{
    domus_slice kept;

    /* a slice of borrowed bytes is copied, because it could not be kept without a copy */
    if (slice.size < SLICE_LEAST || domi_page_of_slice(slice)->borrowed ||
        domi_page_is_slice_better_copied(slice))
        return domi_out_append_bytes(out, domus_slice_data(slice), slice.size);
    if (out->pieces_count == out->pieces_room && grow_pieces_of_output(out) != 0)
        return -ENOMEM;
    int error = domus_slice_keep(slice, &kept);
    if (error == 0)
        out->pieces[out->pieces_count++] = (domi_out_piece){out->size, kept};
    return error;
}

void domi_out_cut_back(domi_out *out, uint32_t size, uint32_t pieces)
{
    while (out->pieces_count > pieces)
        domus_slice_free(out->pieces[--out->pieces_count].slice);
    out->size = size;
}

uint64_t domi_out_count_bytes(const domi_out *out)
{
    uint64_t bytes = out->size;

    for (uint32_t i = 0; i < out->pieces_count; i++)
        bytes += out->pieces[i].slice.size;
    return bytes;
}

void domi_out_remove_all(domi_out *out, bool all)
{
    domi_out_cut_back(out, 0, 0);
    if (all || out->room > ROOM_KEPT) {
        domi_memory_free(out->bytes);
        out->bytes = NULL;
        out->room = 0;
    }
    if (all || out->pieces_room > ROOM_KEPT / sizeof *out->pieces) {
        domi_memory_free(out->pieces);
        out->pieces = NULL;
        out->pieces_room = 0;
    }
}

bool domi_out_get_next_part(const domi_out *out, domi_out_cursor *cursor, domi_out_part *ret_part)
{
    domi_out_piece *piece =
        cursor->pieces < out->pieces_count ? &out->pieces[cursor->pieces] : NULL;
    uint32_t to = piece != NULL ? piece->at : out->size;

    if (cursor->done != to) {
        *ret_part = (domi_out_part){out->bytes + cursor->done, to - cursor->done, NULL};
        cursor->done = to;
        return true;
    }
    if (piece == NULL)
        return false;
    *ret_part = (domi_out_part){domus_slice_data(piece->slice), piece->slice.size, piece};
    cursor->pieces++;
    return true;
}
