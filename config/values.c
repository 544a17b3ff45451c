/* Turns placed nodes (config/schema.h) into values of the configuration: parses each one, checks it
 * by the table of keys, copies its text and notes its origin. */
#include "config/values.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_SIZE 256 /* bytes of the text of a fault of a value, its NUL included */

_Static_assert(DOMI_YAML_LISTENER_KEYS_MAX <= 64 && DOMI_YAML_POOL_KEYS_MAX <= 64,
               "a bit for each key of an element");

/* The parameters of domi_yaml_values_apply_placed(), for the functions below: the values, the
 * document and the issues. */
struct apply {
    struct domi_yaml_values *values;   /* values of the configuration that are written to */
    const struct domi_yaml_tree *tree; /* the tree of the document */
    struct domi_yaml_issues *issues;   /* list of issues that gets the faults */
};

static bool is_text_key(const domus_config_key *key)
{
    return key->kind >= DOMUS_CONFIG_CPUS;
}

static void set_text_of_key(void *holder, const domus_config_key *key, const char *text)
{
    memcpy((char *)holder + key->offset, &text, sizeof text);
}

/* Copy into `values` the texts of its configuration that still lie elsewhere. */
static void copy_texts_of_keys(struct domi_yaml_values *values)
{
    const domus_config_key *key;
    size_t texts = 0;

    for (size_t i = 0; (key = domus_config_key_get(i)) != NULL; i++) {
        const char *text;
        if (!is_text_key(key))
            continue;
        memcpy(&text, (const char *)&values->config + key->offset, sizeof text);
        if (text != values->key_texts[texts])
            snprintf(values->key_texts[texts], DOMI_YAML_KEY_TEXT_SIZE, "%s", text);
        texts++;
    }
}

/* Let each pointer to a text in the configuration point to the copy of the text in `values`. */
static void point_config_at_own_copies_of_texts(struct domi_yaml_values *values)
{
    const domus_config_key *key;
    size_t texts = 0;

    for (size_t i = 0; (key = domus_config_key_get(i)) != NULL; i++)
        if (is_text_key(key))
            set_text_of_key(&values->config, key, values->key_texts[texts++]);
    values->config.listeners = values->listeners;
    for (size_t i = 0; i < values->config.listener_count; i++) {
        for (size_t k = 0; (key = domus_config_listener_key_get(k)) != NULL; k++) {
            if (is_text_key(key))
                set_text_of_key(&values->listeners[i], key,
                                k < DOMI_YAML_TEXTS_MAX ? values->texts[i][k] : NULL);
        }
    }
    values->config.pools = values->pools;
    for (size_t i = 0; i < values->config.pool_count; i++) {
        values->pools[i].name = values->pool_texts[i][0];
        values->pools[i].policy = values->pool_texts[i][1];
    }
}

int domi_yaml_values_init(struct domi_yaml_values *values, const domus_section *section)
{
    const domus_config_key *key;
    size_t texts = 0;

    for (size_t i = 0; (key = domus_config_key_get(i)) != NULL; i++)
        if (is_text_key(key) &&
            (texts++ == DOMI_YAML_KEY_TEXTS_MAX || key->maximum >= DOMI_YAML_KEY_TEXT_SIZE))
            return -E2BIG;
    for (size_t i = 0; (key = domus_config_listener_key_get(i)) != NULL; i++)
        if (is_text_key(key) && (i >= DOMI_YAML_TEXTS_MAX || key->maximum >= DOMI_YAML_TEXT_SIZE))
            return -E2BIG;
    for (size_t i = 0; (key = domus_config_pool_key_get(i)) != NULL; i++)
        if (is_text_key(key) != (i < DOMI_YAML_POOL_TEXTS_MAX) ||
            (is_text_key(key) && key->maximum >= DOMI_YAML_POOL_TEXT_SIZE))
            return -E2BIG;

    domus_config_init(&values->config);
    copy_texts_of_keys(values);
    point_config_at_own_copies_of_texts(values);
    domi_section_set_defaults(&values->own, section);
    return 0;
}

