/* The tables of keys: every default, every range and every path, each in one place only.
 *
 * runtime/control/config.c checks and stores by these tables, and the YAML reader goes by them
 * through domus_config_key_get(). They are constant, so any thread may read them. */
#ifndef DOMI_RUNTIME_CONTROL_CONFIG_KEYS_H
#define DOMI_RUNTIME_CONTROL_CONFIG_KEYS_H

#include "base/key.h"

#include <domus/config.h>

#define DOMI_CPUS_TEXT_MAX 1023 /* most bytes of the text of `system.cpus`, a list of CPUs */
/* most bytes of a name in the configuration, as that of a listener */
#define DOMI_NAME_BYTES_MAX 63
/* most bytes of the key that has the address of the observation port */
#define DOMI_LISTEN_TEXT_MAX 127
/* most bytes of a listener's address: "unix:" and the longest path, of 108 bytes */
#define DOMI_ADDRESS_BYTES_MAX 113

#define DOMI_FILES_TEXT_BYTES   4095 /* most bytes of the text of a key that lists files */
#define DOMI_SERVERS_TEXT_BYTES 4095 /* most bytes of the text of a key that lists servers */
/* most bytes of a user's name, a password or a token in the configuration */
#define DOMI_SECRET_BYTES_MAX 255
#define DOMI_HOST_BYTES_MAX   253 /* most bytes of the name of a host in the configuration */

/* A rule between two keys: the value of `greater` is at least `times` that of `lesser`, or, if
 * `strict` is set, more than that. */
typedef struct domi_config_relation {
    /* paths of the key with the smaller value and of the key with the greater one */
    const char *lesser, *greater;
    bool strict; /* whether the two values may not be equal, either */
    /* factor by which the smaller value is multiplied before the comparison, 1 or more */
    uint32_t times;
} domi_config_relation;

extern const domus_config_key domi_config_keys[];
extern const size_t domi_config_key_count;
extern const domus_config_key domi_config_listener_keys[];
extern const size_t domi_config_listener_key_count;
extern const domus_config_key domi_config_pool_keys[];
extern const size_t domi_config_pool_key_count;
extern const domi_config_relation domi_config_relations[];
extern const size_t domi_config_relation_count;

#endif
