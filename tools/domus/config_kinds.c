/* Makes schemas of single values (config_parts.h).
 *
 * The range of a number is enforced by a pattern or by bounds, so a schema also refuses values out
 * of range. It has limits: readers of YAML turn 0x8 into 8, and True into true, so a schema cannot
 * refuse these, as the configuration's reader does. Schemas count lengths in characters, the reader
 * counts bytes. */
#include "tools/domus/config_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define V4_BYTE   "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define V4        V4_BYTE "(?:\\." V4_BYTE "){3}"
#define H16       "[0-9A-Fa-f]{1,4}"
#define BEFORE(n) "(?:" H16 ":){" n "}"
#define BEHIND(n) "(?::" H16 "){" n "}"
/* pattern of an IPv6 address: eight groups, or fewer if "::" replaces some; the last two may be an
 * IPv4 address */
#define V6                                                                                         \
    "(?:" BEFORE("7") H16 "|" BEFORE("1,7") ":|" BEFORE("1,6") BEHIND("1") "|" BEFORE("1,5")       \
        BEHIND("1,2") "|" BEFORE("1,4") BEHIND("1,3") "|" BEFORE("1,3")                            \
            BEHIND("1,4") "|" BEFORE("1,2") BEHIND("1,5") "|" BEFORE("1")                          \
                BEHIND("1,6") "|:" BEHIND("1,7") "|::|" BEFORE("6") V4                             \
        "|" BEFORE("1,5") ":" V4 "|" BEFORE("1,4") BEHIND("1") ":" V4 "|" BEFORE("1,3")            \
            BEHIND("1,2") ":" V4 "|" BEFORE("1,2") BEHIND("1,3") ":" V4 "|" BEFORE("1")            \
                BEHIND("1,4") ":" V4 "|:" BEHIND("0,5") ":" V4 ")"
#define PORT                                                                                       \
    "(?:0|[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
#define ADDRESS "^(?:unix:@?[^@](?:.|\\n){0,107}|" V4 ":" PORT "|\\[" V6 "\\]:" PORT ")$"
#define NETWORK                                                                                    \
    "(?:unix|" V4 "(?:/(?:[12]?[0-9]|3[0-2]))?|" V6 "(?:/(?:[1-9]?[0-9]|1[01][0-9]|12[0-8]))?)"
#define NETWORKS "^ *(?:" NETWORK "(?: *, *" NETWORK "){0,31} *)?$"
#define CPU      "0*(?:[0-9]{1,3}|[1-7][0-9]{3}|80[0-9]{2}|81[0-8][0-9]|819[01])"
#define CPUS     "^(?:auto|none|" CPU "(?:-" CPU ")?(?:," CPU "(?:-" CPU ")?)*)$"

/* The alternatives of a JSON schema while it is built. */
typedef struct choices {
    json_t *list;
} choices;

static void add_alternative_to_schema(choices *to, json_t *schema)
{
    (void)json_array_append_new(to->list, schema);
}

static void add_type_alternative_to_schema(choices *to, const char *type)
{
    add_alternative_to_schema(to, json_pack("{s:s}", "type", type));
}

static void add_pattern_alternative_to_schema(choices *to, const char *pattern)
{
    add_alternative_to_schema(to, json_pack("{s:s, s:s}", "type", "string", "pattern", pattern));
}

/* Returns the schema that accepts a value if one of the alternatives does. */
static json_t *make_schema_any_of_alternatives(choices *from)
{
    json_t *schema;

    if (json_array_size(from->list) == 1)
        schema = json_incref(json_array_get(from->list, 0));
    else
        schema = json_pack("{s:O}", "anyOf", from->list);
    json_decref(from->list);
    return schema;
}

static uint64_t read_number_member_of_key(const json_t *key, const char *name)
{
    return strtoull(config_key_get_text_of_member(key, name), NULL, 10);
}

static json_int_t cap_to_json_integer(uint64_t number)
{
    return number < (uint64_t)INT64_MAX ? (json_int_t)number : (json_int_t)INT64_MAX;
}

/* --- numbers ---------------------------------------------------------------------------------- */

