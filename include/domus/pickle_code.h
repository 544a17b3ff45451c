/* The verbs by which the two functions of a pickler write and read (domus/pickle.h), for types that
 * no table of fields can tell.
 *
 * A function writes one value. An array or a map is a value, too: its head says how many elements
 * (of a map: keys with their values) are put next, and these belong to it. Reading takes the same
 * values in the same order. So that versions meet, a function had better write a map with small
 * numbers as keys, and skip those that it does not know.
 *
 *   static int write_point(domus_pickle_writer *writer, const void *payload)
 *   {
 *       const struct point *point = payload;
 *       (void)domus_pickle_put_array(writer, 2);
 *       (void)domus_pickle_put_int(writer, point->x);
 *       return domus_pickle_put_int(writer, point->y);
 *   }
 *   static int read_point(domus_pickle_reader *reader, void *payload, uint32_t version)
 *   {
 *       struct point *point = payload;
 *       uint32_t count = 0;
 *       (void)domus_pickle_get_array(reader, 2, &count);
 *       (void)domus_pickle_get_int(reader, -1000, 1000, &point->x);
 *       return domus_pickle_blame(reader, domus_pickle_get_int(reader, -1000, 1000, &point->y),
 *                                 "y");
 *   }
 *
 * After an error each further call does nothing, leaves its result untouched, and returns the first
 * error, which is also what domus_pickle() and domus_unpickle() return, whatever the function
 * returns. So a function may look at the last result only, except where a count or a text decides
 * about its own loops and memory.
 *
 * Thread-safety: only within the function, with the writer or reader that it was given. */
#ifndef DOMUS_PICKLE_CODE_H
#define DOMUS_PICKLE_CODE_H

#include <domus/pickle.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- writing -----------------------------------------------------------------------------------
 *
 * All return 0, or the first error: -EMSGSIZE when the message has more bytes than its bound;
 * -EINVAL when more values are put than the heads before have announced, and for arrays in arrays
 * beyond DOMUS_PICKLE_DEPTH_MAX; -ENOMEM. When the function has returned, and fewer values are
 * there than were announced, the message is refused with -EINVAL. */

DOMUS_API int domus_pickle_put_nil(domus_pickle_writer *writer);
DOMUS_API int domus_pickle_put_bool(domus_pickle_writer *writer, bool value);
DOMUS_API int domus_pickle_put_int(domus_pickle_writer *writer, int64_t value);
DOMUS_API int domus_pickle_put_uint(domus_pickle_writer *writer, uint64_t value);
DOMUS_API int domus_pickle_put_float(domus_pickle_writer *writer, float value);
DOMUS_API int domus_pickle_put_double(domus_pickle_writer *writer, double value);
/* Put a text that ends with a zero, which is not written. Also returns -EINVAL for NULL. */
DOMUS_API int domus_pickle_put_text(domus_pickle_writer *writer, const char *text);
DOMUS_API int domus_pickle_put_chars(domus_pickle_writer *writer, const char *text, size_t size);
DOMUS_API int domus_pickle_put_bytes(domus_pickle_writer *writer, const void *bytes, size_t size);
/* Put an address of an actor. Also returns what the context's write_address returns; -EOPNOTSUPP
 * without one. */
DOMUS_API int domus_pickle_put_address(domus_pickle_writer *writer, domus_address address);
/* Put an endpoint. Also returns -EINVAL when the endpoint names nothing. */
DOMUS_API int domus_pickle_put_endpoint(domus_pickle_writer *writer,
                                        const domus_endpoint *endpoint);
/* Put the head of an array of `count` elements, or of a map of `count` keys with their values. */
DOMUS_API int domus_pickle_put_array(domus_pickle_writer *writer, uint32_t count);
DOMUS_API int domus_pickle_put_map(domus_pickle_writer *writer, uint32_t count);
/* Put a struct by its table, as one value. The table is right (domus_pickle_check()). Also returns
 * the errors of domus_pickle() for its fields. */
DOMUS_API int domus_pickle_put_struct(domus_pickle_writer *writer, const domus_pickle_table *table,
                                      const void *value);

/* End the writing with an error of the user's own, whose text is as printf(3) makes it. `error` is
 * a negative errno; any other number becomes -EINVAL. Returns the error. */
