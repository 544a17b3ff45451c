/* Reads the start lines of messages: METHOD TARGET VERSION of a request, VERSION CODE REASON of a
 * response. Exactly one space divides the parts, and nothing stands before or behind them. */
#include "protocols/http/chars.h"
#include "protocols/http/heads.h"

#define VERSION_SIZE 8u /* bytes of a version, such as "HTTP/1.1" */

/* Read the version in a start line. Returns 0, or a negative errno. */
static int read_http_version(domi_http_head *head, const char *text)
{
    bool is_version = memcmp(text, "HTTP/", 5) == 0 && text[5] >= '0' && text[5] <= '9' &&
                      text[6] == '.' && text[7] >= '0' && text[7] <= '9';

    if (!is_version)
        return domi_http_refuse_head(head, 400);
    if (text[5] != '1' || text[7] > '1')
        return domi_http_refuse_head(head, 505);
    head->minor = (uint8_t)(text[7] - '0');
    return 0;
}

/* Returns how many bytes the scheme and "://" of a request's target have, if it is a URL; 0 for
 * another form of target. */
static size_t size_of_scheme_in_target(const char *target, size_t size)
{
    if (size > 7 && domi_http_is_same_regardless_of_case(target, "http://", 7))
        return 7;
    return size > 8 && domi_http_is_same_regardless_of_case(target, "https://", 8) ? 8 : 0;
}

/* Check the form of a request's target: a path; "*", for OPTIONS only; or a URL of http, whose host
 * becomes the host of the request. */
static int check_target_of_request(domi_http_head *head, const char *bytes)
{
    const char *target = bytes + head->target_at;
    size_t size = head->target_size;

    if (*target == '/')
        return 0;
    if (size == 1 && *target == '*')
        return head->method == DOMUS_HTTP_OPTIONS ? 0 : domi_http_refuse_head(head, 400);
    size_t scheme = size_of_scheme_in_target(target, size);
    if (scheme == 0)
        return domi_http_refuse_head(head, 400);
    const char *host = target + scheme;
    size_t rest = size - scheme;
    size_t host_size = 0;
    while (host_size < rest && host[host_size] != '/' && host[host_size] != '?')
        host_size++;
    if (!domi_http_is_valid_host(host, host_size))
        return domi_http_refuse_head(head, 400);
    head->host_at = head->target_at + (uint32_t)scheme;
    head->host_size = (uint32_t)host_size;
    return 0;
}

int domi_http_read_request_line(domi_http_head *head, const domi_http_limits *limits,
                                const char *bytes, size_t end)
{
    size_t method = domi_http_count_bytes_of_classes(bytes, end, DOMI_HTTP_TOKEN);

    if (method == 0 || method == end || bytes[method] != ' ')
        return domi_http_refuse_head(head, 400);
    size_t target = domi_http_count_target_bytes(bytes + method + 1, end - method - 1);
    if (target > limits->target_max)
        return domi_http_refuse_head(head, 414);
    if (target == 0 || end != method + 1 + target + 1 + VERSION_SIZE ||
        bytes[method + 1 + target] != ' ')
        return domi_http_refuse_head(head, 400);
    int error = read_http_version(head, bytes + end - VERSION_SIZE);
    if (error != 0)
        return error;
    head->method = (uint8_t)domi_http_find_method(bytes, method);
    if (head->method == DOMUS_HTTP_METHODS || head->method == DOMUS_HTTP_CONNECT)
        return domi_http_refuse_head(head, 501);
    head->target_at = (uint32_t)method + 1;
    head->target_size = (uint32_t)target;
    if (memchr(bytes + head->target_at, '%', target) != NULL)
        head->flags |= DOMI_HTTP_ESCAPED;
    return check_target_of_request(head, bytes);
}

int domi_http_read_status_line(domi_http_head *head, const char *bytes, size_t end)
{
    const char *code = bytes + VERSION_SIZE + 1;

    if (end < VERSION_SIZE + 4 || bytes[VERSION_SIZE] != ' ')
        return domi_http_refuse_head(head, 400);
    int error = read_http_version(head, bytes);
    if (error != 0)
        return error;
    for (int i = 0; i < 3; i++) {
        if (code[i] < '0' || code[i] > '9')
            return domi_http_refuse_head(head, 400);
    }
    if (code[0] < '1' || code[0] > '5' || (end > VERSION_SIZE + 4 && code[3] != ' '))
        return domi_http_refuse_head(head, 400);
    head->code = (uint16_t)((code[0] - '0') * 100 + (code[1] - '0') * 10 + (code[2] - '0'));
    return 0;
}
