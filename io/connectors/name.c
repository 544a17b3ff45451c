/* Checks the names of hosts, and orders their addresses. A name goes to the C library and from
 * there to files and servers, so only the characters of names are accepted. */
#include "io/connectors/name.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define LABEL_MAX 63u

const domus_type domi_resolved_type = {.name = "domus.resolved"};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_';
}

static char to_lower_case(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* True if the text from `label`, the last label of a host's name, to its end could be a number to
 * the C library. */
static bool could_be_number(const char *label)
{
    if (label[0] == '0' && label[1] == 'x')
        return true;
    while (is_digit(*label))
        label++;
    return *label == '\0';
}

static bool is_host_name(const char *name)
{
    const char *label = name;

    for (const char *at = name;; at++) {
        if (*at == '.' || *at == '\0') {
            if (at == label || at - label > (ptrdiff_t)LABEL_MAX || *label == '-' || at[-1] == '-')
                return false;
            if (*at == '\0')
                return !could_be_number(label);
            label = at + 1;
        } else if (!is_letter(*at) && !is_digit(*at) && *at != '-') {
            return false;
        }
    }
}

static int parse_port(const char *text, uint16_t *ret_port)
{
    uint32_t port = 0;

    if (*text == '\0')
        return -EINVAL;
    for (; is_digit(*text) && port <= UINT16_MAX; text++)
        port = port * 10 + (uint32_t)(*text - '0');
    if (*text != '\0' || port > UINT16_MAX)
        return -EINVAL;
    *ret_port = (uint16_t)port;
    return 0;
}

int domi_name_parse_host_and_port(const char *text, char *ret_name, uint16_t *ret_port)
{
    const char *colon = strrchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : 0;

    if (colon == NULL)
        return -EINVAL;
    bool is_whole = length > 1 && text[length - 1] == '.';
    length -= is_whole;
    if (length > DOMI_HOST_MAX - 1)
        return -ENAMETOOLONG;
    for (size_t i = 0; i < length; i++)
        ret_name[i] = to_lower_case(text[i]);
    ret_name[length] = '\0';
    if (!is_host_name(ret_name))
        return -EINVAL;
    if (is_whole)
        memcpy(ret_name + length, ".", 2);
    return parse_port(colon + 1, ret_port);
}

void domi_name_alternate_address_families(domus_endpoint *found, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        uint32_t other = i;
        while (other < count && found[other].family == found[i - 1].family)
            other++;
        if (other == count)
            return; /* all addresses that are left are of the same family */
        const domus_endpoint next = found[other];
        memmove(&found[i + 1], &found[i], (other - i) * sizeof *found);
        found[i] = next;
    }
}
