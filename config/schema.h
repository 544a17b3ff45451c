/* The structure of a configuration's document, as libcyaml has to know it.
 *
 * The schema is made from the table of keys, so that a key stands in one place only. */
#ifndef DOMI_CONFIG_SCHEMA_H
#define DOMI_CONFIG_SCHEMA_H

#include "config/tree.h"

#include <domus/section.h>

#include <cyaml/cyaml.h>
#include <stdint.h>

/* most rows of the table of keys that the schema can hold */
#define DOMI_YAML_KEYS_MAX 192
/* most rows of the table of a listener's keys that the schema can hold */
#define DOMI_YAML_LISTENER_KEYS_MAX 64
/* most rows of the table of a pool's keys that the schema can hold */
#define DOMI_YAML_POOL_KEYS_MAX 16
/* names of the keys whose values are lists of mappings */
#define DOMI_YAML_LISTENERS "listeners"
#define DOMI_YAML_POOLS     "pools"

/* most mappings of the schema: the root, the sections and the elements of lists */
#define DOMI_YAML_MAPPINGS_MAX 56
#define DOMI_YAML_FIELDS_MAX   64 /* most keys in one mapping of the schema */
#define DOMI_YAML_NAME_SIZE    32 /* bytes of the name of a section, with its NUL */

struct domi_yaml_schema {
    cyaml_schema_value_t root;     /* schema of the whole document */
    cyaml_schema_value_t listener; /* schema of an element of `listeners` */
    cyaml_schema_value_t pool;     /* schema of an element of `pools` */
    /* schema of one text in a list of texts of the program's section */
    cyaml_schema_value_t element;
    uint32_t mappings; /* number of mappings: rows of `fields` and of `names` in use */
    /* keys of each mapping of the schema, with an end mark */
    cyaml_schema_field_t fields[DOMI_YAML_MAPPINGS_MAX][DOMI_YAML_FIELDS_MAX + 1];
    char names[DOMI_YAML_MAPPINGS_MAX]
              /* names of the sections, each without the names of the sections around it */
              [DOMI_YAML_NAME_SIZE];
};

/* The structures that say where the values of a document are. Their field `node` holds the number
 * of the value's node for each row of a table of keys; 0: the document does not have the key. */
struct domi_yaml_placed_listener {
    /* numbers of nodes, by the rows of the table of a listener's keys */
    uint32_t node[DOMI_YAML_LISTENER_KEYS_MAX];
};

struct domi_yaml_placed_pool {
    /* numbers of nodes, by the rows of the table of a pool's keys */
    uint32_t node[DOMI_YAML_POOL_KEYS_MAX];
};

struct domi_yaml_placed_list {
    uint32_t *elements; /* the numbers of the nodes that are the elements of the list of texts */
    uint32_t count;     /* number of elements of the list of texts */
};

struct domi_yaml_placed {
    /* numbers of nodes, by the rows of the keys of domus, and then of the program's section */
    uint32_t node[DOMI_YAML_KEYS_MAX + DOMUS_SECTION_KEYS_MAX];
    /* lists of texts, by the rows of the program's section; rows of other kinds are unused */
    struct domi_yaml_placed_list lists[DOMUS_SECTION_KEYS_MAX];
    struct domi_yaml_placed_listener *listeners; /* the nodes of each listener in the document */
    uint32_t listener_count;                     /* number of listeners in the document */
    struct domi_yaml_placed_pool *pools;         /* the nodes of each pool in the document */
    uint32_t pool_count;                         /* number of pools in the document */
};

/* Make the schema of domus's keys and, if `section` is not NULL, of the program's, whose table was
 * checked (config/section.h).
 * Returns 0; -E2BIG when the tables of keys are too large for this structure. */
int domi_yaml_schema_init(struct domi_yaml_schema *schema, const domus_section *section);

#endif
