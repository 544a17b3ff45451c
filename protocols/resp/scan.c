/* Reads the heads of values, and refuses what is no RESP: numbers with a plus sign or leading
 * zeros, lines that do not end with "\r\n", lengths below -1, and the strings and arrays of unknown
 * length that the specification of RESP 3 mentions and no server sends. */
#include "protocols/resp/scan.h"

#include "protocols/resp/number.h"

#include <errno.h>

/* Find the end of a line. Returns the bytes of the line with its end; 0 if the end has not come;
 * -EPROTO. */
static int read_line_of_value(const char *bytes, size_t size, size_t looked)
{
    const char *end = memchr(bytes + looked, '\r', size - looked);

    if (end == NULL)
        return memchr(bytes + looked, '\n', size - looked) != NULL ? -EPROTO : 0;
    size_t length = (size_t)(end - bytes);
    if (memchr(bytes, '\n', length) != NULL)
        return -EPROTO;
    if (length + 1 == size)
        return 0;
    return end[1] == '\n' ? (int)length + 2 : -EPROTO;
}

/* Returns whether a text may be a double, as strtod(3) reads it. */
static bool is_text_of_double(const char *text, size_t size)
{
    static const char marks[] = {'.', 'e', 'E', '+', '-'};
    size_t sign = size != 0 && (text[0] == '-' || text[0] == '+');
    bool digit = false;

    if (size - sign == 3 &&
        (memcmp(text + sign, "inf", 3) == 0 || memcmp(text + sign, "nan", 3) == 0))
        return true;
    for (size_t i = 0; i < size; i++) {
        bool is_digit = text[i] >= '0' && text[i] <= '9';
        if (!is_digit && memchr(marks, text[i], sizeof marks) == NULL)
            return false;
        digit |= is_digit;
    }
    return digit && size <= 63;
}

static bool is_text_of_big_number(const char *text, size_t size)
{
    size_t i = size != 0 && text[0] == '-';

    if (i == size)
        return false;
    for (; i < size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
    }
    return true;
}

/* Returns whether the text of a value that is a line fits the value's kind. */
static bool does_line_fit_kind(const char *text, domi_resp_item *item)
{
    switch (item->kind) {
    case DOMUS_RESP_INTEGER:
        return domi_resp_read_whole_number(text, item->line, &item->integer);
    case DOMUS_RESP_BOOLEAN:
        item->integer = item->line == 1 && text[0] == 't';
        return item->line == 1 && (text[0] == 't' || text[0] == 'f');
    case DOMUS_RESP_DOUBLE:
        return is_text_of_double(text, item->line);
    case DOMUS_RESP_BIG_NUMBER:
        return is_text_of_big_number(text, item->line);
    case DOMUS_RESP_NULL:
        return item->line == 0;
    default:
        return true;
    }
}

/* Read a head whose line is a length or a count. Returns as domi_resp_scan_head_of_value(). */
static int scan_head_with_length_or_count(const char *bytes, size_t size, domi_resp_item *item)
{
    int64_t number;
    int used = domi_resp_read_head(bytes, size, &number);
    char mark = bytes[0];
    uint32_t per_count = mark == '%' || mark == '|' ? 2 : 1;

    if (used <= 0)
        return used;
    if (number == -1 && (mark == '$' || mark == '*')) {
        item->kind = DOMUS_RESP_NULL;
        return used;
    }
    if (number < 0 || number > INT32_MAX)
        return -EPROTO;
    if (mark == '$' || mark == '!' || mark == '=')
        item->body = (uint32_t)number + 2;
    else
        item->count = (uint32_t)number * per_count;
    return mark == '=' && number < 4 ? -EPROTO : used;
}

int domi_resp_scan_head_of_value(const char *bytes, size_t size, size_t looked,
                                 domi_resp_item *ret_item)
{
    *ret_item = (domi_resp_item){.kind = (domus_resp_kind)(unsigned char)bytes[0]};
    switch (bytes[0]) {
    case '_':
    case '#':
    case ',':
    case '(':
        ret_item->only_3 = true;
        break;
    case '+':
    case '-':
    case ':':
        break;
    case '!':
    case '=':
    case '%':
    case '~':
    case '>':
    case '|':
        ret_item->only_3 = true;
        return scan_head_with_length_or_count(bytes, size, ret_item);
    case '$':
    case '*':
        return scan_head_with_length_or_count(bytes, size, ret_item);
    default:
        return -EPROTO;
    }
    int used = read_line_of_value(bytes, size, looked);
    if (used <= 0)
        return used;
    ret_item->line = (uint32_t)used - 3;
    return does_line_fit_kind(bytes + 1, ret_item) ? used : -EPROTO;
}
