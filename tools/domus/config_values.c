/* Gets the values that the keys of a configuration have (config_parts.h). */
#include "tools/domus/config_parts.h"

#include "tools/domus/say.h"

#include <stdlib.h>
#include <string.h>

#define ANSWER_MS 10000L
/* most rows of values in an answer; a program with all listeners and pools has 4,700 */
#define ROWS_MAX 16384

/* Take the rows of values out of an answer, and free the rest. Returns NULL if it has none, or too
 * many. */
static json_t *take_rows_out_of_answer(json_t *answer)
{
    json_t *rows = json_object_get(answer, "keys");
    bool is_right = json_is_array(rows) && json_array_size(rows) <= ROWS_MAX;

    rows = is_right ? json_incref(rows) : NULL;
    json_decref(answer);
    return rows;
}

json_t *config_values_read_files(const config_words *given, char *const *files, size_t count)
{
    const config_question question = {.exec = given->exec,
                                      .tell = "values",
                                      .files = files,
                                      .file_count = count,
                                      .sets = given->sets,
                                      .set_count = given->set_count};
    json_t *answer = config_run_program_for_answer(&question);
    json_t *rows = take_rows_out_of_answer(answer);

    if (answer != NULL && rows == NULL)
        say_print_error("the answer to --tell values has no keys, or too many");
    return rows;
}

/* Ask a port for the values of its program's configuration. Returns the rows; NULL after the error
 * was printed. */
static json_t *ask_port_for_values(port *at)
{
    char endpoint[256];
    port_text text;

    if (!port_get_and_collect_answer(at, "/config", ANSWER_MS, &text)) {
        say_print_error("%s", at->error);
        return NULL;
    }
    json_t *rows = take_rows_out_of_answer(json_loadb(text.at, text.size, 0, NULL));
    free(text.at);
    escape_name_to_ascii(at->endpoint, strlen(at->endpoint), endpoint, sizeof endpoint);
    if (rows == NULL)
        say_print_error("%s: its configuration is not to be read", endpoint);
    return rows;
}

json_t *config_values_of_running_program(const config_words *given)
{
    json_t *rows = NULL;
    port at;

    if (options_open_port_of_meant_program(&given->all, &at))
        rows = ask_port_for_values(&at);
    port_close(&at);
    return rows;
}

static const char *get_text_of_member(const json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));

    return text != NULL ? text : "";
}

config_value config_values_get_value_of_row(const json_t *rows, size_t row)
{
    const json_t *one = json_array_get(rows, row);

    return (config_value){get_text_of_member(one, "key"), get_text_of_member(one, "value"),
                          get_text_of_member(one, "origin")};
}

bool config_values_find_value_of_key(const json_t *rows, const char *key, config_value *ret_value)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        *ret_value = config_values_get_value_of_row(rows, i);
        if (strcmp(ret_value->key, key) == 0)
            return true;
    }
    return false;
}
