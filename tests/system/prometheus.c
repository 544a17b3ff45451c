/* Reads Prometheus' text line by line. The current family is the one that the last TYPE line has
 * named. */
#include "tests/system/prometheus.h"
#include "tests/support/suite.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SIZE    128
#define FAMILIES_MAX 256u

struct reader {
    char helped[NAME_SIZE]; /* name of the family in the last HELP line */
    char family[NAME_SIZE]; /* name of the family in the last TYPE line */
    char type[16];
    /* number of families so far, and of samples of the current family */
    uint32_t families, samples;
    char names[FAMILIES_MAX][NAME_SIZE];
};

static size_t length_of_name(const char *text)
{
    size_t length = 0;

    while (isalnum((unsigned char)text[length]) || text[length] == '_' || text[length] == ':')
        length++;
    return isdigit((unsigned char)text[0]) ? 0 : length;
}

static void read_metric_name(const char *line, const char *at, char ret_name[NAME_SIZE])
{
    size_t length = length_of_name(at);

    ck_assert_msg(length > 0 && length < NAME_SIZE, "no name: %s", line);
    snprintf(ret_name, NAME_SIZE, "%.*s", (int)length, at);
}

static void read_type_line(struct reader *reader, const char *line)
{
    ck_assert_msg(reader->families == 0 || reader->samples > 0, "an empty family before: %s", line);
    read_metric_name(line, line + 7, reader->family);
    ck_assert_msg(strcmp(reader->family, reader->helped) == 0, "no HELP before: %s", line);
    for (uint32_t i = 0; i < reader->families; i++)
        ck_assert_msg(strcmp(reader->names[i], reader->family) != 0, "twice: %s", line);
    ck_assert_uint_lt(reader->families, FAMILIES_MAX);
    snprintf(reader->names[reader->families++], NAME_SIZE, "%s", reader->family);
    snprintf(reader->type, sizeof reader->type, "%s", line + 7 + strlen(reader->family) + 1);
    ck_assert_msg(strcmp(reader->type, "counter") == 0 || strcmp(reader->type, "gauge") == 0 ||
                      strcmp(reader->type, "histogram") == 0,
                  "no type: %s", line);
    bool is_total = strlen(reader->family) > 6 &&
                    strcmp(reader->family + strlen(reader->family) - 6, "_total") == 0;
    ck_assert_msg(is_total == (strcmp(reader->type, "counter") == 0), "a wrong name: %s", line);
    reader->samples = 0;
}

/* Check and skip the labels that stand behind the name of a sample, if any: {label="value",...}. */
static const char *check_and_skip_labels(const char *line, const char *at)
{
    if (*at != '{')
        return at;
    do {
        size_t length = length_of_name(++at);
        ck_assert_msg(length > 0 && strncmp(at + length, "=\"", 2) == 0, "a wrong label: %s", line);
        at += length + 2;
        at += strcspn(at, "\"\\");
        ck_assert_msg(*at == '"', "a wrong value of a label: %s", line);
        at++;
    } while (*at == ',');
    ck_assert_msg(*at == '}', "labels without an end: %s", line);
    return at + 1;
}

static void read_sample_line(struct reader *reader, const char *line)
{
    static const char *const suffixes[] = {"_bucket", "_sum", "_count"};
    char name[NAME_SIZE];
    char *end;
    bool is_ours;

    read_metric_name(line, line, name);
    size_t length = strlen(reader->family);
    is_ours = strcmp(name, reader->family) == 0;
    for (size_t i = 0; i < 3 && strcmp(reader->type, "histogram") == 0; i++)
        is_ours = is_ours || (strncmp(name, reader->family, length) == 0 &&
                              strcmp(name + length, suffixes[i]) == 0);
    ck_assert_msg(reader->families > 0 && is_ours, "of another family: %s", line);
    const char *value = check_and_skip_labels(line, line + strlen(name));
    ck_assert_msg(value[0] == ' ' && value[1] != ' ', "no value: %s", line);
    ck_assert_msg(strtod(value + 1, &end) >= 0 && end != value + 1 && *end == '\0',
                  "a wrong value: %s", line);
    reader->samples++;
}

static void read_any_line(struct reader *reader, const char *line)
{
    if (strncmp(line, "# HELP ", 7) == 0) {
        read_metric_name(line, line + 7, reader->helped);
        ck_assert_msg(line[7 + strlen(reader->helped)] == ' ', "no help: %s", line);
    } else if (strncmp(line, "# TYPE ", 7) == 0) {
        read_type_line(reader, line);
    } else {
        read_sample_line(reader, line);
    }
}

uint32_t domt_prometheus_check_text(const char *text)
{
    static struct reader reader;
    char line[512];

    reader = (struct reader){.families = 0};
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        ck_assert_msg(text[length] == '\n' && length < sizeof line, "no whole line: %s", text);
        snprintf(line, sizeof line, "%.*s", (int)length, text);
        read_any_line(&reader, line);
        text += length + 1;
    }
    return reader.families;
}

double domt_prometheus_sum_samples_of_name(const char *text, const char *name)
{
    size_t length = strlen(name);
    double sum = -1;

    for (; *text != '\0'; text += strcspn(text, "\n") + 1) {
        if (strncmp(text, name, length) != 0 || (text[length] != ' ' && text[length] != '{'))
            continue;
        const char *value = memchr(text, ' ', strcspn(text, "\n"));
        sum = (sum < 0 ? 0 : sum) + (value != NULL ? strtod(value + 1, NULL) : 0);
    }
    return sum;
}
