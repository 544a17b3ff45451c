/* /config: {"keys": [{"key": "scheduler.ioRatio", "value": "50", "origin": "default"}, ...]}
 *
 * The program hands its whole configuration to the port, and again after a reload; without that the
 * port shows the one of the system. Requests to this port may change live keys: their values are
 * read when they are shown, and have the origin "port" if they differ from those that the program
 * has handed over.
 *
 * A configuration that was handed over is a row of texts, each with a zero at its end: key, value,
 * origin, key and so on. The thread of the port owns the one that it shows. Another thread leaves a
 * newer one in `left`, where the port's thread takes it. */
#include "protocols/observe/pages.h"

#include "protocols/observe/answer.h"
#include "protocols/observe/observe.h"
#include "protocols/observe/texts.h"

#include <domus/log.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct domi_handed {
    domus_slice slice;
    const char *texts; /* the first byte of `slice`, which is never empty */
} domi_handed;

#define KEY_SIZE 256 /* bytes of the path of a key, with its zero byte */

/* the configuration that was handed over last and that the port's thread has not taken yet; NULL:
 * none */
static _Atomic(domi_handed *) left;
/* the handed-over configuration that /config shows, used by the port's thread; NULL: none was
 * handed over */
static domi_handed *shown;

static void free_handed_over_config(domi_handed *one)
{
    if (one != NULL)
        domus_slice_free(one->slice);
    free(one);
}

static void append_key_to_handed_over_config(void *texts, const domus_config_shown *one)
{
    (void)domus_append(texts, one->key, strlen(one->key) + 1);
    (void)domus_append(texts, one->value, strlen(one->value) + 1);
    (void)domus_append(texts, one->origin, strlen(one->origin) + 1);
}

int domi_observe_hand_over_shown_config(domus_config_walk *walk, const void *from)
{
    domi_handed *one = calloc(1, sizeof *one);
    domus_appender texts = {0};
    int error = -ENOMEM;

    if (one != NULL) {
        walk(from, append_key_to_handed_over_config, &texts);
        error = domus_append_end(&texts, &one->slice);
    }
    if (error != 0) {
        free(one);
        return error;
    }
    one->texts = domus_slice_data(one->slice);
    /* acq_rel: pairs with the exchange in use_newest_handed_over_config(). The side that gets the
     * older texts, to show them or to free them, sees them complete. */
    free_handed_over_config(atomic_exchange_explicit(&left, one, memory_order_acq_rel));
    return 0;
}

void domi_observe_free_shown_config(void)
{
    free_handed_over_config(atomic_exchange_explicit(&left, NULL, memory_order_acq_rel));
    free_handed_over_config(shown);
    shown = NULL;
}

static const domi_handed *use_newest_handed_over_config(void)
{
    /* acq_rel: pairs with the exchange in domi_observe_hand_over_shown_config(), so the texts of
     * the newer configuration are seen complete */
    domi_handed *newer = atomic_exchange_explicit(&left, NULL, memory_order_acq_rel);

    if (newer != NULL) {
        free_handed_over_config(shown);
        shown = newer;
    }
    return shown;
}

/* --- the text of the answer ------------------------------------------------------------------- */

/* The answer to /config while it is being written, and the values that it shows. */
struct writing {
    domus_appender json;
    /* text to write before the next key: the beginning of the list, or a comma */
    const char *before;
    /* the system's current configuration, whose live keys may have changed since the start */
    const domus_config *now;
};

static void write_text_as_json(domus_appender *json, const char *before, const char *text)
{
    (void)domus_append_text(json, "%s", before);
    domi_json_append_string(json, text);
}

/* Write a key of the system's configuration, when no configuration was handed over. The type of
 * this function is domus_config_visit. */
