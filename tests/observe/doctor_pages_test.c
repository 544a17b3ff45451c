/* docs/doctor.md has a section for each rule of the doctor, made from the same table.
 *
 * DOMT_WRITE=1 build/dev/bin/tests/observe_doctor_pages writes the sections anew. */
#include "protocols/observe/doctor/report.h"

#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE     DOMT_SOURCE_DIR "/docs/doctor.md"
#define BEGIN    "## The rules\n"
#define TEXT_MAX (1u << 18)
#define COLUMNS  118u

static char page[TEXT_MAX], made[TEXT_MAX];
static size_t size;

static void append_bytes(const char *text, size_t length)
{
    ck_assert_uint_lt(size + length, TEXT_MAX);
    memcpy(made + size, text, length);
    size += length;
    made[size] = '\0';
}

static void append_text(const char *text)
{
    append_bytes(text, strlen(text));
}

/* Append a paragraph, broken into lines. */
static void append_paragraph(const char *head, const char *text)
{
    size_t column = strlen(strrchr(head, '\n') + 1);
    bool begins = true;

    append_text(head);
    for (; *text != '\0'; begins = false) {
        size_t word = strcspn(text, " ");
        if (!begins && column + 1 + word > COLUMNS) {
            append_text("\n");
            column = 0;
        } else if (!begins) {
            append_text(" ");
            column++;
        }
        append_bytes(text, word);
        column += word;
        text += word;
        text += strspn(text, " ");
    }
    append_text("\n");
}

/* Append a list of keys, each as code. */
static void append_keys(const char *keys)
{
    append_text("\nKeys: ");
    while (*keys != '\0') {
        size_t length = strcspn(keys, ",");
        append_text("`");
        append_bytes(keys, length);
        append_text("`");
        keys += length;
        if (*keys == ',')
            append_text(", ");
        keys += strspn(keys, ", ");
    }
    append_text("\n");
}

static void append_rule(const domi_rule *rule)
{
    char head[256];

    snprintf(head, sizeof head, "\n### `%s`\n\n**%s** (%s). ", rule->name, rule->title,
             domi_harm_name(rule->harm));
    append_paragraph(head, rule->cause);
    append_paragraph("\nWhy it is a limit: ", rule->limit);
    append_paragraph("\nWhat helps: ", rule->remedy);
    if (rule->keys[0] != '\0')
        append_keys(rule->keys);
}

static void read_page(void)
{
    FILE *file = fopen(PAGE, "r");

    ck_assert_msg(file != NULL, "there is no " PAGE);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    (void)fclose(file);
}

static void write_page(void)
{
    FILE *file = fopen(PAGE, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(made, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

DOMT_TEST(the_page_has_all_rules_as_they_are)
{
    const domi_rule *rule;

    read_page();
    const char *begin = strstr(page, BEGIN);
    ck_assert_ptr_nonnull(begin);
    append_bytes(page, (size_t)(begin - page) + strlen(BEGIN));
    for (uint32_t i = 0; (rule = domi_rule_at(i)) != NULL; i++)
        append_rule(rule);
    if (getenv("DOMT_WRITE") != NULL)
        write_page();
    else
        ck_assert_msg(strcmp(page, made) == 0,
                      "docs/doctor.md is not as the rules are: write it anew by "
                      "DOMT_WRITE=1 build/dev/bin/tests/observe_doctor_pages");
}

DOMT_SUITE(60)
