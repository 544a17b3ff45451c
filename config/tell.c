/* Writes keys and values of a program's configuration as JSON (tell.h). */
#include "config/tell.h"

#include "config/schema.h"

#include <domus/text.h>

#include <inttypes.h>
#include <string.h>

#define PIECE_MAX 256u /* most bytes of a text that are escaped at a time */
/* bytes of an escaped piece of text in which each byte has the longest escape */
#define SHOWN_SIZE  (4 * PIECE_MAX + 1)
#define NUMBER_SIZE 128 /* bytes of the text of a number as users write it */

const char *const domi_tell_words[] = {"", "keys", "values", "check", NULL};

/* --- pieces of JSON --------------------------------------------------------------------------- */

static void write_text_with_json_escapes(FILE *out, const char *at)
{
    while (*at != '\0') {
        size_t plain = strcspn(at, "\"\\");
        (void)fwrite(at, 1, plain, out);
        at += plain;
        if (*at != '\0')
            (void)fprintf(out, "\\%c", *at++);
    }
}

static void write_text_as_json(FILE *out, const char *text)
{
    char shown[SHOWN_SIZE];
    size_t left = strlen(text);

    (void)fputc('"', out);
    while (left > 0) {
        size_t piece = left < PIECE_MAX ? left : PIECE_MAX;
        (void)domus_text_escape(text, piece, shown, sizeof shown);
        write_text_with_json_escapes(out, shown);
        text += piece;
        left -= piece;
    }
    (void)fputc('"', out);
}

static void write_text_member_as_json(FILE *out, const char *name, const char *text)
{
    (void)fprintf(out, ", \"%s\": ", name);
    write_text_as_json(out, text);
}

static void write_flag_as_json_if_set(FILE *out, const char *name, bool is_set)
{
    if (is_set)
        (void)fprintf(out, ", \"%s\": true", name);
}

static void begin_answer_to_tell(FILE *out, const domus_program *program, domi_tell what)
{
    (void)fprintf(out, "{\"tell\": \"%s\"", domi_tell_words[what]);
    write_text_member_as_json(out, "program", program->name);
}

/* --- keys ------------------------------------------------------------------------------------- */

static bool is_text_key(const domus_config_key *key)
{
    return key->kind >= DOMUS_CONFIG_CPUS;
}

static const char *get_word_of_kind(domus_config_kind kind)
{
    static const char *const words[] = {
        [DOMUS_CONFIG_COUNT] = "count",       [DOMUS_CONFIG_PERCENT] = "percent",
        [DOMUS_CONFIG_SHARE] = "share",       [DOMUS_CONFIG_DURATION] = "duration",
        [DOMUS_CONFIG_SIZE] = "size",         [DOMUS_CONFIG_WORD] = "word",
        [DOMUS_CONFIG_CPUS] = "cpus",         [DOMUS_CONFIG_NAME] = "name",
        [DOMUS_CONFIG_ADDRESS] = "address",   [DOMUS_CONFIG_TEXT] = "text",
        [DOMUS_CONFIG_NETWORKS] = "networks", [DOMUS_CONFIG_TEXTS] = "texts",
    };

    return words[kind];
}

static bool has_key_word_for_zero(const domus_config_key *key)
{
    return key->special != NULL && key->special_number == 0;
}

/* Write a number of a key as JSON, as users write it, by the key's row with its field in
 * `number`. */
static void write_number_of_key_as_json(FILE *out, const char *name, const domus_config_key *key,
                                        uint64_t number)
{
    domus_config_key row = *key;
    char text[NUMBER_SIZE];

    row.offset = 0;
    row.size = sizeof number;
    domus_config_key_write(&row, &number, text, sizeof text);
    write_text_member_as_json(out, name, text);
}

/* Write the bounds of a key as JSON. If a word stands for 0, users never write 0. */
static void write_bounds_of_key_as_json(FILE *out, const domus_config_key *key)
{
    domus_config_key row = *key;

    row.special = NULL;
    if (row.minimum == 0 && has_key_word_for_zero(key))
        row.minimum = 1;
    (void)fprintf(out, ", \"minimum\": \"%" PRIu64 "\", \"maximum\": \"%" PRIu64 "\"", row.minimum,
                  row.maximum);
    if (is_text_key(key))
        return;
    write_number_of_key_as_json(out, "least", &row, row.minimum);
    write_number_of_key_as_json(out, "most", &row, row.maximum);
}

/* Write the default of a key as JSON. A key that inherits has no default of its own. */
static void write_default_of_key_as_json(FILE *out, const domus_config_key *key)
{
    if (key->inherits)
        return;
    if (!is_text_key(key))
        write_number_of_key_as_json(out, "default", key, key->preset);
    else if (key->preset_text != NULL)
        write_text_member_as_json(out, "default", key->preset_text);
    else if (key->list_max != 0) /* the default of a list of texts is an empty list */
        write_text_member_as_json(out, "default", "");
}

static void write_words_of_key_as_json(FILE *out, const domus_config_key *key)
{
    if (key->kind != DOMUS_CONFIG_WORD)
        return;
    (void)fputs(", \"words\": [", out);
    for (size_t i = 0; key->words[i] != NULL && i <= key->maximum; i++) {
        (void)fputs(i > 0 ? ", " : "", out);
        write_text_as_json(out, key->words[i]);
    }
    (void)fputc(']', out);
}

