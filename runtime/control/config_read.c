/* This file reads single values of keys: counts, percentages, durations, sizes and words.
 *
 * It is strict: it takes only a whole text, without signs and in base 10. libc and libcyaml accept
 * some texts that are no plain values (`500us` for a count, `010`, `-1`, ` 5`); here each of them
 * is an error, with a message that names what was expected. */
#include <domus/config.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct unit {
    const char *name; /* unit of a value, as it is written behind the number (`us`, `KiB`) */
    uint64_t factor;  /* nanoseconds or bytes that one such unit has */
};

#define SHOWN_MAX 48 /* most bytes of a wrong value that an error shows */

#define US     UINT64_C(1000) /* nanoseconds in a microsecond */
#define MS     (1000 * US)
#define SECOND (1000 * MS)

static const struct unit no_unit[] = {{"", 1}, {NULL, 0}};
static const struct unit percent_or_none[] = {{"", 1}, {"%", 1}, {NULL, 0}};
static const struct unit percent[] = {{"%", 1}, {NULL, 0}};
static const struct unit times[] = {{"ns", 1},     {"us", US},         {"ms", MS},
                                    {"s", SECOND}, {"m", 60 * SECOND}, {"h", 3600 * SECOND},
                                    {NULL, 0}};
static const struct unit sizes[] = {
    {"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {NULL, 0}};

/* Returns the table of units in which a value of this kind (a duration, a size) may be written. */
static const struct unit *get_units_of_kind(domus_config_kind kind)
{
    switch (kind) {
    case DOMUS_CONFIG_PERCENT:
        return percent_or_none;
    case DOMUS_CONFIG_SHARE:
        return percent;
    case DOMUS_CONFIG_DURATION:
        return times;
    case DOMUS_CONFIG_SIZE:
        return sizes;
    default:
        return no_unit;
    }
}

/* Write which text is expected as the value of a key, with an example ("such as"). */
static void describe_expected_value(const domus_config_key *key, char *text, size_t size)
{
    static const char *const kinds[] = {
        [DOMUS_CONFIG_COUNT] = "a count such as 8",
        [DOMUS_CONFIG_PERCENT] = "a percentage such as 50",
        [DOMUS_CONFIG_SHARE] = "a percentage such as 50%",
        [DOMUS_CONFIG_DURATION] = "a duration such as 500us (ns, us, ms, s, m, h)",
        [DOMUS_CONFIG_SIZE] = "a size such as 64KiB (B, KiB, MiB, GiB)",
    };
    size_t used = 0;

    if (key->kind == DOMUS_CONFIG_WORD) {
        text[0] = '\0';
        for (size_t i = 0; key->words[i] != NULL && used < size; i++)
            used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? " or " : "",
                                     key->words[i]);
    } else {
        snprintf(text, size, "%s%s%s", key->special != NULL ? key->special : "",
                 key->special != NULL ? " or " : "", kinds[key->kind]);
    }
}

/* Returns how many bytes of a wrong value an error shows, so that no UTF-8 character is cut in
 * two. */
static int count_bytes_shown_in_error(const char *text)
{
    size_t length = strnlen(text, SHOWN_MAX + 1);

    if (length <= SHOWN_MAX)
        return (int)length;
    length = SHOWN_MAX;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    return (int)length;
}

static int write_error_of_wrong_value(const domus_config_key *key, const char *text, char *error,
                                      size_t error_size)
{
    char expected[128];

    describe_expected_value(key, expected, sizeof expected);
    if (text[0] == '\0')
        snprintf(error, error_size, "expected %s, found nothing", expected);
    else
        snprintf(error, error_size, "expected %s, found '%.*s'", expected,
                 count_bytes_shown_in_error(text), text);
    return -EINVAL;
}

/* Read the decimal digits at `*text`, and move `*text` behind them. A number beyond 64 bits is
 * read to its end, and `*ret_huge` is set. Returns false if there is no number, or if it has a
 * leading zero. */
static bool read_digits(const char **text, uint64_t *ret_number, bool *ret_huge)
{
    const char *digits = *text;
    size_t length = strspn(digits, "0123456789");

    *ret_number = 0;
    *ret_huge = false;
    if (length == 0 || (length > 1 && digits[0] == '0'))
        return false;
    for (size_t i = 0; i < length; i++) {
        *ret_huge |= __builtin_mul_overflow(*ret_number, UINT64_C(10), ret_number);
        *ret_huge |= __builtin_add_overflow(*ret_number, (uint64_t)(digits[i] - '0'), ret_number);
    }
    *text += length;
    return true;
}

/* True if the key has a word that stands for 0 (as `auto`), so that the digit 0 is refused. */
static bool has_word_for_zero(const domus_config_key *key)
{
    return key->special != NULL && key->special_number == 0;
}

static int read_value_as_number(const domus_config_key *key, const char *text, uint64_t *ret_number,
                                char *error, size_t error_size)
{
    const struct unit *unit = get_units_of_kind(key->kind);
    const char *rest = text;
    uint64_t number;
    bool huge;

    if (!read_digits(&rest, &number, &huge))
        return write_error_of_wrong_value(key, text, error, error_size);
    if (number == 0 && !huge && *rest == '\0')
        unit = no_unit; /* the value 0 is the only one that may be written without a unit */
    while (unit->name != NULL && strcmp(rest, unit->name) != 0)
        unit++;
    if (unit->name == NULL || (number == 0 && !huge && has_word_for_zero(key)))
        return write_error_of_wrong_value(key, text, error, error_size);
    if (huge || __builtin_mul_overflow(number, unit->factor, &number) ||
        (key->special != NULL && number != 0 && number == key->special_number)) {
        snprintf(error, error_size, "'%.*s' is too large", count_bytes_shown_in_error(text), text);
        return -EINVAL;
    }
    *ret_number = number;
    return 0;
}

static int read_value_as_word(const domus_config_key *key, const char *text, uint64_t *ret_number,
                              char *error, size_t error_size)
{
    for (size_t i = 0; key->words[i] != NULL; i++) {
        if (strcmp(key->words[i], text) == 0) {
            *ret_number = i;
            return 0;
        }
    }
    return write_error_of_wrong_value(key, text, error, error_size);
}

int domus_config_key_read(const domus_config_key *key, const char *text, uint64_t *ret_number,
                          char *error, size_t error_size)
{
    if (key->special != NULL && strcmp(text, key->special) == 0) {
        *ret_number = key->special_number;
        return 0;
    }
    switch (key->kind) {
    case DOMUS_CONFIG_WORD:
        return read_value_as_word(key, text, ret_number, error, error_size);
    case DOMUS_CONFIG_CPUS:
    case DOMUS_CONFIG_NAME:
    case DOMUS_CONFIG_ADDRESS:
    case DOMUS_CONFIG_TEXT:
    case DOMUS_CONFIG_NETWORKS:
    case DOMUS_CONFIG_TEXTS:
        *ret_number = 0;
        return 0;
    default:
        return read_value_as_number(key, text, ret_number, error, error_size);
    }
}
