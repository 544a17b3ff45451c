/* Writes the findings of the doctor as text and as JSON (report.h). All texts of findings are
 * printable ASCII, because the names that looks contain are (domi_look_copy_name()). */
#include "protocols/observe/doctor/report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void send_text_to_sink(const domi_report *to, const char *text, size_t size)
{
    if (size != 0)
        to->sink(to->context, text, size);
}

static void print_text_to_sink(const domi_report *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void print_text_to_sink(const domi_report *to, const char *format, ...)
{
    char text[2048];
    va_list arguments;

    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (size > 0)
        send_text_to_sink(to, text, (size_t)size < sizeof text ? (size_t)size : sizeof text - 1);
}

const char *domi_word_of_harm(domi_harm harm)
{
    return harm == DOMI_HARM_LOSS ? "loss" : harm == DOMI_HARM_DELAY ? "delay" : "cost";
}

/* --- text ------------------------------------------------------------------------------------- */

void domi_report_finding_as_text(const domi_report *to, const domi_finding *finding)
{
    const char *line = finding->change;

    print_text_to_sink(to, "\n%s (%s)\n  %s\n  %s\n", finding->rule->name,
                       domi_word_of_harm(finding->rule->harm), finding->sentence,
                       finding->rule->limit);
    while (*line != '\0') {
        size_t size = strcspn(line, "\n");
        print_text_to_sink(to, "    %.*s\n", (int)size, line);
        line += size + (line[size] == '\n');
    }
}

void domi_report_findings_as_text(const domi_report *to, const domi_span *span,
                                  const domi_finding *findings, uint32_t count)
{
    const domi_look *look = span->after;

    print_text_to_sink(to, "%s (pid %" PRIu64 "), %.1f s: ", look->program, look->pid,
                       span->seconds);
    if (count == 0)
        print_text_to_sink(to, "nothing stands out\n");
    else
        print_text_to_sink(to, "%" PRIu32 " %s\n", count, count == 1 ? "finding" : "findings");
    for (uint32_t i = 0; i < count; i++)
        domi_report_finding_as_text(to, &findings[i]);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void print_string_as_json(const domi_report *to, const char *text, size_t size)
{
    send_text_to_sink(to, "\"", 1);
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"' || text[i] == '\\')
            send_text_to_sink(to, "\\", 1);
        send_text_to_sink(to, &text[i], 1);
    }
    send_text_to_sink(to, "\"", 1);
}

static void print_member_as_json(const domi_report *to, const char *name, const char *text)
{
    print_text_to_sink(to, ",\"%s\":", name);
    print_string_as_json(to, text, strlen(text));
}

static void print_change_as_json(const domi_report *to, const char *change)
{
    print_text_to_sink(to, ",\"change\":[");
    for (const char *line = change; *line != '\0';) {
        size_t size = strcspn(line, "\n");
        if (line != change)
            send_text_to_sink(to, ",", 1);
        print_string_as_json(to, line, size);
        line += size + (line[size] == '\n');
    }
    print_text_to_sink(to, "]");
}

static void print_finding_as_json(const domi_report *to, const domi_finding *finding)
{
    print_text_to_sink(to, "{\"rule\":\"%s\",\"harm\":\"%s\"", finding->rule->name,
                       domi_word_of_harm(finding->rule->harm));
    print_member_as_json(to, "sentence", finding->sentence);
    print_member_as_json(to, "limit", finding->rule->limit);
    print_member_as_json(to, "keys", finding->rule->keys);
    print_change_as_json(to, finding->change);
    print_text_to_sink(to, "}");
}

void domi_report_findings_as_json(const domi_report *to, const domi_span *span,
                                  const domi_finding *findings, uint32_t count)
{
    const domi_look *look = span->after;

    print_text_to_sink(to, "{\"program\":");
    print_string_as_json(to, look->program, strlen(look->program));
    print_text_to_sink(to, ",\"pid\":%" PRIu64 ",\"seconds\":%.3f,\"findings\":[", look->pid,
                       span->seconds);
    for (uint32_t i = 0; i < count; i++) {
        if (i != 0)
            send_text_to_sink(to, ",", 1);
        print_finding_as_json(to, &findings[i]);
    }
    print_text_to_sink(to, "]}\n");
}
