/* A strict parser for single values: it accepts only a whole text, without signs and in base 10.
 *
 * libc and libcyaml accept some texts that are no plain values (`500us` for a count, `010`, `-1`, `
 * 5`). Here each of them is an error, with a message that names what was expected. Ranges are not
 * checked here; the table of keys (runtime/control/config_keys.c) has them. */
#ifndef DOMI_CONFIG_SCALAR_H
#define DOMI_CONFIG_SCALAR_H

#include <domus/config.h>

#include <stddef.h>
#include <stdint.h>

/* Read `text` as a value of `key`. For a key whose value is a text (CPUs, a name, an address) the
 * number is 0.
 *
 * Returns 0; -EINVAL with the message in `error`. */
int domi_yaml_scalar_read(const domus_config_key *key, const char *text, uint64_t *ret_number,
                          char *error, size_t error_size);

#endif
