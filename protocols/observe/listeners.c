/* Counts of the listeners of the observed system, as metrics and as JSON.
 *
 * There is one entry for each listener in the configuration, and one entry for all listeners
 * that actors have made. Port 0 of an address is shown as the port that the kernel has chosen. */
#include "protocols/observe/writers.h"

#include "protocols/observe/texts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BY_ACTORS "(actors)"
#define SHOWN_MAX 256 /* bytes of a listener's address as text */

static const struct row {
    const char *name, *field, *help;
    size_t offset; /* offset of the count, a uint64_t, in domus_listener_profile */
    domi_family_kind kind;
} rows[] = {
    {"domus_listener_accepted", "accepted",
     "Connections of a listener that were accepted and handed over to a thread.",
     offsetof(domus_listener_profile, accepted), DOMI_COUNTER},
    {"domus_listener_refused", "refused",
     "Connections that were reset because of their address, or because nobody served them.",
     offsetof(domus_listener_profile, refused), DOMI_COUNTER},
    {"domus_listener_open", "open", "Channels of a listener that there are now.",
     offsetof(domus_listener_profile, open), DOMI_GAUGE},
    {"domus_listener_closed", "closed", "Channels of a listener that there were.",
     offsetof(domus_listener_profile, closed), DOMI_COUNTER},
    {"domus_listener_reset", "reset", "Channels of a listener that an error has closed.",
     offsetof(domus_listener_profile, reset), DOMI_COUNTER},
};
#define ROWS (sizeof rows / sizeof rows[0])

static uint64_t read_count_of_row_in_listener(const domus_listener_profile *listener,
                                              const struct row *row)
{
    return *(const uint64_t *)(const void *)((const char *)listener + row->offset);
}

/* Returns how many entries of listeners to show. The entry for listeners that actors have made is
 * left out while these have had no connection. */
static size_t count_listener_entries_to_show(const domus_system *system)
{
    size_t count = domus_system_config(system)->listener_count;
    domus_listener_profile own = {0};

    (void)domus_system_listener(system, count, &own);
    return own.accepted + own.refused + own.open + own.closed != 0 ? count + 1 : count;
}

/* --- metrics ---------------------------------------------------------------------------------- */

static void write_family_of_listener_count(domi_metrics *to, const struct row *row,
                                           const domus_system *system, size_t count)
{
    domus_listener_profile listener;
    /* no escaping is needed in the label, because a listener's name has only letters, digits, '-'
     * and '_' */
    char labels[DOMI_LABELS_SIZE];

    domi_begin_metric_family(to, row->name, row->kind, row->help);
    for (size_t i = 0; i < count; i++) {
        (void)domus_system_listener(system, i, &listener);
        snprintf(labels, sizeof labels, "listener=\"%s\"",
                 listener.name[0] != '\0' ? listener.name : BY_ACTORS);
        domi_write_metric_name_and_labels(to, row->name, row->kind == DOMI_COUNTER ? "_total" : "",
                                          labels);
        domi_write_metric_count_and_line_end(to, read_count_of_row_in_listener(&listener, row));
    }
}

void domi_listeners_write_metrics(domi_metrics *to, const domus_system *system)
{
    size_t count = count_listener_entries_to_show(system);

    if (count == 0)
        return; /* a family of metrics without samples is left out */
    for (size_t i = 0; i < ROWS; i++)
        write_family_of_listener_count(to, &rows[i], system, count);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void append_listener_address(domus_appender *json, const domus_listener_profile *listener)
{
    const char *colon = strrchr(listener->address, ':');
    char address[SHOWN_MAX];

    if (listener->port != 0 && colon != NULL)
        snprintf(address, sizeof address, "%.*s:%u", (int)(colon - listener->address),
                 listener->address, listener->port);
    else
        snprintf(address, sizeof address, "%s", listener->address);
    domi_json_append_string(json, address);
}

void domi_listeners_write_json(domus_appender *json, const domus_system *system)
{
    size_t count = count_listener_entries_to_show(system);
    domus_listener_profile listener;

    (void)domus_append_text(json, "[");
    for (size_t i = 0; i < count; i++) {
        (void)domus_system_listener(system, i, &listener);
        (void)domus_append_text(json, "%s{\"listener\":", i == 0 ? "" : ",");
        append_listener_address(json, &listener);
        (void)domus_append_text(json, ",\"name\":");
        domi_json_append_string(json, listener.name[0] != '\0' ? listener.name : BY_ACTORS);
        (void)domus_append_text(json, ",\"served\":%s", listener.is_served ? "true" : "false");
        for (size_t k = 0; k < ROWS; k++)
            (void)domus_append_text(json, ",\"%s\":%" PRIu64, rows[k].field,
                                    read_count_of_row_in_listener(&listener, &rows[k]));
        (void)domus_append_text(json, "}");
    }
    (void)domus_append_text(json, "]");
}
