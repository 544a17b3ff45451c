/* Writes the skeleton of a document, and asks libcyaml about it (passes.h). */
#include "config/passes.h"

#include "config/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The skeleton of a document, which is the text that libcyaml reads. */
struct skeleton {
    char *text; /* text of the skeleton, on the heap, NUL-terminated */
    size_t size, capacity;
};

static int append_text_to_skeleton_of_yaml(struct skeleton *skeleton, const char *text)
{
    size_t length = strlen(text);
    int result = domi_yaml_memory_grow((void **)&skeleton->text, &skeleton->capacity,
                                       skeleton->size + length, 1);

    if (result < 0)
        return result;
    memcpy(skeleton->text + skeleton->size, text, length);
    skeleton->size += length;
    return 0;
}

/* Write a key of the skeleton between quotes. Each character that would need an escape is written
 * as '?', because no key of the table holds one. */
static int write_key_of_skeleton(struct skeleton *skeleton, const char *key)
{
    size_t start = skeleton->size + 1;
    int result = append_text_to_skeleton_of_yaml(skeleton, "\"");

    if (result == 0)
        result = append_text_to_skeleton_of_yaml(skeleton, key);
    for (size_t i = start; result == 0 && i < skeleton->size; i++)
        if (skeleton->text[i] < ' ' || skeleton->text[i] > '~' || strchr("\"\\", skeleton->text[i]))
            skeleton->text[i] = '?';
    return result < 0 ? result : append_text_to_skeleton_of_yaml(skeleton, "\": ");
}

static int write_node_to_skeleton(struct skeleton *skeleton, const struct domi_yaml_tree *tree,
                                  uint32_t number);

/* NOLINTNEXTLINE(misc-no-recursion): as write_node_to_skeleton() */
static int write_children_to_skeleton(struct skeleton *skeleton, const struct domi_yaml_tree *tree,
                                      uint32_t number)
{
    const struct domi_yaml_node *nodes = tree->nodes;
    bool first = true;
    int result = 0;

    for (uint32_t child = nodes[number].first; result == 0 && child != 0;
         child = nodes[child].next) {
        if (nodes[child].dropped)
            continue;
        if (!first)
            result = append_text_to_skeleton_of_yaml(skeleton, ", ");
        first = false;
        if (result == 0 && nodes[number].kind == DOMI_YAML_MAPPING)
            result = write_key_of_skeleton(skeleton, domi_yaml_tree_get_key(tree, child));
        if (result == 0)
            result = write_node_to_skeleton(skeleton, tree, child);
    }
    return result;
}

/* Write a node and all below it; a scalar is written as its number. The recursion is as deep as the
 * tree, at most DOMI_YAML_DEPTH_MAX. NOLINTNEXTLINE(misc-no-recursion) */
static int write_node_to_skeleton(struct skeleton *skeleton, const struct domi_yaml_tree *tree,
                                  uint32_t number)
{
    bool mapping = tree->nodes[number].kind == DOMI_YAML_MAPPING;
    char text[16];

    if (tree->nodes[number].kind == DOMI_YAML_SCALAR) {
        snprintf(text, sizeof text, "%u", number);
        return append_text_to_skeleton_of_yaml(skeleton, text);
    }

    int result = append_text_to_skeleton_of_yaml(skeleton, mapping ? "{" : "[");
    if (result == 0)
        result = write_children_to_skeleton(skeleton, tree, number);
    return result < 0 ? result : append_text_to_skeleton_of_yaml(skeleton, mapping ? "}" : "]");
}

static cyaml_config_t get_libcyaml_config(void)
{
    return (cyaml_config_t){.mem_fn = domi_yaml_memory_realloc, .flags = CYAML_CFG_NO_ALIAS};
}

/* Let libcyaml load the tree's skeleton. Returns 0; a positive error of libcyaml; -ENOMEM for each
 * error that means that memory ran out. */
static int load_skeleton_by_libcyaml(const struct domi_yaml_schema *schema,
                                     const struct domi_yaml_tree *tree,
                                     struct domi_yaml_placed **ret_placed)
{
    cyaml_config_t config = get_libcyaml_config();
    struct skeleton skeleton = {0};
    cyaml_data_t *data = NULL;
    int result = write_node_to_skeleton(&skeleton, tree, 0);

    if (result == 0)
        result = (int)cyaml_load_data((const uint8_t *)skeleton.text, skeleton.size, &config,
                                      &schema->root, &data, NULL);
    domi_yaml_memory_realloc(NULL, skeleton.text, 0);
    if (result == CYAML_OK)
        *ret_placed = data;
    if (result == CYAML_ERR_OOM || result == CYAML_ERR_LIBYAML_PARSER_INIT ||
        /* the skeleton is well-formed, so libyaml failed because memory ran out */
        result == CYAML_ERR_LIBYAML_PARSER)
        return -ENOMEM;
    return result;
}

int domi_yaml_place_nodes_by_schema(const struct domi_yaml_schema *schema,
                                    struct domi_yaml_tree *tree, struct domi_yaml_issues *issues,
                                    struct domi_yaml_placed **ret_placed)
{
    int result;

    if (tree->count == 0 || tree->nodes[0].dropped)
        return 0; /* there is nothing to place: the file is empty, or nothing in it could be read */
    result = load_skeleton_by_libcyaml(schema, tree, ret_placed);
    if (result > 0) {
        domi_yaml_report_misfits(schema, tree, issues);
        if (tree->nodes[0].dropped)
            return 0;
        result = load_skeleton_by_libcyaml(schema, tree, ret_placed);
    }
    if (result > 0) { /* the walk along the schema found no reason, so the message is libcyaml's */
        domi_yaml_issues_add_issue(issues, tree->nodes[0].at, "", "%s",
                                   cyaml_strerror((cyaml_err_t)result));
        return 0;
    }
    return result;
}

void domi_yaml_free_placed(const struct domi_yaml_schema *schema, struct domi_yaml_placed *placed)
{
    cyaml_config_t config = get_libcyaml_config();

    if (placed != NULL)
        cyaml_free(&config, &schema->root, placed, 0);
}
