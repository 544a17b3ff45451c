/* The protocol of `bench publish`, for its runner and for both servers.
 *
 * A server sends PUBLISH_JOINED on each connection that it has taken as a member. A byte that comes
 * on the first connection is a publication: PUBLISH_BYTES bytes, which follow from that byte, to
 * all connections. */
#ifndef DOMUS_BENCH_PUBLISH_H
#define DOMUS_BENCH_PUBLISH_H

#include <string.h>

#define PUBLISH_BYTES  64
#define PUBLISH_JOINED "j"

static inline void publish_fill_bytes_of_publication(char *bytes, unsigned char which)
{
    memset(bytes, which, PUBLISH_BYTES);
    bytes[0] = '<';
    bytes[PUBLISH_BYTES - 1] = '>';
}

#endif