static void write_key_of_system_config(void *writing_, const domus_config_shown *one)
{
    struct writing *writing = writing_;

    (void)domus_append_text(&writing->json, "%s\n{\"key\":", writing->before);
    writing->before = ",";
    write_text_as_json(&writing->json, "", one->key);
    write_text_as_json(&writing->json, ",\"value\":", one->value);
    write_text_as_json(&writing->json, ",\"origin\":", one->origin);
    (void)domus_append_text(&writing->json, "}");
}

/* Write a key of the handed-over configuration, with its current value, which may have changed. */
static void write_handed_over_key_with_value_now(struct writing *writing,
                                                 const domus_config_shown *one)
{
    char value[DOMUS_CONFIG_VALUE_SIZE];
    size_t listener;
    const domus_config_key *key = domus_config_key_find(writing->now, one->key, &listener);

    if (key == NULL || !key->live) {
        write_key_of_system_config(writing, one);
        return;
    }
    const void *holder =
        listener == SIZE_MAX ? (const void *)writing->now : &writing->now->listeners[listener];
    domus_config_key_write(key, holder, value, sizeof value);
    bool is_changed = strcmp(value, one->value) != 0;
    write_key_of_system_config(
        writing, &(domus_config_shown){one->key, value, is_changed ? "port" : one->origin});
}

static void write_all_handed_over_keys(struct writing *writing, const domi_handed *handed)
{
    size_t at = 0;

    while (at < handed->slice.size) {
        domus_config_shown one = {.key = handed->texts + at};
        one.value = one.key + strlen(one.key) + 1;
        one.origin = one.value + strlen(one.value) + 1;
        at = (size_t)(one.origin + strlen(one.origin) + 1 - handed->texts);
        write_handed_over_key_with_value_now(writing, &one);
    }
}

static bool has_handed_over_config_key(const domi_handed *handed, const char *key)
{
    const char *end = handed->texts + handed->slice.size;

    for (const char *at = handed->texts; at < end;) {
        if (strcmp(at, key) == 0)
            return true;
        for (int texts = 0; texts < 3; texts++)
            at += strlen(at) + 1;
    }
    return false;
}

/* Write the options of listeners that requests have set meanwhile, and that the handed-over
 * configuration does not have. */
static void write_listener_options_set_later(struct writing *writing, const domi_handed *handed)
{
    static const domus_listener_config none;
    char path[KEY_SIZE], value[DOMUS_CONFIG_VALUE_SIZE], nothing[DOMUS_CONFIG_VALUE_SIZE];
    const domus_config_key *key;

    for (size_t i = 0; i < writing->now->listener_count; i++) {
        for (size_t row = 0; (key = domus_config_listener_key_get(row)) != NULL; row++) {
            if (!key->live)
                continue;
            domus_config_key_write(key, &writing->now->listeners[i], value, sizeof value);
            domus_config_key_write(key, &none, nothing, sizeof nothing);
            snprintf(path, sizeof path, "listeners.%s.%s", writing->now->listeners[i].name,
                     key->path);
            if (strcmp(value, nothing) != 0 && !has_handed_over_config_key(handed, path))
                write_key_of_system_config(writing, &(domus_config_shown){path, value, "port"});
        }
    }
}

int domi_observe_serve_config(domus_stack *stack, void *self, const void *payload)
{
    /* these are static because of their size, and only the port's one thread uses them */
    static domi_present now;
    struct writing writing = {.before = "", .now = &now.config};
    const domi_handed *handed = use_newest_handed_over_config();
    domus_slice text;

    (void)self, (void)payload;
    domi_observe_copy_current_config(&now);
    (void)domus_append_text(&writing.json, "{\"keys\":[");
    if (handed != NULL) {
        write_all_handed_over_keys(&writing, handed);
        write_listener_options_set_later(&writing, handed);
    } else {
        domus_config_show(&now.config, NULL, write_key_of_system_config, &writing);
    }
    (void)domus_append_text(&writing.json, "]}\n");
    int error = domus_append_end(&writing.json, &text);
    return error != 0 ? error : domi_observe_answer_with_bytes(stack, "application/json", text);
}
