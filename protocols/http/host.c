/* Finds out whether the host that a request names is this machine itself (localhost). */
#include <domus/endpoint.h>
#include <domus/http.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define ADDRESS_MAX 64 /* bytes of an address as text with its port and a zero, at most */

/* Returns whether a host without its port is "localhost" or ends with ".localhost", which browsers
 * take for this machine. */
static bool is_name_of_localhost(const char *host, size_t size)
{
    static const char name[] = "localhost";
    const size_t length = sizeof name - 1;

    if (size < length || strncasecmp(host + size - length, name, length) != 0)
        return false;
    return size == length || host[size - length - 1] == '.';
}

bool domus_http_host_is_loopback(domus_slice host)
{
    const char *name = domus_slice_data(host);
    const char *end = host.size != 0 ? memchr(name, *name == '[' ? ']' : ':', host.size) : NULL;
    size_t bare = end != NULL ? (size_t)(end - name) + (*name == '[') : host.size;
    domus_endpoint named;
    char text[ADDRESS_MAX];

    if (is_name_of_localhost(name, bare))
        return true;
    int length = snprintf(text, sizeof text, "%.*s:1", (int)bare, name);
    return length < (int)sizeof text && domus_endpoint_parse(text, &named) == 0 &&
           domus_endpoint_is_loopback(&named);
}
