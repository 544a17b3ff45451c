/* The program's own section: its table is checked once, then its values are read by the same parser
 * as domus's.
 *
 * A row of the table is a domus_config_key, so ranges and messages are those of domus's keys. Only
 * texts differ: they are copied into the program's struct. */
#ifndef DOMI_CONFIG_SECTION_H
#define DOMI_CONFIG_SECTION_H

#include "config/schema.h"
#include "config/tree.h"

#include <domus/section.h>

#include <stdbool.h>
#include <stddef.h>

/* The values of the program's own section in its struct, and the places where the section and the
 * value of each of its rows stand. */
struct domi_section_values {
    /* description of the program's section; NULL: the program has none */
    const domus_section *section;
    _Alignas(max_align_t) unsigned char holder[DOMUS_SECTION_BYTES_MAX];
    struct domi_yaml_origin at; /* place of the program's section in its source */
    /* place of each key's value in its source, by row */
    struct domi_yaml_origin origins[DOMUS_SECTION_KEYS_MAX];
};

/* Check the program's table of keys: names, ranges, fields and defaults. Returns 0; -EINVAL, and
 * `error` says what is wrong with the table. */
int domi_section_check_table(const domus_section *section, char *error, size_t error_size);

/* Fill in the defaults of the program's `section`, which may be NULL. */
void domi_section_set_defaults(struct domi_section_values *values, const domus_section *section);

/* Store the values that libcyaml has placed over the present values of the program's section, if
 * there is one. Faults are added to `issues`. */
void domi_section_store_placed_values(struct domi_section_values *values,
                                      const struct domi_yaml_tree *tree,
                                      const struct domi_yaml_placed *placed,
                                      struct domi_yaml_issues *issues);

/* Check the program's section when all sources are read: that each text which the user must give is
 * there, and then what the section's own `check` says. Faults are added to `issues`. */
void domi_section_check_values(const struct domi_section_values *values,
                               struct domi_yaml_issues *issues);

/* Write the value of a row of the program's section as in an assignment, for viewers, who do not
 * see secrets. The text is cut at `size` bytes. */
void domi_section_write_value(const struct domi_section_values *values, uint32_t row, char *text,
                              size_t size);

/* Returns whether `path` (as in an assignment, "chat.rooms") is a list of texts of `section`, which
 * may be NULL. */
bool domi_section_is_list_of_texts(const domus_section *section, const char *path);

#endif
