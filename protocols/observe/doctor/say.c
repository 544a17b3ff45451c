/* Writes the sentences and lines of YAML of findings (say.h). Texts that are too long are cut. */
#include "protocols/observe/doctor/say.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- numbers ---------------------------------------------------------------------------------- */

struct unit {
    double size;
    const char *name;
};

/* Write a number in the largest unit that it reaches. The table of units ends with the smallest. */
static domi_word write_number_in_largest_unit(double number, const struct unit *units)
{
    domi_word word;

    if (!(number > 0) || number > 1e18)
        number = number > 0 ? 1e18 : 0;
    while (units[1].name != NULL && number < units->size)
        units++;
    double value = number / units->size;
    bool is_whole = value >= 99.5 || value == (double)(uint64_t)value;
    snprintf(word.at, sizeof word.at, "%.*f%s",
             is_whole        ? 0
             : value >= 9.95 ? 1
                             : 2,
             value, units->name);
    return word;
}

domi_word domi_format_amount_as_word(double number)
{
    static const struct unit units[] = {{1e9, " G"}, {1e6, " M"}, {1e4, ""}, {1, ""}, {1, NULL}};
    domi_word word;

    if (number >= 1e6)
        return write_number_in_largest_unit(number, units);
    if (number >= 99.5 && number < 1e6) {
        snprintf(word.at, sizeof word.at, "%.0f", number);
        return word;
    }
    return write_number_in_largest_unit(number, &units[3]);
}

domi_word domi_format_share_as_percent(double share)
{
    domi_word word;

    if (!(share > 0))
        share = 0;
    snprintf(word.at, sizeof word.at, "%.*f %%", share > 0 && share < 0.0995 ? 1 : 0,
             share < 1e6 ? share * 100 : 1e8);
    return word;
}

domi_word domi_format_time_as_word(double ns)
{
    static const struct unit units[] = {
        {1e9, " s"}, {1e6, " ms"}, {1e3, " us"}, {1, " ns"}, {1, NULL}};

    return write_number_in_largest_unit(ns, units);
}

domi_word domi_format_bytes_as_word(double bytes)
{
    static const struct unit units[] = {
        {1e9, " GB"}, {1e6, " MB"}, {1e3, " kB"}, {1, " B"}, {1, NULL}};

    return write_number_in_largest_unit(bytes, units);
}

uint64_t domi_clamp_double_to_whole_number(double value, uint64_t least, uint64_t most)
{
    if (!(value > (double)least))
        return least;
    return value < (double)most ? (uint64_t)value : most;
}

/* --- texts ------------------------------------------------------------------------------------ */

bool domi_finding_write_sentence(domi_finding *finding, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(finding->sentence, sizeof finding->sentence, format, arguments);
    va_end(arguments);
    return true;
}

static void add_text_to_advised_yaml(domi_finding *finding, const char *text, size_t length)
{
    size_t used = strlen(finding->change);
    size_t room = sizeof finding->change - 1 - used;

    length = length < room ? length : room;
    memcpy(finding->change + used, text, length);
    finding->change[used + length] = '\0';
}

static void begin_new_line_of_advised_yaml(domi_finding *finding)
{
    if (finding->change[0] != '\0')
        add_text_to_advised_yaml(finding, "\n", 1);
}

/* Reopen the last line of a finding's YAML if it belongs to the same section as a key. Returns the
 * rest of the key to add. */
static const char *reopen_yaml_line_of_same_section(domi_finding *finding, const char *key)
{
    char *newline = strrchr(finding->change, '\n');
    char *line = newline != NULL ? newline + 1 : finding->change;
    size_t section = strcspn(key, "."), length = strlen(line);

    if (key[section] == '\0' || length <= section || strncmp(line, key, section) != 0 ||
        line[section] != ':' || line[length - 1] != '}')
        return NULL;
    line[length - 1] = '\0';
    add_text_to_advised_yaml(finding, ", ", 2);
    return key + section + 1;
}

void domi_finding_advise_value_of_key(domi_finding *finding, const char *key, const char *format,
                                      ...)
{
    char value[64];
    va_list arguments;
    int depth = 0;

    va_start(arguments, format);
    (void)vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    const char *rest = reopen_yaml_line_of_same_section(finding, key);
    if (rest != NULL) {
        key = rest;
        depth = 1;
    } else {
        begin_new_line_of_advised_yaml(finding);
    }
    for (; key[strcspn(key, ".")] != '\0'; depth++) {
        size_t length = strcspn(key, ".");
        add_text_to_advised_yaml(finding, key, length);
        add_text_to_advised_yaml(finding, ": {", 3);
        key += length + 1;
    }
    add_text_to_advised_yaml(finding, key, strlen(key));
    add_text_to_advised_yaml(finding, ": ", 2);
    add_text_to_advised_yaml(finding, value, strlen(value));
    for (; depth > 0; depth--)
        add_text_to_advised_yaml(finding, "}", 1);
}

void domi_finding_advise_in_words(domi_finding *finding, const char *sentence)
{
    begin_new_line_of_advised_yaml(finding);
    add_text_to_advised_yaml(finding, "# ", 2);
    add_text_to_advised_yaml(finding, sentence, strlen(sentence));
}
