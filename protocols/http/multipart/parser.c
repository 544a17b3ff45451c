/* Parses multipart/form-data, a piece at a time; multipart.h draws the phases. Each step looks at
 * the start of the piece, uses some bytes, and produces at most one event. */
#include "protocols/http/chars.h"
#include "protocols/http/multipart/multipart.h"

#include <errno.h>

/* Returns how many bytes at the start of `bytes` continue the delimiter, of which `from` bytes have
 * matched already. */
static size_t count_delimiter_bytes(const domus_http_multipart *form, uint32_t from,
                                    const char *bytes, size_t size)
{
    size_t most = form->delimiter_size - from;
    size_t i = 0;

    if (most > size)
        most = size;
    while (i < most && bytes[i] == form->delimiter[from + i])
        i++;
    return i;
}

/* --- bytes between boundaries ----------------------------------------------------------------- */

/* Handle bytes that belong to no delimiter: those of a part become an event, those before the first
 * boundary are counted. Returns 0; a negative errno. */
static int make_event_of_part_bytes(domus_http_multipart *form, const char *bytes, size_t size,
                                    domus_http_multipart_event *event)
{
    if (form->phase == DOMI_MULTIPART_BEFORE) {
        if (size > DOMUS_HTTP_MULTIPART_EDGE_MAX - form->edge)
            return domi_multipart_fail_parser(form, -EMSGSIZE,
                                              "too much before the first boundary");
        form->edge += (uint32_t)size;
        return 0;
    }
    if (size > form->limits.part_max - form->part)
        return domi_multipart_fail_parser(form, -EMSGSIZE, "a part is too large");
    form->part += size;
    event->kind = DOMUS_HTTP_BYTES;
    event->bytes = bytes;
    event->size = size;
    return 0;
}

static void end_part_at_delimiter(domus_http_multipart *form, domus_http_multipart_event *event)
{
    if (form->phase == DOMI_MULTIPART_IN_BODY)
        event->kind = DOMUS_HTTP_PART_END;
    form->phase = DOMI_MULTIPART_BEHIND;
    form->line = DOMI_MULTIPART_LINE_NEW;
    form->matched = form->assumed = form->pad = 0;
}

/* Match further bytes with a delimiter that has begun. Returns the bytes used, or a negative errno.
 * If it turns out to be no delimiter, the bytes that were held back for it become an event. */
static int64_t continue_to_match_delimiter(domus_http_multipart *form, const char *bytes,
                                           size_t size, domus_http_multipart_event *event)
{
    size_t more = count_delimiter_bytes(form, form->matched, bytes, size);
    uint32_t held = form->matched + (uint32_t)more;
    uint32_t assumed = form->assumed;

    if (held == form->delimiter_size) {
        end_part_at_delimiter(form, event);
    } else if (more == size) {
        form->matched = held;
    } else {
        form->matched = form->assumed = 0;
        int error =
            make_event_of_part_bytes(form, form->delimiter + assumed, held - assumed, event);
        if (error != 0)
            return error;
    }
    return (int64_t)more;
}

/* Search for the delimiter. Returns how many bytes stand before it, or before a begin of it at the
 * end of the piece. */
static size_t find_delimiter(const domus_http_multipart *form, const char *bytes, size_t size)
{
    size_t at = 0;

    while (at < size) {
        const char *cr = memchr(bytes + at, '\r', size - at);
        if (cr == NULL)
            return size;
        at = (size_t)(cr - bytes);
        size_t same = count_delimiter_bytes(form, 0, cr, size - at);
        if (same == form->delimiter_size || at + same == size)
            return at;
        at += same; /* the bytes that have matched contain no other CR, so they are skipped */
    }
    return size;
}

static int64_t parse_bytes_of_part_body(domus_http_multipart *form, const char *bytes, size_t size,
                                        domus_http_multipart_event *event)
{
    if (form->matched == form->assumed && *bytes != form->delimiter[form->matched])
        /* the line does not begin with the delimiter, so nothing has matched */
        form->matched = form->assumed = 0;
    if (form->matched != 0)
        return continue_to_match_delimiter(form, bytes, size, event);
    size_t plain = find_delimiter(form, bytes, size);
    if (plain == 0)
        return continue_to_match_delimiter(form, bytes, size, event);
    int error = make_event_of_part_bytes(form, bytes, plain, event);
    return error != 0 ? error : (int64_t)plain;
}

/* --- lines of boundaries ---------------------------------------------------------------------- */

