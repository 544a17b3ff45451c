/* Checks a program's table of keys, and turns placed nodes into the values of its struct. Nothing
 * here allocates. */
#include "config/section.h"

#include <domus/config_shown.h>
#include <domus/text.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* bytes of the text of a fault in the program's section, its NUL included */
#define MESSAGE_SIZE 256
#define PRESET_SIZE  512 /* bytes of one element of a default list, its NUL included */

static bool is_text_key(const domus_config_key *key)
{
    return key->kind >= DOMUS_CONFIG_CPUS;
}

/* Returns the size in bytes of one text of a key. */
static size_t get_size_of_text(const domus_config_key *key)
{
    return key->list_max != 0 ? key->size / key->list_max : key->size;
}

/* --- one value -------------------------------------------------------------------------------- */

/* Check `text` as a value of the text key `key`, and copy it to `into`, which has
 * get_size_of_text() bytes. */
static int check_and_copy_text_of_key(const domus_config_key *key, char *into, const char *text,
                                      char *error, size_t error_size)
{
    domus_config_key row = *key;
    const char *checked;

    row.offset = 0; /* where libdomus's check of a text stores its pointer, which is not used */
    if (domus_config_key_put(&row, &checked, 0, text, error, error_size) < 0)
        return -EINVAL;
    memset(into, 0, get_size_of_text(key));
    memcpy(into, checked, strlen(checked) + 1);
    return 0;
}

/* Read `text` as the value of a key that is no list, and store it in the program's struct. */
static int read_and_store_value_of_key(const domus_config_key *key, unsigned char *holder,
                                       const char *text, char *error, size_t error_size)
{
    uint64_t number;

    if (is_text_key(key))
        return check_and_copy_text_of_key(key, (char *)holder + key->offset, text, error,
                                          error_size);
    if (domus_config_key_read(key, text, &number, error, error_size) < 0)
        return -EINVAL;
    return domus_config_key_put(key, holder, number, NULL, error, error_size);
}

static char *get_text_of_list_at_index(const domus_config_key *key, unsigned char *holder,
                                       uint32_t index)
{
    return (char *)holder + key->offset + index * get_size_of_text(key);
}

static void set_count_of_list_in_holder(const domus_config_key *key, unsigned char *holder,
                                        uint32_t count)
{
    memcpy(holder + key->count_offset, &count, sizeof count);
}

/* --- the table -------------------------------------------------------------------------------- */

/* Store the default of a list of texts, which is written with commas. */
static int store_default_of_text_list(const domus_config_key *key, unsigned char *holder,
                                      char *error, size_t error_size)
{
    const char *rest = key->preset_text;
    uint32_t count = 0;

    while (rest != NULL && rest[0] != '\0') {
        char text[PRESET_SIZE];
        size_t length = strcspn(rest, ",");
        if (length >= sizeof text || count == key->list_max) {
            snprintf(error, error_size, "the default is too long");
            return -EINVAL;
        }
        memcpy(text, rest, length);
        text[length] = '\0';
        if (check_and_copy_text_of_key(key, get_text_of_list_at_index(key, holder, count++), text,
                                       error, error_size) < 0)
            return -EINVAL;
        rest += length + (rest[length] == ',');
    }
    set_count_of_list_in_holder(key, holder, count);
    return 0;
}

/* Store the default of a key in the program's struct. A text that the user must give has none, and
 * stays empty. */
static int store_default_of_key(const domus_config_key *key, unsigned char *holder, char *error,
                                size_t error_size)
{
    if (key->list_max != 0)
        return store_default_of_text_list(key, holder, error, error_size);
    if (!is_text_key(key))
        return domus_config_key_put(key, holder, key->preset, NULL, error, error_size);
    if (key->preset_text == NULL)
        return 0;
    return check_and_copy_text_of_key(key, (char *)holder + key->offset, key->preset_text, error,
                                      error_size);
}

/* Returns a text that says what is wrong with the field of the struct that a row of the table
 * names, or NULL. */
static const char *find_fault_of_field(const domus_section *section, const domus_config_key *key)
{
    if (key->offset > section->size || key->size > section->size - key->offset)
        return "the field is not in the struct";
    if (key->minimum > key->maximum)
        return "the range is empty";
    if (is_text_key(key))
        return key->maximum >= get_size_of_text(key) ? "the field is too small for the longest text"
               : key->list_max != 0 && (key->count_offset > section->size ||
                                        sizeof(uint32_t) > section->size - key->count_offset)
                   ? "the count is not in the struct"
                   : NULL;
    if (key->list_max != 0)
        return "only texts make a list";
    if (key->size != 1 && key->size != 4 && key->size != 8)
        return "the field has not 1, 4 or 8 bytes";
    if (key->size < 8 && key->maximum >> (8 * key->size) != 0)
        return "the field is too small for the greatest value";
    return key->kind == DOMUS_CONFIG_WORD && key->words == NULL ? "there are no words" : NULL;
}

