/* domus config diff: the keys whose values differ between two configurations, including defaults,
 * and whether a running program accepts the new value while it runs.
 *
 * If a listener does not set a key of `channel` itself, the value of the section `channel` is
 * compared. A running program shows its own value for a word such as "auto" in a file; if nobody
 * has set the key there, both count as equal. Secrets are hidden, so only whether they are set is
 * compared. */
#include "tools/domus/config.h"
#include "tools/domus/config_parts.h"
#include "tools/domus/say.h"

#include <stdio.h>
#include <string.h>

#define PATH_SIZE 512
#define CHANNEL   ".channel."
#define ABSENT    "-" /* text that stands for the value of a missing key */

/* The comparison of two configurations. */
typedef struct comparing {
    const json_t *keys;
    const json_t *before, *now;
    bool is_running; /* the configuration `before` comes from a running program */
    json_t *rows;    /* rows of the printed table: the keys that differ */
} comparing;

/* Get the value of a key in a configuration, or the value that applies where the key is left out;
 * ABSENT if neither is there. */
static config_value find_value_or_default_of_key(const json_t *rows, const char *key)
{
    config_value found;
    const char *channel = strstr(key, CHANNEL);

    if (config_values_find_value_of_key(rows, key, &found))
        return found;
    if (channel != NULL && strncmp(key, "listeners.", 10) == 0) {
        char name[PATH_SIZE];
        snprintf(name, sizeof name, "%.*s.name", (int)(channel - key), key);
        if (config_values_find_value_of_key(rows, name, &found) &&
            config_values_find_value_of_key(rows, channel + 1, &found))
            return found;
    }
    return (config_value){key, ABSENT, ""};
}

static bool is_value_absent(const config_value *one)
{
    return one->origin[0] == '\0' && strcmp(one->value, ABSENT) == 0;
}

/* Returns when the new value of a key takes effect. A key that is missing on one side belongs to a
 * listener or pool that is added or removed. */
static const char *does_new_value_work_live_or_at_restart(const comparing *all, const char *path,
                                                          const config_value *before,
                                                          const config_value *now)
{
    const json_t *key = config_keys_find_key_of_value_path(all->keys, path);

    if (key == NULL)
        return "unknown";
    bool is_live =
        config_key_is_member_true(key, "live") && !is_value_absent(before) && !is_value_absent(now);
    return is_live ? "live" : "restart";
}

/* Returns whether a running program has computed its value of the key from the default word, such
 * as "auto", which the file has, too. */
static bool is_running_value_computed_from_word(const comparing *all, const config_value *before,
                                                const config_value *now)
{
    const json_t *key = config_keys_find_key_of_value_path(all->keys, now->key);

    return key != NULL && strcmp(before->origin, "default") == 0 &&
           strcmp(now->value, config_key_get_text_of_member(key, "default")) == 0;
}

static void add_difference_of_key_if_values_differ(const comparing *all, const char *key)
{
    config_value before = find_value_or_default_of_key(all->before, key),
                 now = find_value_or_default_of_key(all->now, key);

    if (strcmp(before.value, now.value) == 0 ||
        is_running_value_computed_from_word(all, &before, &now))
        return;
    (void)json_array_append_new(
        all->rows,
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "key", key, "before", before.value,
                  "before_origin", before.origin, "after", now.value, "after_origin", now.origin,
                  "change", does_new_value_work_live_or_at_restart(all, key, &before, &now)));
}

static void compare_all_keys(const comparing *all)
{
    config_value other;

    for (size_t i = 0; i < json_array_size(all->before); i++)
        add_difference_of_key_if_values_differ(all,
                                               config_values_get_value_of_row(all->before, i).key);
    for (size_t i = 0; i < json_array_size(all->now); i++) {
        const char *key = config_values_get_value_of_row(all->now, i).key;
        if (!config_values_find_value_of_key(all->before, key, &other))
            add_difference_of_key_if_values_differ(all, key);
    }
}