static const struct kind {
    const char *name;
    /* units that may follow the digits of a number; the last one has no name */
    config_unit units[8];
} kinds[] = {
    {"count", {{"", 1}}},
    {"percent", {{"%?", 1}}},
    {"share", {{"%", 1}}},
    {"duration",
     {{"ns", 1},
      {"us", 1000},
      {"ms", 1000000},
      {"s", 1000000000},
      {"m", UINT64_C(60000000000)},
      {"h", UINT64_C(3600000000000)}}},
    {"size", {{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}},
};

static const struct kind *find_number_kind_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    }
    return NULL;
}

/* Add to a schema the forms of a number as text, with its unit, and its special word. */
static void add_pattern_of_numbers_with_units(choices *to, const json_t *key,
                                              const struct kind *kind, const config_range *range)
{
    const char *special = config_key_get_text_of_member(key, "special");
    char *pattern = NULL;
    size_t size;
    FILE *out = open_memstream(&pattern, &size);

    if (out == NULL)
        return;
    (void)fprintf(out, "^(?:%s%s", special, special[0] != '\0' ? "|" : "");
    bool is_any = config_pattern_write_range_in_all_units(out, range, kind->units);
    (void)fputs(")$", out);
    if (fclose(out) == 0 && (is_any || special[0] != '\0'))
        add_pattern_alternative_to_schema(to, pattern);
    free(pattern);
}

/* Add to a schema the powers of two within a range, one by one. */
static void add_enum_of_powers_of_two_to_schema(choices *to, const config_range *range)
{
    json_t *all = json_array();

    for (uint64_t power = 1; power != 0 && power <= range->high; power *= 2) {
        if (power >= range->low)
            (void)json_array_append_new(all, json_integer(cap_to_json_integer(power)));
    }
    add_alternative_to_schema(to, json_pack("{s:o}", "enum", all));
}

/* Add to a schema the forms of a number without a unit. */
static void add_integers_of_range_to_schema(choices *to, const config_range *range, bool needs_unit)
{
    if (!needs_unit && range->is_power)
        add_enum_of_powers_of_two_to_schema(to, range);
    else if (!needs_unit)
        add_alternative_to_schema(to,
                                  json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum",
                                            cap_to_json_integer(range->low > 0 ? range->low : 1),
                                            "maximum", cap_to_json_integer(range->high)));
    if (range->takes_zero)
        add_alternative_to_schema(to, json_pack("{s:i}", "const", 0));
}

static void add_number_range_of_key_to_schema(choices *to, const json_t *key,
                                              const struct kind *kind)
{
    const config_range range = {.low = read_number_member_of_key(key, "minimum"),
                                .high = read_number_member_of_key(key, "maximum"),
                                .is_power = config_key_is_member_true(key, "power_of_two"),
                                .takes_zero = config_key_is_member_true(key, "zero")};
    bool needs_unit = kind->units[0].name[0] != '\0' && strcmp(kind->units[0].name, "%?") != 0;

    add_pattern_of_numbers_with_units(to, key, kind, &range);
    add_integers_of_range_to_schema(to, &range, needs_unit);
}

/* --- words and texts -------------------------------------------------------------------------- */

/* Returns the JSON value that a reader of YAML makes of a word if that is not a text, such as true;
 * NULL if it is a text. */
static json_t *make_json_of_yaml_word(const char *word)
{
    char *end;

    if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0)
        return json_boolean(word[0] == 't');
    if (word[0] < '0' || word[0] > '9' || word[strspn(word, "0123456789.")] != '\0')
        return NULL;
    if (strchr(word, '.') == NULL)
        return json_integer(strtoll(word, NULL, 10));
    double number = strtod(word, &end);
    return *end == '\0' ? json_real(number) : NULL;
}

static void add_enum_of_words_to_schema(choices *to, const json_t *key)
{
    const json_t *words = json_object_get(key, "words");
    json_t *all = json_array();

    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));
        json_t *plain = word != NULL ? make_json_of_yaml_word(word) : NULL;
        if (plain != NULL)
            (void)json_array_append_new(all, plain);
        (void)json_array_append(all, json_array_get(words, i));
    }
    add_alternative_to_schema(to, json_pack("{s:o}", "enum", all));
}

