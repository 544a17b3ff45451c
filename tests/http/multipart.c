/* Writes events of multipart/form-data as text; tests/http/multipart.h describes the text. */
#include "tests/http/multipart.h"

#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TEXTS 4
#define ROOM  65536

/* A trace: the text of events, as far as it was written. */
typedef struct trace {
    char *text;
    size_t size;
    bool in_part;
} trace;

static void append_bytes(trace *to, const char *bytes, size_t size)
{
    ck_assert_uint_lt(to->size + size, ROOM);
    memcpy(to->text + to->size, bytes, size);
    to->size += size;
    to->text[to->size] = '\0';
}

static void append_text(trace *to, const char *text)
{
    append_bytes(to, text, strlen(text));
}

static void append_event_as_text(trace *to, const domus_http_multipart_event *event)
{
    switch (event->kind) {
    case DOMUS_HTTP_PART:
        ck_assert_int_eq(event->name[event->name_size], 0);
        append_bytes(to, event->name, event->name_size);
        if (event->filename != NULL) {
            append_text(to, " \"");
            append_bytes(to, event->filename, event->filename_size);
            append_text(to, "\"");
        }
        append_text(to, event->type_size != 0 ? " " : "");
        append_bytes(to, event->type, event->type_size);
        append_text(to, " [");
        to->in_part = true;
        break;
    case DOMUS_HTTP_BYTES:
        ck_assert(to->in_part && event->size != 0);
        append_bytes(to, event->bytes, event->size);
        break;
    case DOMUS_HTTP_PART_END:
        ck_assert(to->in_part);
        to->in_part = false;
        append_text(to, "]\n");
        break;
    case DOMUS_HTTP_DONE:
        append_text(to, "DONE\n");
        break;
    default:
        break;
    }
}

static const char *name_of_error(int error)
{
    return error == -EPROTO ? "EPROTO " : error == -EMSGSIZE ? "EMSGSIZE " : "EMEDIUMTYPE ";
}

/* Let a parser take a piece from a copy of exactly its size, so that a sanitizer sees a read beyond
 * it. Returns 0, or the error. */
static int feed_piece_to_parser(domus_http_multipart *form, trace *to, const char *bytes,
                                size_t size)
{
    char *copy = malloc(size + 1);
    domus_http_multipart_event event;
    int64_t used = 0;
    size_t at = 0;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, size);
    copy = realloc(copy, size != 0 ? size : 1);
    while (at < size && used >= 0) {
        used = domus_http_multipart_next(form, copy + at, size - at, &event);
        ck_assert(used > 0 || used < 0 || event.kind != DOMUS_HTTP_NOTHING);
        if (used >= 0) {
            append_event_as_text(to, &event);
            at += (size_t)used;
        } else {
            ck_assert_int_eq(domus_http_multipart_next(form, copy + at, size - at, &event), used);
        }
    }
    free(copy);
    return used < 0 ? (int)used : 0;
}

const char *domt_multipart_trace_of_bytes(const char *content_type,
                                          const domus_http_multipart_limits *limits,
                                          const char *bytes, size_t size, size_t cut, size_t step)
{
    static char texts[TEXTS][ROOM];
    static unsigned turn;
    trace to = {.text = texts[turn++ % TEXTS]};
    domus_slice type = domt_slice_of_text(content_type);
    domus_http_multipart *form = NULL;
    int error = domus_http_multipart_open(type, limits, &form);

    domus_slice_free(type);
    to.text[0] = '\0';
    if (error != 0) {
        append_text(&to, name_of_error(error));
        return to.text;
    }
    error = feed_piece_to_parser(form, &to, bytes, cut);
    for (size_t at = cut; at < size && error == 0;) {
        size_t some = step == 0 || size - at < step ? size - at : step;
        error = feed_piece_to_parser(form, &to, bytes + at, some);
        at += some;
    }
    int end = domus_http_multipart_end(form);
    ck_assert(error == 0 || end == error);
    ck_assert((end == 0) == (*domus_http_multipart_wrong(form) == '\0'));
    if (end != 0) {
        append_text(&to, name_of_error(end));
        append_text(&to, domus_http_multipart_wrong(form));
    }
    domus_http_multipart_close(form);
    return to.text;
}

void domt_multipart_expect_trace(const char *content_type,
                                 const domus_http_multipart_limits *limits, const char *bytes,
                                 size_t size, const char *expected)
{
    const char *whole = domt_multipart_trace_of_bytes(content_type, limits, bytes, size, 0, 0);

    ck_assert_str_eq(whole, expected);
    ck_assert_str_eq(domt_multipart_trace_of_bytes(content_type, limits, bytes, size, 0, 1),
                     expected);
    for (size_t cut = 0; cut <= size; cut++)
        ck_assert_str_eq(domt_multipart_trace_of_bytes(content_type, limits, bytes, size, cut, 0),
                         expected);
}
