/* Joins each list of texts in a document to one text with commas (passes.h). */
#include "config/passes.h"

#include <domus/config.h>

#include <string.h>

/* Returns the number of the node of a key, by the key's path; 0 if the document does not have
 * it. */
static uint32_t find_node_of_path(const struct domi_yaml_tree *tree, const char *path)
{
    char name[DOMI_YAML_PATH_SIZE];
    uint32_t number = 0;
    size_t length;

    for (const char *part = path;; part += length + 1) {
        length = strcspn(part, ".");
        memcpy(name, part, length);
        name[length] = '\0';
        number = domi_yaml_tree_find_child(tree, number, name);
        if (number == 0 || tree->nodes[number].dropped)
            return 0;
        if (part[length] == '\0')
            return number;
    }
}

/* Returns a text that says what is wrong with an element of a list of texts, or NULL. */
static const char *find_fault_of_list_element(const struct domi_yaml_tree *tree, uint32_t number)
{
    const char *text = domi_yaml_tree_get_value(tree, number);

    if (tree->nodes[number].kind != DOMI_YAML_SCALAR)
        return "expected a single value";
    if (text[0] == '\0')
        return "expected a text, found nothing";
    return strchr(text, ',') != NULL ? "a text of a list may not have a comma" : NULL;
}

/* Report a node of a list of texts as wrong, and drop its list. */
static void report_node_and_drop_list(struct domi_yaml_tree *tree, uint32_t list, uint32_t number,
                                      const char *message, struct domi_yaml_issues *issues)
{
    char path[DOMI_YAML_PATH_SIZE];

    domi_yaml_tree_write_path(tree, number, path);
    domi_yaml_issues_add_issue(issues, tree->nodes[number].at, path, "%s", message);
    tree->nodes[list].dropped = true;
}

/* Write the elements of a list of texts with commas between them. Returns whether the elements are
 * right; otherwise the list is dropped. */
static bool join_texts_of_list(struct domi_yaml_tree *tree, uint32_t list,
                               char text[DOMI_YAML_VALUE_MAX + 1], struct domi_yaml_issues *issues)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t child = tree->nodes[list].first; child != 0; child = tree->nodes[child].next) {
        /* a node that was dropped has a fault that was reported before */
        if (tree->nodes[child].dropped) {
            tree->nodes[list].dropped = true;
            return false;
        }
        const char *fault = find_fault_of_list_element(tree, child);
        if (fault != NULL) {
            report_node_and_drop_list(tree, list, child, fault, issues);
            return false;
        }
        const char *value = domi_yaml_tree_get_value(tree, child);
        size_t size = strlen(value);
        if (used + 1 + size > DOMI_YAML_VALUE_MAX) {
            report_node_and_drop_list(tree, list, list, "the list is longer than 4096 bytes",
                                      issues);
            return false;
        }
        if (used != 0)
            text[used++] = ',';
        memcpy(text + used, value, size + 1);
        used += size;
    }
    return true;
}

int domi_yaml_join_lists_of_texts(struct domi_yaml_tree *tree, struct domi_yaml_issues *issues)
{
    char text[DOMI_YAML_VALUE_MAX + 1];
    const domus_config_key *key;

    for (size_t row = 0; tree->count != 0 && (key = domus_config_key_get(row)) != NULL; row++) {
        uint32_t number = key->kind == DOMUS_CONFIG_TEXTS ? find_node_of_path(tree, key->path) : 0;
        if (number == 0 || tree->nodes[number].kind != DOMI_YAML_SEQUENCE ||
            !join_texts_of_list(tree, number, text, issues))
            continue;
        int result = domi_yaml_tree_make_scalar(tree, number, text);
        if (result < 0)
            return result;
    }
    return 0;
}
