/* This file cuts "a.b.c=v" into a chain of nodes, one for each key of the path. If the key is a
 * list of texts in the program's section, the value "v,w" becomes a node for each element. */
#include "config/assignment.h"

#include "config/parse.h"
#include "config/section.h"

#include <stdio.h>
#include <string.h>

#define LIST_PREFIX DOMI_YAML_LISTENERS "."

struct chain {
    struct domi_yaml_tree *tree; /* gets the nodes */
    struct domi_yaml_origin at;  /* the place that faults are reported for */
    uint32_t number;             /* the number of the innermost node */
};

static int add(struct chain *chain, enum domi_yaml_node_kind kind, const char *key,
               const char *value)
{
    const struct domi_yaml_node node = {.kind = kind, .at = chain->at, .key_at = chain->at};

    return domi_yaml_tree_add(chain->tree, chain->number, &node, key, value, &chain->number);
}

/* Add a list with the elements of `value`, which commas divide. */
static int add_list(struct chain *chain, const char *key, const char *value)
{
    char text[DOMI_YAML_VALUE_MAX + 1];
    int result = add(chain, DOMI_YAML_SEQUENCE, key, NULL);
    const uint32_t list = chain->number;

    while (result == 0 && value[0] != '\0') {
        size_t length = strcspn(value, ",");
        memcpy(text, value, length);
        text[length] = '\0';
        chain->number = list;
        result = add(chain, DOMI_YAML_SCALAR, "", text);
        value += length + (value[length] == ',');
    }
    return result;
}

/* Add a node for each key of `path`, each within the one before; the dots of `path` are overwritten
 * with NULs. No key of the schema lies as deep as DOMI_YAML_DEPTH_MAX. So at that depth the rest of
 * the path is added as one key, which the schema then refuses. */
static int add_path(struct chain *chain, char *path, const char *value, bool is_list)
{
    char *dot;
    int result = 0;

    while (result == 0 && chain->tree->count < DOMI_YAML_DEPTH_MAX &&
           (dot = strchr(path, '.')) != NULL) {
        *dot = '\0';
        result = add(chain, DOMI_YAML_MAPPING, path, NULL);
        path = dot + 1;
    }
    if (result == 0 && is_list)
        return add_list(chain, path, value);
    return result < 0 ? result : add(chain, DOMI_YAML_SCALAR, path, value);
}

/* `path` is what follows "listeners.". Hand out the index of the listener that it names, and the
 * rest of the path. Returns NULL, or a complaint for the user. */
static const char *find_listener(const char *path, const struct domi_yaml_values *values,
                                 char **ret_rest, int *ret_listener)
{
    char *dot = strchr(path, '.');

    if (dot == NULL)
        return "expected listeners.NAME.KEY";
    *ret_listener = domi_yaml_values_find(values, path, (size_t)(dot - path));
    if (*ret_listener < 0)
        return "there is no listener of that name";
    *ret_rest = dot + 1;
    return NULL;
}

int domi_yaml_assignment_read(struct domi_yaml_tree *tree, const char *assignment,
                              struct domi_yaml_origin at, const struct domi_yaml_values *values,
                              char shown[DOMI_YAML_PATH_SIZE], int *ret_listener,
                              struct domi_yaml_issues *issues)
{
    struct chain chain = {.tree = tree, .at = at};
    const char *equals = strchr(assignment, '='), *complaint = NULL;
    size_t length = equals != NULL ? (size_t)(equals - assignment) : 0;
    char path[DOMI_YAML_PATH_SIZE], *rest = path;

    *ret_listener = -1;
    if (length == 0 || length >= sizeof path || strlen(equals + 1) > DOMI_YAML_VALUE_MAX) {
        domi_yaml_issues_add(issues, at, "",
                             "expected key=value, such as scheduler.ioRatio=60, found '%.*s'",
                             domi_yaml_shown_bytes(assignment), assignment);
        return 0;
    }
    memcpy(path, assignment, length);
    path[length] = '\0';
    memcpy(shown, path, length + 1);
    if (strncmp(path, LIST_PREFIX, strlen(LIST_PREFIX)) == 0)
        complaint = find_listener(path + strlen(LIST_PREFIX), values, &rest, ret_listener);
    if (complaint != NULL) {
        domi_yaml_issues_add(issues, at, shown, "%s", complaint);
        return 0;
    }

    int result = add(&chain, DOMI_YAML_MAPPING, "", NULL);
    if (result == 0 && *ret_listener >= 0)
        result = add(&chain, DOMI_YAML_SEQUENCE, DOMI_YAML_LISTENERS, NULL);
    if (result == 0 && *ret_listener >= 0)
        result = add(&chain, DOMI_YAML_MAPPING, "", NULL);
    if (result < 0)
        return result;
    return add_path(&chain, rest, equals + 1, domi_section_is_list(values->own.section, path));
}
