/* Where the values of a configuration come from, for domus_yaml_show() and the observation port.
 *
 * The origins are those that the reader notes anyway, for its messages, so nothing is spent on them
 * while a program runs. */
#ifndef DOMI_CONFIG_ORIGINS_H
#define DOMI_CONFIG_ORIGINS_H

#include "config/values.h"

#include <domus/config_shown.h>

/* The origins that a reader knows: places of its values, and the names of their sources. */
typedef struct domi_origins {
    const struct domi_yaml_values *values;
    char *const *names; /* names of sources, by the `file` of an origin */
} domi_origins;

/* The configuration that a program runs with, and the readers that may have read its values. */
typedef struct domi_effective {
    const domus_config *config;
    const domi_origins
        /* reader of the last reload, whose section the program runs with; or the same as `first` */
        *newest;
    const domi_origins *first; /* reader of the program's start */
} domi_effective;

/* Show a configuration, as a domus_config_walk, whose `from` is a domi_effective. The origin of a
 * value is that in the newest reader which has read this very value; a value that no reader has is
 * the program's. */
void domi_origins_show_configuration(const void *effective, domus_config_visit *visit,
                                     void *context);

#endif