DOMUS_API int domus_pickle_refuse(domus_pickle_writer *writer, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* --- reading -----------------------------------------------------------------------------------
 *
 * All return 0, or the first error: -EBADMSG when the next value has another kind, when bytes are
 * missing, and when more values are read than the heads before have announced; -ERANGE, -EMSGSIZE
 * and -ENOMEM as named. When the function has returned, and values of its arrays are unread, the
 * message is refused with -EBADMSG. */

/* The kinds of values that may come next. */
typedef enum domus_pickle_value {
    /* there is no value: the bytes end, the next byte begins no value, or an error is there */
    DOMUS_PICKLE_NOTHING,
    DOMUS_PICKLE_NIL,
    DOMUS_PICKLE_TRUE_OR_FALSE,
    DOMUS_PICKLE_UNSIGNED,
    DOMUS_PICKLE_NEGATIVE,
    DOMUS_PICKLE_FLOAT,
    DOMUS_PICKLE_DOUBLE,
    DOMUS_PICKLE_CHARS,
    DOMUS_PICKLE_BYTES,
    DOMUS_PICKLE_ARRAY_HEAD,
    DOMUS_PICKLE_MAP_HEAD,
    DOMUS_PICKLE_EXTENSION,
} domus_pickle_value;

/* Returns the kind of the next value, which stays the next one. */
DOMUS_API domus_pickle_value domus_pickle_peek(const domus_pickle_reader *reader);

/* Pass over one value, with all that belongs to it, however deep arrays and maps lie in each
 * other. */
DOMUS_API int domus_pickle_skip(domus_pickle_reader *reader);

DOMUS_API int domus_pickle_get_bool(domus_pickle_reader *reader, bool *ret_value);
/* Get an integer of `low` to `high`, in whatever size it was written; -ERANGE for others. */
DOMUS_API int domus_pickle_get_int(domus_pickle_reader *reader, int64_t low, int64_t high,
                                   int64_t *ret_value);
DOMUS_API int domus_pickle_get_uint(domus_pickle_reader *reader, uint64_t low, uint64_t high,
                                    uint64_t *ret_value);
/* Get a floating-point number, or an integer that a double can be; -ERANGE for others. */
DOMUS_API int domus_pickle_get_double(domus_pickle_reader *reader, double *ret_value);
/* Get a text, with a zero behind it, into a buffer of `size` bytes. -EMSGSIZE when the text is
 * longer; -EBADMSG when it has a zero in it. */
DOMUS_API int domus_pickle_get_text(domus_pickle_reader *reader, char *buffer, size_t size);
/* Get a text of at most `most` bytes, in memory of malloc(3), which is the caller's. Also -EMSGSIZE
 * when all that was read has taken more than the context's `memory_max`. */
DOMUS_API int domus_pickle_get_owned_text(domus_pickle_reader *reader, uint32_t most,
                                          char **ret_text);
/* Get bytes, or the bytes of a text, at most `most`, as a slice, which is the caller's to free. */
DOMUS_API int domus_pickle_get_slice(domus_pickle_reader *reader, uint32_t most,
                                     domus_slice *ret_slice);
DOMUS_API int domus_pickle_get_address(domus_pickle_reader *reader, domus_address *ret_address);
DOMUS_API int domus_pickle_get_endpoint(domus_pickle_reader *reader, domus_endpoint *ret_endpoint);
/* Get the head of an array of at most `most` elements, or of a map of at most `most` keys with
 * their values. The count is never larger than the bytes that are left allow. Also -EMSGSIZE beyond
 * `most`, and for arrays in arrays beyond DOMUS_PICKLE_DEPTH_MAX. */
DOMUS_API int domus_pickle_get_array(domus_pickle_reader *reader, uint32_t most,
                                     uint32_t *ret_count);
DOMUS_API int domus_pickle_get_map(domus_pickle_reader *reader, uint32_t most, uint32_t *ret_count);
/* Get a struct by its table, into memory that need not be zeroed. After an error that memory is
 * zeroed, and owns nothing. */
DOMUS_API int domus_pickle_get_struct(domus_pickle_reader *reader, const domus_pickle_table *table,
                                      void *ret_value);

/* Take `bytes` of the context's `memory_max` for memory of the user's own that a count in the
 * message decides about. -EMSGSIZE when so much is not left. */
DOMUS_API int domus_pickle_take_memory(domus_pickle_reader *reader, size_t bytes);

/* Name the place of an error: `name` is put before the path so far. Does nothing if `error` is 0.
 * A function that reads a struct of its own calls this on the way out, from the innermost to the
 * outermost. Returns `error`. */
DOMUS_API int domus_pickle_blame(domus_pickle_reader *reader, int error, const char *name);
DOMUS_API int domus_pickle_blame_element(domus_pickle_reader *reader, int error, uint32_t index);

/* End the reading with an error of the user's own, as domus_pickle_refuse() ends the writing. */
DOMUS_API int domus_pickle_reject(domus_pickle_reader *reader, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif

#endif
