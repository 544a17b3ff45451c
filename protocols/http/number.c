/* Reads whole numbers from the text of forms, queries and paths. */
#include "protocols/http/texts.h"

#include <errno.h>
#include <stdbool.h>

/* Read digits of a number. Returns false if the text has anything else. A number beyond 64 bits
 * becomes UINT64_MAX. */
static bool read_digits_of_number(const char *text, uint64_t *ret_number)
{
    uint64_t number = 0;
    bool is_large = false;

    if (*text == '\0' || (*text == '0' && text[1] != '\0'))
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        is_large |= number > (UINT64_MAX - 9) / 10;
        number = number * 10 + (uint64_t)(*text - '0');
    }
    *ret_number = is_large ? UINT64_MAX : number;
    return true;
}

int domi_http_read_whole_number(const char *text, int64_t least, int64_t most, int64_t *ret_number)
{
    bool is_negative = *text == '-';
    uint64_t magnitude;

    if (!read_digits_of_number(text + is_negative, &magnitude) || (is_negative && magnitude == 0))
        return -EINVAL;
    if (magnitude > (uint64_t)INT64_MAX + is_negative)
        return -ERANGE;
    int64_t number = is_negative ? (int64_t)(~magnitude + 1) : (int64_t)magnitude;
    if (number < least || number > most)
        return -ERANGE;
    *ret_number = number;
    return 0;
}