void domi_yaml_values_copy(struct domi_yaml_values *into, const struct domi_yaml_values *from)
{
    size_t count = from->config.listener_count;

    into->config = from->config;
    for (size_t i = 0; i < DOMI_YAML_KEY_TEXTS_MAX; i++)
        memcpy(into->key_texts[i], from->key_texts[i], strlen(from->key_texts[i]) + 1);
    memcpy(into->listeners, from->listeners, count * sizeof into->listeners[0]);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < DOMI_YAML_TEXTS_MAX; k++)
            memcpy(into->texts[i][k], from->texts[i][k], strlen(from->texts[i][k]) + 1);
    memcpy(into->value_origins, from->value_origins, sizeof into->value_origins);
    memcpy(into->listener_origins, from->listener_origins,
           count * sizeof into->listener_origins[0]);
    memcpy(into->listeners_given, from->listeners_given, count * sizeof into->listeners_given[0]);
    memcpy(into->pools, from->pools, sizeof into->pools);
    memcpy(into->pool_texts, from->pool_texts, sizeof into->pool_texts);
    memcpy(into->pool_origins, from->pool_origins, sizeof into->pool_origins);
    memcpy(into->pools_given, from->pools_given, sizeof into->pools_given);
    into->own = from->own;
    point_config_at_own_copies_of_texts(into);
}

int domi_yaml_values_find_element(const struct domi_yaml_values *values, const char *list,
                                  const char *name, size_t length)
{
    bool pools = strcmp(list, DOMI_YAML_POOLS) == 0;
    size_t count = pools ? values->config.pool_count : values->config.listener_count;

    for (size_t i = 0; i < count; i++) {
        const char *its = pools ? values->pools[i].name : values->listeners[i].name;
        if (strncmp(its, name, length) == 0 && its[length] == '\0')
            return (int)i;
    }
    return -ENOENT;
}

static void add_issue_about_node(const struct apply *apply, uint32_t number, const char *message)
{
    char path[DOMI_YAML_PATH_SIZE];

    domi_yaml_tree_write_path(apply->tree, number, path);
    domi_yaml_issues_add_issue(apply->issues, apply->tree->nodes[number].at, path, "%s", message);
}

/* Parse a node as the value of `key`, check it and store it in `holder`. Returns false, with an
 * issue added, if it is wrong. */
static bool store_checked_value(const struct apply *apply, const domus_config_key *key,
                                void *holder, uint32_t number)
{
    const char *text = domi_yaml_tree_get_value(apply->tree, number);
    char message[MESSAGE_SIZE];
    uint64_t value;

    if (domus_config_key_read(key, text, &value, message, sizeof message) < 0 ||
        domus_config_key_put(key, holder, value, text, message, sizeof message) < 0) {
        add_issue_about_node(apply, number, message);
        return false;
    }
    return true;
}

/* Store the value of a key that has two rows, as a count or, if its text ends with '%', as a share.
 * The row that the text fits is set, and the other becomes 0. Returns false, with an issue added,
 * if the value is wrong. */
static bool store_count_or_share(const struct apply *apply, const domus_config_key *count,
                                 const domus_config_key *share, uint32_t number)
{
    const char *text = domi_yaml_tree_get_value(apply->tree, number);
    size_t length = strlen(text);
    bool percent = length > 0 && text[length - 1] == '%';
    domus_config *config = &apply->values->config;

    if (!store_checked_value(apply, percent ? share : count, config, number))
        return false;
    return domus_config_key_put(percent ? count : share, config, 0, NULL, NULL, 0) == 0;
}

static void apply_keys_of_document(const struct apply *apply, const struct domi_yaml_placed *placed)
{
    struct domi_yaml_values *values = apply->values;
    const domus_config_key *key, *next;

    for (uint32_t row = 0; (key = domus_config_key_get(row)) != NULL; row++) {
        uint32_t number = placed->node[row];
        bool done;

        if (number == 0)
            continue;
        next = domus_config_key_get(row + 1);
        if (next != NULL && strcmp(next->path, key->path) == 0)
            done = store_count_or_share(apply, key, next, number);
        else
            done = store_checked_value(apply, key, &values->config, number);
        if (!done)
            continue;
        values->value_origins[row] = apply->tree->nodes[number].at;
    }
    copy_texts_of_keys(values);
}

static void store_placed_values_of_listener(const struct apply *apply,
                                            const struct domi_yaml_placed_listener *placed,
                                            size_t index)
{
    struct domi_yaml_values *values = apply->values;
    const domus_config_key *key;

    for (size_t k = 0; (key = domus_config_listener_key_get(k)) != NULL; k++) {
        uint32_t number = placed->node[k];

        if (number == 0 || !store_checked_value(apply, key, &values->listeners[index], number))
            continue;
        values->listener_origins[index][k] = apply->tree->nodes[number].at;
        values->listeners_given[index] |= UINT64_C(1) << k;
        if (is_text_key(key))
            snprintf(values->texts[index][k], DOMI_YAML_TEXT_SIZE, "%s",
                     domi_yaml_tree_get_value(apply->tree, number));
    }
}

