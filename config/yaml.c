/* The reader of the configuration applies files and assignments (`--set`) over the defaults.
 *
 * Every source goes the same way. It becomes a tree (by libyaml, or from the path of a `--set`),
 * its nodes are placed by libcyaml, and the values are applied to a copy of the present ones. If
 * nothing was wrong, the copy becomes the present values. */
#include <domus/yaml.h>

#include <domus/text.h>

#include "config/memory.h"
#include "config/passes.h"
#include "config/reader.h"
#include "config/section.h"
#include "config/values.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* bytes of the largest file of a configuration that is read */
#define FILE_BYTES_MAX (1024 * 1024)
/* most bytes of error text of a reader; further errors are left out */
#define ERRORS_BYTES_MAX (1024 * 1024)
/* most names of different sources of one reader, "default" and "--set" included */
#define NAMES_MAX      64
#define SET_NAME       1    /* index of the name "--set" in the reader's `names` */
#define NAME_SHOWN_MAX 4096 /* bytes of a source's name in a message, with its escapes */
#define POSITION_SIZE  32   /* room in an error line for ":line:column: ", a line end and a NUL */

struct domus_yaml {
    struct domi_yaml_schema schema; /* schema by which libcyaml checks a document */
    struct domi_yaml_issues issues; /* issues of the source that is being read */
    /* values that all sources so far have set, on top of the defaults */
    struct domi_yaml_values values;
    struct domi_yaml_values next; /* values that hold if the source being read has no fault */
    /* names of the sources; the `file` of an origin is an index of this array */
    char *names[NAMES_MAX];
    uint32_t name_count; /* number of names of sources */
    char *errors;        /* text of all errors so far; NULL: there are none yet */
    size_t errors_size, errors_capacity;
};

static int find_or_add_source(domus_yaml *yaml, const char *name, uint32_t *ret_number)
{
    size_t size = strlen(name) + 1;

    for (uint32_t i = 0; i < yaml->name_count; i++) {
        if (strcmp(yaml->names[i], name) == 0) {
            *ret_number = i;
            return 0;
        }
    }
    if (yaml->name_count == NAMES_MAX)
        return -E2BIG;

    char *copy = domi_yaml_memory_realloc(NULL, NULL, size);
    if (copy == NULL)
        return -ENOMEM;
    memcpy(copy, name, size);
    yaml->names[yaml->name_count] = copy;
    *ret_number = yaml->name_count++;
    return 0;
}

static int make_reader_with_section(const domus_section *section, domus_yaml **ret_yaml)
{
    domus_yaml *yaml = domi_yaml_memory_realloc(NULL, NULL, sizeof *yaml);
    uint32_t number;

    if (yaml == NULL)
        return -ENOMEM;

    int result = domi_yaml_schema_init(&yaml->schema, section);
    if (result == 0)
        result = domi_yaml_values_init(&yaml->values, section);
    if (result == 0)
        result = find_or_add_source(yaml, "default", &number);
    if (result == 0)
        result =
            /* "--set" is the second name, and gets the number SET_NAME */
            find_or_add_source(yaml, "--set", &number);
    if (result < 0) {
        domus_yaml_free(yaml);
        return result;
    }
    *ret_yaml = yaml;
    return 0;
}

int domus_yaml_new(domus_yaml **ret_yaml)
{
    return make_reader_with_section(NULL, ret_yaml);
}

int domus_yaml_new_with(const domus_section *section, char *error, size_t error_size,
                        domus_yaml **ret_yaml)
{
    int result = domi_section_check_table(section, error, error_size);

    if (result == 0)
        result = make_reader_with_section(section, ret_yaml);
    if (result == -E2BIG) { /* the section has too many keys at one level, or too many levels */
        snprintf(error, error_size, "section '%s': the schema is too large", section->name);
        return -EINVAL;
    }
    return result;
}

void domus_yaml_free(domus_yaml *yaml)
{
    if (yaml == NULL)
        return;
    for (uint32_t i = 0; i < yaml->name_count; i++)
        domi_yaml_memory_realloc(NULL, yaml->names[i], 0);
    domi_yaml_memory_realloc(NULL, yaml->errors, 0);
    domi_yaml_memory_realloc(NULL, yaml, 0);
}

/* Append a line to the text of the errors. A line that would exceed the limit is left out as a
 * whole. */
