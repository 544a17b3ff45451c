/* Reads the fields of a message that tell where it ends, to which host it is addressed, and whether
 * the connection ends. Two servers that read such a field differently would see different requests
 * in the same bytes, so everything ambiguous is refused. */
#include "protocols/http/chars.h"
#include "protocols/http/heads.h"

/* Elements of the field Connection, at most; few requests have more than two. A proxy compares each
 * element with each field. */
#define OPTIONS_MAX 64u

/* digits of a Content-Length, at most: such numbers fit into 63 bits */
#define LENGTH_DIGITS_MAX 18u

/* Read Content-Length: digits without a sign and without leading zeros, in one field only. */
static int read_content_length(domi_http_head *head, const char *value, size_t size)
{
    uint64_t length = 0;

    if ((head->flags & DOMI_HTTP_HAS_LENGTH) != 0 || size == 0 || (size > 1 && *value == '0'))
        return domi_http_refuse_head(head, 400);
    for (size_t i = 0; i < size; i++) {
        if (value[i] < '0' || value[i] > '9')
            return domi_http_refuse_head(head, 400);
        if (i < LENGTH_DIGITS_MAX)
            length = length * 10 + (uint64_t)(value[i] - '0');
    }
    if (size > LENGTH_DIGITS_MAX)
        return domi_http_refuse_head(head, 413);
    head->flags |= DOMI_HTTP_HAS_LENGTH;
    head->length = length;
    return 0;
}

/* Read Transfer-Encoding, which must be "chunked", once. Another coding before "chunked" is refused
 * by 501. With another coding behind "chunked", or without "chunked", the end of the message would
 * be unknown. */
static int read_transfer_encoding(domi_http_head *head, const char *value, size_t size)
{
    const char *element;
    size_t element_size;
    size_t at = 0;
    unsigned others = 0;
    unsigned chunks = 0;
    bool is_last = false;

    if ((head->flags & DOMI_HTTP_HAS_CODING) != 0)
        return domi_http_refuse_head(head, 400);
    head->flags |= DOMI_HTTP_HAS_CODING;
    while (domi_http_next_element_of_list(value, size, &at, &element, &element_size)) {
        is_last = domi_http_is_word_regardless_of_case(element, element_size, "chunked");
        if (element_size == 0)
            return domi_http_refuse_head(head, 400);
        chunks += is_last;
        others += !is_last;
    }
    if (chunks != 1 || !is_last)
        return domi_http_refuse_head(head, 400);
    if (others != 0)
        return domi_http_refuse_head(head, 501);
    head->flags |= DOMI_HTTP_CHUNKED;
    return 0;
}

static int read_field_connection(domi_http_head *head, const char *value, size_t size)
{
    const char *element;
    size_t element_size;
    size_t at = 0;

    while (domi_http_next_element_of_list(value, size, &at, &element, &element_size)) {
        if (++head->options > OPTIONS_MAX)
            return domi_http_refuse_head(head, 431);
        if (domi_http_is_word_regardless_of_case(element, element_size, "close"))
            head->flags |= DOMI_HTTP_CLOSE;
        else if (domi_http_is_word_regardless_of_case(element, element_size, "keep-alive"))
            head->flags |= DOMI_HTTP_KEEP_ALIVE;
        else if (domi_http_is_word_regardless_of_case(element, element_size, "upgrade"))
            head->flags |= DOMI_HTTP_TO_UPGRADE;
    }
    return 0;
}

/* Read the field TE. Nothing in it affects the framing of a message, so nothing is refused. */
static void read_field_te(domi_http_head *head, const char *value, size_t size)
{
    const char *element;
    size_t element_size;
    size_t at = 0;

    while (domi_http_next_element_of_list(value, size, &at, &element, &element_size)) {
        if (domi_http_is_word_regardless_of_case(element, element_size, "trailers"))
            head->flags |= DOMI_HTTP_TAKES_TRAILERS;
    }
}

/* Read Host. There must be one such field, equal to the host in the target if the target has a
 * host. */
static int read_field_host(domi_http_head *head, const char *bytes, const char *value, size_t size)
{
    if ((head->flags & DOMI_HTTP_HAS_HOST) != 0)
        return domi_http_refuse_head(head, 400);
    head->flags |= DOMI_HTTP_HAS_HOST;
    if (head->kind != DOMI_HTTP_REQUEST)
        return 0;
    if (head->host_size != 0)
        return head->host_size == size &&
                       domi_http_is_same_regardless_of_case(bytes + head->host_at, value, size)
                   ? 0
                   : domi_http_refuse_head(head, 400);
    head->host_at = (uint32_t)(value - bytes);
    head->host_size = (uint32_t)size;
    return 0;
}

