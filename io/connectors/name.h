/* Names of hosts: which names a connect accepts, and in which order it tries their addresses. Any
 * thread.
 *
 * A look-up may take long, so runtime does it (domi_runtime_hooks.resolve), and tells the
 * connecting actor by an event when it has ended. */
#ifndef DOMI_IO_CONNECTORS_NAME_H
#define DOMI_IO_CONNECTORS_NAME_H

#include <domus/actor.h>
#include <domus/endpoint.h>

/* most bytes of a host's name: 253, as DNS has it, and a dot at its end */
#define DOMI_HOST_MAX  254u
#define DOMI_FOUND_MAX 16u /* most addresses of a host's name that are used */

typedef struct domi_lookup domi_lookup;

/* A look-up for which a connect waits, and in which it lies. Its links are under the lock of the
 * resolver; its results belong to the connect once resolve() or the event has told it. */
struct domi_lookup {
    domi_lookup *next; /* next look-up that waits for the same host's name */
    /* address of the pointer to this look-up in the resolver's list; NULL: it waits for nothing */
    domi_lookup **place;
    domus_address asker; /* address of the connecting actor that waits for the look-up */
    /* the addresses that the look-up has found, with port 0; freed by domi_memory_free() */
    domus_endpoint *found;
    uint32_t count; /* number of addresses in `found` */
    int error; /* the error of the look-up if it has found no addresses; 0: it has found some */
};

/* The type of the event that tells a connecting actor the end of a look-up. It has no payload. */
extern const domus_type domi_resolved_type;

/* Read "name:port" to `ret_name` (lower case, DOMI_HOST_MAX + 1 bytes) and `ret_port`. Names
 * have letters, digits, '-' and '_' in labels of 1..63 bytes; the last label has a letter that
 * makes it no number, because "127.1" and "0x7f000001" are addresses to the C library. A dot at
 * the end stays: it keeps the C library from completing the name by its search list. Returns 0;
 * -EINVAL; -ENAMETOOLONG. */
int domi_name_parse_host_and_port(const char *text, char *ret_name, uint16_t *ret_port);

/* Put the addresses of a host into the order in which they are tried: as they were found, with the
 * two families in turns, beginning with the family of the first (RFC 8305, section 4). */
void domi_name_alternate_address_families(domus_endpoint *found, uint32_t count);

#endif