/* Returns whether users may write 0 as the value of a key. */
static bool may_value_of_key_be_zero(const domus_config_key *key)
{
    return !is_text_key(key) && (key->or_zero || key->minimum == 0) && !has_key_word_for_zero(key);
}

static void write_flags_of_key_as_json(FILE *out, const domus_config_key *key, bool is_live)
{
    write_flag_as_json_if_set(out, "zero", may_value_of_key_be_zero(key));
    write_flag_as_json_if_set(out, "power_of_two", key->power_of_two);
    write_flag_as_json_if_set(out, "inherits", key->inherits);
    write_flag_as_json_if_set(out, "secret", key->secret);
    write_flag_as_json_if_set(out, "live", is_live);
}

/* Write a key as JSON, whose path stands behind that of `section`, unless this is NULL. */
static void write_key_as_json(FILE *out, const char *section, const domus_config_key *key,
                              bool is_live)
{
    char path[DOMI_YAML_PATH_SIZE];

    snprintf(path, sizeof path, "%s%s%s", section != NULL ? section : "",
             section != NULL ? "." : "", key->path);
    (void)fputs("{\"key\": ", out);
    write_text_as_json(out, path);
    if (key->field != NULL)
        write_text_member_as_json(out, "field", key->field);
    write_text_member_as_json(out, "kind", get_word_of_kind(key->kind));
    write_bounds_of_key_as_json(out, key);
    write_default_of_key_as_json(out, key);
    if (key->special != NULL)
        write_text_member_as_json(out, "special", key->special);
    write_words_of_key_as_json(out, key);
    if (key->list_max != 0)
        (void)fprintf(out, ", \"list_max\": %u", key->list_max);
    write_flags_of_key_as_json(out, key, is_live);
    (void)fputc('}', out);
}

/* Write the rows of a table of keys as a JSON member. */
static void write_table_of_keys_as_json(FILE *out, const char *name,
                                        const domus_config_key *(*get)(size_t row))
{
    const domus_config_key *key;

    (void)fprintf(out, ",\n\"%s\": [", name);
    for (size_t row = 0; (key = get(row)) != NULL; row++) {
        (void)fputs(row > 0 ? ",\n" : "\n", out);
        write_key_as_json(out, NULL, key, key->live);
    }
}

/* Write the rows of the program's section as JSON, behind those of domus. A program that takes its
 * section in a reload (domus_program.reload) has it live as a whole. */
static void write_program_section_as_json(FILE *out, const domus_program *program)
{
    const domus_section *section = program->section;

    for (const domus_config_key *key = section->keys; key->path != NULL; key++) {
        (void)fputs(",\n", out);
        write_key_as_json(out, section->name, key, program->reload != NULL);
    }
}

void domi_tell_write_keys(FILE *out, const domus_program *program)
{
    begin_answer_to_tell(out, program, DOMI_TELL_KEYS);
    (void)fprintf(out, ", \"listeners_max\": %d, \"pools_max\": %d", DOMUS_LISTENERS_MAX,
                  DOMUS_POOLS_MAX);
    if (program->section != NULL)
        write_text_member_as_json(out, "section", program->section->name);
    write_table_of_keys_as_json(out, "keys", domus_config_key_get);
    if (program->section != NULL)
        write_program_section_as_json(out, program);
    (void)fputc(']', out);
    write_table_of_keys_as_json(out, DOMI_YAML_LISTENERS, domus_config_listener_key_get);
    (void)fputc(']', out);
    write_table_of_keys_as_json(out, DOMI_YAML_POOLS, domus_config_pool_key_get);
    (void)fputs("]}\n", out);
}

/* --- values ----------------------------------------------------------------------------------- */

/* The output of a walk over the values of a configuration. */
struct writing {
    FILE *out;
    const char *before; /* the text of JSON to write before the next row, such as a comma */
};

/* Write a row of the shown values as JSON, as a domus_config_visit. */
static void write_shown_value_as_json(void *writing_, const domus_config_shown *shown)
{
    struct writing *writing = writing_;

    (void)fprintf(writing->out, "%s{\"key\": ", writing->before);
    writing->before = ",\n";
    write_text_as_json(writing->out, shown->key);
    write_text_member_as_json(writing->out, "value", shown->value);
    write_text_member_as_json(writing->out, "origin", shown->origin);
    (void)fputc('}', writing->out);
}

void domi_tell_write_values(FILE *out, const domus_program *program, const domus_yaml *yaml)
{
    struct writing writing = {.out = out, .before = "\n"};

    begin_answer_to_tell(out, program, DOMI_TELL_VALUES);
    (void)fputs(", \"right\": true, \"keys\": [", out);
    domus_yaml_show(yaml, write_shown_value_as_json, &writing);
    (void)fputs("]}\n", out);
}

void domi_tell_write_result(FILE *out, const domus_program *program, domi_tell what, bool right)
{
    begin_answer_to_tell(out, program, what);
    (void)fprintf(out, ", \"right\": %s}\n", right ? "true" : "false");
}
