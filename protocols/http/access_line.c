/* Writes lines of an access log. Texts of strangers are escaped and cut, so a line has room for all
 * of its parts (the assertion below). Any thread. */
#include "protocols/http/access.h"
#include "protocols/http/texts.h"
#include "protocols/http/write.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define TIME_ROOM 64u
#define FIXED_MAX 1024u /* bytes of a line of the log without the texts of strangers, at most */

static_assert(DOMUS_HTTP_ACCESS_TARGET_MAX + 3 * DOMUS_HTTP_ACCESS_TEXT_MAX + FIXED_MAX <=
                  DOMI_HTTP_ACCESS_LINE_MAX,
              "the room of a line");

/* The position at which a line of the log is written, and how texts in it are escaped. */
typedef struct line {
    char *to;
    size_t size;
    bool is_json;
} line;

static void put_string_into_line(line *at, const char *text)
{
    size_t size = strlen(text);

    memcpy(at->to + at->size, text, size);
    at->size += size;
}

static void put_number_into_line(line *at, uint64_t number)
{
    at->size = (size_t)(domi_http_put_decimal_number(at->to + at->size, number) - at->to);
}

/* Escape a text for the log as Apache does: \" and \\, and \xHH for all bytes that are not
 * printable, and for spaces if spaces divide the line's fields. Returns the bytes written. */
static size_t escape_text_for_log(const char *bytes, size_t size, bool with_spaces, char *to,
                                  size_t room)
{
    static const char digits[] = "0123456789abcdef";
    size_t written = 0;

    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        bool is_quoted = byte == '"' || byte == '\\';
        bool is_plain = byte > 0x20 && byte < 0x7f;
        if (byte == ' ' && !with_spaces)
            is_plain = true;
        size_t more = is_quoted ? 2 : is_plain ? 1 : 4;
        if (more > room - written)
            break;
        if (more == 4) {
            to[written] = '\\';
            to[written + 1] = 'x';
            to[written + 2] = digits[byte >> 4];
            to[written + 3] = digits[byte & 15];
        } else {
            to[written] = '\\';
            to[written + more - 1] = (char)byte;
        }
        written += more;
    }
    return written;
}

/* Write a text of a stranger, escaped, of which at most `most` bytes are shown. */
static void put_escaped_text_into_line(line *at, const char *text, size_t size, bool with_spaces,
                                       size_t most)
{
    char *to = at->to + at->size;

    at->size += at->is_json ? domi_http_escape_text_for_json(text, size, to, most)
                            : escape_text_for_log(text, size, with_spaces, to, most);
}

/* Write the address of the client without its port; "-" if the address is not known. */
static void put_client_address_into_line(line *at, const domus_endpoint *client)
{
    char text[DOMUS_ENDPOINT_TEXT_MAX];
    const char *from = text;

    if (client->family != AF_INET && client->family != AF_INET6) {
        put_string_into_line(at, "-");
        return;
    }
    (void)domus_endpoint_text(client, text, sizeof text);
    char *colon = strrchr(text, ':');
    if (colon != NULL)
        *colon = '\0';
    if (*from == '[') {
        from++;
        text[strlen(text) - 1] = '\0';
    }
    put_string_into_line(at, from);
}

static const char *method_name_of_exchange_or_dash(const domus_http_exchange *exchange)
{
    const char *name = domus_http_method_name((domus_http_method)exchange->method);

    return name != NULL ? name : "-";
}

static unsigned status_of_exchange_for_log(const domus_http_exchange *exchange)
{
    return exchange->status != 0 ? exchange->status : 499;
}

/* Write the duration of the exchange in seconds, with six decimals. */
static void put_duration_into_line(line *at, const domus_http_exchange *exchange)
{
    uint64_t time_us = exchange->begun_ns != 0 && exchange->ended_ns > exchange->begun_ns
                           ? (exchange->ended_ns - exchange->begun_ns) / 1000
                           : 0;

    put_number_into_line(at, time_us / 1000000);
    char *micros = at->to + at->size;
    /* the first digit that is written, a 1, is replaced by the decimal point */
    put_number_into_line(at, 1000000 + time_us % 1000000);
    *micros = '.';
}

