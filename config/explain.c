/* Finds what is wrong in a document that libcyaml refused, words the messages, and suggests the key
 * that was probably meant. */
#include "config/passes.h"

#include <stddef.h>
#include <string.h>

/* most bytes of a key that are compared to find the one that was meant */
#define NAME_MAX_BYTES (DOMI_YAML_NAME_SIZE - 1)

struct walk {
    struct domi_yaml_tree *tree;     /* the tree of the document */
    struct domi_yaml_issues *issues; /* list of issues that gets the faults */
};

static unsigned get_smaller_number(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static char fold_letter_to_lower_case(char letter)
{
    return (char)(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter);
}

/* Returns how many letters of `left` have to be changed, added, removed or swapped with the next
 * one to get `right`; upper and lower case count as equal. */
static unsigned get_edit_distance(const char *left, const char *right)
{
    unsigned rows[3][NAME_MAX_BYTES + 1];
    size_t width = strlen(right);

    for (size_t j = 0; j <= width; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; left[i - 1] != '\0'; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *over = rows[(i + 1) % 3];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= width; j++) {
            unsigned change =
                fold_letter_to_lower_case(left[i - 1]) != fold_letter_to_lower_case(right[j - 1]);

            row[j] = get_smaller_number(get_smaller_number(row[j - 1], above[j]) + 1,
                                        above[j - 1] + change);
            if (i > 1 && j > 1 &&
                fold_letter_to_lower_case(left[i - 1]) == fold_letter_to_lower_case(right[j - 2]) &&
                fold_letter_to_lower_case(left[i - 2]) == fold_letter_to_lower_case(right[j - 1]))
                row[j] = get_smaller_number(row[j], over[j - 2] + 1);
        }
    }
    return rows[strlen(left) % 3][width];
}

/* Returns the key of `fields` with the fewest letters to change from `name`, if these are at most
 * two and at most half of the key; else NULL. */
static const char *find_key_to_suggest(const cyaml_schema_field_t *fields, const char *name)
{
    const char *nearest = NULL;
    unsigned best = 3;

    if (strlen(name) > NAME_MAX_BYTES)
        return NULL;
    for (; fields->key != NULL; fields++) {
        if (strlen(fields->key) > NAME_MAX_BYTES)
            continue;
        unsigned steps = get_edit_distance(name, fields->key);
        if (steps < best && steps < strlen(fields->key) / 2 + 1) {
            best = steps;
            nearest = fields->key;
        }
    }
    return nearest;
}

/* Returns the present name of a key that had `name` in an earlier version, if it is one of
 * `fields`; else NULL. */
static const char *find_present_name_of_renamed_key(const cyaml_schema_field_t *fields,
                                                    const char *name)
{
    static const struct {
        const char *before; /* the former name of a key */
        const char *now;    /* the present name of the key */
    } renamed[] = {{"channelsRunsPerTick", "channelsRunsPerIteration"}}; /* name of version 0.2.0 */

    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++) {
        for (const cyaml_schema_field_t *field = fields; field->key != NULL; field++) {
            if (strcmp(renamed[i].before, name) == 0 && strcmp(renamed[i].now, field->key) == 0)
                return field->key;
        }
    }
    return NULL;
}

static void report_unknown_key(const struct walk *walk, const cyaml_schema_field_t *fields,
                               uint32_t number)
{
    const char *key = domi_yaml_tree_get_key(walk->tree, number);
    const char *renamed = find_present_name_of_renamed_key(fields, key);
    const char *near = renamed != NULL ? renamed : find_key_to_suggest(fields, key);
    struct domi_yaml_node *node = &walk->tree->nodes[number];
    char path[DOMI_YAML_PATH_SIZE];

    domi_yaml_tree_write_path(walk->tree, number, path);
    domi_yaml_issues_add_issue(walk->issues, node->key_at, path, "unknown key%s%s%s",
                               renamed != NULL ? " (it is called '"
                               : near != NULL  ? " (did you mean '"
                                               : "",
                               near != NULL ? near : "",
                               renamed != NULL ? "' now)"
                               : near != NULL  ? "'?)"
                                               : "");
    node->dropped = true;
}

