/* Writes the lines of families of metrics (families.h). */
#include "protocols/observe/families.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)

static void write_unit_line_if_name_ends_with_it(domi_metrics *to, const char *name,
                                                 const char *unit)
{
    size_t length = strlen(name), end = strlen(unit);

    if (to->is_open && length > end && name[length - end - 1] == '_' &&
        strcmp(name + length - end, unit) == 0)
        (void)domus_append_text(&to->out, "# UNIT %s %s\n", name, unit);
}

void domi_begin_metric_family(domi_metrics *to, const char *name, domi_family_kind kind,
                              const char *help)
{
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    const char *end = kind == DOMI_COUNTER && !to->is_open ? "_total" : "";

    (void)domus_append_text(&to->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, end, help, name,
                            end, kinds[kind]);
    write_unit_line_if_name_ends_with_it(to, name, "seconds");
    write_unit_line_if_name_ends_with_it(to, name, "bytes");
}

void domi_write_metric_name_and_labels(domi_metrics *to, const char *name, const char *end,
                                       const char *labels)
{
    (void)domus_append_text(&to->out, labels[0] != '\0' ? "%s%s{%s} " : "%s%s%s ", name, end,
                            labels);
}

void domi_write_metric_count_and_line_end(domi_metrics *to, uint64_t count)
{
    (void)domus_append_text(&to->out, "%" PRIu64 "\n", count);
}

void domi_write_metric_time_and_line_end(domi_metrics *to, uint64_t time_ns)
{
    (void)domus_append_text(&to->out, "%" PRIu64 ".%09" PRIu64 "\n", time_ns / SECOND_NS,
                            time_ns % SECOND_NS);
}

void domi_format_metric_labels_of_source(const domi_source *source, char labels[DOMI_LABELS_SIZE])
{
    if (source->kind == DOMI_SOURCE_THREAD)
        snprintf(labels, DOMI_LABELS_SIZE, "thread=\"%" PRIu32 "\"", source->number);
    else if (source->kind == DOMI_SOURCE_OUTSIDE)
        snprintf(labels, DOMI_LABELS_SIZE, "thread=\"outside\"");
    else
        snprintf(labels, DOMI_LABELS_SIZE, "pool=\"%s\",runner=\"%" PRIu32 "\"", source->pool,
                 source->number);
}

void domi_escape_name_for_label(const char *name, char label[DOMI_LABEL_SIZE])
{
    size_t length = 0;

    for (const unsigned char *c = (const unsigned char *)name; *c != '\0'; c++) {
        const char *form = *c == '"'              ? "\\%c"
                           : *c == '\\'           ? "\\\\\\%c"
                           : *c < ' ' || *c > '~' ? "\\\\x%02x"
                                                  : "%c";
        int size = snprintf(label + length, DOMI_LABEL_SIZE - length, form, *c);
        length += (size_t)size;
    }
    label[length] = '\0';
}
