/* Where the values of a configuration come from, for domus_yaml_show() and the observation port.
 *
 * The origins are those that the reader notes anyway, for its messages, so nothing is spent on them
 * while a program runs. */
#ifndef DOMI_CONFIG_ORIGINS_H
#define DOMI_CONFIG_ORIGINS_H

#include "config/values.h"

#include <domus/config_shown.h>

/* The knowledge of a reader: its values, and the names of their sources. */
typedef struct domi_origins {
    const struct domi_yaml_values *values;
    char *const *names; /* by the `file` of an origin */
} domi_origins;

/* The configuration that a program runs with, and the readers that may have read its values. */
typedef struct domi_effective {
    const domus_config *config;
    const domi_origins
        *newest;               /* of the last reload; its section is the program's; or as `first` */
    const domi_origins *first; /* of the start */
} domi_effective;

/* Show it. A value has the origin of the newest reader that has read this very value; one that no
 * reader has is the program's. This is a domus_config_walk, whose `from` is a domi_effective. */
void domi_origins_show(const void *effective, domus_config_visit *visit, void *context);

#endif
