/* Lists of a few networks, such as "10.0.0.0/8, ::1, unix": a listener accepts the headers of
 * proxies from these. Any thread. */
#ifndef DOMI_IO_RESOURCES_NETWORKS_H
#define DOMI_IO_RESOURCES_NETWORKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define DOMI_NETWORKS_MAX        32u  /* most networks in one list of networks */
#define DOMI_NETWORKS_TEXT_BYTES 511u /* most bytes of the text of a list of networks */

/* A network of IP addresses. An IPv4 address is kept as the IPv6 address to which it is mapped. */
typedef struct domi_network {
    /* the network's address, in which all bits behind the prefix are 0 */
    unsigned char address[16];
    uint8_t prefix; /* number of bits of the network's address that count: 0..128 */
    bool is_unix;   /* the entry of the list stands for every Unix socket, and has no address */
} domi_network;

typedef struct domi_networks {
    uint32_t count;
    domi_network networks[DOMI_NETWORKS_MAX];
} domi_networks;

/* Read a list of networks: addresses with or without a prefix ("10.0.0.0/8", "192.0.2.1",
 * "fd00::/8") or the word "unix", divided by commas, with or without spaces. Bits behind a prefix
 * have to be 0. An empty text is an empty list. Returns 0; -EINVAL, and then `error` says what is
 * wrong. */
int domi_networks_parse_list(const char *text, domi_networks *ret_networks, char *error,
                             size_t size);

/* True if the address lies in one of the networks of the list. */
bool domi_networks_contain_address(const domi_networks *networks,
                                   const struct sockaddr_storage *address);

#endif