static bool is_section_name_valid(const char *name, size_t length)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

    return length > 0 && length <= DOMUS_SECTION_NAME_MAX && strspn(name, letters) >= length;
}

static bool is_path_of_key_valid(const char *path)
{
    size_t length, whole = strlen(path);

    for (const char *part = path;; part += length + 1) {
        length = strcspn(part, ".");
        if (!is_section_name_valid(part, length))
            return false;
        if (part[length] == '\0')
            return whole < DOMI_YAML_PATH_SIZE / 2;
    }
}

/* Returns whether two paths of keys collide: they are one key, or one is a section that the other
 * lies in. */
static bool do_paths_of_keys_collide(const char *left, const char *right)
{
    size_t length = strlen(left) < strlen(right) ? strlen(left) : strlen(right);

    return strncmp(left, right, length) == 0 && (left[length] == '\0' || left[length] == '.') &&
           (right[length] == '\0' || right[length] == '.');
}

/* Returns a text that says what is wrong with the path of a row of the table, or NULL. */
static const char *find_fault_of_path(const domus_section *section, uint32_t row)
{
    if (row == DOMUS_SECTION_KEYS_MAX)
        return "the table has too many rows";
    if (!is_path_of_key_valid(section->keys[row].path))
        return "the path is no name";
    for (uint32_t other = 0; other < row; other++)
        if (do_paths_of_keys_collide(section->keys[other].path, section->keys[row].path))
            return "an earlier row has this path";
    return NULL;
}

/* Returns whether domus has a key or a section with this name, which the program's section may not
 * take. */
static bool is_key_of_domus(const char *name)
{
    const domus_config_key *key;
    size_t length = strlen(name);

    for (size_t row = 0; (key = domus_config_key_get(row)) != NULL; row++)
        if (strncmp(key->path, name, length) == 0 && key->path[length] == '.')
            return true;
    return strcmp(name, DOMI_YAML_LISTENERS) == 0;
}

int domi_section_check_table(const domus_section *section, char *error, size_t error_size)
{
    unsigned char holder[DOMUS_SECTION_BYTES_MAX];
    char message[MESSAGE_SIZE];
    const char *fault = NULL;

    if (!is_section_name_valid(section->name, strlen(section->name)) ||
        is_key_of_domus(section->name))
        fault = "the name is none, or domus has it";
    else if (section->size > DOMUS_SECTION_BYTES_MAX)
        fault = "the struct is too large";
    if (fault != NULL) {
        snprintf(error, error_size, "section '%s': %s", section->name, fault);
        return -EINVAL;
    }
    for (uint32_t row = 0; section->keys[row].path != NULL; row++) {
        fault = find_fault_of_path(section, row);
        if (fault == NULL)
            fault = find_fault_of_field(section, &section->keys[row]);
        if (fault == NULL &&
            store_default_of_key(&section->keys[row], holder, message, sizeof message) < 0)
            fault = message;
        if (fault != NULL) {
            snprintf(error, error_size, "section '%s', row %u, '%s': %s", section->name, row,
                     section->keys[row].path, fault);
            return -EINVAL;
        }
    }
    return 0;
}

/* --- the values ------------------------------------------------------------------------------- */

void domi_section_set_defaults(struct domi_section_values *values, const domus_section *section)
{
    char message[MESSAGE_SIZE];

    values->section = section;
    if (section == NULL)
        return;
    for (const domus_config_key *key = section->keys; key->path != NULL; key++)
        (void)store_default_of_key(key, values->holder, message, sizeof message);
}

static void add_issue_about_node(const struct domi_yaml_tree *tree, uint32_t number,
                                 const char *message, struct domi_yaml_issues *issues)
{
    char path[DOMI_YAML_PATH_SIZE];

    domi_yaml_tree_write_path(tree, number, path);
    domi_yaml_issues_add_issue(issues, tree->nodes[number].at, path, "%s", message);
}

/* Returns the number of the node of a key of the program's section; 0 if the document does not have
 * it. */
static uint32_t find_node_of_key(const struct domi_yaml_tree *tree, uint32_t section,
                                 const char *path)
{
    char name[DOMUS_SECTION_NAME_MAX + 1];
    uint32_t number = section;
    size_t length;

    for (const char *part = path; number != 0; part += length + 1) {
        length = strcspn(part, ".");
        memcpy(name, part, length);
        name[length] = '\0';
        number = domi_yaml_tree_find_child(tree, number, name);
        if (part[length] == '\0' || (number != 0 && tree->nodes[number].dropped))
            break;
    }
    return number != 0 && !tree->nodes[number].dropped ? number : 0;
}

/* Replace a list of texts in the program's struct by that of the document, which may be empty. */
static void replace_list_of_texts(struct domi_section_values *values, const domus_config_key *key,
                                  const struct domi_yaml_tree *tree,
                                  const struct domi_yaml_placed_list *placed,
                                  struct domi_yaml_issues *issues)
{
    char message[MESSAGE_SIZE];

