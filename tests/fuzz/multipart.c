/* Fuzzes multipart/form-data. The first four bytes choose limits, and the size of pieces; the next
 * line is the Content-Type, and the rest is the body. Bytes in pieces of every size give the same
 * events and the same error, within the limits, and no name contains a control character. */
#include "tests/fuzz/support/fuzz.h"

#include <domus/http_multipart.h>

#include <stdlib.h>
#include <string.h>

#define CHOICES 4u

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* The events of a body: a hash of all bytes that the parser has returned, and counts. */
typedef struct seen {
    uint64_t hash;
    uint64_t bytes; /* bytes of all parts */
    uint32_t parts;
    uint32_t done;
    int error;
    const char *wrong;
    bool in_part;
} seen;

static void hash_bytes(seen *to, const void *bytes_, size_t size)
{
    const unsigned char *bytes = bytes_;

    for (size_t i = 0; i < size; i++)
        to->hash = (to->hash ^ bytes[i]) * UINT64_C(0x100000001b3);
}

static void must_be_text(const char *text, size_t size)
{
    must(text[size] == '\0');
    for (size_t i = 0; i < size; i++)
        must((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
}

static void add_event(seen *to, const domus_http_multipart_event *event,
                      const domus_http_multipart_limits *limits)
{
    switch (event->kind) {
    case DOMUS_HTTP_PART:
        must(!to->in_part && to->done == 0 && event->name_size <= limits->name_max);
        must_be_text(event->name, event->name_size);
        must_be_text(event->type, event->type_size);
        if (event->filename != NULL) {
            must(event->filename_size <= limits->filename_max);
            must_be_text(event->filename, event->filename_size);
            hash_bytes(to, event->filename, event->filename_size + 1);
        }
        hash_bytes(to, event->name, event->name_size + 1);
        hash_bytes(to, event->type, event->type_size + 1);
        to->in_part = true;
        to->parts++;
        break;
    case DOMUS_HTTP_BYTES:
        must(to->in_part && event->size != 0);
        hash_bytes(to, event->bytes, event->size);
        to->bytes += event->size;
        break;
    case DOMUS_HTTP_PART_END:
        must(to->in_part);
        hash_bytes(to, "\n", 1);
        to->in_part = false;
        break;
    case DOMUS_HTTP_DONE:
        must(!to->in_part && to->done++ == 0);
        break;
    default:
        break;
    }
}

/* Parse a body in pieces of `step` bytes. Returns false if the parser cannot be made. */
static bool parse(domus_slice type, const domus_http_multipart_limits *limits, const char *bytes,
                  size_t size, size_t step, seen *ret_seen)
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
            must(used <= (int64_t)(some - in) && (used != 0 || event.kind != DOMUS_HTTP_NOTHING));
            if (used < 0)
                ret_seen->error = (int)used;
            else
                add_event(ret_seen, &event, limits);
            in += used > 0 ? (size_t)used : 0;
        }
        at += some;
    }
    ret_seen->error = domus_http_multipart_end(form);
    ret_seen->wrong = domus_http_multipart_wrong(form);
    must(ret_seen->error != 0 || (ret_seen->done == 1 && !ret_seen->in_part));
    must(ret_seen->parts <= limits->parts_max && ret_seen->bytes <= limits->whole_max);
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
    must(domus_slice_copy(data + CHOICES, (size_t)(end - (const char *)data) - CHOICES, &type) ==
         0);
    bool is_right = parse(type, &limits, body, body_size, body_size + 1, &whole);
    const size_t steps[] = {1, 2 + data[3] % 64u};
    for (size_t i = 0; is_right && i < 2; i++) {
        must(parse(type, &limits, body, body_size, steps[i], &pieces));
        must(pieces.error == whole.error && pieces.parts == whole.parts &&
             pieces.done == whole.done && strcmp(pieces.wrong, whole.wrong) == 0);
        /* whether bytes before an error are returned depends on the pieces */
        must(whole.error != 0 || (pieces.hash == whole.hash && pieces.bytes == whole.bytes));
    }
    domus_slice_free(type);
    return 0;
}
