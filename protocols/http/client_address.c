/* Finds the address of the client behind a request, also behind trusted proxies
 * (client_address.h). */
#include "protocols/http/client_address.h"
#include "protocols/http/fields.h"

#include <stdio.h>
#include <sys/socket.h>

#define TEXT_MAX    64u                 /* bytes of an address as text with its port, at most */
#define OF_LOOPBACK (UINT64_C(1) << 32) /* the number for ::1, which no IPv4 address has */

/* Read an address with or without port; an IPv6 address may stand in brackets. */
static bool read_address_from_text(const char *text, size_t size, domus_endpoint *ret_client)
{
    char whole[TEXT_MAX + 8];
    int length = (int)size;

    if (size == 0 || size > TEXT_MAX || memchr(text, '\0', size) != NULL)
        return false;
    const char *colon = memchr(text, ':', size);
    bool has_two =
        colon != NULL && memchr(colon + 1, ':', size - (size_t)(colon + 1 - text)) != NULL;
    if (*text == '[')
        (void)snprintf(whole, sizeof whole, "%.*s%s", length, text,
                       text[size - 1] == ']' ? ":1" : "");
    else if (has_two)
        (void)snprintf(whole, sizeof whole, "[%.*s]:1", length, text);
    else
        (void)snprintf(whole, sizeof whole, "%.*s%s", length, text, colon == NULL ? ":1" : "");
    return domus_endpoint_parse(whole, ret_client) == 0 && ret_client->family != AF_UNIX;
}

/* Find the address at place `last` from the end of all lists X-Forwarded-For; the first address if
 * the lists have fewer. */
static bool find_address_in_forwarded_for(domus_slice fields, uint32_t last,
                                          domus_endpoint *ret_client)
{
    domi_http_elements walk = {.fields = fields, .name = "x-forwarded-for"};
    uint32_t count = 0;
    const char *element;
    size_t size;

    while (domi_http_next_element_of_fields(&walk, &element, &size))
        count++;
    if (count == 0)
        return false;
    walk = (domi_http_elements){.fields = fields, .name = "x-forwarded-for"};
    for (uint32_t i = 0; i + last <= count || i == 0; i++) {
        if (!domi_http_next_element_of_fields(&walk, &element, &size))
            return false;
    }
    return read_address_from_text(element, size, ret_client);
}

static void unmap_ipv4_address(domus_endpoint *client)
{
    static const unsigned char prefix[12] = {[10] = 0xff, [11] = 0xff};

    if (client->family != AF_INET6 || memcmp(client->bytes, prefix, sizeof prefix) != 0)
        return;
    client->family = AF_INET;
    client->size = 4;
    memmove(client->bytes, client->bytes + sizeof prefix, 4);
    memset(client->bytes + 4, 0, sizeof prefix);
}

void domi_http_find_client_address(const domus_http_exchange *exchange, domus_slice fields,
                                   uint32_t proxies, domus_endpoint *ret_client)
{
    if (proxies == 0 || !find_address_in_forwarded_for(fields, proxies, ret_client))
        *ret_client = *exchange->peer;
    ret_client->port = 0;
    unmap_ipv4_address(ret_client);
}

/* Returns the first bytes of an address as a number, the first byte highest. */
static uint64_t read_first_bytes_as_number(const unsigned char *bytes, uint32_t size)
{
    uint64_t number = 0;

    for (uint32_t i = 0; i < size; i++)
        number = number << 8 | bytes[i];
    return number;
}

uint64_t domus_http_client_number(const domus_http_exchange *exchange,
                                  const domus_http_request *request, uint32_t proxies)
{
    domus_endpoint client;

    domi_http_find_client_address(exchange, request->fields, proxies, &client);
    if (client.family == AF_INET)
        return read_first_bytes_as_number(client.bytes, 4);
    if (client.family != AF_INET6)
        return 0;
    uint64_t network = read_first_bytes_as_number(client.bytes, 8);
    return network != 0 ? network : OF_LOOPBACK;
}
