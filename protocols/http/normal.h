/* The normal form of paths (RFC 3986 6.2.2). Escapes of letters, digits and "-._~" mean the same as
 * these bytes, and the digits of an escape may be small or capital, so one path can be written in
 * many ways. Code that compares paths needs only one of them: bytes that need no escape have none,
 * and the digits of all other escapes are capitals. Segments "." and ".." stay, with no dot
 * escaped, and so does a '%' without two digits behind it. */
#ifndef DOMI_PROTOCOLS_HTTP_NORMAL_H
#define DOMI_PROTOCOLS_HTTP_NORMAL_H

#include <stddef.h>

/* Change the path of a target, which may be a whole URL, to the normal form in place. The query
 * stays as it is. Returns the bytes of the new target. Decoding gives the same bytes as before, and
 * a second call changes nothing. */
size_t domi_http_normalize_target(char *target, size_t size);

#endif
