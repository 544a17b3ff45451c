/* The statuses of HTTP and their phrases (RFC 9110). */
#include "protocols/http/write.h"

const char *domus_http_reason(unsigned status)
{
    static const char *const informational[] = {"Continue", "Switching Protocols"};
    static const char *const successful[] = {
        "OK",         "Created",       "Accepted",       "Non-Authoritative Information",
        "No Content", "Reset Content", "Partial Content"};
    static const char *const redirection[] = {
        "Multiple Choices",  "Moved Permanently", "Found", "See Other",
        "Not Modified",      "Use Proxy",         "",      "Temporary Redirect",
        "Permanent Redirect"};
    static const char *const client[] = {"Bad Request",
                                         "Unauthorized",
                                         "Payment Required",
                                         "Forbidden",
                                         "Not Found",
                                         "Method Not Allowed",
                                         "Not Acceptable",
                                         "",
                                         "Request Timeout",
                                         "Conflict",
                                         "Gone",
                                         "Length Required",
                                         "Precondition Failed",
                                         "Content Too Large",
                                         "URI Too Long",
                                         "Unsupported Media Type",
                                         "Range Not Satisfiable",
                                         "Expectation Failed",
                                         "",
                                         "",
                                         "",
                                         "Misdirected Request",
                                         "Unprocessable Content",
                                         "Locked",
                                         "Failed Dependency",
                                         "Too Early",
                                         "Upgrade Required",
                                         "",
                                         "Precondition Required",
                                         "Too Many Requests",
                                         "",
                                         "Request Header Fields Too Large"};
    static const char *const server[] = {"Internal Server Error",
                                         "Not Implemented",
                                         "Bad Gateway",
                                         "Service Unavailable",
                                         "Gateway Timeout",
                                         "HTTP Version Not Supported",
                                         "",
                                         "Insufficient Storage"};
    static const struct {
        const char *const *phrases;
        unsigned count;
    } classes[] = {{informational, sizeof informational / sizeof *informational},
                   {successful, sizeof successful / sizeof *successful},
                   {redirection, sizeof redirection / sizeof *redirection},
                   {client, sizeof client / sizeof *client},
                   {server, sizeof server / sizeof *server}};
    unsigned class = status / 100 - 1;

    if (class >= 5 || status % 100 >= classes[class].count)
        return "";
    return classes[class].phrases[status % 100];
}

char *domi_http_put_status_line(char *to, unsigned status)
{
    const char *reason = domus_http_reason(status);

    if (status == 200)
        return DOMI_HTTP_PUT(to, "HTTP/1.1 200 OK\r\n");
    to = DOMI_HTTP_PUT(to, "HTTP/1.1 ");
    to = domi_http_put_decimal_number(to, status);
    *to++ = ' ';
    to = domi_http_put_bytes(to, reason, strlen(reason));
    return DOMI_HTTP_PUT(to, "\r\n");
}
