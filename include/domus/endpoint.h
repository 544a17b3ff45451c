/* Endpoints: addresses of sockets, by value. (An address of an actor is a domus_address.)
 *
 * Thread-safety: any thread. */
#ifndef DOMUS_ENDPOINT_H
#define DOMUS_ENDPOINT_H

#include <domus/export.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Size in bytes of the longest text of an endpoint, with the NUL: "unix:" and a path that is
 * escaped. */
#define DOMUS_ENDPOINT_TEXT_MAX 448u

/* An IPv4 or IPv6 address with a port, or the name of a Unix socket. Zeroed, it names nothing, as
 * does a Unix socket without a name. Fields that do not tell two sockets apart are 0. */
typedef struct domus_endpoint {
    /* the family: AF_INET, AF_INET6 or AF_UNIX; 0: the endpoint names nothing */
    uint16_t family;
    uint16_t port; /* the port of IPv4 or IPv6, in the byte order of the host */
    /* index of the interface of a link-local IPv6 address; 0 for any other endpoint */
    uint32_t scope;
    /* number of bytes used in `bytes`: 4, 16, or the length of the Unix name */
    uint16_t size;
    /* the IP address in network byte order, or the name of the Unix socket; an abstract name begins
     * with a 0 byte, and a path has no NUL at its end */
    unsigned char bytes[110];
} domus_endpoint;

/* True if both endpoints name the same socket address. An IPv4 address that is mapped into IPv6
 * (::ffff:a.b.c.d) is the same as the IPv4 address. */
DOMUS_API bool domus_endpoint_is_same(const domus_endpoint *one, const domus_endpoint *other);

/* True for an address in 127.0.0.0/8, also mapped into IPv6, and for ::1. False for a Unix socket.
 */
DOMUS_API bool domus_endpoint_is_loopback(const domus_endpoint *endpoint);

/* A hash that is equal for endpoints that are the same. `key` should be random where strangers
 * choose the endpoints, or they choose ones that collide. `with_port` false leaves the port out,
 * for tables by host. */
DOMUS_API uint64_t domus_endpoint_hash(const domus_endpoint *endpoint, const uint64_t key[2],
                                       bool with_port);

/* Write the endpoint as text, ended by NUL: "127.0.0.1:80", "[fe80::1%2]:80", "unix:/run/a",
 * "unix:@abstract", "unnamed". Bytes of a name that cannot be printed are written as \xHH. `text`
 * may be NULL if `size` is 0. Returns the length of the whole text; more than `size` - 1: it was
 * cut to fit. */
DOMUS_API size_t domus_endpoint_text(const domus_endpoint *endpoint, char *text, size_t size);

/* Read an endpoint from text: "a.b.c.d:port", "[v6]:port", "unix:PATH" or "unix:@NAME". Returns 0;
 * -EINVAL if it is no such text, -ENAMETOOLONG if the name of a Unix socket has too many bytes. */
DOMUS_API int domus_endpoint_parse(const char *text, domus_endpoint *ret_endpoint);

#ifdef __cplusplus
}
#endif

#endif
