/* domus config show: the current value of each key, and where each was set; and domus config
 * check. */
#include "tools/domus/config.h"
#include "tools/domus/config_parts.h"
#include "tools/domus/say.h"

#include <stdio.h>
#include <string.h>

#define TEXT_SIZE 17000 /* most bytes of a value with its escapes */

/* --- domus config show ------------------------------------------------------------------------ */

static bool is_value_shown_with_given_options(const config_words *given, const config_value *one)
{
    return !given->is_changed || strcmp(one->origin, "default") != 0;
}

/* Print the text of a value; an empty text as "". Returns how many columns it takes. */
static int print_value_text_and_return_width(const char *text)
{
    static char shown[TEXT_SIZE];

    escape_name_to_ascii(text, strlen(text), shown, sizeof shown);
    return printf("%s", shown[0] != '\0' ? shown : "\"\"");
}

/* Print the text of a value, padded with blanks to `width` and two more columns. */
static void print_padded_text(const char *text, int width)
{
    int printed = print_value_text_and_return_width(text);

    (void)printf("%*s", (printed < width ? width - printed : 0) + 2, "");
}

static void print_rows_of_values(const config_words *given, const json_t *rows)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        config_value one = config_values_get_value_of_row(rows, i);
        if (!is_value_shown_with_given_options(given, &one))
            continue;
        print_padded_text(one.key, 36);
        print_padded_text(one.value, 16);
        (void)print_value_text_and_return_width(one.origin);
        (void)putchar('\n');
    }
}

/* Print the rows of keys and values as JSON, in the form of /config. Returns false without
 * memory. */
static bool print_rows_as_json(const config_words *given, const json_t *rows)
{
    json_t *all = json_array();

    for (size_t i = 0; i < json_array_size(rows); i++) {
        config_value one = config_values_get_value_of_row(rows, i);
        if (is_value_shown_with_given_options(given, &one))
            (void)json_array_append_new(all, json_pack("{s:s, s:s, s:s}", "key", one.key, "value",
                                                       one.value, "origin", one.origin));
    }
    json_t *answer = json_pack("{s:o}", "keys", all);
    bool is_printed = answer != NULL && json_dumpf(answer, stdout, JSON_INDENT(1)) == 0;
    (void)putchar('\n');
    json_decref(answer);
    return is_printed;
}

int config_print_values(const config_words *given)
{
    bool is_of_files = given->count > 0 || given->exec != NULL || given->set_count > 0;
    bool is_running = given->all.program != NULL || given->all.endpoint != NULL;
    int status = STATUS_OK;

    if (is_of_files && is_running)
        return options_print_usage_error(&given->all,
                                         "-p and -s name a program that runs, which has read its "
                                         "files: they go without FILE, -x and --set");
    json_t *rows = is_of_files ? config_values_read_files(given, given->words, given->count)
                               : config_values_of_running_program(given);
    if (rows == NULL)
        return STATUS_FAILED;
    if (!given->is_json)
        print_rows_of_values(given, rows);
    else if (!print_rows_as_json(given, rows))
        status = STATUS_FAILED;
    json_decref(rows);
    return status;
}

/* --- domus config check ----------------------------------------------------------------------- */

/* If a program is named, it checks everything that it checks before it starts, such as
 * certificates. Without one, only the library's reader checks the files. */
int config_check_files(const config_words *given)
{
    const config_question question = {.exec = given->exec,
                                      .tell = given->exec != NULL ? "check" : "values",
                                      .files = given->words,
                                      .file_count = given->count,
                                      .sets = given->sets,
                                      .set_count = given->set_count};
    json_t *answer = config_run_program_for_answer(&question);

    if (answer == NULL)
        return STATUS_FAILED;
    json_decref(answer);
    return STATUS_OK;
}
