/* Writes ranges of numbers as regular expressions (config_parts.h).
 *
 * A range is cut into pieces, such that all numbers of a piece have the same first digits and any
 * digits behind: 37..5120 is 37..39, 40..99, 100..999, 1000..4999, 5000..5099, 5100..5119, 5120. */
#include "tools/domus/config_parts.h"

#include <inttypes.h>
#include <stdlib.h>

/* most pieces into which a range of numbers is cut: two for each power of ten, and the last one */
#define CUTS_MAX   48
#define DIGITS_MAX 24

/* The last numbers of the pieces into which a range is cut. */
typedef struct cuts {
    uint64_t last[CUTS_MAX];
    size_t count;
} cuts;

static int compare_last_numbers(const void *one_, const void *other_)
{
    const uint64_t *one = one_, *other = other_;

    return (*one > *other) - (*one < *other);
}

/* Cut a range of numbers behind `low` with its last digits replaced by nines, and before `high`
 * with its last digits replaced by zeros. */
static void find_last_numbers_of_pieces_of_range(cuts *all, uint64_t low, uint64_t high)
{
    for (uint64_t ten = 10;; ten *= 10) {
        uint64_t begin = low / ten * ten;
        uint64_t zeros = (high + 1) / ten * ten;
        /* this is the number with nines at its end, computed without an overflow */
        if (begin < high && ten - 1 < high - begin)
            all->last[all->count++] = begin + (ten - 1);
        if (zeros > low)
            all->last[all->count++] = zeros - 1;
        if (ten > UINT64_MAX / 10)
            break;
    }
    all->last[all->count++] = high;
    qsort(all->last, all->count, sizeof all->last[0], compare_last_numbers);
}

/* Write the pattern of one piece of a range, whose two ends have equally many digits. */
static void write_pattern_of_numbers_of_same_length(FILE *out, uint64_t low, uint64_t high)
{
    char first[DIGITS_MAX], last[DIGITS_MAX];
    size_t i = 0;

    snprintf(first, sizeof first, "%" PRIu64, low);
    int length = snprintf(last, sizeof last, "%" PRIu64, high);
    for (; i < (size_t)length && first[i] == last[i]; i++)
        (void)fputc(first[i], out);
    if (i < (size_t)length && (first[i] != '0' || last[i] != '9')) {
        (void)fprintf(out, "[%c-%c]", first[i], last[i]);
        i++;
    }
    size_t any = (size_t)length - i; /* number of last digits of the piece that may be any digit */
    if (any == 1)
        (void)fputs("[0-9]", out);
    else if (any > 1)
        (void)fprintf(out, "[0-9]{%zu}", any);
}

/* Write a pattern for all numbers of one or more lengths, if `low` is a power of ten and the range
 * has all numbers of its length. Returns the last of them; 0: there are none. */
static uint64_t write_pattern_of_whole_lengths(FILE *out, uint64_t low, uint64_t high)
{
    int zeros = 0, most = 0;
    uint64_t ten = 1;

    for (; ten < low && ten <= UINT64_MAX / 10; ten *= 10)
        zeros++;
    if (ten != low)
        return 0;
    for (most = zeros; ten <= UINT64_MAX / 10 && ten * 10 - 1 <= high; ten *= 10)
        most++;
    if (most > zeros)
        (void)fprintf(out, most - zeros == 1 && zeros == 0 ? "[1-9]" : "[1-9][0-9]{%d,%d}", zeros,
                      most - 1);
    return most > zeros ? ten - 1 : 0;
}

void config_pattern_write_number_range(FILE *out, uint64_t low, uint64_t high)
{
    cuts all = {.count = 0};
    const char *before = "";

    if (high == UINT64_MAX) /* UINT64_MAX as a bound would overflow, but no key has it */
        high--;
    find_last_numbers_of_pieces_of_range(&all, low, high);
    for (size_t i = 0; i < all.count && low <= high; i++) {
        if (all.last[i] < low)
            continue;
        (void)fputs(before, out);
        uint64_t last = write_pattern_of_whole_lengths(out, low, high);
        if (last == 0)
            write_pattern_of_numbers_of_same_length(out, low, last = all.last[i]);
        low = last + 1;
        before = "|";
    }
}

/* Write a pattern for the powers of two within a range, in one unit. Returns whether there is any
 * such power. */
static bool write_pattern_of_powers_of_two(FILE *out, const config_range *range, uint64_t factor,
                                           const char *before)
{
    bool is_first = true;

    for (uint64_t power = 1; power != 0 && power <= range->high; power *= 2) {
        if (power < range->low || power % factor != 0)
            continue;
        (void)fprintf(out, "%s%" PRIu64, is_first ? before : "|", power / factor);
        is_first = false;
    }
    return !is_first;
}

/* Write a pattern for the numbers of a range except 0, in one unit, with `before` in front. Returns
 * whether there are any such numbers. */
static bool write_pattern_of_numbers_with_unit(FILE *out, const config_range *range,
                                               uint64_t factor, const char *before)
{
    uint64_t low = range->low / factor + (range->low % factor != 0);
    uint64_t high = range->high / factor;

    if (high == 0 || low > high)
        return false;
    if (range->is_power)
        return write_pattern_of_powers_of_two(out, range, factor, before);
    (void)fputs(before, out);
    config_pattern_write_number_range(out, low > 0 ? low : 1, high);
    return true;
}

/* Write a pattern for the number 0, which needs no unit, and may have any unit. */
static void write_pattern_of_zero_with_any_unit(FILE *out, const config_unit *units, bool is_first)
{
    const char *before = "(?:";

    (void)fprintf(out, "%s0", is_first ? "" : "|");
    for (; units->name != NULL; units++) {
        if (units->name[0] == '\0')
            continue;
        (void)fprintf(out, "%s%s", before, units->name);
        before = "|";
    }
    if (before[0] == '|')
        (void)fputs(")?", out);
}

bool config_pattern_write_range_in_all_units(FILE *out, const config_range *range,
                                             const config_unit *units)
{
    const char *before = "(?:";

    for (const config_unit *unit = units; unit->name != NULL; unit++) {
        if (!write_pattern_of_numbers_with_unit(out, range, unit->factor, before))
            continue;
        (void)fprintf(out, ")%s", unit->name);
        before = "|(?:";
    }
    bool is_any = before[0] == '|';
    if (range->takes_zero)
        write_pattern_of_zero_with_any_unit(out, units, !is_any);
    return is_any || range->takes_zero;
}
