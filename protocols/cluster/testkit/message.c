/* Messages of the simulated cluster, which count their users; and subjects: their form, and the
 * patterns that match them. A pattern has "*" for one token, and ">" at its end for one or more
 * tokens. */
#include "protocols/cluster/testkit/sim.h"

#include <stdlib.h>
#include <string.h>

static char *put_text_and_zero(char *to, const char *text, size_t size)
{
    if (size != 0)
        memcpy(to, text, size);
    to[size] = '\0';
    return to + size + 1;
}

domi_sim_message *domi_sim_message_new(const domi_sim_parts *parts)
{
    size_t match_size = parts->match != NULL ? strlen(parts->match) : 0;
    size_t size = (size_t)parts->subject_size + parts->reply_size + match_size +
                  parts->headers_size + parts->payload_size + 5;
    domi_sim_message *message = calloc(1, sizeof *message + size);

    if (message == NULL)
        return NULL;
    message->references = 1;
    message->node = DOMUS_EVERY;
    message->status = parts->status;
    message->headers_size = parts->headers_size;
    message->payload_size = parts->payload_size;
    char *at = message->bytes;
    message->subject = message->match = at;
    at = put_text_and_zero(at, parts->subject, parts->subject_size);
    message->reply = at;
    at = put_text_and_zero(at, parts->reply, parts->reply_size);
    if (match_size != 0) {
        message->match = at;
        at = put_text_and_zero(at, parts->match, match_size);
    }
    message->headers = at;
    at = put_text_and_zero(at, parts->headers, parts->headers_size);
    message->payload = at;
    (void)put_text_and_zero(at, parts->payload, parts->payload_size);
    return message;
}

domi_sim_message *domi_sim_message_keep(domi_sim_message *message)
{
    message->references++;
    return message;
}

void domi_sim_message_drop(domi_sim_message *message)
{
    if (message != NULL && --message->references == 0)
        free(message);
}

bool domi_sim_is_valid_queue_name(const char *text, size_t size)
{
    if (size == 0 || size > DOMUS_NATS_SUBJECT_MAX)
        return false;
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f)
            return false;
    }
    return true;
}

/* Returns whether a token of a subject is valid: it has bytes, and, if `wildcards` is set, only the
 * last token is ">". */
static bool is_valid_token_of_subject(const char *text, size_t size, bool is_last, bool wildcards)
{
    if (size == 0)
        return false;
    if (!wildcards || size != 1)
        return true;
    return *text != '>' || is_last;
}

bool domi_sim_is_valid_subject(const char *text, size_t size, bool wildcards)
{
    size_t begin = 0;

    if (!domi_sim_is_valid_queue_name(text, size))
        return false;
    for (size_t i = 0; i <= size; i++) {
        if (i < size && text[i] != '.')
            continue;
        if (!is_valid_token_of_subject(text + begin, i - begin, i == size, wildcards))
            return false;
        begin = i + 1;
    }
    return true;
}

/* Tests with many seeds spend much of their time in this function, and most subjects differ from
 * the pattern in their first bytes, so these are compared first. */
bool domus_testkit_cluster_matches(const char *pattern, const char *subject)
{
    while (*pattern != '\0' && *subject != '\0') {
        if (*subject == '.')
            return false; /* an empty token of a subject matches nothing */
        if (*pattern == '>' && pattern[1] == '\0')
            return true;
        if (*pattern == '*' && (pattern[1] == '.' || pattern[1] == '\0')) {
            pattern++;
            while (*subject != '.' && *subject != '\0')
                subject++;
        } else {
            for (; *pattern != '.' && *pattern != '\0'; pattern++, subject++) {
                if (*pattern != *subject)
                    return false;
            }
        }
        if (*pattern == '\0' || *subject == '\0')
            return *pattern == *subject;
        if (*pattern++ != *subject++)
            return false;
    }
    return false;
}

int64_t domi_sim_find_header(const char *headers, uint32_t size, const char *name,
                             const char **ret_value)
{
    size_t name_size = strlen(name);
    const char *end = headers + size;

    for (const char *line = headers; line < end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        if (next == NULL)
            return -1;
        const char *value = line + name_size + 1;
        if (value <= next && memcmp(line, name, name_size) == 0 && line[name_size] == ':') {
            const char *last = next > value && next[-1] == '\r' ? next - 1 : next;
            while (value < last && *value == ' ')
                value++;
            while (last > value && last[-1] == ' ')
                last--;
            *ret_value = value;
            return last - value;
        }
        line = next + 1;
    }
    return -1;
}