/* Add to a schema texts of any form, including those that look like numbers. */
static void add_texts_of_any_form(choices *to, uint64_t low, uint64_t high)
{
    add_alternative_to_schema(to, json_pack("{s:[s,s,s], s:I, s:I}", "type", "string", "number",
                                            "boolean", "minLength", cap_to_json_integer(low),
                                            "maxLength", cap_to_json_integer(high)));
}

static void add_forms_of_name_to_schema(choices *to, uint64_t low, uint64_t high)
{
    char pattern[96];

    snprintf(pattern, sizeof pattern, "^[A-Za-z0-9_-]{%" PRIu64 ",%" PRIu64 "}$", low, high);
    add_pattern_alternative_to_schema(to, pattern);
    add_type_alternative_to_schema(to, "integer");
    add_type_alternative_to_schema(to, "boolean");
}

/* Add to a schema the form of a list of texts that is written as a YAML list. */
static void add_yaml_list_of_texts(choices *to)
{
    add_alternative_to_schema(to, json_pack("{s:s, s:{s:[s,s,s], s:s}}", "type", "array", "items",
                                            "type", "string", "number", "boolean", "pattern",
                                            "^[^,]+$"));
}

/* Add to a schema the forms of a text of this kind. A missing value is an empty text. */
static void add_forms_of_text_kind_to_schema(choices *to, const json_t *key, const char *kind)
{
    uint64_t low = read_number_member_of_key(key, "minimum"),
             high = read_number_member_of_key(key, "maximum");

    if (strcmp(kind, "cpus") == 0) {
        add_pattern_alternative_to_schema(to, CPUS);
        add_alternative_to_schema(
            to, json_pack("{s:s, s:i, s:i}", "type", "integer", "minimum", 0, "maximum", 8191));
    } else if (strcmp(kind, "address") == 0) {
        add_pattern_alternative_to_schema(to, ADDRESS);
    } else if (strcmp(kind, "networks") == 0) {
        add_pattern_alternative_to_schema(to, NETWORKS);
    } else if (strcmp(kind, "name") == 0) {
        add_forms_of_name_to_schema(to, low, high);
    } else {
        add_texts_of_any_form(to, low, high);
    }
    if (strcmp(kind, "texts") == 0)
        add_yaml_list_of_texts(to);
    if (low == 0)
        add_type_alternative_to_schema(to, "null");
}

/* --- all kinds -------------------------------------------------------------------------------- */

static void add_forms_of_key_row_to_schema(choices *to, const json_t *key)
{
    const char *name = config_key_get_text_of_member(key, "kind");
    const struct kind *kind = find_number_kind_by_name(name);

    if (kind != NULL)
        add_number_range_of_key_to_schema(to, key, kind);
    else if (strcmp(name, "word") == 0)
        add_enum_of_words_to_schema(to, key);
    else
        add_forms_of_text_kind_to_schema(to, key, name);
}

json_t *config_kinds_make_schema(const json_t *key, const json_t *second)
{
    choices all = {.list = json_array()};
    json_int_t most = json_integer_value(json_object_get(key, "list_max"));

    add_forms_of_key_row_to_schema(&all, key);
    if (second != NULL)
        add_forms_of_key_row_to_schema(&all, second);
    json_t *schema = make_schema_any_of_alternatives(&all);
    if (most == 0)
        return schema;
    return json_pack("{s:s, s:I, s:o}", "type", "array", "maxItems", most, "items", schema);
}

/* Returns the JSON list of a default value that is written with commas. */
static json_t *split_commas_to_json_list(const char *text)
{
    json_t *list = json_array();

    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        (void)json_array_append_new(list, json_stringn(text, length));
        text += length + (text[length] == ',');
    }
    return list;
}

json_t *config_kinds_make_json_of_default(const json_t *key)
{
    const char *text = json_string_value(json_object_get(key, "default"));
    const struct kind *kind = find_number_kind_by_name(config_key_get_text_of_member(key, "kind"));

    if (text == NULL)
        return NULL;
    if (json_object_get(key, "list_max") != NULL)
        return split_commas_to_json_list(text);
    json_t *plain =
        kind != NULL || json_object_get(key, "words") != NULL ? make_json_of_yaml_word(text) : NULL;
    return plain != NULL ? plain : json_string(text);
}
