/* Addresses of HTTP: "http://host:port/path?query" taken apart, and references resolved.
 *
 * A text that is no such address is refused, and not repaired: a host is a name, an IPv4 address of
 * four numbers or "[IPv6]", a port is 1..65535, no byte is a space, a control character or beyond
 * ASCII, and nothing stands for a user's name. So no text of a stranger can end a line of a
 * request, or name another host than it shows.
 *
 * Thread-safety: any thread. */
#ifndef DOMUS_HTTP_URL_H
#define DOMUS_HTTP_URL_H

#include <domus/slice.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_HTTP_URL_MAX  60000u /* most bytes of an address of HTTP */
#define DOMUS_HTTP_HOST_MAX 255u   /* most bytes of the host of an address */

/* An address that was taken apart. `host` and `target` point into its text. */
typedef struct domus_http_url {
    const char *host; /* the host as it was written; an IPv6 address has its brackets */
    uint32_t host_size;
    uint16_t port; /* the port; if none is written, 80 with http and 443 with https */
    bool secure;   /* whether the scheme is https */
    /* The path and the query, without a fragment. If the path is empty, the target has no '/' at
     * its start: it is empty, or begins with '?'. */
    const char *target;
    uint32_t target_size;
} domus_http_url;

/* Take an address apart. Schemes are "http" and "https", in any case.
 *
 * Returns 0; -EPROTONOSUPPORT for another scheme; -EMSGSIZE for an address or a host that is too
 * long; -EINVAL for a text that is no address. */
DOMUS_API int domus_http_url_parse(const char *text, size_t size, domus_http_url *ret_url);

/* Returns whether two addresses have the same origin: scheme, host and port. */
DOMUS_API bool domus_http_url_same_origin(const domus_http_url *one, const domus_http_url *other);

/* Append the address that `reference` means in a document of the address `base` (RFC 3986 5.2),
 * such as the value of a field Location. Neither is taken for an address of HTTP here: what was
 * appended may have any scheme.
 *
 * Returns as domus_append(); -EINVAL for a byte that is no visible one of ASCII, for a base
 * without a scheme, and for what stands before a ':' and is no scheme; -EMSGSIZE for a text
 * that is too long. */
DOMUS_API int domus_http_url_resolve(const char *base, size_t base_size, const char *reference,
                                     size_t reference_size, domus_appender *to);

#ifdef __cplusplus
}
#endif

#endif
