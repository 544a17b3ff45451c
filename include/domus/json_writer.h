/* JSON written by hand, value by value, for what no table tells (domus/json.h).
 *
 *   domus_appender bytes = {0};
 *   domus_json_writer writer = {.to = &bytes};
 *   domus_json_put_object(&writer);
 *   domus_json_put_key(&writer, "rooms");
 *   domus_json_put_array(&writer);
 *   for (...)
 *       domus_json_put_struct(&writer, &room_table, &rooms[i], NULL);
 *   domus_json_put_end(&writer);
 *   domus_json_put_end(&writer);
 *   int error = domus_json_finish(&writer);
 *
 * The first error stays: each later call returns it and writes nothing, so looking at the end is
 * enough. Commas, colons and escapes are the writer's.
 *
 * An array of any length leaves in pieces: while it is open, domus_append_end() takes what the
 * appender holds as a slice, to be sent, and the writer goes on with the empty appender.
 *
 * Thread-safety: whoever owns the writer and its appender. */
#ifndef DOMUS_JSON_WRITER_H
#define DOMUS_JSON_WRITER_H

#include <domus/json.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A writer of JSON. The fields before the empty line are the user's; the others are the library's,
 * and zero at first. */
typedef struct domus_json_writer {
    domus_appender *to;
    bool replaces; /* whether bytes that are no UTF-8 become U+FFFD; otherwise they are -EILSEQ */

    bool has_key;    /* whether a key was written whose value is still to be written */
    bool is_done;    /* whether the whole value was written */
    uint32_t depth;  /* number of objects and arrays that were begun and not ended */
    uint32_t arrays; /* a bit for each open object or array, which is 1 for an array */
    /* a bit for each open object or array, which is 1 if something was written into it */
    uint32_t filled;
    int error; /* the first error of the writer; 0: none */
} domus_json_writer;

/* Begin an object or an array, and end the innermost one.
 *
 * All functions here return 0; -EINVAL for a value without a key in an object, a key elsewhere, a
 * second value behind the whole, an end of nothing, and nesting deeper than DOMUS_JSON_DEPTH_MAX;
 * -EMSGSIZE beyond the appender's bound; -ENOMEM; and what they say below. */
DOMUS_API int domus_json_put_object(domus_json_writer *writer);
DOMUS_API int domus_json_put_array(domus_json_writer *writer);
DOMUS_API int domus_json_put_end(domus_json_writer *writer);

/* Put a key, which is the name of the next value in an object. -EILSEQ when it is no UTF-8, unless
 * `replaces`. */
DOMUS_API int domus_json_put_key(domus_json_writer *writer, const char *name);

DOMUS_API int domus_json_put_null(domus_json_writer *writer);
DOMUS_API int domus_json_put_bool(domus_json_writer *writer, bool value);
DOMUS_API int domus_json_put_int(domus_json_writer *writer, int64_t value);
DOMUS_API int domus_json_put_uint(domus_json_writer *writer, uint64_t value);

/* Put a double, so that it reads back equal; -0 is "-0.0". -ERANGE for one that is not finite. */
DOMUS_API int domus_json_put_real(domus_json_writer *writer, double value);

/* Put a text that ends with a zero (NULL: null is written), or a text of `size` bytes, which may
 * have zeros in them. -EILSEQ when it is no UTF-8, unless `replaces`. */
DOMUS_API int domus_json_put_text(domus_json_writer *writer, const char *text);
DOMUS_API int domus_json_put_bytes(domus_json_writer *writer, const void *bytes, size_t size);

/* Put a value that is JSON already; the writer checks that. -EINVAL when it is no JSON, or has more
 * than DOMUS_JSON_BYTES_MAX bytes. */
DOMUS_API int domus_json_put_raw(domus_json_writer *writer, const void *bytes, size_t size);

/* Put a struct by its table. Returns as domus_json_write(). */
DOMUS_API int domus_json_put_struct(domus_json_writer *writer, const domus_json_table *table,
                                    const void *value, domus_json_error *ret_error);

/* Put what a table takes as an object of JSON Schema (draft 2020-12), which OpenAPI 3.1 has for its
 * schemas, too: types, ranges, words, bounds and required fields. Bounds of texts are bytes in a
 * table and characters in a schema, so a text beyond ASCII may pass the schema and be refused. A
 * table that has itself in a list is "any object" there. -EINVAL when tables are nested so deep
 * that their schema is nested deeper than DOMUS_JSON_DEPTH_MAX. */
DOMUS_API int domus_json_put_schema(domus_json_writer *writer, const domus_json_table *table);

/* Returns the first error of the calls before; -EINVAL when the value is not whole. */
DOMUS_API int domus_json_finish(domus_json_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
