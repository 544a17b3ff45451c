/* Numbers as RESP writes them: decimal digits, no plus sign, no leading zeros. */
#ifndef DOMI_PROTOCOLS_RESP_NUMBER_H
#define DOMI_PROTOCOLS_RESP_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOMI_RESP_DIGITS_MAX 20 /* characters of a number with its sign, at most */
/* bytes of a head, at most: a mark, a number, and the end of the line */
#define DOMI_RESP_HEAD_MAX 23

/* Write a number of several digits at `to`, as domi_resp_put_number() does. */
char *domi_resp_put_number_of_any_length(char *to, uint64_t number);

/* Write a number at `to`. Returns where it ends. */
static inline char *domi_resp_put_number(char *to, uint64_t number)
{
    if (number < 10) {
        *to++ = (char)('0' + number);
        return to;
    }
    if (number < 100) {
        *to++ = (char)('0' + number / 10);
        *to++ = (char)('0' + number % 10);
        return to;
    }
    return domi_resp_put_number_of_any_length(to, number);
}

static inline char *domi_resp_put_signed_number(char *to, int64_t number)
{
    if (number >= 0)
        return domi_resp_put_number(to, (uint64_t)number);
    *to++ = '-';
    return domi_resp_put_number(to, 0 - (uint64_t)number);
}

/* Write a head, which is a mark, a number and the end of the line, at `to`: at most
 * DOMI_RESP_HEAD_MAX bytes. Returns where it ends. */
static inline char *domi_resp_put_head(char *to, char mark, uint64_t number)
{
    *to++ = mark;
    to = domi_resp_put_number(to, number);
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

/* Read a number that takes all of the `size` bytes at `text`. Returns whether these bytes are a
 * number. */
bool domi_resp_read_whole_number(const char *text, size_t size, int64_t *ret_number);

/* Read a head whose number may have any length, as domi_resp_read_head() does. */
int domi_resp_read_head_of_any_size(const char *bytes, size_t size, int64_t *ret_number);

/* Read a head: the mark at `bytes`, the number behind it, and the end of the line. Returns the
 * bytes of the head; 0 when more bytes are needed; -EPROTO when it is wrong. */
static inline int domi_resp_read_head(const char *bytes, size_t size, int64_t *ret_number)
{
    if (size >= 5) {
        unsigned first = (unsigned char)bytes[1] - (unsigned)'0';
        unsigned second = (unsigned char)bytes[2] - (unsigned)'0';
        if (first <= 9 && bytes[2] == '\r' && bytes[3] == '\n') {
            *ret_number = first;
            return 4;
        }
        if (first - 1 <= 8 && second <= 9 && bytes[3] == '\r' && bytes[4] == '\n') {
            *ret_number = first * 10 + second;
            return 5;
        }
    }
    return domi_resp_read_head_of_any_size(bytes, size, ret_number);
}

#endif
