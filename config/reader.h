/* Functions that the reader of the configuration offers domus_main(), besides those of
 * domus/yaml.h. */
#ifndef DOMI_CONFIG_READER_H
#define DOMI_CONFIG_READER_H

#include "config/origins.h"

#include <domus/yaml.h>

/* Set a value as domus_yaml_set() does, with error lines that begin with `source`, such as
 * "--port". */
int domi_yaml_set_value_from_source(domus_yaml *yaml, const char *source, const char *assignment);

/* Returns what the reader of the configuration knows of the origins of values; valid as long as the
 * reader. */
domi_origins domi_yaml_get_origins(const domus_yaml *yaml);

#endif
