/* Endpoints are kept as few plain fields and not as a sockaddr, so that two endpoints that name the
 * same are equal byte for byte. Only an IPv4 address that is mapped into IPv6 differs from the
 * plain one. */
#include "io/resources/endpoint.h"

#include "base/siphash.h"
#include "io/resources/socket.h"

#include <domus/text.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define PORT_MAX      65535   /* highest TCP port */
#define UNIX_PREFIX   "unix:" /* prefix of the address of a Unix socket as text */
#define UNIX_NAME_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path))
/* number of bytes of the prefix ::ffff: before an IPv4 address that is mapped into IPv6 */
#define IPV4_IN_IPV6 12u
/* bytes for the text of an IPv6 address with its scope */
#define HOST_TEXT_SIZE (INET6_ADDRSTRLEN + 16)

static_assert(UNIX_NAME_MAX <= sizeof(((domus_endpoint *)NULL)->bytes), "each name fits");
static_assert(sizeof UNIX_PREFIX + 4 * UNIX_NAME_MAX <= DOMUS_ENDPOINT_TEXT_MAX, "each text fits");

/* --- socket addresses ------------------------------------------------------------------------- */

static void read_unix_name(const struct sockaddr_un *address, size_t size, domus_endpoint *endpoint)
{
    size_t length = size - offsetof(struct sockaddr_un, sun_path);

    if (length > UNIX_NAME_MAX)
        length = UNIX_NAME_MAX;
    if (address->sun_path[0] != '\0')
        length = strnlen(address->sun_path, length);
    endpoint->size = (uint16_t)length;
    memcpy(endpoint->bytes, address->sun_path, length);
}

void domi_endpoint_from_socket_address(const struct sockaddr_storage *address, socklen_t size,
                                       domus_endpoint *ret_endpoint)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;

    memset(ret_endpoint, 0, sizeof *ret_endpoint);
    if (size < sizeof address->ss_family)
        return;
    if (address->ss_family == AF_INET && size >= sizeof *v4) {
        *ret_endpoint = (domus_endpoint){.family = AF_INET, .port = ntohs(v4->sin_port), .size = 4};
        memcpy(ret_endpoint->bytes, &v4->sin_addr, 4);
    } else if (address->ss_family == AF_INET6 && size >= sizeof *v6) {
        *ret_endpoint =
            (domus_endpoint){.family = AF_INET6, .port = ntohs(v6->sin6_port), .size = 16};
        ret_endpoint->scope = v6->sin6_scope_id;
        memcpy(ret_endpoint->bytes, &v6->sin6_addr, 16);
    } else if (address->ss_family == AF_UNIX) {
        ret_endpoint->family = AF_UNIX;
        if (size > offsetof(struct sockaddr_un, sun_path))
            read_unix_name((const struct sockaddr_un *)(const void *)address, size, ret_endpoint);
    }
}

static int write_unix_name_to_socket(const domus_endpoint *endpoint,
                                     struct sockaddr_un *ret_address)
{
    bool is_path = endpoint->bytes[0] != '\0';

    if (endpoint->size == 0 || endpoint->size + (is_path ? 1u : 0u) > UNIX_NAME_MAX)
        return -EAFNOSUPPORT;
    ret_address->sun_family = AF_UNIX;
    memcpy(ret_address->sun_path, endpoint->bytes, endpoint->size);
    /* the NUL behind a path counts as a byte of it; in an abstract name every byte belongs to the
     * name */
    return (int)(offsetof(struct sockaddr_un, sun_path) + endpoint->size + (is_path ? 1u : 0u));
}

int domi_endpoint_to_socket_address(const domus_endpoint *endpoint,
                                    struct sockaddr_storage *ret_address)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)ret_address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)ret_address;

    memset(ret_address, 0, sizeof *ret_address);
    if (endpoint->family == AF_INET && endpoint->size == 4) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(endpoint->port);
        memcpy(&v4->sin_addr, endpoint->bytes, 4);
        return (int)sizeof *v4;
    }
    if (endpoint->family == AF_INET6 && endpoint->size == 16) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(endpoint->port);
        v6->sin6_scope_id = endpoint->scope;
        memcpy(&v6->sin6_addr, endpoint->bytes, 16);
        return (int)sizeof *v6;
    }
    if (endpoint->family == AF_UNIX)
        return write_unix_name_to_socket(endpoint, (struct sockaddr_un *)(void *)ret_address);
    return -EAFNOSUPPORT;
}