static void store_placed_values_of_pool(const struct apply *apply,
                                        const struct domi_yaml_placed_pool *placed, size_t index)
{
    struct domi_yaml_values *values = apply->values;
    const domus_config_key *key;

    for (size_t k = 0; (key = domus_config_pool_key_get(k)) != NULL; k++) {
        uint32_t number = placed->node[k];

        if (number == 0 || !store_checked_value(apply, key, &values->pools[index], number))
            continue;
        values->pool_origins[index][k] = apply->tree->nodes[number].at;
        values->pools_given[index] |= UINT64_C(1) << k;
        if (is_text_key(key))
            snprintf(values->pool_texts[index][k], DOMI_YAML_POOL_TEXT_SIZE, "%s",
                     domi_yaml_tree_get_value(apply->tree, number));
    }
}

/* Add an issue if an element of a list, whose node is `number`, lacks a key that has no default. */
static void check_required_keys_of_element(const struct apply *apply, const domus_config_key *key,
                                           uint32_t number)
{
    char message[MESSAGE_SIZE];

    if (!is_text_key(key) || key->preset_text != NULL || apply->tree->cut ||
        domi_yaml_tree_find_child(apply->tree, number, key->path) != 0)
        return;
    snprintf(message, sizeof message, "%s is missing", key->path);
    add_issue_about_node(apply, number, message);
}

/* Add a pool to the configuration, in the way in which add_listener_of_document() adds a listener.
 */
static void add_pool_of_document(const struct apply *apply,
                                 const struct domi_yaml_placed_pool *placed, uint32_t number)
{
    struct domi_yaml_values *values = apply->values;
    size_t index = values->config.pool_count++;
    const domus_config_key *key;

    values->pools[index] = (domus_pool_config){0};
    values->pools_given[index] = 0;
    for (size_t k = 0; (key = domus_config_pool_key_get(k)) != NULL; k++) {
        values->pool_origins[index][k] = apply->tree->nodes[number].at;
        if (is_text_key(key))
            snprintf(values->pool_texts[index][k], DOMI_YAML_POOL_TEXT_SIZE, "%s",
                     key->preset_text != NULL ? key->preset_text : "");
        else
            domus_config_key_put(key, &values->pools[index], key->preset, NULL, NULL, 0);
        check_required_keys_of_element(apply, key, number);
    }
    store_placed_values_of_pool(apply, placed, index);
}

/* Add a listener to the configuration: give it the defaults, then the values that were placed.
 * `number` is its node. */
static void add_listener_of_document(const struct apply *apply,
                                     const struct domi_yaml_placed_listener *placed,
                                     uint32_t number)
{
    struct domi_yaml_values *values = apply->values;
    const struct domi_yaml_origin at = apply->tree->nodes[number].at;
    size_t index = values->config.listener_count++;
    const domus_config_key *key;

    values->listeners[index] = (domus_listener_config){0};
    values->listeners_given[index] = 0;
    for (size_t k = 0; (key = domus_config_listener_key_get(k)) != NULL; k++) {
        values->listener_origins[index][k] = at;
        if (key->inherits)
            continue;
        if (is_text_key(key))
            values->texts[index][k][0] = '\0';
        if (!is_text_key(key))
            domus_config_key_put(key, &values->listeners[index], key->preset, NULL, NULL, 0);
        check_required_keys_of_element(apply, key, number);
    }
    store_placed_values_of_listener(apply, placed, index);
}

/* Replace all listeners by those of the document. libcyaml keeps the order, so its n-th element is
 * the n-th node that was not dropped. */
static void apply_listeners_of_document(const struct apply *apply,
                                        const struct domi_yaml_placed *placed)
{
    uint32_t list = domi_yaml_tree_find_child(apply->tree, 0, DOMI_YAML_LISTENERS), n = 0;
    const struct domi_yaml_node *nodes = apply->tree->nodes;

    if (list == 0 || nodes[list].dropped)
        return;
    apply->values->config.listener_count = 0;
    for (uint32_t child = nodes[list].first; child != 0 && n < placed->listener_count;
         child = nodes[child].next)
        if (!nodes[child].dropped)
            add_listener_of_document(apply, &placed->listeners[n++], child);
}

