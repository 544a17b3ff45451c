/* Writes server-sent events, text/event-stream. */
#include "protocols/http/write.h"

#include <domus/http_event.h>

static bool is_single_line(const char *text)
{
    return text == NULL || text[strcspn(text, "\r\n")] == '\0';
}

/* Append the data of an event, with a field for each line of it. CR, LF and CR LF end a line. */
static void add_data_lines_of_event(domus_appender *piece, const char *data)
{
    for (;;) {
        size_t size = strcspn(data, "\r\n");
        (void)domus_append(piece, "data: ", 6);
        if (size != 0)
            (void)domus_append(piece, data, size);
        (void)domus_append(piece, "\n", 1);
        data += size;
        if (*data == '\0')
            return;
        data += data[0] == '\r' && data[1] == '\n' ? 2 : 1;
    }
}

int domus_http_add_event(domus_appender *piece, const domus_http_event *event)
{
    if (!is_single_line(event->name) || !is_single_line(event->id))
        return domi_http_fail_appender_of_fields(piece);
    if (event->name != NULL)
        (void)domus_append_text(piece, "event: %s\n", event->name);
    if (event->id != NULL)
        (void)domus_append_text(piece, "id: %s\n", event->id);
    if (event->retry_ms != 0)
        (void)domus_append_text(piece, "retry: %u\n", event->retry_ms);
    if (event->data != NULL)
        add_data_lines_of_event(piece, event->data);
    return domus_append(piece, "\n", 1);
}

int domus_http_add_heartbeat(domus_appender *piece)
{
    return domus_append(piece, ":\n\n", 3);
}
