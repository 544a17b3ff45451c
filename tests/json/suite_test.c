/* The cases of JSONTestSuite (by Nicolas Seriot, under the MIT licence), which are in suite.txt:
 * texts that have to be read are read, texts that have to be refused are refused, and of the texts
 * for which a parser may choose, the list below says which are read. */
#include "tests/support/suite.h"

#include <domus/json.h>

#include <stdio.h>
#include <string.h>

/* The optional texts that are read: numbers that a double can represent, also after rounding. */
static const char *const taken[] = {
    "i_number_double_huge_neg_exp", "i_number_real_underflow",        "i_number_too_big_neg_int",
    "i_number_too_big_pos_int",     "i_number_very_big_negative_int",
};

static char bytes[300000];

static size_t unescape_text(const char *text, size_t length, char *to)
{
    size_t size = 0;
    unsigned code;

    for (size_t i = 0; i < length; i++) {
        if (text[i] != '\\') {
            to[size++] = text[i];
            continue;
        }
        i++;
        if (text[i] == 'x') {
            ck_assert_int_eq(sscanf(text + i + 1, "%2x", &code), 1);
            to[size++] = (char)code;
            i += 2;
        } else {
            to[size++] = text[i] == 'n' ? '\n' : text[i] == 't' ? '\t' : text[i];
        }
    }
    return size;
}

/* Returns the length of "COUNT*" at the begin of a body; 0: the body does not begin so. */
static size_t read_count(const char *body, unsigned *ret_count)
{
    int used = 0;

    return sscanf(body, "%u*%n", ret_count, &used) == 1 ? (size_t)used : 0;
}

/* Decode a body: either bytes with the escapes of C, or words of COUNT*BYTES. */
static size_t decode_body(const char *body)
{
    size_t size = 0;
    unsigned count;

    if (read_count(body, &count) == 0)
        return unescape_text(body, strlen(body), bytes);
    while (*body != '\0') {
        body += read_count(body, &count);
        size_t length = strcspn(body, " ");
        for (; count != 0; count--)
            size += unescape_text(body, length, bytes + size);
        body += length + strspn(body + length, " ");
    }
    return size;
}

static bool is_taken(const char *name)
{
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        if (strcmp(taken[i], name) == 0)
            return true;
    }
    return name[0] == 'y';
}

static void check_case(const char *name, size_t size)
{
    domus_json_error error = {.line = 0};
    int result = domus_json_check(NULL, bytes, size, &error);

    ck_assert_msg((result == 0) == is_taken(name), "%s: %d %s", name, result, error.words);
    ck_assert_msg(result == 0 || (error.line != 0 && error.offset <= size), "%s has no place",
                  name);
}

DOMT_TEST(all_cases_of_the_suite_are_read_or_refused)
{
    static char line[4096];
    uint32_t counts[256] = {0};
    FILE *file = fopen(DOMT_SOURCE_DIR "/tests/json/suite.txt", "r");

    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *body = strchr(line, ' ');
        ck_assert_ptr_nonnull(body);
        *body++ = '\0';
        check_case(line, decode_body(body));
        counts[(unsigned char)line[0]]++;
    }
    fclose(file);
    ck_assert_uint_eq(counts['y'], 95);
    ck_assert_uint_eq(counts['n'], 188);
    ck_assert_uint_eq(counts['i'], 35);
}

DOMT_SUITE(20)
