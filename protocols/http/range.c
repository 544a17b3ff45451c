/* Reads the ranges of bytes that a request asks for (Range), and writes the one that an answer has
 * (Content-Range). */
#include "protocols/http/chars.h"

#include <domus/http_range.h>

#include <errno.h>
#include <inttypes.h>

/* Read the number at the start of a text; a number that is too large becomes the greatest. Returns
 * how many digits it has. */
static size_t read_number_of_range(const char *text, size_t size, uint64_t *ret_number)
{
    uint64_t number = 0;
    size_t i = 0;

    for (; i < size && text[i] >= '0' && text[i] <= '9'; i++) {
        uint64_t digit = (uint64_t)(text[i] - '0');
        number = number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : number * 10 + digit;
    }
    *ret_number = number;
    return i;
}

/* Read one range: "a-b", "a-" or "-b". Returns 1; 0 if the range lies behind the end of the body;
 * -EINVAL. */
static int read_range_of_bytes(const char *text, size_t size, uint64_t length,
                               domus_http_range *ret_range)
{
    uint64_t first;
    uint64_t last;
    size_t digits = read_number_of_range(text, size, &first);

    if (digits == size || text[digits] != '-')
        return -EINVAL;
    const char *rest = text + digits + 1;
    size_t left = size - digits - 1;
    if (read_number_of_range(rest, left, &last) != left || (digits == 0 && left == 0))
        return -EINVAL;
    if (digits == 0) { /* the range "-b" means the last b bytes of the body */
        *ret_range = (domus_http_range){last < length ? length - last : 0, length - 1};
        return last != 0 && length != 0;
    }
    if (left == 0 || last >= length)
        last = length - 1;
    else if (last < first)
        return -EINVAL;
    *ret_range = (domus_http_range){first, last};
    return first < length;
}

static bool overlaps_any_range(domus_http_range range, const domus_http_range *others,
                               uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (range.first <= others[i].last && others[i].first <= range.last)
            return true;
    }
    return false;
}

int domus_http_read_range(domus_slice value, uint64_t length, domus_http_range *to, uint32_t room)
{
    const char *text = domus_slice_data(value);
    const char *element;
    size_t size;
    size_t at = 0;
    uint32_t count = 0;
    bool any = false;
    domus_http_range range;

    if (value.size < 6 || !domi_http_is_word_regardless_of_case(text, 6, "bytes="))
        return 0;
    while (domi_http_next_element_of_list(text + 6, value.size - 6, &at, &element, &size)) {
        if (size == 0) /* an element of a list of ranges may be empty (RFC 9110 5.6.1.2) */
            continue;
        any = true;
        int result = read_range_of_bytes(element, size, length, &range);
        if (result < 0)
            return 0;
        if (result == 0)
            continue;
        if (count == room || overlaps_any_range(range, to, count))
            return 0;
        to[count++] = range;
    }
    return count != 0 ? (int)count : any ? -ERANGE : 0;
}

int domus_http_add_content_range(domus_appender *fields, domus_http_range range, uint64_t length)
{
    return domus_append_text(fields, "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n",
                             range.first, range.last, length);
}

int domus_http_add_unsatisfied(domus_appender *fields, uint64_t length)
{
    return domus_append_text(fields, "Content-Range: bytes */%" PRIu64 "\r\n", length);
}
