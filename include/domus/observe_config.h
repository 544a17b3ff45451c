/* The configuration of the observation port, the section `observe` in YAML (domus/config.h). It is
 * for programs that have such a port (domus/observe.h); in others `listen` stays empty. Within a
 * minor version the structure stays as it is. */
#ifndef DOMUS_OBSERVE_CONFIG_H
#define DOMUS_OBSERVE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The section `observe` of the configuration. */
typedef struct domus_observe_config {
    /* Address of the port: "unix:PATH", "unix:@NAME", or a loopback address with a port, such as
     * "127.0.0.1:9100", of up to 127 bytes; NULL or "" (the default): there is no port. */
    const char *listen;
    /* 1..65,536: most viewers at a time, which are connections to the port; others wait until one
     * has gone; default 64 */
    uint32_t viewers_max;
    /* whether `listen` may be any other address, so that strangers may see all that the port shows;
     * default false */
    bool is_public;
    /* whether the port changes keys of the configuration that are live (PUT /config/KEY); default
     * false */
    bool may_change;
} domus_observe_config;

#ifdef __cplusplus
}
#endif

#endif