/* Handle a byte of the line behind a boundary. Returns 1; a negative errno. */
static int64_t parse_byte_of_boundary_line(domus_http_multipart *form, char byte,
                                           domus_http_multipart_event *event)
{
    switch (form->line) {
    case DOMI_MULTIPART_LINE_NEW:
        if (byte == '-') {
            form->line = DOMI_MULTIPART_LINE_DASH;
            return 1;
        }
        /* fall through */
    case DOMI_MULTIPART_LINE_PAD:
        form->line = byte == '\r' ? DOMI_MULTIPART_LINE_CR : DOMI_MULTIPART_LINE_PAD;
        if (byte == '\r')
            return 1;
        if (!domi_http_is_space_or_tab(byte))
            break;
        if (form->pad++ == DOMUS_HTTP_MULTIPART_PAD_MAX)
            return domi_multipart_fail_parser(form, -EMSGSIZE, "too many spaces behind a boundary");
        return 1;
    case DOMI_MULTIPART_LINE_DASH:
        if (byte != '-')
            break;
        form->phase = DOMI_MULTIPART_AFTER;
        form->edge = 0;
        event->kind = DOMUS_HTTP_DONE;
        return 1;
    case DOMI_MULTIPART_LINE_CR:
        if (byte != '\n')
            break;
        if (form->parts == form->limits.parts_max)
            return domi_multipart_fail_parser(form, -EMSGSIZE, "too many parts");
        form->phase = DOMI_MULTIPART_IN_HEAD;
        form->head_size = form->line_at = 0;
        return 1;
    }
    return domi_multipart_fail_parser(form, -EPROTO, "something stands behind a boundary");
}

/* --- heads ------------------------------------------------------------------------------------ */

static int begin_part_with_its_head(domus_http_multipart *form, domus_http_multipart_event *event)
{
    int error = domi_multipart_read_head_of_part(form, event);

    form->parts++;
    form->part = 0;
    form->phase = DOMI_MULTIPART_IN_BODY;
    /* CR LF count as matched, because the delimiter may follow at once: the part may have no
     * bytes */
    form->matched = form->assumed = 2;
    return error;
}

/* Handle bytes of the head of a part, up to the end of a line. Returns how many were used, or a
 * negative errno. */
static int64_t parse_line_of_part_head(domus_http_multipart *form, const char *bytes, size_t size,
                                       domus_http_multipart_event *event)
{
    size_t room = form->limits.head_max - form->head_size;
    size_t most = size < room ? size : room;
    const char *end = memchr(bytes, '\n', most);
    size_t used = end != NULL ? (size_t)(end - bytes) + 1 : most;

    if (room == 0)
        return domi_multipart_fail_parser(form, -EMSGSIZE, "the head of a part is too long");
    memcpy(form->head + form->head_size, bytes, used);
    form->head_size += (uint32_t)used;
    if (end == NULL)
        return (int64_t)used;
    uint32_t line = form->head_size - form->line_at;
    if (line < 2 || form->head[form->head_size - 2] != '\r')
        return domi_multipart_fail_parser(form, -EPROTO, "a line of a head ends without CR");
    form->line_at = form->head_size;
    int error = line == 2 ? begin_part_with_its_head(form, event) : 0;
    return error != 0 ? error : (int64_t)used;
}

/* --- the whole form --------------------------------------------------------------------------- */

static int64_t count_and_skip_bytes_after_form(domus_http_multipart *form, size_t size)
{
    if (size > DOMUS_HTTP_MULTIPART_EDGE_MAX - form->edge)
        return domi_multipart_fail_parser(form, -EMSGSIZE, "too much behind the last boundary");
    form->edge += (uint32_t)size;
    return (int64_t)size;
}

static int64_t parse_next_bytes_by_phase_of_form(domus_http_multipart *form, const char *bytes,
                                                 size_t size, domus_http_multipart_event *event)
{
    switch (form->phase) {
    case DOMI_MULTIPART_BEHIND:
        return parse_byte_of_boundary_line(form, *bytes, event);
    case DOMI_MULTIPART_IN_HEAD:
        return parse_line_of_part_head(form, bytes, size, event);
    case DOMI_MULTIPART_AFTER:
        return count_and_skip_bytes_after_form(form, size);
    default:
        return parse_bytes_of_part_body(form, bytes, size, event);
    }
}

int64_t domus_http_multipart_next(domus_http_multipart *form, const char *bytes, size_t size,
                                  domus_http_multipart_event *ret_event)
{
    uint64_t left = form->limits.whole_max - form->whole;

    *ret_event = (domus_http_multipart_event){.kind = DOMUS_HTTP_NOTHING};
    if (form->error != 0)
        return form->error;
    if (size == 0)
        return 0;
    if (left == 0)
        return domi_multipart_fail_parser(form, -EMSGSIZE, "the body is too large");
    int64_t used;
    /* A step that only gives up bytes which were held back before the first boundary produces no
     * event and uses no byte of the piece, so it is repeated. */
    do
        used = parse_next_bytes_by_phase_of_form(form, bytes, size < left ? size : (size_t)left,
                                                 ret_event);
    while (used == 0 && ret_event->kind == DOMUS_HTTP_NOTHING);
    if (used > 0)
        form->whole += (uint64_t)used;
    return used;
}

int domus_http_multipart_end(domus_http_multipart *form)
{
    if (form->error == 0 && form->phase != DOMI_MULTIPART_AFTER)
        return domi_multipart_fail_parser(form, -EPROTO, "the body ends before its last boundary");
    return form->error;
}