static int append_line_to_errors(domus_yaml *yaml, const struct domi_yaml_origin *at,
                                 const char *text)
{
    /* the name of the source, escaped, because a path may hold any byte but zero */
    char name[NAME_SHOWN_MAX + 1];
    const char *path = yaml->names[at->file];

    (void)domus_text_escape(path, strlen(path), name, sizeof name);
    size_t room = strlen(name) + strlen(text) + POSITION_SIZE;

    if (yaml->errors_size + room > ERRORS_BYTES_MAX)
        return 0;

    int result = domi_yaml_memory_grow((void **)&yaml->errors, &yaml->errors_capacity,
                                       yaml->errors_size + room, 1);
    if (result < 0)
        return result;

    char *end = yaml->errors + yaml->errors_size;
    int printed = at->line > 0
                      ? snprintf(end, room, "%s:%u:%u: %s\n", name, at->line, at->column, text)
                      : snprintf(end, room, "%s: %s\n", name, text);
    yaml->errors_size += (size_t)printed;
    return 0;
}

/* Move the issues of a source to the text of the errors. Returns 0 if there were none; -EINVAL if
 * there were some; -ENOMEM, and then the text stays as it was. */
static int move_issues_to_errors(domus_yaml *yaml)
{
    struct domi_yaml_issues *issues = &yaml->issues;
    size_t size_before = yaml->errors_size;
    char more[48];
    int result = 0;

    domi_yaml_issues_sort(issues);
    for (uint32_t i = 0; result == 0 && i < issues->count; i++)
        result = append_line_to_errors(yaml, &issues->list[i].at, issues->list[i].text);
    if (result == 0 && issues->more > 0) {
        snprintf(more, sizeof more, "and %u more errors", issues->more);
        result = append_line_to_errors(
            yaml, &(struct domi_yaml_origin){.file = issues->list[0].at.file}, more);
    }
    if (result < 0 && yaml->errors != NULL) {
        yaml->errors_size = size_before;
        yaml->errors[size_before] = '\0';
    }
    if (result == 0 && issues->count > 0)
        result = -EINVAL;
    issues->count = issues->more = 0;
    return result;
}

/* Turn a tree into the values `next`; keep_next_values_unless_issues() keeps them if everything was
 * right. `element` is as in domi_yaml_values_apply_placed(). */
static int apply_tree_to_next_values(domus_yaml *yaml, struct domi_yaml_tree *tree,
                                     struct domi_yaml_element element)
{
    struct domi_yaml_placed *placed = NULL;
    int result = domi_yaml_join_lists_of_texts(tree, &yaml->issues);

    if (result == 0)
        result = domi_yaml_place_nodes_by_schema(&yaml->schema, tree, &yaml->issues, &placed);
    if (result == 0) {
        domi_yaml_values_copy(&yaml->next, &yaml->values);
        if (placed != NULL)
            domi_yaml_values_apply_placed(&yaml->next, tree, placed, element, &yaml->issues);
    }
    domi_yaml_free_placed(&yaml->schema, placed);
    return result;
}

static int read_whole_file(int file, char *text, size_t size_max, size_t *ret_size)
{
    size_t size = 0;
    ssize_t got = 1;

    while (got != 0 && size < size_max) {
        got = read(file, text + size, size_max - size);
        if (got < 0 && errno != EINTR)
            return -errno;
        size += got > 0 ? (size_t)got : 0;
    }
    *ret_size = size;
    return 0;
}

/* Read a whole file. One byte more than allowed is asked for, so that the caller can tell a file
 * that is too large. */
static int read_configuration_file(const char *path, char **ret_text, size_t *ret_size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int result = file < 0 ? -errno : 0;
    char *text = NULL;

    if (result < 0)
        return result;
    text = domi_yaml_memory_realloc(NULL, NULL, FILE_BYTES_MAX + 1);
    result = text == NULL ? -ENOMEM : read_whole_file(file, text, FILE_BYTES_MAX + 1, ret_size);
    close(file);
    if (result < 0)
        domi_yaml_memory_realloc(NULL, text, 0);
    else
        *ret_text = text;
    return result;
}

