/* Functions that read YAML text in a test through a file, as users do, and take the name of that
 * file out of the errors. */
#ifndef DOMT_READING_H
#define DOMT_READING_H

#include "tests/support/suite.h"

#include <domus/yaml.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Load `size` bytes of `text` from a temporary file, which is removed before the return. `name`
 * gets its name. */
static inline int domt_load_bytes_as_file(domus_yaml *yaml, const void *text, size_t size,
                                          char name[32])
{
    snprintf(name, 32, "/tmp/domus-test-XXXXXX");
    int file = mkstemp(name);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, text, size), (ssize_t)size);
    close(file);

    int result = domus_yaml_load(yaml, name);
    unlink(name);
    return result;
}

static inline int domt_load_text_as_file(domus_yaml *yaml, const char *text)
{
    char name[32];

    return domt_load_bytes_as_file(yaml, text, strlen(text), name);
}

static inline domus_yaml *domt_make_yaml_reader(void)
{
    domus_yaml *yaml = NULL;

    ck_assert_int_eq(domus_yaml_new(&yaml), 0);
    return yaml;
}

/* Returns a copy of the reader's errors without the file's name: lines "3:5: path: message\n". */
static inline char *domt_copy_errors_of_reader(const domus_yaml *yaml, const char *name)
{
    const char *errors = domus_yaml_errors(yaml);
    char *text = calloc(1, strlen(errors) + 1);
    size_t length = strlen(name);

    ck_assert_ptr_nonnull(text);
    while (*errors != '\0') {
        const char *end = strchr(errors, '\n');
        ck_assert_ptr_nonnull(end);
        if (strncmp(errors, name, length) == 0 && errors[length] == ':')
            errors += length + 1;
        strncat(text, errors, (size_t)(end + 1 - errors));
        errors = end + 1;
    }
    return text;
}

/* Load `text` with a new reader, and check that the errors are exactly `wanted`, which is "" for a
 * right text. */
static inline void domt_expect_errors_of_bytes(const char *text, size_t size, const char *wanted)
{
    domus_yaml *yaml = domt_make_yaml_reader();
    char name[32];
    int result = domt_load_bytes_as_file(yaml, text, size, name);
    char *errors = domt_copy_errors_of_reader(yaml, name);

    ck_assert_str_eq(errors, wanted);
    ck_assert_int_eq(result, wanted[0] == '\0' ? 0 : -22);
    free(errors);
    domus_yaml_free(yaml);
}

static inline void domt_expect_errors_of_text(const char *text, const char *wanted)
{
    domt_expect_errors_of_bytes(text, strlen(text), wanted);
}

/* Returns the number that the field of a key holds in `holder`. */
static inline uint64_t domt_read_number_of_key(const domus_config_key *key, const void *holder)
{
    uint64_t number = 0; /* The field is little-endian, and at most as wide as `number`. */

    memcpy(&number, (const char *)holder + key->offset, key->size);
    return number;
}

static inline bool domt_is_key_a_text(const domus_config_key *key)
{
    return key->kind >= DOMUS_CONFIG_CPUS;
}

/* Check that every key of the configuration, except the listeners, has its default. */
static inline void domt_assert_config_is_default(const domus_config *config)
{
    const domus_config_key *key;

    for (size_t i = 0; (key = domus_config_key_get(i)) != NULL; i++) {
        const char *text = NULL;
        if (domt_is_key_a_text(key)) {
            memcpy(&text, (const char *)config + key->offset, sizeof text);
            ck_assert_str_eq(text, key->preset_text);
        } else {
            ck_assert_msg(domt_read_number_of_key(key, config) == key->preset, "%s", key->path);
        }
    }
}

#endif
