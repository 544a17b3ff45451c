/* Changes of the configuration while the system runs.
 *
 * A change is one step, inside the outside and under the mutex of live.h: the new configuration is
 * checked as a whole and compared with the present one; then the fields that differ are stored, the
 * outside's manager takes them, and the word of orders counts one more, by which every other
 * manager learns of it.
 * Thread: any. */
#include "base/key.h"
#include "house/dispatch/manage.h"
#include "runtime/control/config_keys.h"
#include "runtime/control/life.h"
#include "runtime/outside/visit.h"
#include "runtime/system/logs.h"

#include <domus/config_shown.h>
#include <domus/log.h>
#include <domus/system.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* most keys that one line of a log or an error names; further keys are only counted */
#define NAMED_MAX 8
#define LINE_SIZE 1024
/* size in bytes of the text of a live key's value, which is a number or a word */
#define VALUE_SIZE 64

/* A line of text that lists keys, as far as the line has room. */
struct list {
    uint32_t count; /* number of keys in the list, also of those for which the line has no room */
    char *text;
    size_t size, used;
};

/* The keys in which the present and the wanted configuration differ. */
struct found {
    struct list live; /* text that lists the live keys that differ, with their old and new values,
                         as far as a line has room */
    /* list of the differing keys that may be set only at the start of a system */
    struct list fixed;
};

static bool has_value_changed(const domus_config_key *key, const void *before, const void *now)
{
    if (!domi_key_is_text(key))
        return domi_key_get_number(key, before) != domi_key_get_number(key, now);
    const char *text = domi_key_get_text(key, before), *other = domi_key_get_text(key, now);
    return strcmp(text != NULL ? text : "", other != NULL ? other : "") != 0;
}

/* Add formatted text to a line that lists keys. */
__attribute__((format(printf, 2, 3))) static void add_text_to_line_of_keys(struct list *list,
                                                                           const char *format, ...)
{
    va_list arguments;

    if (list->used >= list->size)
        return;
    va_start(arguments, format);
    int length = vsnprintf(list->text + list->used, list->size - list->used, format, arguments);
    va_end(arguments);
    list->used += length > 0 ? (size_t)length : 0;
}

/* Add a key to a line that lists keys; `of` is the text before the key's path. Returns whether the
 * line had room for the key's name. */
static bool add_key_to_list(struct list *list, const char *of, const char *path)
{
    if (list->count++ >= NAMED_MAX)
        return false;
    add_text_to_line_of_keys(list, "%s%s%s", list->count > 1 ? ", " : "", of, path);
    return true;
}

/* Write the value of a key as text; for an option that a listener does not set, the text is "that
 * of the section". */
static void write_value_as_text(const domus_config_key *key, const void *holder,
                                char text[VALUE_SIZE])
{
    if (key->inherits && domi_key_get_number(key, holder) == 0)
        snprintf(text, VALUE_SIZE, "that of the section");
    else
        domus_config_key_write(key, holder, text, VALUE_SIZE);
}

static void add_change_to_list(struct list *list, const char *of, const domus_config_key *key,
                               const void *before, const void *now)
{
    char was[VALUE_SIZE], is[VALUE_SIZE];

    if (!add_key_to_list(list, of, key->path))
        return;
    write_value_as_text(key, before, was);
    write_value_as_text(key, now, is);
    add_text_to_line_of_keys(list, " from %s to %s", was, is);
}

/* End a line that lists keys: add how many further keys there are that it does not name. */
static void add_count_of_unnamed_keys(struct list *list)
{
    if (list->count > NAMED_MAX)
        add_text_to_line_of_keys(list, " and %" PRIu32 " more", list->count - NAMED_MAX);
}

/* Compare the values of all keys of a table in two structures, and add the keys that differ to the
 * lists of `found`. */