/* --- the table -------------------------------------------------------------------------------- */

static const char *const columns[] = {"key", "before", "after", "change"};
static const char *const titles[] = {"KEY", "BEFORE", "AFTER", "CHANGE"};
#define COLUMNS   4
#define WIDTH_MAX 40

static void read_cell_of_row(const json_t *row, int column, char cell[PATH_SIZE])
{
    const char *text = json_string_value(json_object_get(row, columns[column]));

    if (text == NULL)
        text = "";
    escape_name_to_ascii(text, strlen(text), cell, PATH_SIZE);
    if (cell[0] == '\0')
        memcpy(cell, "\"\"", 3);
}

static int get_width_of_column(const json_t *rows, int column)
{
    int width = (int)strlen(titles[column]);

    for (size_t i = 0; i < json_array_size(rows); i++) {
        char cell[PATH_SIZE];
        read_cell_of_row(json_array_get(rows, i), column, cell);
        int length = (int)strlen(cell);
        width = length > width ? length : width;
    }
    return width < WIDTH_MAX ? width : WIDTH_MAX;
}

static void print_table_of_differences(const json_t *rows)
{
    int widths[COLUMNS];

    for (int i = 0; i < COLUMNS; i++) {
        widths[i] = i + 1 < COLUMNS ? get_width_of_column(rows, i) : 0;
        (void)printf("%-*s%s", widths[i], titles[i], i + 1 < COLUMNS ? "  " : "\n");
    }
    for (size_t row = 0; row < json_array_size(rows); row++) {
        for (int i = 0; i < COLUMNS; i++) {
            char cell[PATH_SIZE];
            read_cell_of_row(json_array_get(rows, row), i, cell);
            (void)printf("%-*s%s", widths[i], cell, i + 1 < COLUMNS ? "  " : "\n");
        }
    }
}

static bool needs_any_difference_a_restart(const json_t *rows)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *change = json_string_value(json_object_get(json_array_get(rows, i), "change"));
        if (change != NULL && strcmp(change, "restart") == 0)
            return true;
    }
    return false;
}

/* Print the keys that differ between the two configurations. Returns the exit status. */
static int print_differences(const comparing *all, bool is_json)
{
    size_t count = json_array_size(all->rows);
    int printed = 0;

    if (is_json) {
        json_t *answer = json_pack("{s:O}", "differences", all->rows);
        printed = answer != NULL ? json_dumpf(answer, stdout, JSON_INDENT(1)) : -1;
        (void)putchar('\n');
        json_decref(answer);
    } else if (count > 0) {
        print_table_of_differences(all->rows);
        if (all->is_running && needs_any_difference_a_restart(all->rows))
            (void)puts("\nA reload takes none of these values, because some need a restart.");
    }
    return count == 0 && printed == 0 ? STATUS_OK : STATUS_FAILED;
}

int config_print_differences(const config_words *given)
{
    bool is_running = given->count == 1;
    json_t *keys = NULL, *before = NULL, *now = NULL;
    int status = STATUS_FAILED;

    if (!is_running && (given->all.program != NULL || given->all.endpoint != NULL))
        return options_print_usage_error(&given->all,
                                         "-p and -s are for one FILE, which the program that runs "
                                         "is compared with");
    before = is_running ? config_values_of_running_program(given)
                        : config_values_read_files(given, given->words, 1);
    if (before != NULL)
        now = config_values_read_files(given, given->words + given->count - 1, 1);
    if (now != NULL)
        keys = config_ask_program_for_key_table(given->exec);
    if (keys != NULL) {
        const comparing all = {.keys = keys,
                               .before = before,
                               .now = now,
                               .is_running = is_running,
                               .rows = json_array()};
        compare_all_keys(&all);
        status = print_differences(&all, given->is_json);
        json_decref(all.rows);
    }
    json_decref(keys);
    json_decref(before);
    json_decref(now);
    return status;
}
