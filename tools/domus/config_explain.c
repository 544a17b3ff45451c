/* domus config explain: what a key does, which values it accepts, and when a new value takes
 * effect. */
#include "tools/domus/config.h"
#include "tools/domus/config_parts.h"
#include "tools/domus/key_rules.h"
#include "tools/domus/say.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_COLUMNS 78
#define INDENT           4
#define BEGIN_COLUMNS    60 /* most columns for the beginning of a key's text in a line */
#define NEAR_MAX         8  /* most similar keys that are named when a key is unknown */
#define TEXT_SIZE        512
#define SHOWN_SIZE       128

static const char *const tables[] = {"keys", "listeners", "pools"};
#define TABLES (sizeof tables / sizeof tables[0])

/* A key of the configuration, and the table that contains it. */
typedef struct found {
    const json_t *key;
    size_t table;
} found;

/* --- facts about a key ------------------------------------------------------------------------ */

/* Write the name of a key in the form that users write. */
static void write_name_of_key(const found *one, char name[TEXT_SIZE])
{
    bool is_listed = one->table != 0;

    snprintf(name, TEXT_SIZE, "%s%s%s", is_listed ? tables[one->table] : "",
             is_listed ? ".NAME." : "", config_key_get_text_of_member(one->key, "key"));
}

static const char *get_comment_of_key(const json_t *texts, const found *one)
{
    return config_texts_get_text_of_key(texts, one->table != 0 ? tables[one->table] : "",
                                        config_key_get_text_of_member(one->key, "key"));
}

static const char *describe_type_of_values(const json_t *key)
{
    static const char *const types[][2] = {
        {"count", "a number, such as 8"},
        {"percent", "a percentage, such as 50 or 50%"},
        {"share", "a percentage, such as 50%"},
        {"duration", "a time, such as 500us (ns, us, ms, s, m, h)"},
        {"size", "a size, such as 64KiB (B, KiB, MiB, GiB)"},
        {"word", "a word"},
        {"cpus", "a list of CPUs, such as 0-3,8"},
        {"name", "a name of letters, digits, '-' and '_'"},
        {"address", "an address, such as 127.0.0.1:7000, [::1]:7000 or unix:PATH"},
        {"networks", "networks, such as 10.0.0.0/8, ::1 or unix, with commas"},
        {"texts", "a list of texts, or a text with commas"},
    };

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i][0], config_key_get_text_of_member(key, "kind")) == 0)
            return types[i][1];
    }
    return "a text";
}

static bool is_number_key(const json_t *key)
{
    return json_object_get(key, "least") != NULL && json_object_get(key, "words") == NULL;
}

/* Append words to the text in a buffer of TEXT_SIZE bytes. */
static void append_text_to_buffer(char text[TEXT_SIZE], const char *before, const char *more)
{
    size_t used = strlen(text);

    snprintf(text + used, TEXT_SIZE - used, "%s%s", used > 0 ? before : "", more);
}

static void append_accepted_values_to_buffer(const json_t *key, char text[TEXT_SIZE])
{
    char part[TEXT_SIZE];

    if (json_object_get(key, "words") != NULL) {
        const json_t *words = json_object_get(key, "words");
        for (size_t i = 0; i < json_array_size(words); i++) {
            const char *word = json_string_value(json_array_get(words, i));
            append_text_to_buffer(text, ", ", word != NULL ? word : "");
        }
        return;
    }
    if (!is_number_key(key)) {
        const char *least = config_key_get_text_of_member(key, "minimum");
        bool is_open = strcmp(least, "0") == 0;
        snprintf(part, sizeof part, "%s%s%s bytes", is_open ? "up to " : least, is_open ? "" : "..",
                 config_key_get_text_of_member(key, "maximum"));
        append_text_to_buffer(text, " or ", part);
        return;
    }
    if (config_key_is_member_true(key, "zero") &&
        strcmp(config_key_get_text_of_member(key, "minimum"), "0") != 0)
        append_text_to_buffer(text, " or ", "0");
    snprintf(part, sizeof part, "%s..%s%s", config_key_get_text_of_member(key, "least"),
             config_key_get_text_of_member(key, "most"),
             config_key_is_member_true(key, "power_of_two") ? ", a power of two" : "");
    append_text_to_buffer(text, " or ", part);
}

/* Write the values that a key accepts; `second` is the second row of the key in the table, or
 * NULL. */
static void write_accepted_values_of_key(const json_t *key, const json_t *second,
                                         char text[TEXT_SIZE])
{
    text[0] = '\0';
    append_text_to_buffer(text, "", config_key_get_text_of_member(key, "special"));
    append_accepted_values_to_buffer(key, text);
    if (second != NULL)
        append_accepted_values_to_buffer(second, text);
}

static const char *get_default_of_key(const json_t *key)
{
    const char *text = json_string_value(json_object_get(key, "default"));

    if (text != NULL)
        return text[0] != '\0' ? text : "empty";
    return config_key_is_member_true(key, "inherits") ? "the value of the section channel"
                                                      : "none: it has to be given";
}