int domi_endpoint_of_socket(const domi_io *io, int fd, bool is_peer, domus_endpoint *ret_endpoint)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t size = sizeof address;

    memset(ret_endpoint, 0, sizeof *ret_endpoint);
    if (fd < 0)
        return -ENOTCONN;
    if (io->backend->sockets->address(io->ring, fd, is_peer, (struct sockaddr *)&address, &size) !=
        0) {
        if (!is_peer)
            return -ENOTCONN;
        /* unlike getpeername(2), this works also after a reset by the peer */
        domi_socket_find_address_of_peer(io, fd, &address);
        size = address.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                             : sizeof(struct sockaddr_in);
    }
    domi_endpoint_from_socket_address(&address, size, ret_endpoint);
    return ret_endpoint->family != 0 ? 0 : -ENOTCONN;
}

/* --- equality --------------------------------------------------------------------------------- */

/* Replace an IPv4 address that is mapped into IPv6 (::ffff:a.b.c.d) by the plain IPv4 address. */
static domus_endpoint unmap_ipv4_address(const domus_endpoint *endpoint)
{
    static const unsigned char prefix[IPV4_IN_IPV6] = {[10] = 0xff, [11] = 0xff};
    domus_endpoint v4 = {.family = AF_INET, .port = endpoint->port, .size = 4};

    if (endpoint->family != AF_INET6 || memcmp(endpoint->bytes, prefix, sizeof prefix) != 0)
        return *endpoint;
    memcpy(v4.bytes, endpoint->bytes + sizeof prefix, 4);
    return v4;
}

bool domus_endpoint_is_same(const domus_endpoint *one, const domus_endpoint *other)
{
    domus_endpoint a = unmap_ipv4_address(one);
    domus_endpoint b = unmap_ipv4_address(other);

    return a.family == b.family && a.port == b.port && a.scope == b.scope && a.size == b.size &&
           a.size <= sizeof a.bytes && memcmp(a.bytes, b.bytes, a.size) == 0;
}

bool domus_endpoint_is_loopback(const domus_endpoint *endpoint)
{
    static const unsigned char v6[16] = {[15] = 1};
    domus_endpoint plain = unmap_ipv4_address(endpoint);

    if (plain.family == AF_INET)
        return plain.bytes[0] == 127;
    return plain.family == AF_INET6 && memcmp(plain.bytes, v6, sizeof v6) == 0;
}

uint64_t domus_endpoint_hash(const domus_endpoint *endpoint, const uint64_t key[2], bool with_port)
{
    domus_endpoint plain = unmap_ipv4_address(endpoint);
    size_t size = plain.size <= sizeof plain.bytes ? plain.size : sizeof plain.bytes;
    unsigned char bytes[sizeof plain.bytes + 8] = {0};

    memcpy(bytes, &plain.family, 2);
    if (with_port)
        memcpy(bytes + 2, &plain.port, 2);
    memcpy(bytes + 4, &plain.scope, 4);
    memcpy(bytes + 8, plain.bytes, size);
    return domi_siphash(key, bytes, 8 + size);
}

/* --- text ------------------------------------------------------------------------------------- */

static size_t write_host_of_ip_address(const domus_endpoint *endpoint,
                                       char text[HOST_TEXT_SIZE + 16])
{
    char host[HOST_TEXT_SIZE] = "";
    char scope[16] = "";

    (void)inet_ntop(endpoint->family, endpoint->bytes, host, sizeof host);
    if (endpoint->family == AF_INET)
        return (size_t)snprintf(text, HOST_TEXT_SIZE + 16, "%s:%u", host, endpoint->port);
    if (endpoint->scope != 0)
        (void)snprintf(scope, sizeof scope, "%%%u", endpoint->scope);
    return (size_t)snprintf(text, HOST_TEXT_SIZE + 16, "[%s%s]:%u", host, scope, endpoint->port);
}