static void compare_keys_in_two_holders(struct found *found, const domus_config_key *keys,
                                        size_t count, const char *of, const void *before,
                                        const void *now)
{
    for (size_t k = 0; k < count; k++) {
        if (!has_value_changed(&keys[k], before, now))
            continue;
        if (keys[k].live)
            add_change_to_list(&found->live, of, &keys[k], before, now);
        else if (k == 0 || strcmp(keys[k - 1].path, keys[k].path) != 0 ||
                 !has_value_changed(&keys[k - 1], before,
                                    /* a key may have two rows of the table, and is listed once
                                     * even if both differ */
                                    now))
            (void)add_key_to_list(&found->fixed, of, keys[k].path);
    }
}

/* Returns whether two configurations have listeners of the same names in the same order. */
static bool are_listeners_same(const domus_config *before, const domus_config *now)
{
    if (before->listener_count != now->listener_count)
        return false;
    for (size_t i = 0; i < now->listener_count; i++) {
        if (strcmp(before->listeners[i].name, now->listeners[i].name) != 0)
            return false;
    }
    return true;
}

static void compare_keys_of_listeners(domus_system *system, const domus_config *now,
                                      struct found *found)
{
    char of[DOMI_NAME_BYTES_MAX + 16];

    if (now->listeners == system->listeners)
        /* the new configuration has the very listeners of the system, so they need no comparison */
        return;
    if (!are_listeners_same(&system->config, now)) {
        (void)add_key_to_list(&found->fixed, "", "listeners");
        return;
    }
    for (size_t i = 0; i < now->listener_count; i++) {
        domus_listener_config before = system->listeners[i];

        before.channel = system->live.channels[i];
        snprintf(of, sizeof of, "listeners.%s.", before.name);
        compare_keys_in_two_holders(found, domi_config_listener_keys,
                                    domi_config_listener_key_count, of, &before,
                                    &now->listeners[i]);
    }
}

static void compare_keys_of_pools(const domus_system *system, const domus_config *now,
                                  struct found *found)
{
    bool same = system->config.pool_count == now->pool_count;

    for (size_t i = 0; same && i < now->pool_count; i++) {
        for (size_t k = 0; k < domi_config_pool_key_count; k++)
            same = same && !has_value_changed(&domi_config_pool_keys[k], &system->config.pools[i],
                                              &now->pools[i]);
    }
    if (!same)
        (void)add_key_to_list(&found->fixed, "", "pools");
}

/* Returns a copy of the present configuration, with the values that functions beside the change of
 * keys have set since (as the log level). Called under the mutex of live.h. */
static domus_config copy_present_config(const domus_system *system)
{
    domus_config present = system->live.config;

    present.scheduler.idle.spin_ns = system->live.spin_given_ns;
    present.profile.level = domus_system_profile_level(system);
    present.log.level = domus_system_log_level(system);
    return present;
}

/* Returns whether stalls are to be watched from now on, which would need a monitor, although none
 * was made at the start, because nothing was watched. */
static bool would_need_a_new_monitor(const domus_system *system, const domus_config *before,
                                     const domus_config *now)
{
    return system->simulator == NULL && !system->monitor.started &&
           before->stall.threshold_ns == 0 && now->stall.threshold_ns != 0;
}

/* Check whether a running system may change to a configuration. Returns how many live keys would
 * change, which `line` lists; -EINVAL if it is wrong, -EPERM if it changes keys that count at a
 * start only. Called under the mutex of live.h. */
static int check_change_to_config(domus_system *system, const domus_config *config,
                                  char line[LINE_SIZE], char *error, size_t error_size)
{
    struct found found = {.live = {.text = line, .size = LINE_SIZE},
                          .fixed = {.text = error, .size = error_size}};
    int result = domus_config_check(config, error, error_size);

    if (result != 0)
        return result;
    const domus_config present = copy_present_config(system);
    add_text_to_line_of_keys(&found.fixed, "%s", "these keys count at a start: ");
    compare_keys_in_two_holders(&found, domi_config_keys, domi_config_key_count, "", &present,
                                config);
    compare_keys_of_listeners(system, config, &found);
    compare_keys_of_pools(system, config, &found);
    if (would_need_a_new_monitor(system, &present, config))
        (void)add_key_to_list(&found.fixed, "", "stall.threshold");
    add_count_of_unnamed_keys(&found.live);
    add_count_of_unnamed_keys(&found.fixed);
    if (found.fixed.count != 0)
        return -EPERM;
    if (error_size != 0)
        error[0] = '\0';
    return (int)found.live.count;
}