static const char *describe_when_new_value_takes_effect(const json_t *key)
{
    return config_key_is_member_true(key, "live")
               ? "live: a program that runs takes a new value, by SIGHUP or over its port"
               : "at a start: a new value needs a restart";
}

/* --- printing a key --------------------------------------------------------------------------- */

/* Print words, wrapped into lines of bounded length. */
static void print_wrapped_text(const char *text)
{
    size_t column = 0;

    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        if (column > 0 && column + 1 + length > LINE_MAX_COLUMNS) {
            (void)putchar('\n');
            column = 0;
        }
        (void)printf("%*s", column == 0 ? INDENT : 1, "");
        say_print_untrusted_text(stdout, text, length);
        column += (column == 0 ? INDENT : 1) + length;
        text += length;
        text += strspn(text, " ");
    }
    (void)putchar('\n');
}

static void print_fact_of_key(const char *name, const char *value)
{
    (void)printf("%*s%-8s ", INDENT, "", name);
    say_print_untrusted_text(stdout, value, strlen(value));
    (void)putchar('\n');
}

/* Print the doctor's rules that name a key of the configuration. For a key of a listener's channel,
 * rules for the section `channel` are printed. */
static void print_rules_that_name_key(const json_t *key)
{
    char text[TEXT_SIZE] = "";
    const char *rule;

    for (size_t at = 0; (rule = key_rules_find_next_rule_that_names_key(
                             config_key_get_text_of_member(key, "key"), &at)) != NULL;)
        append_text_to_buffer(text, ", ", rule);
    if (text[0] != '\0')
        print_fact_of_key("doctor", text);
}

static void print_all_about_key(const json_t *keys, const json_t *texts, const found *one)
{
    const char *comment = get_comment_of_key(texts, one);
    char text[TEXT_SIZE];

    write_name_of_key(one, text);
    say_print_untrusted_text(stdout, text, strlen(text));
    (void)putchar('\n');
    if (comment[0] != '\0')
        print_wrapped_text(comment);
    print_fact_of_key("type", describe_type_of_values(one->key));
    write_accepted_values_of_key(one->key, config_keys_get_second_row_of_key(keys, one->key), text);
    print_fact_of_key("values", text);
    print_fact_of_key("default", get_default_of_key(one->key));
    print_fact_of_key("change", describe_when_new_value_takes_effect(one->key));
    if (json_object_get(one->key, "field") != NULL)
        print_fact_of_key("in C", config_key_get_text_of_member(one->key, "field"));
    if (config_key_is_member_true(one->key, "secret"))
        print_fact_of_key("secret", "nobody is shown it");
    print_rules_that_name_key(one->key);
}

/* Returns the JSON object of a key: its facts, its text, and the rules that name it. */
static json_t *make_json_of_key(const json_t *texts, const found *one)
{
    json_t *all = json_deep_copy(one->key), *rules = json_array();
    const char *rule;
    char name[TEXT_SIZE];

    write_name_of_key(one, name);
    for (size_t at = 0; (rule = key_rules_find_next_rule_that_names_key(
                             config_key_get_text_of_member(one->key, "key"), &at)) != NULL;)
        (void)json_array_append_new(rules, json_string(rule));
    (void)json_object_set_new(all, "key", json_string(name));
    (void)json_object_set_new(all, "text", json_string(get_comment_of_key(texts, one)));
    (void)json_object_set_new(all, "rules", rules);
    return all;
}

/* Print a key of the configuration in one line: its default, and the beginning of its text. */
static void print_key_and_default_in_one_line(const json_t *texts, const found *one)
{
    const char *comment = get_comment_of_key(texts, one), *end = strstr(comment, ". ");
    char text[TEXT_SIZE];
    const char *preset =
        json_object_get(one->key, "default") != NULL ? get_default_of_key(one->key) : "-";
    int length = end != NULL ? (int)(end - comment) : (int)strlen(comment);

    write_name_of_key(one, text);
    (void)printf("%-42s  %-10s  ", text, preset);
    (void)printf("%.*s%s\n", length < BEGIN_COLUMNS ? length : BEGIN_COLUMNS, comment,
                 length < BEGIN_COLUMNS ? "" : "...");
}

/* --- finding keys ----------------------------------------------------------------------------- */

/* A function that tells whether the key with this name is wanted. */
typedef bool wanted(const char *name, const char *word);

static bool is_key_below_section(const char *name, const char *word)
{
    size_t length = strlen(word);

    return length == 0 || (strncmp(name, word, length) == 0 && name[length] == '.');
}

/* Returns whether the name of a key ends with the word, before which a dot stands. */
static bool does_key_name_end_with_word(const char *name, const char *word)
{
    size_t length = strlen(word), size = strlen(name);

    return length < size && name[size - length - 1] == '.' &&
           strcasecmp(name + size - length, word) == 0;
}

static bool does_section_key_name_end_with_word(const char *name, const char *word)
{
    return strstr(name, ".NAME.") == NULL && does_key_name_end_with_word(name, word);
}