/* Replace all pools by those of the document, in the same way as its listeners. */
static void apply_pools_of_document(const struct apply *apply,
                                    const struct domi_yaml_placed *placed)
{
    uint32_t list = domi_yaml_tree_find_child(apply->tree, 0, DOMI_YAML_POOLS), n = 0;
    const struct domi_yaml_node *nodes = apply->tree->nodes;

    if (list == 0 || nodes[list].dropped)
        return;
    apply->values->config.pool_count = 0;
    for (uint32_t child = nodes[list].first; child != 0 && n < placed->pool_count;
         child = nodes[child].next)
        if (!nodes[child].dropped)
            add_pool_of_document(apply, &placed->pools[n++], child);
}

void domi_yaml_values_apply_placed(struct domi_yaml_values *values,
                                   const struct domi_yaml_tree *tree,
                                   const struct domi_yaml_placed *placed,
                                   struct domi_yaml_element element,
                                   struct domi_yaml_issues *issues)
{
    const struct apply apply = {.values = values, .tree = tree, .issues = issues};

    apply_keys_of_document(&apply, placed);
    if (element.list == NULL) {
        apply_listeners_of_document(&apply, placed);
        apply_pools_of_document(&apply, placed);
    } else if (placed->listener_count > 0) {
        store_placed_values_of_listener(&apply, &placed->listeners[0], element.index);
    } else if (placed->pool_count > 0) {
        store_placed_values_of_pool(&apply, &placed->pools[0], element.index);
    }
    domi_section_store_placed_values(&values->own, tree, placed, issues);
    point_config_at_own_copies_of_texts(values);
}

/* --- origins ---------------------------------------------------------------------------------- */

struct domi_yaml_origin domi_yaml_values_get_key_origin(const struct domi_yaml_values *values,
                                                        const domus_config_key *key)
{
    uint32_t row = 0;

    while (domus_config_key_get(row) != NULL && domus_config_key_get(row) != key)
        row++;
    /* a key with two rows has one origin, that of the first row */
    if (row > 0 && strcmp(domus_config_key_get(row - 1)->path, key->path) == 0)
        row--;
    return values->value_origins[row < DOMI_YAML_KEYS_MAX ? row : 0];
}

struct domi_yaml_origin domi_yaml_values_get_element_origin(const struct domi_yaml_values *values,
                                                            const char *list, size_t element,
                                                            size_t row)
{
    bool is_pool = strcmp(list, DOMI_YAML_POOLS) == 0;
    uint64_t given = is_pool ? values->pools_given[element] : values->listeners_given[element];

    if ((given >> row & 1) == 0)
        return (struct domi_yaml_origin){0};
    return is_pool ? values->pool_origins[element][row] : values->listener_origins[element][row];
}

struct domi_yaml_origin
domi_yaml_values_get_origin_of_faulty_key(const struct domi_yaml_values *values,
                                          const domus_config_fault *fault)
{
    struct domi_yaml_origin at = {0};

    if (fault->key == NULL)
        return at;
    if (fault->listener != SIZE_MAX) {
        for (uint32_t k = 0; k < DOMI_YAML_LISTENER_KEYS_MAX; k++)
            if (domus_config_listener_key_get(k) == fault->key)
                return values->listener_origins[fault->listener][k];
        for (uint32_t k = 0; k < DOMI_YAML_POOL_KEYS_MAX; k++)
            if (domus_config_pool_key_get(k) == fault->key)
                return values->pool_origins[fault->listener][k];
        return at;
    }
    at = domi_yaml_values_get_key_origin(values, fault->key);
    return at.file == 0 && fault->other != NULL
               ? domi_yaml_values_get_key_origin(values, fault->other)
               : at;
}

bool domi_value_is_different(const domus_config_key *key, const void *before, const void *now)
{
    const char *old = (const char *)before + key->offset, *new = (const char *)now + key->offset;
    const char *old_text, *new_text;

    if (key->kind < DOMUS_CONFIG_CPUS)
        return memcmp(old, new, key->size) != 0;
    memcpy(&old_text, old, sizeof old_text);
    memcpy(&new_text, new, sizeof new_text);
    return strcmp(old_text != NULL ? old_text : "", new_text != NULL ? new_text : "") != 0;
}