/* Store a live value, which other threads read at any time (DOMI_LIVE()). Relaxed: each live value
 * is complete by itself. */
static void store_live_value(const domus_config_key *key, void *holder, uint64_t number)
{
    void *field = (char *)holder + key->offset;

    if (key->size == 1)
        __atomic_store_n((uint8_t *)field, (uint8_t)number, __ATOMIC_RELAXED);
    else if (key->size == 4)
        __atomic_store_n((uint32_t *)field, (uint32_t)number, __ATOMIC_RELAXED);
    else
        __atomic_store_n((uint64_t *)field, number, __ATOMIC_RELAXED);
}

/* Store all values of live keys of a new configuration. Called under the mutex of live.h. */
static void store_all_live_values(domus_system *system, const domus_config *config)
{
    domus_config wanted = *config;
    domi_live *live = &system->live;

    live->spin_given_ns = config->scheduler.idle.spin_ns;
    wanted.scheduler.idle.spin_ns = domi_system_choose_spin_time(system, live->spin_given_ns);
    for (size_t k = 0; k < domi_config_key_count; k++) {
        if (domi_config_keys[k].live)
            store_live_value(&domi_config_keys[k], &live->config,
                             domi_key_get_number(&domi_config_keys[k], &wanted));
    }
    for (size_t i = 0; i < config->listener_count && config->listeners != system->listeners; i++)
        live->channels[i] = config->listeners[i].channel;
    (void)domus_system_set_profile_level(system, config->profile.level);
    (void)domus_system_set_log_level(system, config->log.level);
    domi_peers_set_max_connections(&system->peers, config->channel.connections_max);
}

/* Tell every manager that the configuration has changed. Called inside the outside (visit.h), so
 * that no stop begins meanwhile. */
static void tell_managers_of_change(domus_system *system)
{
    domi_manager_set_config(&system->outside, &system->live.config);
    uint32_t orders = atomic_load_explicit(&system->orders, memory_order_relaxed);
    /* seq_cst: the store of the orders comes before the looks at the park words, as the store of a
     * stop's step does, so no thread falls asleep without having seen the orders. */
    atomic_store_explicit(&system->orders, domi_orders_with_one_more_change(orders),
                          memory_order_seq_cst);
    for (uint32_t i = 0; i < system->count; i++)
        domi_manager_notify_of_push(&system->outside, &system->threads[i].manager);
}

/* Check a change to `config`, and make it if it is allowed and `is_done` says so. Called inside the
 * outside (visit.h) and under the mutex of live.h. */
static int check_and_apply_change(domus_system *system, const domus_config *config, bool is_done,
                                  char line[LINE_SIZE], char *error, size_t error_size)
{
    int result = check_change_to_config(system, config, line, error, error_size);

    if (result > 0 && is_done) {
        store_all_live_values(system, config);
        tell_managers_of_change(system);
    }
    return result;
}

/* Begin a change of the configuration: until end_change_of_config() no stop and no other change
 * begins. Returns 0; a negative errno, and then `error` says why. */
static int begin_change_of_config(domus_system *system, domi_visit *visit, char *error,
                                  size_t error_size)
{
    int result = domi_system_is_forked(system)
                     ? -ECHILD
                     : domi_outside_enter(system, DOMI_STAGE_RUNNING, visit);

    if (result != 0) {
        snprintf(error, error_size, "%s",
                 result == -ECHILD ? "this is a forked child" : "the system does not run");
        return result;
    }
    pthread_mutex_lock(&system->live.mutex);
    return 0;
}

