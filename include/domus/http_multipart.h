/* multipart/form-data (RFC 7578), as browsers send forms with files: a parser that is fed with
 * pieces of any size, and gives events.
 *
 *     domus_http_multipart *form;
 *     domus_http_multipart_event event;
 *     int error = domus_http_multipart_open(content_type, NULL, &form);
 *     ...
 *     for (size_t at = 0; at < size;) {                   a piece of the body
 *         int64_t used = domus_http_multipart_next(form, bytes + at, size - at, &event);
 *         if (used < 0)
 *             return (int)used;                           domus_http_multipart_wrong() says why
 *         at += (size_t)used;
 *         ... event.kind ...
 *     }
 *     error = domus_http_multipart_end(form);             the body has ended
 *     domus_http_multipart_close(form);
 *
 * Each part gives a PART, which says its name, its file name and its type; its BYTES, in any number
 * of events; and a PART_END. Behind the last one comes DONE. The bytes of a part are never held
 * back, but for the few that may be the beginning of a boundary, so a parser takes one allocation,
 * of about 1 KiB and `head_max` bytes, whatever comes. Each byte is looked at a bounded number of
 * times, however the pieces are cut, and whatever looks like a boundary.
 *
 * domus/http_upload.h is on top of this: it reads the body of a request, and puts files on disk.
 *
 * **Right input** is what RFC 7578 and RFC 2046 say, and what browsers and curl send:
 *
 * - Lines end with CR LF. A lone CR or LF in a head is refused.
 * - A part has one Content-Disposition, which is "form-data" with one `name`; at most one
 *   Content-Type; no Content-Transfer-Encoding but 7bit, 8bit and binary; other fields are passed
 *   over, and so is `_charset_`: it is a part as any other.
 * - In quotes `\"` and `\\` stand for the second character, as curl writes them, any other '\' for
 *   itself, and "%22" for a quote, as browsers write it. All other escapes stay, also %0D and %0A:
 *   so no name has a control character.
 * - `filename*` (RFC 5987) is read as well, in UTF-8, without control characters, and goes before
 *   `filename`.
 * - Text before the first boundary and behind the last one, which RFC 2046 allows, is passed over,
 *   up to DOMUS_HTTP_MULTIPART_EDGE_MAX bytes of each.
 * - A line that begins with the boundary is one. If anything but spaces stands behind it, the body
 *   is refused, because others could read it in another way.
 *
 * A file name is a text of a stranger. It may be "../../etc/passwd", "C:\\a" or empty; show it
 * escaped, and never open what it says.
 *
 * Thread-safety: any thread, one at a time. */
#ifndef DOMUS_HTTP_MULTIPART_H
#define DOMUS_HTTP_MULTIPART_H

#include <domus/slice.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_HTTP_BOUNDARY_MAX 70u /* most bytes of the boundary of a form (RFC 2046) */
/* most bytes of text before the first boundary, and of text behind the last one */
#define DOMUS_HTTP_MULTIPART_EDGE_MAX 1024u
/* most spaces behind a boundary in its line */
#define DOMUS_HTTP_MULTIPART_PAD_MAX 64u

/* Limits of a form. NULL: all defaults. A limit of 0 is its default. More than a limit is
 * refused with -EMSGSIZE. */
typedef struct domus_http_multipart_limits {
    uint32_t parts_max; /* most parts of a form, 1..65536; 0 means 64 */
    /* most bytes of the head of a part, with its empty line, 64..65536; 0 means 2048 */
    uint32_t head_max;
    uint32_t name_max;     /* most bytes of the name of a part, 1..65536; 0 means 128 */
    uint32_t filename_max; /* most bytes of the file name of a part, 1..65536; 0 means 255 */
    uint64_t part_max;     /* most bytes of one part; 0: as whole_max */
    uint64_t whole_max;    /* most bytes of the whole body with all boundaries; 0 means 64 MiB */
} domus_http_multipart_limits;

/* The kinds of events that the parser gives. */
typedef enum domus_http_multipart_kind {
    DOMUS_HTTP_NOTHING,  /* there is no event yet: the bytes were used, and more are needed */
    DOMUS_HTTP_PART,     /* a part begins: its name, its file name and its type are known */
    DOMUS_HTTP_BYTES,    /* some bytes of the part have come */
    DOMUS_HTTP_PART_END, /* the part has ended */
    /* the last boundary was read; bytes of the body that follow are passed over */
    DOMUS_HTTP_DONE,
} domus_http_multipart_kind;

/* An event of the parser. Its pointers are valid until the next call with this parser; `bytes` that
 * lie in the piece are valid as long as the piece. */
typedef struct domus_http_multipart_event {
    domus_http_multipart_kind kind;
    /* name of the part, in a PART event, and so are the next two fields; each ends with a zero */
    const char *name;
    uint32_t name_size;
    /* file name of the part; NULL: none, so the part is a field and no file */
    const char *filename;
    uint32_t filename_size;
    /* Content-Type of the part, as it was sent; "": none, which means text/plain */
    const char *type;
    uint32_t type_size;
    const char *bytes; /* bytes of the part that a BYTES event brings, at least one */
    size_t size;
} domus_http_multipart_event;

/* A parser of a form that is being read. */
typedef struct domus_http_multipart domus_http_multipart;

/* Make a parser for a body of this Content-Type. The limits are copied.
 *
 * Returns 0; -EMEDIUMTYPE when it is not "multipart/form-data", for which 415 is due; -EPROTO when
 * it has no boundary, two, or a wrong one; -EINVAL for limits out of their ranges; -ENOMEM. */
DOMUS_API int domus_http_multipart_open(domus_slice content_type,
                                        const domus_http_multipart_limits *limits,
                                        domus_http_multipart **ret_form);

/* Free a parser. Returns NULL. NULL is allowed. */
DOMUS_API domus_http_multipart *domus_http_multipart_close(domus_http_multipart *form);

/* Parse up to `size` bytes, one at least, and give up to one event.
 *
 * Returns how many bytes were used, which may be none if there is an event; -EPROTO (400) for wrong
 * bytes; -EMSGSIZE (413) beyond a limit. After an error each further call returns it. */
DOMUS_API int64_t domus_http_multipart_next(domus_http_multipart *form, const char *bytes,
                                            size_t size, domus_http_multipart_event *ret_event);

/* Tell the parser that the body has ended. Returns 0 if the last boundary was read; -EPROTO if not;
 * the error of a call before. */
DOMUS_API int domus_http_multipart_end(domus_http_multipart *form);

/* Returns words for the error of a parser, a constant; "" without an error. The words show nothing
 * of the bytes that were sent. */
DOMUS_API const char *domus_http_multipart_wrong(const domus_http_multipart *form);

#ifdef __cplusplus
}
#endif

#endif