static size_t write_name_of_unix_socket(const domus_endpoint *endpoint,
                                        char text[DOMUS_ENDPOINT_TEXT_MAX])
{
    size_t skipped = endpoint->bytes[0] == '\0' ? 1 : 0;
    size_t size = endpoint->size <= UNIX_NAME_MAX ? endpoint->size : UNIX_NAME_MAX;
    size_t length =
        (size_t)snprintf(text, DOMUS_ENDPOINT_TEXT_MAX, UNIX_PREFIX "%s", skipped != 0 ? "@" : "");

    return length + domus_text_escape((const char *)endpoint->bytes + skipped, size - skipped,
                                      text + length, DOMUS_ENDPOINT_TEXT_MAX - length);
}

size_t domus_endpoint_text(const domus_endpoint *endpoint, char *text, size_t size)
{
    char whole[DOMUS_ENDPOINT_TEXT_MAX] = "unnamed";
    size_t length = strlen(whole);

    if (endpoint->family == AF_INET || endpoint->family == AF_INET6)
        length = write_host_of_ip_address(endpoint, whole);
    else if (endpoint->family == AF_UNIX && endpoint->size != 0)
        length = write_name_of_unix_socket(endpoint, whole);
    if (size != 0)
        (void)snprintf(text, size, "%s", whole);
    return length;
}

static int parse_name_of_unix_socket(const char *name, domus_endpoint *endpoint)
{
    size_t length = strlen(name);
    bool is_abstract = name[0] == '@';

    if (length == 0 || (is_abstract && length == 1))
        return -EINVAL;
    if (length + (is_abstract ? 0u : 1u) > UNIX_NAME_MAX)
        return -ENAMETOOLONG;
    endpoint->family = AF_UNIX;
    endpoint->size = (uint16_t)length;
    memcpy(endpoint->bytes, name, length);
    if (is_abstract)
        endpoint->bytes[0] = '\0';
    return 0;
}

/* Read decimal digits and nothing else. Returns the number; -1 if the text is not a number, or if
 * it is above `max`. */
static int64_t parse_decimal_number(const char *text, int64_t max)
{
    int64_t number = 0;

    if (*text == '\0')
        return -1;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        number = number * 10 + (*text - '0');
        if (number > max)
            return -1;
    }
    return number;
}

/* Read an IPv6 address as text, "v6" or "v6%scope"; its brackets were removed before. */
static int parse_ipv6_address(char *host, domus_endpoint *endpoint)
{
    char *percent = strchr(host, '%');

    if (percent != NULL) {
        int64_t scope = parse_decimal_number(percent + 1, UINT32_MAX);
        if (scope < 0)
            return -EINVAL;
        endpoint->scope = (uint32_t)scope;
        *percent = '\0';
    }
    endpoint->family = AF_INET6;
    endpoint->size = 16;
    return inet_pton(AF_INET6, host, endpoint->bytes) == 1 ? 0 : -EINVAL;
}

int domus_endpoint_parse(const char *text, domus_endpoint *ret_endpoint)
{
    char host[HOST_TEXT_SIZE];
    const char *colon = strrchr(text, ':');
    domus_endpoint endpoint = {0};
    int result;

    memset(ret_endpoint, 0, sizeof *ret_endpoint);
    if (strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0) {
        result = parse_name_of_unix_socket(text + strlen(UNIX_PREFIX), &endpoint);
    } else {
        size_t length = colon != NULL ? (size_t)(colon - text) : 0;
        int64_t port = colon != NULL ? parse_decimal_number(colon + 1, PORT_MAX) : -1;
        if (length == 0 || length >= sizeof host || port < 0)
            return -EINVAL;
        memcpy(host, text, length);
        host[length] = '\0';
        if (host[0] == '[' && host[length - 1] == ']') {
            host[length - 1] = '\0';
            result = parse_ipv6_address(host + 1, &endpoint);
        } else {
            endpoint.family = AF_INET;
            endpoint.size = 4;
            result = inet_pton(AF_INET, host, endpoint.bytes) == 1 ? 0 : -EINVAL;
        }
        endpoint.port = (uint16_t)port;
    }
    if (result == 0)
        *ret_endpoint = endpoint;
    return result;
}
