/* Reads the numbers of RESP strictly, as redis-server does: a sign other than '-', a leading zero,
 * and "-0" are wrong. */
#include "protocols/resp/number.h"

#include <errno.h>

/* Read the digits of a number up to the first byte that is no digit. Returns how many bytes the
 * digits and the sign take; -EPROTO when they cannot become a valid number any more. */
static int read_digits_of_number(const char *text, size_t size, int64_t *ret_number)
{
    bool negative = size != 0 && text[0] == '-';
    size_t begin = negative ? 1 : 0;
    size_t i = begin;
    uint64_t number = 0;
    uint64_t most = negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX;

    for (; i < size && text[i] >= '0' && text[i] <= '9'; i++) {
        uint64_t digit = (uint64_t)(text[i] - '0');
        if ((i > begin || negative) && text[begin] == '0')
            return -EPROTO;
        if (number > (most - digit) / 10)
            return -EPROTO;
        number = number * 10 + digit;
    }
    if (i == begin && i < size)
        return -EPROTO;
    *ret_number = (int64_t)(negative ? 0 - number : number);
    return (int)i;
}

char *domi_resp_put_number_of_any_length(char *to, uint64_t number)
{
    char digits[DOMI_RESP_DIGITS_MAX];
    int count = 0;

    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    while (count != 0)
        *to++ = digits[--count];
    return to;
}

bool domi_resp_read_whole_number(const char *text, size_t size, int64_t *ret_number)
{
    int used = size != 0 ? read_digits_of_number(text, size, ret_number) : -EPROTO;

    return used > 0 && (size_t)used == size && text[size - 1] != '-';
}

int domi_resp_read_head_of_any_size(const char *bytes, size_t size, int64_t *ret_number)
{
    int used = read_digits_of_number(bytes + 1, size - 1, ret_number);

    if (used < 0)
        return used;
    size_t end = 1 + (size_t)used;
    if (end < size && bytes[end] != '\r')
        return -EPROTO;
    if (end + 1 >= size)
        return 0;
    return bytes[end + 1] == '\n' ? (int)end + 2 : -EPROTO;
}
