/* Writes and reads dates of HTTP, without the locale and the time zone of the program. */
#include <domus/http_date.h>

#include <string.h>

#define DAY_SECONDS INT64_C(86400)
#define SECONDS_MAX INT64_C(253402300799)

static const char *const weekdays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};
static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

/* Returns how many days a date of the Gregorian calendar lies behind 1970-01-01. Years begin in
 * March here, so that a leap day is the last day of its year. */
static int64_t count_days_since_1970(int64_t year, unsigned month, unsigned day)
{
    year -= month <= 2;
    int64_t era = year / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (int64_t)((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1);

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* Find the year, month and day of a day that is counted from 1970-01-01. */
static void find_date_of_day_number(int64_t days, int64_t *ret_year, unsigned *ret_month,
                                    unsigned *ret_day)
{
    days += 719468;
    int64_t era = days / 146097;
    int64_t of_era = days - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;

    *ret_day = (unsigned)(of_year - (153 * month + 2) / 5 + 1);
    *ret_month = (unsigned)(month < 10 ? month + 3 : month - 9);
    *ret_year = year + era * 400 + (*ret_month <= 2);
}

static char *put_number_of_digits(char *to, unsigned number, unsigned digits)
{
    for (unsigned i = digits; i > 0; i--, number /= 10)
        to[i - 1] = (char)('0' + number % 10);
    return to + digits;
}

static char *put_text_of_date(char *to, const char *text, size_t size)
{
    memcpy(to, text, size);
    return to + size;
}

void domus_http_date(int64_t seconds, char to[DOMUS_HTTP_DATE_SIZE + 1])
{
    int64_t year;
    unsigned month;
    unsigned day;

    if (seconds < 0)
        seconds = 0;
    if (seconds > SECONDS_MAX)
        seconds = SECONDS_MAX;
    int64_t days = seconds / DAY_SECONDS;
    unsigned rest = (unsigned)(seconds % DAY_SECONDS);
    find_date_of_day_number(days, &year, &month, &day);
    to = put_text_of_date(to, weekdays[(days + 4) % 7], 3);
    to = put_text_of_date(to, ", ", 2);
    to = put_number_of_digits(to, day, 2);
    *to++ = ' ';
    to = put_text_of_date(to, months + (size_t)3 * (month - 1), 3);
    *to++ = ' ';
    to = put_number_of_digits(to, (unsigned)year, 4);
    *to++ = ' ';
    to = put_number_of_digits(to, rest / 3600, 2);
    *to++ = ':';
    to = put_number_of_digits(to, rest / 60 % 60, 2);
    *to++ = ':';
    to = put_number_of_digits(to, rest % 60, 2);
    (void)put_text_of_date(to, " GMT", 5);
}

/* --- reading dates ---------------------------------------------------------------------------- */

/* The parts of a date while it is read from a text. */
typedef struct parts {
    unsigned year;
    unsigned month;
    unsigned day;
    unsigned hour;
    unsigned minute;
    unsigned second;
    unsigned weekday;
} parts;

/* Match a text with a pattern: 'Y', 'D', 'h', 'm' and 's' stand for digits, 'd' for a digit or a
 * space, 'N' with the two bytes behind it for the name of a month; any other byte stands for
 * itself. */
static bool match_date_with_pattern(const char *text, size_t size, const char *pattern,
                                    parts *ret_parts)
{
    parts found = {0};

    if (size != strlen(pattern))
        return false;
    for (size_t i = 0; i < size; i++) {
        char kind = pattern[i];
        unsigned *number = kind == 'Y'                  ? &found.year
                           : kind == 'D' || kind == 'd' ? &found.day
                           : kind == 'h'                ? &found.hour
                           : kind == 'm'                ? &found.minute
                           : kind == 's'                ? &found.second
                                                        : NULL;
        if (kind == 'N') {
            while (found.month < 12 && memcmp(months + 3 * (size_t)found.month, text + i, 3) != 0)
                found.month++;
            if (found.month++ == 12)
                return false;
            i += 2;
        } else if (number == NULL) {
            if (text[i] != kind)
                return false;
        } else if (kind == 'd' && text[i] == ' ') {
            continue;
        } else if (text[i] < '0' || text[i] > '9') {
            return false;
        } else {
            *number = *number * 10 + (unsigned)(text[i] - '0');
        }
    }
    *ret_parts = found;
    return true;
}

/* Returns the number of days in a month of a year. */
static unsigned count_days_of_month(unsigned year, unsigned month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return days[month - 1] + (unsigned)(month == 2 && is_leap);
}

/* Returns how many bytes the weekday at the start of a text has: three letters, or with `whole` a
 * whole word; 0 for another text. */
static size_t size_of_weekday_at_start(const char *text, size_t size, bool whole)
{
    for (size_t i = 0; i < 7; i++) {
        size_t length = whole ? strlen(weekdays[i]) : 3;
        if (size > length && memcmp(text, weekdays[i], length) == 0)
            return length;
    }
    return 0;
}

bool domus_http_read_date(const char *text, size_t size, int64_t *ret_seconds)
{
    size_t name = size_of_weekday_at_start(text, size, false);
    size_t whole = size_of_weekday_at_start(text, size, true);
    parts at;

    if (name == 0)
        return false;
    if (whole != 0 &&
        match_date_with_pattern(text + whole, size - whole, ", DD-N  -YY hh:mm:ss GMT", &at))
        at.year += at.year < 70 ? 2000 : 1900;
    else if (!match_date_with_pattern(text + name, size - name, ", DD N   YYYY hh:mm:ss GMT",
                                      &at) &&
             !match_date_with_pattern(text + name, size - name, " N   dD hh:mm:ss YYYY", &at))
        return false;
    if (at.year < 1970 || at.day == 0 || at.day > count_days_of_month(at.year, at.month) ||
        at.hour > 23 || at.minute > 59 || at.second > 60)
        return false;
    *ret_seconds = count_days_since_1970(at.year, at.month, at.day) * DAY_SECONDS +
                   (int64_t)(at.hour * 3600 + at.minute * 60 + at.second);
    return true;
}