static int apply_text_of_file(domus_yaml *yaml, const char *text, size_t size, uint32_t source)
{
    struct domi_yaml_tree tree = {0};
    int result = 0;

    if (size > FILE_BYTES_MAX)
        domi_yaml_issues_add_issue(
            &yaml->issues, (struct domi_yaml_origin){.file = source, .line = 1, .column = 1}, "",
            "the file is larger than 1 MiB");
    else
        result = domi_yaml_read_text_into_tree(&tree, text, size, source, &yaml->issues);
    if (result == 0)
        result = apply_tree_to_next_values(yaml, &tree, (struct domi_yaml_element){NULL, 0});
    domi_yaml_tree_fini(&tree);
    return result;
}

/* Print the issues of a source, and keep the values `next` if there were none. `result` is an errno
 * of the reading; if it is not 0, it is returned instead of -EINVAL. */
static int keep_next_values_unless_issues(domus_yaml *yaml, int result)
{
    int settled = move_issues_to_errors(yaml);

    if (result == 0)
        result = settled;
    if (result == 0)
        domi_yaml_values_copy(&yaml->values, &yaml->next);
    return result;
}

int domus_yaml_load(domus_yaml *yaml, const char *path)
{
    uint32_t source = 0;
    size_t size = 0;
    char *text = NULL;
    int result = find_or_add_source(yaml, path, &source);

    if (result < 0)
        return result;
    result = read_configuration_file(path, &text, &size);
    if (result < 0)
        domi_yaml_issues_add_issue(&yaml->issues, (struct domi_yaml_origin){.file = source}, "",
                                   "cannot be read: %s", strerrordesc_np(-result));
    else
        result = apply_text_of_file(yaml, text, size, source);
    domi_yaml_memory_realloc(NULL, text, 0);
    return keep_next_values_unless_issues(yaml, result);
}

/* Set one value from a text such as "io.backend=epoll". */
static int set_value_by_assignment(domus_yaml *yaml, uint32_t source, const char *assignment)
{
    const struct domi_yaml_origin at = {.file = source};
    char shown[DOMI_YAML_PATH_SIZE];
    struct domi_yaml_tree tree = {.named = shown};
    struct domi_yaml_element element;
    int result = domi_yaml_read_assignment(&tree, assignment, at, &yaml->values, shown, &element,
                                           &yaml->issues);

    if (result == 0)
        result = apply_tree_to_next_values(yaml, &tree, element);
    domi_yaml_tree_fini(&tree);
    return keep_next_values_unless_issues(yaml, result);
}

int domus_yaml_set(domus_yaml *yaml, const char *assignment)
{
    return set_value_by_assignment(yaml, SET_NAME, assignment);
}

int domi_yaml_set_value_from_source(domus_yaml *yaml, const char *source, const char *assignment)
{
    uint32_t number = 0;
    int result = find_or_add_source(yaml, source, &number);

    return result < 0 ? result : set_value_by_assignment(yaml, number, assignment);
}

static void add_fault_as_issue(const domus_config_fault *fault, void *context)
{
    domus_yaml *yaml = context;

    domi_yaml_issues_add_issue(&yaml->issues,
                               domi_yaml_values_get_origin_of_faulty_key(&yaml->values, fault),
                               fault->path, "%s", fault->message);
}

int domus_yaml_finish(domus_yaml *yaml)
{
    domus_config_check_all(&yaml->values.config, add_fault_as_issue, yaml);
    domi_section_check_values(&yaml->values.own, &yaml->issues);
    return move_issues_to_errors(yaml);
}

const domus_config *domus_yaml_config(const domus_yaml *yaml)
{
    return &yaml->values.config;
}

const void *domus_yaml_section(const domus_yaml *yaml)
{
    return yaml->values.own.section != NULL ? yaml->values.own.holder : NULL;
}

domi_origins domi_yaml_get_origins(const domus_yaml *yaml)
{
    return (domi_origins){.values = &yaml->values, .names = yaml->names};
}

void domus_yaml_show(const domus_yaml *yaml, domus_config_visit *visit, void *context)
{
    const domi_origins origins = domi_yaml_get_origins(yaml);

    domi_origins_show_configuration(
        &(domi_effective){.config = &yaml->values.config, .newest = &origins, .first = &origins},
        visit, context);
}

const char *domus_yaml_errors(const domus_yaml *yaml)
{
    return yaml->errors != NULL ? yaml->errors : "";
}
