/* Strict parsers for single values: the whole text or nothing, no signs, no other bases.
 *
 * Some texts pass in libc and libcyaml although they are no plain values (`500us` for a count,
 * `010`, `-1`, ` 5`). Here each is an error, with a message that names what was expected. Ranges
 * are not looked at: they stand in the table of keys. */
#ifndef DOMI_CONFIG_SCALAR_H
#define DOMI_CONFIG_SCALAR_H

#include <domus/config.h>

#include <stddef.h>
#include <stdint.h>

/* Read `text` as a value of `key`; texts are passed through with the number 0.
 *
 * Returns 0; -EINVAL with the message in `error`. */
int domi_yaml_scalar_read(const domus_config_key *key, const char *text, uint64_t *ret_number,
                          char *error, size_t error_size);

#endif
