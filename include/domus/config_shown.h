/* A configuration as people see it: each key with the text of its value, and where that comes from.
 *
 * domus_config_show() shows a configuration of whatever origin; domus_yaml_show() of domus/yaml.h
 * also knows in which line of which file each value stands. The observation port shows both as
 * /config. Secrets are never shown. */
#ifndef DOMUS_CONFIG_SHOWN_H
#define DOMUS_CONFIG_SHOWN_H

#include <domus/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The text that stands for a secret that is set, and the size of a value's text with its NUL; a
 * longer value is cut. */
#define DOMUS_CONFIG_SECRET     "***"
#define DOMUS_CONFIG_VALUE_SIZE 4224u

/* A key and its value; the texts are valid during the call that shows them. */
typedef struct domus_config_shown {
    /* the path of the key, as in an assignment: "scheduler.ioRatio",
     * "listeners.echo.address", "chat.rooms" */
    const char *key;
    /* the value of the key, as in an assignment: "50", "500us", "lobby,garden" */
    const char *value;
    /* origin of the key's value: "default"; "program", if the program has set it by itself;
     * "FILE:LINE"; "--set", or the option of the program that has set it, such as "--port" */
    const char *origin;
} domus_config_shown;

/* A function that is called for each key and its value, in the order of the tables of keys. */
typedef void domus_config_visit(void *context, const domus_config_shown *shown);

/* A function that calls `visit` for each key of the configuration that `from` stands for. */
typedef void domus_config_walk(const void *from, domus_config_visit *visit, void *context);

/* Write the value of a key as users write it. `holder` is a domus_config, or for a key of a
 * listener or a pool its structure. A secret (`secret` of the key) that is not empty becomes
 * DOMUS_CONFIG_SECRET. The text is cut at `size` bytes. Thread-safety: any thread. */
DOMUS_API void domus_config_key_write(const domus_config_key *key, const void *holder, char *text,
                                      size_t size);

/* Tells the origin of a value, or returns NULL if it does not know it; then it is "default" if the
 * value is the default, and else "program". `element` is the index of the listener or the pool;
 * SIZE_MAX: the key belongs to none. The text is valid until the next call. */
typedef const char *domus_config_origin(void *context, const domus_config_key *key, size_t element);

/* Show all keys of a configuration, except those of a listener that have no value of their own.
 * `origin` may be NULL, and gets `context`, as `visit` does. Thread-safety: any thread, while
 * nobody changes the configuration. */
DOMUS_API void domus_config_show(const domus_config *config, domus_config_origin *origin,
                                 domus_config_visit *visit, void *context);

#ifdef __cplusplus
}
#endif

#endif