static const char *get_name_of_kind(enum domi_yaml_node_kind kind)
{
    return kind == DOMI_YAML_MAPPING    ? "a mapping"
           : kind == DOMI_YAML_SEQUENCE ? "a list"
                                        : "a single value";
}

/* Returns the kind of node that the schema wants for this value. */
static enum domi_yaml_node_kind get_node_kind_wanted_by_schema(const cyaml_schema_value_t *value)
{
    return value->type == CYAML_MAPPING    ? DOMI_YAML_MAPPING
           : value->type == CYAML_SEQUENCE ? DOMI_YAML_SEQUENCE
                                           : DOMI_YAML_SCALAR;
}

/* Returns whether the node is of the kind that the schema wants in its place, and a list not too
 * long. If not, an issue is added and the node is dropped. */
static bool check_kind_and_length_of_node(const struct walk *walk,
                                          const cyaml_schema_value_t *value, uint32_t number)
{
    struct domi_yaml_node *node = &walk->tree->nodes[number];
    enum domi_yaml_node_kind wanted = get_node_kind_wanted_by_schema(value);
    char path[DOMI_YAML_PATH_SIZE];

    domi_yaml_tree_write_path(walk->tree, number, path);
    if (node->kind != wanted) {
        bool empty = node->kind == DOMI_YAML_SCALAR &&
                     domi_yaml_tree_get_value(walk->tree, number)[0] == '\0';
        domi_yaml_issues_add_issue(walk->issues, node->at, path, "expected %s, found %s",
                                   get_name_of_kind(wanted),
                                   empty ? "nothing" : get_name_of_kind(node->kind));
        node->dropped = true;
    } else if (wanted == DOMI_YAML_SEQUENCE && node->count > value->sequence.max) {
        domi_yaml_issues_add_issue(walk->issues, node->at, path,
                                   "expected at most %u elements, found %u", value->sequence.max,
                                   node->count);
        node->dropped = true;
    }
    return !node->dropped;
}

static const cyaml_schema_value_t *get_schema_value_of_child_node(const struct walk *walk,
                                                                  const cyaml_schema_value_t *value,
                                                                  uint32_t number)
{
    const char *key = domi_yaml_tree_get_key(walk->tree, number);

    if (value->type == CYAML_SEQUENCE)
        return value->sequence.entry;
    for (const cyaml_schema_field_t *field = value->mapping.fields; field->key != NULL; field++)
        if (strcmp(field->key, key) == 0)
            return &field->value;
    return NULL;
}

/* Add an issue for each node at or below `number` that does not fit. The recursion is as deep as
 * the schema. NOLINTNEXTLINE(misc-no-recursion) */
static void report_misfits_below_node(const struct walk *walk, const cyaml_schema_value_t *value,
                                      uint32_t number)
{
    const struct domi_yaml_node *nodes = walk->tree->nodes;

    if (nodes[number].dropped || !check_kind_and_length_of_node(walk, value, number))
        return;
    for (uint32_t child = nodes[number].first; child != 0; child = nodes[child].next) {
        if (nodes[child].dropped)
            continue;
        const cyaml_schema_value_t *below = get_schema_value_of_child_node(walk, value, child);
        if (below == NULL)
            report_unknown_key(walk, value->mapping.fields, child);
        else
            report_misfits_below_node(walk, below, child);
    }
}

void domi_yaml_report_misfits(const struct domi_yaml_schema *schema, struct domi_yaml_tree *tree,
                              struct domi_yaml_issues *issues)
{
    report_misfits_below_node(&(struct walk){.tree = tree, .issues = issues}, &schema->root, 0);
}