/* The fields that the stage itself reads; OTHER stands for all others. */
typedef enum field { OTHER, TE, HOST, EXPECT, UPGRADE, CONNECTION, LENGTH, CODING } field;

static field classify_field_of_head(const char *name, size_t size)
{
    switch (size) {
    case 2:
        return domi_http_is_word_regardless_of_case(name, size, "te") ? TE : OTHER;
    case 4:
        return domi_http_is_word_regardless_of_case(name, size, "host") ? HOST : OTHER;
    case 6:
        return domi_http_is_word_regardless_of_case(name, size, "expect") ? EXPECT : OTHER;
    case 7:
        return domi_http_is_word_regardless_of_case(name, size, "upgrade") ? UPGRADE : OTHER;
    case 10:
        return domi_http_is_word_regardless_of_case(name, size, "connection") ? CONNECTION : OTHER;
    case 14:
        return domi_http_is_word_regardless_of_case(name, size, "content-length") ? LENGTH : OTHER;
    case 17:
        return domi_http_is_word_regardless_of_case(name, size, "transfer-encoding") ? CODING
                                                                                     : OTHER;
    default:
        return OTHER;
    }
}

int domi_http_read_field_of_head(domi_http_head *head, const char *bytes, const char *name,
                                 size_t name_size, const char *line, size_t line_size)
{
    field is = classify_field_of_head(name, name_size);
    const char *value = line;
    size_t size = line_size;

    if (is == TE)
        read_field_te(head, value, size);
    if (is == OTHER || is == TE)
        return 0;
    if (line_size != 0 && memchr(line, '\t', line_size) != NULL)
        /* refused, because some servers treat this byte as a space, and others do not */
        return domi_http_refuse_head(head, 400);
    domi_http_trim_spaces_and_tabs(&value, &size);
    switch (is) {
    case HOST:
        return read_field_host(head, bytes, value, size);
    case CONNECTION:
        return read_field_connection(head, value, size);
    case LENGTH:
        return read_content_length(head, value, size);
    case CODING:
        return read_transfer_encoding(head, value, size);
    case EXPECT:
        head->flags |= domi_http_is_word_regardless_of_case(value, size, "100-continue")
                           ? DOMI_HTTP_CONTINUE
                           : DOMI_HTTP_EXPECTS;
        return 0;
    default:
        head->flags |= DOMI_HTTP_HAS_UPGRADE;
        return 0;
    }
}

/* Check a request's head as a whole: its host, that a TRACE has no body, and that it expects
 * nothing but 100 Continue. */
static int check_host_trace_and_expect_of_request(domi_http_head *head, const char *bytes)
{
    bool has_host = (head->flags & DOMI_HTTP_HAS_HOST) != 0;

    if (!has_host && head->minor != 0)
        return domi_http_refuse_head(head, 400);
    if (has_host && !domi_http_is_valid_host(bytes + head->host_at, head->host_size))
        return domi_http_refuse_head(head, 400);
    if (head->minor == 0) /* HTTP/1.0 has neither Expect nor Upgrade, so these fields are ignored */
        head->flags &= ~(uint32_t)(DOMI_HTTP_CONTINUE | DOMI_HTTP_EXPECTS | DOMI_HTTP_TO_UPGRADE);
    if (head->method == DOMUS_HTTP_TRACE && (head->flags & DOMI_HTTP_CHUNKED || head->length != 0))
        return domi_http_refuse_head(head, 400);
    return (head->flags & DOMI_HTTP_EXPECTS) != 0 ? domi_http_refuse_head(head, 417) : 0;
}

int domi_http_check_head_as_a_whole(domi_http_head *head, const char *bytes)
{
    bool has_length = (head->flags & DOMI_HTTP_HAS_LENGTH) != 0;
    bool has_coding = (head->flags & DOMI_HTTP_HAS_CODING) != 0;

    if (head->kind == DOMI_HTTP_TRAILERS) {
        bool is_framing = has_length || has_coding || (head->flags & DOMI_HTTP_HAS_HOST) != 0;
        return is_framing ? domi_http_refuse_head(head, 400) : 0;
    }
    if (has_coding && (has_length || head->minor == 0))
        return domi_http_refuse_head(head, 400);
    return head->kind == DOMI_HTTP_REQUEST ? check_host_trace_and_expect_of_request(head, bytes)
                                           : 0;
}