static void write_time_for_log(int64_t utc_s, bool is_json, char text[TIME_ROOM])
{
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t)utc_s;
    struct tm utc = {.tm_mday = 1};

    (void)gmtime_r(&seconds, &utc);
    if (is_json)
        (void)snprintf(text, TIME_ROOM, "%04d-%02d-%02dT%02d:%02d:%02dZ", utc.tm_year + 1900,
                       utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
    else
        (void)snprintf(text, TIME_ROOM, "%02d/%s/%04d:%02d:%02d:%02d +0000", utc.tm_mday,
                       months[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

/* Write the time of the line. Each thread makes the text of the time once a second for each
 * format. */
static void put_time_into_line(line *at, int64_t utc_s)
{
    static _Thread_local int64_t seconds[2] = {INT64_MIN, INT64_MIN};
    static _Thread_local char texts[2][TIME_ROOM];

    if (seconds[at->is_json] != utc_s) {
        write_time_for_log(utc_s, at->is_json, texts[at->is_json]);
        seconds[at->is_json] = utc_s;
    }
    put_string_into_line(at, texts[at->is_json]);
}

/* --- the formats of lines --------------------------------------------------------------------- */

/* Write a text in double quotes; "-" stands for an empty text. */
static void put_quoted_text_into_line(line *at, const char *text, size_t size)
{
    put_string_into_line(at, " \"");
    put_escaped_text_into_line(at, size != 0 ? text : "-", size != 0 ? size : 1, false,
                               DOMUS_HTTP_ACCESS_TEXT_MAX);
    put_string_into_line(at, "\"");
}

static void write_line_in_combined_format(line *at, const domus_http_access *access,
                                          const domus_http_exchange *exchange,
                                          const domi_http_access_note *note, int64_t utc_s)
{
    const char *texts = note != NULL ? note->texts : "";
    const char *user = exchange->user[0] != '\0' ? exchange->user : "-";

    put_client_address_into_line(at, note != NULL ? &note->client : exchange->peer);
    put_string_into_line(at, " - ");
    put_escaped_text_into_line(at, user, strlen(user), true, DOMUS_HTTP_ACCESS_TEXT_MAX);
    put_string_into_line(at, " [");
    put_time_into_line(at, utc_s);
    put_string_into_line(at, "] \"");
    if (note != NULL) {
        put_string_into_line(at, method_name_of_exchange_or_dash(exchange));
        put_string_into_line(at, " ");
        put_escaped_text_into_line(at, texts, note->target_size, true,
                                   domi_http_access_max_target_shown(access));
        put_string_into_line(at, " ");
        put_string_into_line(at, exchange->via);
    } else {
        put_string_into_line(at, "-");
    }
    put_string_into_line(at, "\" ");
    put_number_into_line(at, status_of_exchange_for_log(exchange));
    put_string_into_line(at, " ");
    put_number_into_line(at, exchange->sent);
    texts += note != NULL ? note->target_size : 0;
    put_quoted_text_into_line(at, texts, note != NULL ? note->referer_size : 0);
    texts += note != NULL ? note->referer_size : 0;
    put_quoted_text_into_line(at, texts, note != NULL ? note->agent_size : 0);
    if (access->format == DOMUS_HTTP_ACCESS_EXTENDED) {
        put_string_into_line(at, " ");
        put_duration_into_line(at, exchange);
        put_string_into_line(at, " ");
        put_string_into_line(at, exchange->trace.id[0] != '\0' ? exchange->trace.id : "-");
    }
}

/* Write a member of a JSON object whose value is a text, unless the text is empty. */
static void put_json_member_into_line(line *at, const char *name, const char *text, size_t size,
                                      size_t most)
{
    if (size == 0)
        return;
    put_string_into_line(at, ",\"");
    put_string_into_line(at, name);
    put_string_into_line(at, "\":\"");
    put_escaped_text_into_line(at, text, size, false, most);
    put_string_into_line(at, "\"");
}

static void write_line_in_json_format(line *at, const domus_http_access *access,
                                      const domus_http_exchange *exchange,
                                      const domi_http_access_note *note, int64_t utc_s)
{
    const size_t most = DOMUS_HTTP_ACCESS_TEXT_MAX;
    char parent[DOMUS_HTTP_TRACEPARENT_SIZE + 1];

    put_string_into_line(at, "{\"time\":\"");
    put_time_into_line(at, utc_s);
    put_string_into_line(at, "\",\"client\":\"");
    put_client_address_into_line(at, note != NULL ? &note->client : exchange->peer);
    put_string_into_line(at, "\"");
    put_json_member_into_line(at, "user", exchange->user, strlen(exchange->user), most);
    if (note != NULL) {
        put_string_into_line(at, ",\"method\":\"");
        put_string_into_line(at, method_name_of_exchange_or_dash(exchange));
        put_string_into_line(at, "\"");
        put_json_member_into_line(at, "target", note->texts, note->target_size,
                                  domi_http_access_max_target_shown(access));
        put_string_into_line(at, ",\"protocol\":\"");
        put_string_into_line(at, exchange->via);
        put_string_into_line(at, "\"");
    }
    put_string_into_line(at, ",\"status\":");
    put_number_into_line(at, status_of_exchange_for_log(exchange));
    const char *error = exchange->error != 0 ? strerrorname_np(-exchange->error) : NULL;
    if (error != NULL)
        put_json_member_into_line(at, "error", error, strlen(error), most);
    put_string_into_line(at, ",\"bytes\":");
    put_number_into_line(at, exchange->sent);
    put_string_into_line(at, ",\"duration\":");
    put_duration_into_line(at, exchange);
    if (note != NULL) {
        const char *referer = note->texts + note->target_size;
        put_json_member_into_line(at, "referer", referer, note->referer_size, most);
        put_json_member_into_line(at, "agent", referer + note->referer_size, note->agent_size,
                                  most);
    }
    put_json_member_into_line(at, "id", exchange->trace.id, strlen(exchange->trace.id), most);
    if (exchange->trace.id[0] != '\0') {
        domus_http_traceparent_write(&exchange->trace, parent);
        parent[3 + 32] = '\0';
        put_json_member_into_line(at, "trace", parent + 3, 32, most);
    }
    put_string_into_line(at, exchange->is_cut ? ",\"cut\":true}" : "}");
}

size_t domi_http_access_write_line(const domus_http_access *access,
                                   const domus_http_exchange *exchange,
                                   const domi_http_access_note *note, int64_t utc_s,
                                   char to[DOMI_HTTP_ACCESS_LINE_MAX])
{
    line at = {.to = to, .is_json = access->format == DOMUS_HTTP_ACCESS_JSON};

    if (at.is_json)
        write_line_in_json_format(&at, access, exchange, note, utc_s);
    else
        write_line_in_combined_format(&at, access, exchange, note, utc_s);
    put_string_into_line(&at, "\n");
    return at.size;
}
