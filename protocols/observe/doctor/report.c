/* Writes the reports of the doctor (report.h). All texts of findings are printable ASCII, because
 * those of looks are (domi_look_copy_name()). */
#include "protocols/observe/doctor/report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void put_text(const domi_report *to, const char *text, size_t size)
{
    if (size != 0)
        to->sink(to->context, text, size);
}

static void print_text(const domi_report *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void print_text(const domi_report *to, const char *format, ...)
{
    char text[2048];
    va_list arguments;

    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (size > 0)
        put_text(to, text, (size_t)size < sizeof text ? (size_t)size : sizeof text - 1);
}

const char *domi_harm_name(domi_harm harm)
{
    return harm == DOMI_HARM_LOSS ? "loss" : harm == DOMI_HARM_DELAY ? "delay" : "cost";
}

/* --- text ------------------------------------------------------------------------------------- */

void domi_report_finding(const domi_report *to, const domi_finding *finding)
{
    const char *line = finding->change;

    print_text(to, "\n%s (%s)\n  %s\n  %s\n", finding->rule->name,
               domi_harm_name(finding->rule->harm), finding->sentence, finding->rule->limit);
    while (*line != '\0') {
        size_t size = strcspn(line, "\n");
        print_text(to, "    %.*s\n", (int)size, line);
        line += size + (line[size] == '\n');
    }
}

void domi_report_text(const domi_report *to, const domi_span *span, const domi_finding *findings,
                      uint32_t count)
{
    const domi_look *look = span->after;

    print_text(to, "%s (pid %" PRIu64 "), %.1f s: ", look->program, look->pid, span->seconds);
    if (count == 0)
        print_text(to, "nothing stands out\n");
    else
        print_text(to, "%" PRIu32 " %s\n", count, count == 1 ? "finding" : "findings");
    for (uint32_t i = 0; i < count; i++)
        domi_report_finding(to, &findings[i]);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void print_string(const domi_report *to, const char *text, size_t size)
{
    put_text(to, "\"", 1);
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"' || text[i] == '\\')
            put_text(to, "\\", 1);
        put_text(to, &text[i], 1);
    }
    put_text(to, "\"", 1);
}

static void print_member(const domi_report *to, const char *name, const char *text)
{
    print_text(to, ",\"%s\":", name);
    print_string(to, text, strlen(text));
}

static void print_change(const domi_report *to, const char *change)
{
    print_text(to, ",\"change\":[");
    for (const char *line = change; *line != '\0';) {
        size_t size = strcspn(line, "\n");
        if (line != change)
            put_text(to, ",", 1);
        print_string(to, line, size);
        line += size + (line[size] == '\n');
    }
    print_text(to, "]");
}

static void print_object(const domi_report *to, const domi_finding *finding)
{
    print_text(to, "{\"rule\":\"%s\",\"harm\":\"%s\"", finding->rule->name,
               domi_harm_name(finding->rule->harm));
    print_member(to, "sentence", finding->sentence);
    print_member(to, "limit", finding->rule->limit);
    print_member(to, "keys", finding->rule->keys);
    print_change(to, finding->change);
    print_text(to, "}");
}

void domi_report_json(const domi_report *to, const domi_span *span, const domi_finding *findings,
                      uint32_t count)
{
    const domi_look *look = span->after;

    print_text(to, "{\"program\":");
    print_string(to, look->program, strlen(look->program));
    print_text(to, ",\"pid\":%" PRIu64 ",\"seconds\":%.3f,\"findings\":[", look->pid,
               span->seconds);
    for (uint32_t i = 0; i < count; i++) {
        if (i != 0)
            put_text(to, ",", 1);
        print_object(to, &findings[i]);
    }
    print_text(to, "]}\n");
}