static void end_change_of_config(domus_system *system, const domi_visit *visit, const char *line)
{
    pthread_mutex_unlock(&system->live.mutex);
    domi_outside_leave(system, visit);
    if (line[0] != '\0')
        domi_log_line(system, DOMUS_LOG_INFO, DOMUS_LOG_OUTSIDE, "the configuration changes: %s",
                      line);
}

static int change_live_keys(domus_system *system, const domus_config *config, bool is_done,
                            char *error, size_t error_size)
{
    char line[LINE_SIZE] = "";
    domi_visit visit;
    int result = begin_change_of_config(system, &visit, error, error_size);

    if (result != 0)
        return result;
    result = check_and_apply_change(system, config, is_done, line, error, error_size);
    end_change_of_config(system, &visit, result > 0 && is_done ? line : "");
    return result;
}

int domus_system_change(domus_system *system, const domus_config *config, char *error,
                        size_t error_size)
{
    return change_live_keys(system, config, true, error, error_size);
}

int domus_system_check_change(domus_system *system, const domus_config *config, char *error,
                              size_t error_size)
{
    return change_live_keys(system, config, false, error, error_size);
}

/* Change one key of the running system: put its value into a copy of the present configuration, and
 * change to that. Called under the mutex of live.h. */
static int change_one_key_of_config(domus_system *system, const char *path, const char *value,
                                    char line[LINE_SIZE], char *error, size_t error_size)
{
    domus_config config = copy_present_config(system);
    uint64_t number;
    size_t listener;
    const domus_config_key *key = domus_config_key_find(&system->config, path, &listener);

    if (key == NULL) {
        snprintf(error, error_size, "%s", "there is no such key");
        return -ENOENT;
    }
    if (!key->live) {
        snprintf(error, error_size, "%s", "it counts at a start");
        return -EPERM;
    }
    domus_listener_config *listeners = system->live.listeners;
    for (size_t i = 0; i < config.listener_count; i++) {
        listeners[i] = system->listeners[i];
        listeners[i].channel = system->live.channels[i];
    }
    config.listeners = listeners;
    void *holder = listener == SIZE_MAX ? (void *)&config : &listeners[listener];
    if (domus_config_key_read(key, value, &number, error, error_size) != 0 ||
        domus_config_key_put(key, holder, number, NULL, error, error_size) != 0)
        return -EINVAL;
    return check_and_apply_change(system, &config, true, line, error, error_size);
}

int domus_system_change_key(domus_system *system, const char *path, const char *value, char *error,
                            size_t error_size)
{
    char line[LINE_SIZE] = "";
    domi_visit visit;
    int result = begin_change_of_config(system, &visit, error, error_size);

    if (result != 0)
        return result;
    result = change_one_key_of_config(system, path, value, line, error, error_size);
    end_change_of_config(system, &visit, result > 0 ? line : "");
    return result;
}

void domus_system_config_now(domus_system *system, domus_config *ret_config)
{
    /* after a fork a thread of the parent may have held the mutex, so the child reads without it */
    bool is_alone = domi_system_is_forked(system);

    if (!is_alone)
        pthread_mutex_lock(&system->live.mutex);
    *ret_config = copy_present_config(system);
    if (!is_alone)
        pthread_mutex_unlock(&system->live.mutex);
}

int domus_system_channel_options(domus_system *system, size_t index,
                                 domus_channel_options *ret_options)
{
    bool is_alone = domi_system_is_forked(system);

    if (index >= system->config.listener_count)
        return -ENOENT;
    if (!is_alone)
        pthread_mutex_lock(&system->live.mutex);
    *ret_options = system->live.channels[index];
    if (!is_alone)
        pthread_mutex_unlock(&system->live.mutex);
    return 0;
}
