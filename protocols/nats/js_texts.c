/* Reads numbers, times and base64 as JetStream writes them, and makes names of inboxes. */
#include "protocols/nats/js.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#define SECOND_NS UINT64_C(1000000000)

int domi_js_read_number(const char *text, size_t size, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (size == 0)
        return -EPROTO;
    for (size_t i = 0; i < size; i++) {
        uint64_t digit = (uint64_t)(unsigned char)text[i] - '0';
        if (digit > 9 || number > (UINT64_MAX - digit) / 10)
            return -EPROTO;
        number = number * 10 + digit;
    }
    *ret_number = number;
    return 0;
}

/* Returns the days from 1970-01-01 to a day of the Gregorian calendar. Years begin with March here,
 * so that a leap day is the last day of its year. */
static uint64_t count_days_since_1970(uint64_t year, uint64_t month, uint64_t day)
{
    uint64_t years = month > 2 ? year : year - 1;
    uint64_t months = month > 2 ? month - 3 : month + 9;
    uint64_t days = years * 365 + years / 4 - years / 100 + years / 400;

    /* 719468 is the number of days before 1970-01-01, counted from March of year 0 */
    return days + (153 * months + 2) / 5 + day - 1 - 719468;
}

/* Read the digits behind the decimal point of a second. Returns false if there are none, or too
 * many. */
static bool read_fraction_of_second_as_ns(const char *text, size_t size, uint64_t *ret_ns)
{
    uint64_t ns = 0;

    if (size < 2 || size > 10 || text[0] != '.' ||
        domi_js_read_number(text + 1, size - 1, &ns) != 0)
        return false;
    for (size_t i = size; i < 10; i++)
        ns *= 10;
    *ret_ns = ns;
    return true;
}

uint64_t domi_js_read_time(const char *text, size_t size)
{
    static const char form[] = "0000-00-00T00:00:00";
    uint64_t parts[6]; /* in this order: year, month, day, hour, minute, second */
    uint64_t ns = 0;
    size_t at = 0;

    if (size < sizeof form || text[size - 1] != 'Z')
        return 0;
    for (size_t i = 0; i < 6; i++) {
        size_t digits = i == 0 ? 4 : 2;
        if (domi_js_read_number(text + at, digits, &parts[i]) != 0)
            return 0;
        at += digits;
        if (i < 5 && text[at] != form[at])
            return 0;
        at++;
    }
    at--; /* the last part, the second, has no separator behind it, so `at` steps back */
    if (size > sizeof form && !read_fraction_of_second_as_ns(text + at, size - 1 - at, &ns))
        return 0;
    if (parts[0] < 1970 || parts[0] > 2261 || parts[1] - 1 > 11 || parts[2] - 1 > 30 ||
        parts[3] > 23 || parts[4] > 59 || parts[5] > 60)
        return 0;
    uint64_t minutes =
        (count_days_since_1970(parts[0], parts[1], parts[2]) * 24 + parts[3]) * 60 + parts[4];
    return (minutes * 60 + parts[5]) * SECOND_NS + ns;
}

/* Returns the six bits that a character of base64 stands for; 64 for any other character. */
static uint32_t value_of_base64_character(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a') + 26;
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0') + 52;
    return c == '+' ? 62 : c == '/' ? 63 : 64;
}

int64_t domi_js_read_base64(const char *text, size_t size, char *to)
{
    size_t padding = 0;
    int64_t written = 0;

    if (size % 4 != 0)
        return -EPROTO;
    while (padding < 2 && padding < size && text[size - 1 - padding] == '=')
        padding++;
    for (size_t i = 0; i < size; i += 4) {
        size_t given = i + 4 == size ? 4 - padding : 4;
        uint32_t bits = 0;
        for (size_t k = 0; k < 4; k++) {
            uint32_t six = k < given ? value_of_base64_character(text[i + k]) : 0;
            if (six > 63)
                return -EPROTO;
            bits = bits << 6 | six;
        }
        for (size_t k = 0; k + 1 < given; k++)
            to[written++] = (char)(bits >> (16 - 8 * k) & 255);
    }
    return written;
}

uint64_t domi_js_seed_or_random_number(uint64_t seed)
{
    static const char place = 0;

    if (seed == 0 && getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        /* at boot the kernel may have no random bytes yet, so the address of a variable is the
         * seed */
        return (uint64_t)(uintptr_t)&place;
    return seed;
}

/* Returns the actor's next random number, by the generator splitmix64. */
uint64_t domi_js_next_random_number(uint64_t *random)
{
    uint64_t bits = *random += UINT64_C(0x9e3779b97f4a7c15);

    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

void domi_js_make_inbox_name(uint64_t *random, char inbox[DOMI_JS_INBOX_SIZE])
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUV";
    static const char prefix[] = "_INBOX.";
    size_t at = sizeof prefix - 1;

    memcpy(inbox, prefix, at);
    for (size_t word = 0; word < 2; word++) {
        uint64_t bits = domi_js_next_random_number(random);
        for (size_t i = 0; i < 11; i++, bits >>= 5)
            inbox[at++] = digits[bits & 31];
    }
    inbox[at] = '\0';
}