static bool does_key_name_contain_word(const char *name, const char *word)
{
    return strcasestr(name, word) != NULL;
}

/* Call a function once for each key that is wanted. Returns how many there are. */
static size_t call_for_wanted_keys(const json_t *keys, const char *word, wanted *is_wanted,
                                   void (*call)(void *context, const found *one), void *context)
{
    const char *before = "";
    size_t count = 0;

    for (size_t table = 0; table < TABLES; table++) {
        const json_t *rows = json_object_get(keys, tables[table]);
        for (size_t i = 0; i < json_array_size(rows); i++) {
            const found one = {json_array_get(rows, i), table};
            char name[TEXT_SIZE];
            write_name_of_key(&one, name);
            bool is_second = strcmp(before, config_key_get_text_of_member(one.key, "key")) == 0;
            before = config_key_get_text_of_member(one.key, "key");
            if (is_second || !is_wanted(name, word))
                continue;
            call(context, &one);
            count++;
        }
    }
    return count;
}

static void copy_found_key_to_context(void *kept, const found *one)
{
    *(found *)kept = *one;
}

static void append_name_of_similar_key(void *names_, const found *one)
{
    char *names = names_, name[TEXT_SIZE];

    write_name_of_key(one, name);
    if (strlen(names) + strlen(name) < TEXT_SIZE - 8)
        append_text_to_buffer(names, ", ", name);
}

static void print_similar_keys(const json_t *keys, const char *word)
{
    char names[TEXT_SIZE] = "", shown[SHOWN_SIZE];
    const char *last = strrchr(word, '.');
    size_t count =
        call_for_wanted_keys(keys, last != NULL && last[1] != '\0' ? last + 1 : word,
                             does_key_name_contain_word, append_name_of_similar_key, names);

    escape_name_to_ascii(word, strlen(word), shown, sizeof shown);
    if (count > 0 && count <= NEAR_MAX)
        say_print_error("there is no key '%s'; there is %s", shown, names);
    else
        say_print_error("there is no key '%s' (domus config explain names all)", shown);
}

/* The output of domus config explain for a list of keys. */
typedef struct printing {
    const json_t *texts;
    json_t *list; /* JSON list to which the keys are added; NULL: they are printed as lines */
} printing;

static void add_key_to_json_list_or_print_it(void *printing_, const found *one)
{
    const printing *to = printing_;

    if (to->list != NULL)
        (void)json_array_append_new(to->list, make_json_of_key(to->texts, one));
    else
        print_key_and_default_in_one_line(to->texts, one);
}

/* Find the one key of the configuration that a word means. Returns false if there is none. If
 * listeners have the key, too, the key of the section is meant. */
static bool find_key_of_word(const json_t *keys, const char *word, found *ret_found)
{
    const json_t *key = config_keys_find_key_by_name(keys, word);

    if (key == NULL)
        return call_for_wanted_keys(keys, word, does_section_key_name_end_with_word,
                                    copy_found_key_to_context, ret_found) == 1 ||
               call_for_wanted_keys(keys, word, does_key_name_end_with_word,
                                    copy_found_key_to_context, ret_found) == 1;
    *ret_found = (found){key, 0};
    for (size_t table = 1; table < TABLES; table++) {
        if (strncmp(word, tables[table], strlen(tables[table])) == 0)
            ret_found->table = table;
    }
    return true;
}

/* Explain the key that a word means, or list the keys of a section; "": all keys. Returns whether
 * there are any. */
static bool print_one_key_or_all_keys_of_section(const json_t *keys, printing *to, const char *word)
{
    found one;

    if (word[0] == '\0' || !find_key_of_word(keys, word, &one)) {
        if (call_for_wanted_keys(keys, word, is_key_below_section, add_key_to_json_list_or_print_it,
                                 to) > 0)
            return true;
        print_similar_keys(keys, word);
        return false;
    }
    if (to->list != NULL)
        add_key_to_json_list_or_print_it(to, &one);
    else
        print_all_about_key(keys, to->texts, &one);
    return true;
}

int config_print_explanation_of_keys(const config_words *given)
{
    json_t *keys = config_ask_program_for_key_table(given->exec);
    json_t *texts = keys != NULL ? config_texts_read_comments((const char *)config_yaml) : NULL;
    printing to = {.texts = texts, .list = given->is_json ? json_array() : NULL};
    bool is_right = texts != NULL;

    if (texts != NULL && given->count == 0)
        is_right = print_one_key_or_all_keys_of_section(keys, &to, "");
    for (size_t i = 0; texts != NULL && i < given->count; i++) {
        if (i > 0 && to.list == NULL)
            (void)putchar('\n');
        is_right = print_one_key_or_all_keys_of_section(keys, &to, given->words[i]) && is_right;
    }
    if (to.list != NULL && texts != NULL) {
        is_right = json_dumpf(to.list, stdout, JSON_INDENT(1)) == 0 && is_right;
        (void)putchar('\n');
    }
    json_decref(to.list);
    json_decref(texts);
    json_decref(keys);
    return is_right ? STATUS_OK : STATUS_FAILED;
}
