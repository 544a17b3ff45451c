/* Reads lists of networks. IPv4 networks are held as IPv6 networks of mapped addresses, so that one
 * comparison serves both, and an IPv4 peer at an IPv6 listener is found, too. */
#include "io/resources/networks.h"

#include <arpa/inet.h>
#include <domus/text.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_MAX 64  /* most characters of a wrong list that the error message shows, escaped */
#define WORD_MAX  63u /* most bytes of the text of one network in a list */

static void map_ipv4_into_ipv6(const void *v4, unsigned char address[16])
{
    memset(address, 0, 10);
    memset(address + 10, 0xff, 2);
    memcpy(address + 12, v4, 4);
}

/* True if the first `bits` bits of both addresses are equal. */
static bool are_first_bits_equal(const unsigned char *one, const unsigned char *other,
                                 uint32_t bits)
{
    uint32_t whole = bits / 8, rest = bits % 8;

    return memcmp(one, other, whole) == 0 &&
           (rest == 0 || ((one[whole] ^ other[whole]) >> (8 - rest)) == 0);
}

/* Read a decimal number of 0..most without leading zeros. Returns -1 if the text is none. */
static int read_number_up_to(const char *text, int most)
{
    int number = 0;

    if (text[0] == '\0' || (text[0] == '0' && text[1] != '\0'))
        return -1;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        number = number * 10 + (*text - '0');
        if (number > most)
            return -1;
    }
    return number;
}

static bool has_address_bits_behind_prefix(const domi_network *network)
{
    static const unsigned char zero[16];
    uint32_t whole = network->prefix / 8, rest = network->prefix % 8;

    if (whole == 16)
        return false;
    unsigned char first = (unsigned char)(network->address[whole] << rest);
    return first != 0 || memcmp(network->address + whole + 1, zero, 15 - whole) != 0;
}

/* Read one network from `word`, which is changed. */
static int read_network(char *word, domi_network *ret_network)
{
    domi_network network = {0};
    unsigned char v4[4];
    int bits = 128;
    char *slash = strchr(word, '/');

    if (strcmp(word, "unix") == 0) {
        *ret_network = (domi_network){.is_unix = true};
        return 0;
    }
    if (slash != NULL)
        *slash = '\0';
    if (inet_pton(AF_INET, word, v4) == 1) {
        map_ipv4_into_ipv6(v4, network.address);
        bits = 32;
    } else if (inet_pton(AF_INET6, word, network.address) != 1) {
        return -EINVAL;
    }
    int prefix = slash != NULL ? read_number_up_to(slash + 1, bits) : bits;
    if (prefix < 0)
        return -EINVAL;
    network.prefix = (uint8_t)(prefix + 128 - bits);
    if (has_address_bits_behind_prefix(&network))
        return -EINVAL;
    *ret_network = network;
    return 0;
}

static int write_networks_error(char *error, size_t size, const char *word, size_t length)
{
    char shown[SHOWN_MAX + 1];

    if (size != 0) {
        (void)domus_text_escape(word, length, shown, sizeof shown);
        snprintf(error, size, "must be networks such as 10.0.0.0/8, ::1 or unix, has '%s'", shown);
    }
    return -EINVAL;
}

int domi_networks_parse_list(const char *text, domi_networks *ret_networks, char *error,
                             size_t size)
{
    domi_networks networks = {0};
    char word[WORD_MAX + 1];

    text += strspn(text, " ");
    while (*text != '\0') {
        const char *begin = text;
        size_t length = strcspn(text, ", ");
        text += length;
        text += strspn(text, " ");
        bool is_followed = *text == ',';
        if (is_followed)
            text += 1 + strspn(text + 1, " ");
        if (length > WORD_MAX || is_followed == (*text == '\0'))
            return write_networks_error(error, size, begin, length);
        memcpy(word, begin, length);
        word[length] = '\0';
        if (networks.count == DOMI_NETWORKS_MAX) {
            if (size != 0)
                snprintf(error, size, "must be at most %u networks", DOMI_NETWORKS_MAX);
            return -EINVAL;
        }
        if (read_network(word, &networks.networks[networks.count++]) != 0)
            return write_networks_error(error, size, begin, length);
    }
    *ret_networks = networks;
    return 0;
}

bool domi_networks_contain_address(const domi_networks *networks,
                                   const struct sockaddr_storage *address)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
    unsigned char bytes[16] = {0};

    if (address->ss_family == AF_INET)
        map_ipv4_into_ipv6(&v4->sin_addr, bytes);
    else if (address->ss_family == AF_INET6)
        memcpy(bytes, &v6->sin6_addr, sizeof bytes);
    else if (address->ss_family != AF_UNIX)
        return false;
    for (uint32_t i = 0; i < networks->count; i++) {
        const domi_network *network = &networks->networks[i];
        if (network->is_unix != (address->ss_family == AF_UNIX))
            continue;
        if (network->is_unix || are_first_bits_equal(bytes, network->address, network->prefix))
            return true;
    }
    return false;
}
