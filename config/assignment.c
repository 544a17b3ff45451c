/* Cuts an assignment "a.b.c=v" into a chain of nodes of a tree, one for each key of the path. If
 * the key is a list of texts in the program's section, the value "v,w" becomes a node for each
 * element. */
#include "config/passes.h"

#include "config/section.h"

#include <stdio.h>
#include <string.h>

struct chain {
    struct domi_yaml_tree *tree; /* tree that gets the nodes of the assignment */
    struct domi_yaml_origin at;  /* place of the assignment, for which faults are reported */
    uint32_t number;             /* number of the innermost node of the chain so far */
};

static int add_node_to_chain(struct chain *chain, enum domi_yaml_node_kind kind, const char *key,
                             const char *value)
{
    const struct domi_yaml_node node = {.kind = kind, .at = chain->at, .key_at = chain->at};

    return domi_yaml_tree_add_node(chain->tree, chain->number, &node, key, value, &chain->number);
}

/* Add a list to the chain of nodes, with the elements of `value`, which commas divide. */
static int add_list_of_texts_to_chain(struct chain *chain, const char *key, const char *value)
{
    char text[DOMI_YAML_VALUE_MAX + 1];
    int result = add_node_to_chain(chain, DOMI_YAML_SEQUENCE, key, NULL);
    const uint32_t list = chain->number;

    while (result == 0 && value[0] != '\0') {
        size_t length = strcspn(value, ",");
        memcpy(text, value, length);
        text[length] = '\0';
        chain->number = list;
        result = add_node_to_chain(chain, DOMI_YAML_SCALAR, "", text);
        value += length + (value[length] == ',');
    }
    return result;
}

/* Add a node for each key of an assignment's `path`, each within the one before; the dots of `path`
 * are overwritten with NULs. No key of the schema lies as deep as DOMI_YAML_DEPTH_MAX. So at that
 * depth the rest of the path is added as one key, which the schema then refuses. */
static int add_nodes_of_path(struct chain *chain, char *path, const char *value, bool is_list)
{
    char *dot;
    int result = 0;

    while (result == 0 && chain->tree->count < DOMI_YAML_DEPTH_MAX &&
           (dot = strchr(path, '.')) != NULL) {
        *dot = '\0';
        result = add_node_to_chain(chain, DOMI_YAML_MAPPING, path, NULL);
        path = dot + 1;
    }
    if (result == 0 && is_list)
        return add_list_of_texts_to_chain(chain, path, value);
    return result < 0 ? result : add_node_to_chain(chain, DOMI_YAML_SCALAR, path, value);
}

/* The lists of mappings that an assignment may address, and what one of their elements is
 * called. */
static const struct {
    const char *list;
    const char *expected; /* text of the error for a path that ends with the name of an element */
    /* text of the error for an element's name that no element of the list has */
    const char *unknown;
} lists[] = {
    {DOMI_YAML_LISTENERS, "expected listeners.NAME.KEY", "there is no listener of that name"},
    {DOMI_YAML_POOLS, "expected pools.NAME.KEY", "there is no pool of that name"},
};

/* If the path of an assignment begins with the name of a list, hand out the element that it names,
 * and the rest of the path. Returns NULL, or the text of an error for the user. */
static const char *find_element_of_list_in_path(char *path, const struct domi_yaml_values *values,
                                                char **ret_rest,
                                                struct domi_yaml_element *ret_element)
{
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        size_t length = strlen(lists[i].list);

        if (strncmp(path, lists[i].list, length) != 0 || path[length] != '.')
            continue;
        char *name = path + length + 1;
        char *dot = strchr(name, '.');
        if (dot == NULL)
            return lists[i].expected;
        int index =
            domi_yaml_values_find_element(values, lists[i].list, name, (size_t)(dot - name));
        if (index < 0)
            return lists[i].unknown;
        *ret_element = (struct domi_yaml_element){lists[i].list, (size_t)index};
        *ret_rest = dot + 1;
    }
    return NULL;
}

int domi_yaml_read_assignment(struct domi_yaml_tree *tree, const char *assignment,
                              struct domi_yaml_origin at, const struct domi_yaml_values *values,
                              char shown[DOMI_YAML_PATH_SIZE],
                              struct domi_yaml_element *ret_element,
                              struct domi_yaml_issues *issues)
{
    struct chain chain = {.tree = tree, .at = at};
    const char *equals = strchr(assignment, '='), *complaint;
    size_t length = equals != NULL ? (size_t)(equals - assignment) : 0;
    char path[DOMI_YAML_PATH_SIZE], *rest = path;

    *ret_element = (struct domi_yaml_element){NULL, 0};
    if (length != 0 && length < sizeof path && strlen(equals + 1) > DOMI_YAML_VALUE_MAX) {
        /* the message does not show the value, because it may be a secret */
        domi_yaml_issues_add_issue(issues, at, "", "%.*s: a value is longer than 4096 bytes",
                                   length < DOMI_YAML_SHOWN_MAX ? (int)length : DOMI_YAML_SHOWN_MAX,
                                   assignment);
        return 0;
    }
    if (length == 0 || length >= sizeof path) {
        domi_yaml_issues_add_issue(issues, at, "",
                                   "expected key=value, such as scheduler.ioRatio=60, found '%.*s'",
                                   domi_yaml_count_bytes_of_text_to_show(assignment), assignment);
        return 0;
    }
    memcpy(path, assignment, length);
    path[length] = '\0';
    memcpy(shown, path, length + 1);
    complaint = find_element_of_list_in_path(path, values, &rest, ret_element);
    if (complaint != NULL) {
        domi_yaml_issues_add_issue(issues, at, shown, "%s", complaint);
        return 0;
    }

    int result = add_node_to_chain(&chain, DOMI_YAML_MAPPING, "", NULL);
    if (result == 0 && ret_element->list != NULL)
        result = add_node_to_chain(&chain, DOMI_YAML_SEQUENCE, ret_element->list, NULL);
    if (result == 0 && ret_element->list != NULL)
        result = add_node_to_chain(&chain, DOMI_YAML_MAPPING, "", NULL);
    if (result < 0)
        return result;
    return add_nodes_of_path(&chain, rest, equals + 1,
                             domi_section_is_list_of_texts(values->own.section, path));
}
