/* Slices: bytes in counted memory, of any length, that actors may pass on without a copy.
 *
 * A slice is a part of a page. A page is memory that counts the slices which own it, and is freed
 * with the last of them. A slice is a small value: copying the struct copies no bytes and counts
 * nothing, so one of the copies is the owner, and domus_slice_free() is called for it once.
 * domus_slice_keep() makes another owner. The bytes of a page never change once a slice of it was
 * handed on, so slices are shared between threads without locks.
 *
 * As a payload, or in one, a slice belongs to the message as everything does that a payload points
 * to: the type's `release` calls domus_slice_free(), and a handler that passes the slice on calls
 * domus_take() or domus_slice_keep() first. domus_slice_type is such a type, whose payload is one
 * slice.
 *
 * The slices of a message that a pipeline has decoded (domus/pipeline.h) show the bytes where they
 * were received. When the message outlives its turn, because the conversation waits or the message
 * goes to another actor, or when a slice is kept, the library copies the message's bytes out. The
 * slices stay valid then, but their bytes lie elsewhere: call domus_slice_data() again after each
 * wait.
 *
 * Thread-safety: any thread, except for the slices of a received message: before they are copied
 * out, only the actor of the channel sees them. */
#ifndef DOMUS_SLICE_H
#define DOMUS_SLICE_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A page: counted memory. Users reach it by slices alone. */
typedef struct domus_page {
    const char *data;
} domus_page;

/* A slice. `{0}` is the empty one, which owns nothing. */
typedef struct domus_slice {
    /* page in which the bytes of the slice lie; NULL: the slice has no bytes */
    const domus_page *page;
    uint32_t offset; /* offset of the first byte of the slice in the page */
    uint32_t size;   /* number of bytes of the slice, 0..DOMUS_SLICE_MAX */
} domus_slice;

#define DOMUS_SLICE_MAX (UINT32_C(1) << 30) /* most bytes of one page, and so of one slice */

/* Returns a pointer to the first byte of a slice; "" for the empty slice. No zero follows the
 * bytes. */
static inline const char *domus_slice_data(domus_slice slice)
{
    return slice.page != NULL ? slice.page->data + slice.offset : "";
}

/* A type whose payload is a domus_slice, and whose `release` frees it. */
DOMUS_API extern const domus_type domus_slice_type;

/* Make a slice of a copy of `size` bytes at `data`. With a size of 0 `ret_slice` gets the empty
 * slice.
 *
 * Ownership: the caller's, until domus_slice_free() or until a message owns it.
 * Returns 0; -EMSGSIZE above DOMUS_SLICE_MAX; -ENOMEM. */
DOMUS_API int domus_slice_copy(const void *data, size_t size, domus_slice *ret_slice);

/* Make another owner of the bytes of a slice. They are not copied, except those of a received
 * message, once, at the first keep.
 *
 * Returns 0; -ENOMEM, and `slice` is as it was. */
DOMUS_API int domus_slice_keep(domus_slice slice, domus_slice *ret_slice);

/* Give a slice back. The bytes are freed with the last slice of their page. */
DOMUS_API void domus_slice_free(domus_slice slice);

/* Split a slice: `slice` keeps its first `at` bytes, `ret_rest` gets the others. Both are owners
 * then. Returns 0; -EINVAL when it has fewer bytes; -ENOMEM as domus_slice_keep(). */
DOMUS_API int domus_slice_split(domus_slice *slice, uint32_t at, domus_slice *ret_rest);

/* Join `count` slices, in their order, to one. Pieces that lie behind each other in one page are
 * not copied.
 *
 * Ownership: this consumes the pieces if it returns 0; otherwise they are still the caller's.
 * Returns 0; -EMSGSIZE above DOMUS_SLICE_MAX; -ENOMEM. */
DOMUS_API int domus_slice_join(const domus_slice *pieces, uint32_t count, domus_slice *ret_slice);

/* Returns whether the bytes of the slice are these `size` bytes. */
DOMUS_API bool domus_slice_equals(domus_slice slice, const void *data, size_t size);

/* --- appenders ------------------------------------------------------------------------------ */

/* An appender builds a slice piece by piece, in memory that doubles. Small memory moves by a copy
 * then. Large memory is mostly moved by the kernel, without one, unless the system has an allocator
 * of its own (domus/hooks.h): 0.3 ms is the longest call while 64 MiB are built. Any actor may have
 * one in its frame or its state. `{0}` is an appender without bytes and without a bound but
 * DOMUS_SLICE_MAX. The fields except `size_max` are for the library alone. */
typedef struct domus_appender {
    uint32_t size_max; /* most bytes that the appender may hold; 0: DOMUS_SLICE_MAX */
    /* the first error of the appender, which each later call returns; 0: none. A user may set one,
     * too */
    int error;
    uint32_t size;    /* number of bytes that were appended so far */
    uint32_t room;    /* number of bytes that the appender's page has room for */
    domus_page *page; /* page that holds the appended bytes; NULL: nothing is appended yet */
} domus_appender;

/* Append a copy of `size` bytes, which may be some that the appender has already. Returns 0;
 * -EMSGSIZE beyond `size_max`; -ENOMEM. After an error nothing is appended any more. */
DOMUS_API int domus_append(domus_appender *appender, const void *data, size_t size);

/* Append text as printf(3) makes it, without the zero at its end. Its arguments may be bytes of the
 * appender, but these end with no zero, so print them by "%.*s". Returns as domus_append(); -EINVAL
 * when the format is wrong. */
DOMUS_API int domus_append_text(domus_appender *appender, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Make room for `size` bytes behind what was appended, which the caller writes himself and then
 * counts with domus_append_written(). Returns a pointer to the room, valid until the next call with
 * this appender; NULL after an error, which domus_append_end() then returns. To count more than
 * there is room for is an error, too (-EINVAL). */
DOMUS_API char *domus_append_room(domus_appender *appender, size_t size);
DOMUS_API void domus_append_written(domus_appender *appender, size_t size);

/* End an appender: its bytes become a slice, and the appender is as new.
 *
 * Ownership: the slice is the caller's. With an error nothing is left to free.
 * Returns 0, or the first error of the calls before. */
DOMUS_API int domus_append_end(domus_appender *appender, domus_slice *ret_slice);

/* Throw away what was appended to an appender. */
DOMUS_API void domus_append_drop(domus_appender *appender);

#ifdef __cplusplus
}
#endif

#endif
