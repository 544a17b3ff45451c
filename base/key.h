/* One key of the configuration: its value in a struct, and what values it may have.
 *
 * A domus_config_key (domus/config.h) is a row of a table and says where the value lies in its
 * struct, the holder. These functions read, check and write one value by its row; the tables are
 * those of io/resources and runtime/control. Any thread. */
#ifndef DOMI_BASE_KEY_H
#define DOMI_BASE_KEY_H

#include <domus/config.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOMI_US     UINT64_C(1000)
#define DOMI_MS     (1000 * DOMI_US)
#define DOMI_SECOND (1000 * DOMI_MS)
#define DOMI_HOUR   (3600 * DOMI_SECOND)
#define DOMI_KIB    UINT64_C(1024)
#define DOMI_MIB    (1024 * DOMI_KIB)
#define DOMI_GIB    (1024 * DOMI_MIB)

/* the words by which users write the value of a key that is true or false */
extern const char *const domi_key_switch[];

#define DOMI_KEY_TEXT_SIZE 128 /* bytes of the text of a printed value, with its NUL */

static inline bool domi_key_is_text(const domus_config_key *key)
{
    return key->kind >= DOMUS_CONFIG_CPUS;
}

/* Returns the value of a key of the configuration that is a number. */
uint64_t domi_key_get_number(const domus_config_key *key, const void *holder);

/* Returns the value of a key of the configuration that is a text; NULL: the key has none. */
const char *domi_key_get_text(const domus_config_key *key, const void *holder);

/* Write the value of a key, which was checked before, to its holder. */
void domi_key_store_value(const domus_config_key *key, void *holder, uint64_t number,
                          const char *text);

/* Print a number as users write it, in the largest unit of which it is a whole multiple. */
void domi_key_print_number(const domus_config_key *key, uint64_t number,
                           char text[DOMI_KEY_TEXT_SIZE]);

/* Check a number that a user has written for a key. Returns 0, or -EINVAL, and then `error` says
 * what is wrong with it, without the path of the key. */
int domi_key_check_number(const domus_config_key *key, uint64_t number, char *error, size_t size);

/* Check the number of a key in a holder (the struct with the key's value), as
 * domi_key_check_number() does. A key that inherits its value may be unset. */
int domi_key_check_number_in_holder(const domus_config_key *key, const void *holder, char *error,
                                    size_t size);

#endif
