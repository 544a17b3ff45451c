/* Reads numbers. Most doubles that people write have few digits and a small exponent: digits below
 * 2^53 and a power of ten up to 10^22 are both exact as doubles, so one operation rounds once and
 * gives the nearest. strtod(3) reads all others, in the locale "C", which in the C library is a
 * constant: neither made nor freed. */
#include "protocols/json/number.h"

#include <errno.h>
#include <float.h>
#include <locale.h>
#include <stdlib.h>

int domi_json_read_integer(const char *text, size_t size, bool *ret_negative, uint64_t *ret_value)
{
    bool is_negative = text[0] == '-';
    bool is_large = false;
    uint64_t value = 0;

    for (size_t i = is_negative ? 1 : 0; i < size; i++) {
        uint64_t digit = (uint64_t)(unsigned char)text[i] - '0';
        if (digit > 9)
            return -EINVAL;
        is_large = is_large || value > (UINT64_MAX - digit) / 10;
        value = value * 10 + digit;
    }
    if (is_large)
        return -ERANGE;
    *ret_negative = is_negative && value != 0;
    *ret_value = value;
    return 0;
}

static double read_double_by_strtod(char *text, size_t size)
{
    locale_t points = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = points != (locale_t)0 ? uselocale(points) : (locale_t)0;
    char behind = text[size];

    text[size] = '\0';
    double value = strtod(text, NULL);
    text[size] = behind;
    if (points != (locale_t)0) {
        (void)uselocale(before);
        freelocale(points);
    }
    return value;
}

/* The digits of a number as one integer, and the power of ten by which it is multiplied. */
typedef struct decimal {
    uint64_t digits;
    int power;
} decimal;

/* Read the digits and the power of a number. Returns false unless the digits are so few, and the
 * power so small, that a double holds both exactly. */
static bool read_decimal_if_exact(const char *at, const char *end, decimal *ret_decimal)
{
    decimal got = {0, 0};
    bool is_behind = false;
    int exponent = 0;
    bool is_small = false;

    if (end - at > 24)
        return false;
    for (; at != end && (*at | 0x20) != 'e'; at++) {
        if (*at == '.') {
            is_behind = true;
            continue;
        }
        if (got.digits >= (UINT64_C(1) << 53) / 10)
            return false;
        got.digits = 10 * got.digits + (uint64_t)(*at - '0');
        got.power -= is_behind ? 1 : 0;
    }
    if (at != end) {
        at++;
        is_small = *at == '-';
        at += *at == '-' || *at == '+' ? 1 : 0;
        for (; at != end && exponent < 1000; at++)
            exponent = 10 * exponent + (*at - '0');
    }
    got.power += is_small ? -exponent : exponent;
    *ret_decimal = got;
    return true;
}

double domi_json_read_real(char *text, size_t size)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    bool is_negative = text[0] == '-';
    decimal got;

    if (FLT_EVAL_METHOD != 0 ||
        !read_decimal_if_exact(text + (is_negative ? 1 : 0), text + size, &got) ||
        got.power < -22 || got.power > 22)
        return read_double_by_strtod(text, size);
    double value = (double)got.digits;
    value = got.power < 0 ? value / powers[-got.power] : value * powers[got.power];
    return is_negative ? -value : value;
}