    for (uint32_t i = 0; i < placed->count; i++) {
        uint32_t number = placed->elements[i];
        if (check_and_copy_text_of_key(key, get_text_of_list_at_index(key, values->holder, i),
                                       domi_yaml_tree_get_value(tree, number), message,
                                       sizeof message) < 0)
            add_issue_about_node(tree, number, message, issues);
    }
    set_count_of_list_in_holder(key, values->holder, placed->count);
}

void domi_section_store_placed_values(struct domi_section_values *values,
                                      const struct domi_yaml_tree *tree,
                                      const struct domi_yaml_placed *placed,
                                      struct domi_yaml_issues *issues)
{
    char message[MESSAGE_SIZE];

    if (values->section == NULL)
        return;
    uint32_t section = domi_yaml_tree_find_child(tree, 0, values->section->name);
    if (section == 0 || tree->nodes[section].dropped)
        return;
    /* Errors about missing keys point to the place of the section in the file. An assignment has no
     * such place. */
    if (tree->named == NULL)
        values->at = tree->nodes[section].key_at;
    for (uint32_t row = 0; values->section->keys[row].path != NULL; row++) {
        const domus_config_key *key = &values->section->keys[row];
        uint32_t number = key->list_max != 0 ? find_node_of_key(tree, section, key->path)
                                             : placed->node[DOMI_YAML_KEYS_MAX + row];
        if (number == 0)
            continue;
        values->origins[row] = tree->nodes[number].at;
        if (key->list_max != 0)
            replace_list_of_texts(values, key, tree, &placed->lists[row], issues);
        else if (read_and_store_value_of_key(key, values->holder,
                                             domi_yaml_tree_get_value(tree, number), message,
                                             sizeof message) < 0)
            add_issue_about_node(tree, number, message, issues);
    }
}

/* Add an issue for each text of the section that the user must give and has not given. Returns
 * whether all are there. */
static bool check_required_texts_are_given(const struct domi_section_values *values,
                                           struct domi_yaml_issues *issues)
{
    const domus_section *section = values->section;
    char path[DOMI_YAML_PATH_SIZE];
    bool whole = true;

    for (uint32_t row = 0; section->keys[row].path != NULL; row++) {
        const domus_config_key *key = &section->keys[row];
        if (!is_text_key(key) || key->list_max != 0 || key->preset_text != NULL ||
            values->origins[row].file != 0)
            continue;
        snprintf(path, sizeof path, "%s.%s", section->name, key->path);
        domi_yaml_issues_add_issue(issues, values->at, path, "is missing");
        whole = false;
    }
    return whole;
}

void domi_section_check_values(const struct domi_section_values *values,
                               struct domi_yaml_issues *issues)
{
    const domus_section *section = values->section;
    char message[MESSAGE_SIZE] = "is refused";

    if (section == NULL || !check_required_texts_are_given(values, issues) ||
        section->check == NULL)
        return;
    if (section->check(values->holder, message, sizeof message) < 0)
        domi_yaml_issues_add_issue(issues, values->at, section->name, "%s", message);
}

/* Returns whether a text of the program's section is a secret, by its mark or by its name. */
static bool is_secret_key(const domus_config_key *key)
{
    return key->secret || strcasestr(key->path, "password") != NULL ||
           strcasestr(key->path, "secret") != NULL || strcasestr(key->path, "token") != NULL;
}

/* Write the elements of a list of texts with commas between them. */
static void write_elements_of_list(const domus_config_key *key, const unsigned char *holder,
                                   char *text, size_t size)
{
    uint32_t count;
    size_t used = 0;

    memcpy(&count, holder + key->count_offset, sizeof count);
    for (uint32_t i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? "," : "",
                                 (const char *)holder + key->offset + i * get_size_of_text(key));
}

void domi_section_write_value(const struct domi_section_values *values, uint32_t row, char *text,
                              size_t size)
{
    const domus_config_key *key = &values->section->keys[row];

    text[0] = '\0';
    if (!is_text_key(key))
        domus_config_key_write(key, values->holder, text, size);
    else if (key->list_max != 0)
        write_elements_of_list(key, values->holder, text, size);
    else
        snprintf(text, size, "%s", (const char *)values->holder + key->offset);
    if (is_text_key(key) && text[0] != '\0' && is_secret_key(key))
        snprintf(text, size, "%s", DOMUS_CONFIG_SECRET);
}

bool domi_section_is_list_of_texts(const domus_section *section, const char *path)
{
    size_t length = section != NULL ? strlen(section->name) : 0;

    if (section == NULL || strncmp(path, section->name, length) != 0 || path[length] != '.')
        return false;
    for (const domus_config_key *key = section->keys; key->path != NULL; key++)
        if (key->list_max != 0 && strcmp(key->path, path + length + 1) == 0)
            return true;
    return false;
}
