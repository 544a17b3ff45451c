/* The normal form of paths (RFC 3986 6.2.2). Escapes of letters, digits and "-._~" mean the same as
 * these bytes, and the digits of an escape may be small or capital, so that one path can be written
 * in many ways. Whoever compares paths has to see one of them: bytes that need no escape have none,
 * and the digits of all others are capitals. Segments "." and ".." stay, with no dot escaped, and
 * so does a '%' without two digits behind it. */
#ifndef DOMI_PROTOCOLS_HTTP_NORMAL_H
#define DOMI_PROTOCOLS_HTTP_NORMAL_H

#include <stddef.h>

/* Bring the path of a target, which may be a whole address, into the normal form where it is. The
 * query is left as it is. Returns the bytes of the target that are left. Whoever
 * decodes them gets the same bytes as before, and doing it twice changes nothing more. */
size_t domi_http_normalize_target(char *target, size_t size);

#endif
