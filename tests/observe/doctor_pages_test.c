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

static void put(const char *text, size_t length)
{
    ck_assert_uint_lt(size + length, TEXT_MAX);
    memcpy(made + size, text, length);
    size += length;
    made[size] = '\0';
}

static void put_text(const char *text)
{
    put(text, strlen(text));
}

/* Append a paragraph, broken into lines. */
static void put_paragraph(const char *head, const char *text)
{
    size_t column = strlen(strrchr(head, '\n') + 1);
    bool begins = true;

    put_text(head);
    for (; *text != '\0'; begins = false) {
        size_t word = strcspn(text, " ");
        if (!begins && column + 1 + word > COLUMNS) {
            put_text("\n");
            column = 0;
        } else if (!begins) {
            put_text(" ");
            column++;
        }
        put(text, word);
        column += word;
        text += word;
        text += strspn(text, " ");
    }
    put_text("\n");
}

/* Append a list of keys, each as code. */
static void put_keys(const char *keys)
{
    put_text("\nKeys: ");
    while (*keys != '\0') {
        size_t length = strcspn(keys, ",");
        put_text("`");
        put(keys, length);
        put_text("`");
        keys += length;
        if (*keys == ',')
            put_text(", ");
        keys += strspn(keys, ", ");
    }
    put_text("\n");
}

static void put_rule(const domi_rule *rule)
{
    char head[256];

    snprintf(head, sizeof head, "\n### `%s`\n\n**%s** (%s). ", rule->name, rule->title,
             domi_harm_name(rule->harm));
    put_paragraph(head, rule->cause);
    put_paragraph("\nWhy it is a limit: ", rule->limit);
    put_paragraph("\nWhat helps: ", rule->remedy);
    if (rule->keys[0] != '\0')
        put_keys(rule->keys);
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
    put(page, (size_t)(begin - page) + strlen(BEGIN));
    for (uint32_t i = 0; (rule = domi_rule_at(i)) != NULL; i++)
        put_rule(rule);
    if (getenv("DOMT_WRITE") != NULL)
        write_page();
    else
        ck_assert_msg(strcmp(page, made) == 0,
                      "docs/doctor.md is not as the rules are: write it anew by "
                      "DOMT_WRITE=1 build/dev/bin/tests/observe_doctor_pages");
}

DOMT_SUITE(60)
