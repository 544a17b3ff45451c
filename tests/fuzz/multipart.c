/* Fuzzes multipart/form-data. The first four bytes of an input choose limits, and the size of
 * pieces; the next line is the Content-Type, and the rest is the body. Bytes in pieces of every
 * size give the same events and the same error, within the limits, and no name contains a control
 * character. */
#include "tests/fuzz/support/fuzz.h"

#include <domus/http_multipart.h>

#include <stdlib.h>
#include <string.h>

#define CHOICES 4u

/* The events that a parser has made of a body: a hash of all bytes that it has returned, and
 * counts. */
typedef struct seen {
    uint64_t hash;
    uint64_t bytes; /* how many bytes the contents of all parts have together */
    uint32_t parts;
    uint32_t done;
    int error;
    const char *wrong;
    bool in_part;
} seen;

static void add_bytes_to_hash(seen *to, const void *bytes_, size_t size)
{
    const unsigned char *bytes = bytes_;

    for (size_t i = 0; i < size; i++)
        to->hash = (to->hash ^ bytes[i]) * UINT64_C(0x100000001b3);
}

static void check_text_has_no_controls(const char *text, size_t size)
{
    domt_fuzz_abort_unless(text[size] == '\0');
    for (size_t i = 0; i < size; i++)
        domt_fuzz_abort_unless((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
}

static void check_and_add_parser_event(seen *to, const domus_http_multipart_event *event,
                                       const domus_http_multipart_limits *limits)
{
    switch (event->kind) {
    case DOMUS_HTTP_PART:
        domt_fuzz_abort_unless(!to->in_part && to->done == 0 &&
                               event->name_size <= limits->name_max);
        check_text_has_no_controls(event->name, event->name_size);
        check_text_has_no_controls(event->type, event->type_size);
        if (event->filename != NULL) {
            domt_fuzz_abort_unless(event->filename_size <= limits->filename_max);
            check_text_has_no_controls(event->filename, event->filename_size);
            add_bytes_to_hash(to, event->filename, event->filename_size + 1);
        }
        add_bytes_to_hash(to, event->name, event->name_size + 1);
        add_bytes_to_hash(to, event->type, event->type_size + 1);
        to->in_part = true;
        to->parts++;
        break;
    case DOMUS_HTTP_BYTES:
        domt_fuzz_abort_unless(to->in_part && event->size != 0);
        add_bytes_to_hash(to, event->bytes, event->size);
        to->bytes += event->size;
        break;
    case DOMUS_HTTP_PART_END:
        domt_fuzz_abort_unless(to->in_part);
        add_bytes_to_hash(to, "\n", 1);
        to->in_part = false;
        break;
    case DOMUS_HTTP_DONE:
        domt_fuzz_abort_unless(!to->in_part && to->done++ == 0);
        break;
    default:
        break;
    }
}

/* Parse a body of multipart/form-data in pieces of `step` bytes. Returns false if the parser cannot
 * be made. */
static bool parse_body_in_pieces(domus_slice type, const domus_http_multipart_limits *limits,
                                 const char *bytes, size_t size, size_t step, seen *ret_seen)
{
    domus_http_multipart *form;
    domus_http_multipart_event event;

    *ret_seen = (seen){.hash = 1};
    if (domus_http_multipart_open(type, limits, &form) != 0)
        return false;
    for (size_t at = 0; at < size && ret_seen->error == 0;) {
        size_t some = size - at < step ? size - at : step;
        for (size_t in = 0; in < some && ret_seen->error == 0;) {
            int64_t used = domus_http_multipart_next(form, bytes + at + in, some - in, &event);
            domt_fuzz_abort_unless(used <= (int64_t)(some - in) &&
                                   (used != 0 || event.kind != DOMUS_HTTP_NOTHING));
            if (used < 0)
                ret_seen->error = (int)used;
            else
                check_and_add_parser_event(ret_seen, &event, limits);
            in += used > 0 ? (size_t)used : 0;
        }
        at += some;
    }
    ret_seen->error = domus_http_multipart_end(form);
    ret_seen->wrong = domus_http_multipart_wrong(form);
    domt_fuzz_abort_unless(ret_seen->error != 0 || (ret_seen->done == 1 && !ret_seen->in_part));
    domt_fuzz_abort_unless(ret_seen->parts <= limits->parts_max &&
                           ret_seen->bytes <= limits->whole_max);
    domus_http_multipart_close(form);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *end = size > CHOICES ? memchr(data + CHOICES, '\n', size - CHOICES) : NULL;
    const domus_http_multipart_limits limits = {
        .parts_max = size != 0 ? data[0] % 8u + 1 : 1,
        .head_max = size > 1 ? 64u + data[1] : 64,
        .name_max = 20,
        .filename_max = 30,
        .part_max = size > 2 ? 1u + data[2] : 1,
        .whole_max = 1024,
    };
    domus_slice type;
    seen whole, pieces;

    if (end == NULL)
        return 0;
    const char *body = end + 1;
    size_t body_size = size - (size_t)(body - (const char *)data);
    domt_fuzz_abort_unless(
        domus_slice_copy(data + CHOICES, (size_t)(end - (const char *)data) - CHOICES, &type) == 0);
    bool is_right = parse_body_in_pieces(type, &limits, body, body_size, body_size + 1, &whole);
    const size_t steps[] = {1, 2 + data[3] % 64u};
    for (size_t i = 0; is_right && i < 2; i++) {
        domt_fuzz_abort_unless(
            parse_body_in_pieces(type, &limits, body, body_size, steps[i], &pieces));
        domt_fuzz_abort_unless(pieces.error == whole.error && pieces.parts == whole.parts &&
                               pieces.done == whole.done && strcmp(pieces.wrong, whole.wrong) == 0);
        /* It depends on the pieces whether the bytes before an error are returned. */
        domt_fuzz_abort_unless(whole.error != 0 ||
                               (pieces.hash == whole.hash && pieces.bytes == whole.bytes));
    }
    domus_slice_free(type);
    return 0;
}
