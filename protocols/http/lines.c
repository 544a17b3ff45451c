/* Reads the heads of messages, line by line. A line ends only with CR LF, and no control character
 * but a tab in a field is allowed, so the end of a line is found without parsing the line. */
#include "protocols/http/chars.h"
#include "protocols/http/heads.h"

/* Bytes of a request line without its target, at most: the method, two spaces and the version. */
#define AROUND_TARGET 40u

/* Returns whether the name may be one of a field that domi_http_read_field_of_head() handles; most
 * fields are for the user alone. The names of the fields that it handles all differ in their size.
 */
static bool may_stage_have_to_read_field(const char *name, size_t size)
{
    static const char firsts[] = {
        [2] = 't', [4] = 'h', [6] = 'e', [7] = 'u', [10] = 'c', [14] = 'c', [17] = 't'};

    return size < sizeof firsts && firsts[size] == (*name | 0x20);
}

/* Read the field that stands in bytes[at, end), with CR LF behind it. */
static int read_field_line_of_head(domi_http_head *head, const domi_http_limits *limits,
                                   const char *bytes, size_t size, size_t end)
{
    const char *name = bytes + head->at;
    size_t name_size = domi_http_count_token_bytes(name, size - head->at);
    const char *value = name + name_size + 1;
    size_t value_size = end - head->at - name_size - 1;

    if (head->fields == limits->fields_max)
        return domi_http_refuse_head(head, 431);
    if (name_size == 0 || name_size == end - head->at || name[name_size] != ':')
        return domi_http_refuse_head(head, 400);
    head->fields++;
    if (!may_stage_have_to_read_field(name, name_size))
        return 0;
    return domi_http_read_field_of_head(head, bytes, name, name_size, value, value_size);
}

static int read_line_of_head(domi_http_head *head, const domi_http_limits *limits,
                             const char *bytes, size_t size, size_t end)
{
    int error = 0;

    if (head->begun)
        return read_field_line_of_head(head, limits, bytes, size, end);
    if (head->kind == DOMI_HTTP_REQUEST)
        error = domi_http_read_request_line(head, limits, bytes, end);
    else
        error = domi_http_read_status_line(head, bytes, end);
    head->begun = true;
    head->fields_at = (uint32_t)end + 2;
    return error;
}

/* Returns the status with which a head is refused whose line is too long. */
static unsigned status_for_too_long_line(const domi_http_head *head)
{
    return head->begun || head->kind != DOMI_HTTP_REQUEST ? 431 : 414;
}

/* Find the CR that ends the line which begins at `at`. Returns 1 when the CR is at `looked` and LF
 * follows; 0 when more bytes are needed; or a negative errno. */
static int find_end_of_line(domi_http_head *head, const domi_http_limits *limits, const char *bytes,
                            size_t size)
{
    size_t most = limits->head_max - 2;

    if (!head->begun && head->kind == DOMI_HTTP_REQUEST &&
        limits->target_max + AROUND_TARGET < most)
        most = limits->target_max + AROUND_TARGET;
    for (;;) {
        size_t end =
            head->looked + domi_http_count_text_bytes(bytes + head->looked, size - head->looked);
        head->looked = (uint32_t)end;
        if (end > most)
            return domi_http_refuse_head(head, status_for_too_long_line(head));
        if (end == size)
            return 0;
        if (bytes[end] == '\r')
            break;
        if (bytes[end] != '\t')
            return domi_http_refuse_head(head, 400);
        head->looked++;
    }
    if (head->looked + 1 == size)
        return 0;
    return bytes[head->looked + 1] == '\n' ? 1 : domi_http_refuse_head(head, 400);
}

int domi_http_read_head(domi_http_head *head, const domi_http_limits *limits, const char *bytes,
                        size_t size)
{
    if (head->kind == DOMI_HTTP_TRAILERS)
        head->begun = true;
    for (;;) {
        int result = find_end_of_line(head, limits, bytes, size);
        if (result <= 0)
            return result;
        size_t end = head->looked;
        if (end == head->at && head->begun)
            break;
        result = read_line_of_head(head, limits, bytes, size, end);
        if (result < 0)
            return result;
        head->at = head->looked = (uint32_t)end + 2;
    }
    int error = domi_http_check_head_as_a_whole(head, bytes);
    return error != 0 ? error : (int)head->looked + 2;
}
