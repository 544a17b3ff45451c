/* This file reads the configuration again for a reload, and compares it with the present one. */
#include "config/main_reload.h"

#include "config/values.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define KEPT_SHOWN_MAX 8   /* keys that a line names; further ones are counted */
#define KEPT_SIZE      512 /* bytes of their names; no path has more than 60 */

/* Report a fault of an argument (struct domi_options_faults). */
static void log_fault(void *sink, const char *argument, const char *what)
{
    domi_sink_add_line(sink, "%s: %s", argument, what);
}

/* Leave the errors of a reader in the log, as whole lines. */
static void log_errors(const domus_yaml *yaml, domi_sink *sink)
{
    const char *errors = domus_yaml_errors(yaml);
    char *text = errors[0] != '\0' ? strdup(errors) : NULL;

    if (text != NULL)
        domi_sink_add_text(sink, text);
}

domus_yaml *domi_reload_read(const struct domi_arguments *arguments, domi_sink *sink)
{
    const struct domi_options_faults faults = {.report = log_fault, .context = sink};
    const domus_section *section = arguments->program->section;
    domus_yaml *yaml = NULL;
    int result =
        section != NULL ? domus_yaml_new_with(section, NULL, 0, &yaml) : domus_yaml_new(&yaml);

    if (result != 0) {
        domi_sink_add_line(sink, "SIGHUP: %s: nothing is changed", strerror(-result));
        return NULL;
    }
    if (domi_options_read(arguments, true, yaml, &faults))
        return yaml;
    log_errors(yaml, sink);
    domi_sink_add_line(sink, "SIGHUP: the configuration is wrong: nothing is changed");
    domus_yaml_free(yaml);
    return NULL;
}

/* The table of the keys of a list's elements, such as domus_config_listener_key_get(). */
typedef const domus_config_key *key_table(size_t row);

static bool elements_differ(key_table *keys, const void *before, const void *now)
{
    const domus_config_key *key;

    for (size_t row = 0; (key = keys(row)) != NULL; row++)
        if (domi_value_differs(key, before, now))
            return true;
    return false;
}

static bool listeners_differ(const domus_config *before, const domus_config *now)
{
    if (before->listener_count != now->listener_count)
        return true;
    for (size_t i = 0; i < now->listener_count; i++)
        if (elements_differ(domus_config_listener_key_get, &before->listeners[i],
                            &now->listeners[i]))
            return true;
    return false;
}

static bool pools_differ(const domus_config *before, const domus_config *now)
{
    if (before->pool_count != now->pool_count)
        return true;
    for (size_t i = 0; i < now->pool_count; i++)
        if (elements_differ(domus_config_pool_key_get, &before->pools[i], &now->pools[i]))
            return true;
    return false;
}

/* Returns whether domus_main() reads the key itself, and so takes it in a reload. */
static bool is_taken(const domus_config_key *key)
{
    static const char *const taken[] = {"profile.atExit", "profile.level", "log.flushTimeout",
                                        "log.level"};

    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        if (strcmp(key->path, taken[i]) == 0)
            return true;
    }
    return false;
}

/* The names of keys that a line is going to hold. */
struct kept {
    char names[KEPT_SIZE];
    size_t used;
    uint32_t count;
};

/* Note the path of a key whose new value takes effect only at the next start. */
static void keep(struct kept *kept, const char *path)
{
    if (kept->count++ < KEPT_SHOWN_MAX)
        kept->used += (size_t)snprintf(kept->names + kept->used, sizeof kept->names - kept->used,
                                       "%s%s", kept->used > 0 ? ", " : "", path);
}

void domi_reload_log_kept(const domus_config *before, const domus_config *now, domi_sink *sink)
{
    struct kept kept = {.count = 0};
    const domus_config_key *key, *last = NULL; /* a key with two rows is named once */
    char more[32] = "";

    for (size_t row = 0; (key = domus_config_key_get(row)) != NULL; row++) {
        if (is_taken(key) || !domi_value_differs(key, before, now) ||
            (last != NULL && strcmp(last->path, key->path) == 0))
            continue;
        keep(&kept, key->path);
        last = key;
    }
    if (listeners_differ(before, now))
        keep(&kept, "listeners");
    if (pools_differ(before, now))
        keep(&kept, "pools");
    if (kept.count > KEPT_SHOWN_MAX)
        snprintf(more, sizeof more, " and %u more", kept.count - KEPT_SHOWN_MAX);
    if (kept.count > 0)
        domi_sink_add_line(sink, "SIGHUP: not taken before the next start: %s%s", kept.names, more);
}
