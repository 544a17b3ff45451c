/* An array of JSON that comes in pieces, and is never whole in memory.
 *
 * A feed is given bytes as they come, and gives back one element after the other, read into a
 * struct by a table (domus/json.h). It holds the bytes of one element, at most `element_max`. It is
 * no actor and owns no socket, so a handler feeds it what domus_body_read() brings:
 *
 *     domus_json_feed_put(feed, domus_slice_data(piece->bytes), piece->bytes.size);
 *     while ((got = domus_json_feed_next(feed, &item, &memory, &error)) == 1) {
 *         ... item ...
 *         domus_json_release(&memory);
 *     }
 *     if (got == 0 && piece->last)
 *         got = domus_json_feed_end(feed, &error);
 *     if (got < 0)
 *         ... domus_json_explain(&error, text, sizeof text) ...
 *
 * The array is the whole text, or a member of the object that is the whole text: then the other
 * members are looked at and skipped, and each of them may have `element_max` bytes, too.
 *
 * Errors have the path from the outermost value ("items[70000].price", "[3]"), and the place in all
 * bytes since the first.
 *
 * Thread-safety: whoever owns the feed. */
#ifndef DOMUS_JSON_FEED_H
#define DOMUS_JSON_FEED_H

#include <domus/json.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_JSON_ELEMENT_PRESET (64u << 10)

/* Options of a feed. Zeroed but for the table, they are the defaults. */
typedef struct domus_json_feed_options {
    const domus_json_table *table; /* table of one element of the array */
    /* name of the array in the object, 1..DOMUS_JSON_NAME_MAX bytes; NULL: the array is the
     * whole text */
    const char *member;
    /* most bytes of one element; 0 means 64 KiB; at most DOMUS_JSON_BYTES_MAX */
    uint32_t element_max;
    /* most bytes of memory for one element, as `memory_max` of domus_json_options; 0 means 4 MiB */
    uint32_t memory_max;
    uint64_t elements_max; /* most elements of the array; 0: any number */
    /* most bytes of the whole text; 0: any number. Further bytes are not used */
    uint64_t bytes_max;
} domus_json_feed_options;

/* A feed: a reader of an array that comes in pieces. */
typedef struct domus_json_feed domus_json_feed;

/* Make a feed. The table must stay; the options are copied. It takes no memory for elements before
 * one comes in two pieces, and then as much as that has bytes.
 * Returns 0; -EINVAL for options out of their range; -ENOMEM. */
DOMUS_API int domus_json_feed_new(const domus_json_feed_options *options,
                                  domus_json_feed **ret_feed);

/* Free a feed. NULL is allowed, and does nothing. */
DOMUS_API void domus_json_feed_free(domus_json_feed *feed);

/* Give a feed the next bytes. They stay the caller's, and must stay as they are until
 * domus_json_feed_next() has returned 0 or an error. Returns 0; -EBUSY when bytes of the piece
 * before are left, which are used first. */
DOMUS_API int domus_json_feed_put(domus_json_feed *feed, const void *bytes, size_t size);

/* Read the next element into `ret_value`. `ret_memory` as of domus_json_read().
 * Returns 1 when an element was read; 0 when it needs more bytes, or the whole text is read; a
 * negative errno as domus_json_read() does, and -EMSGSIZE for an element or member that is too
 * long, or one element too many, -EFBIG for too many bytes. After an error each call returns it
 * again, without a text in `ret_error`. */
DOMUS_API int domus_json_feed_next(domus_json_feed *feed, void *ret_value,
                                   domus_json_memory *ret_memory, domus_json_error *ret_error);

/* Tell a feed that no more bytes come. Returns 0 when the text was whole; -EBADMSG when it is cut
 * off; -EPROTO when the object does not have the member of the array; -EBUSY as
 * domus_json_feed_put(). */
DOMUS_API int domus_json_feed_end(domus_json_feed *feed, domus_json_error *ret_error);

/* Returns the number of elements that a feed has read. */
DOMUS_API uint64_t domus_json_feed_count(const domus_json_feed *feed);

#ifdef __cplusplus
}
#endif

#endif
