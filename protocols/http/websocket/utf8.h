/* Checks whether bytes are UTF-8 (RFC 3629) while they come, in pieces that may be cut anywhere. */
#ifndef DOMI_PROTOCOLS_HTTP_WEBSOCKET_UTF8_H
#define DOMI_PROTOCOLS_HTTP_WEBSOCKET_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The state of a check for UTF-8; `{0}` begins a text. */
typedef struct domi_utf8 {
    /* bytes of the current UTF-8 character that have not come; 0: between two characters */
    uint8_t left;
    /* lowest value that the next byte of the character may have; `high` is the highest */
    uint8_t low;
    uint8_t high;
} domi_utf8;

/* Check `size` further bytes of a text. Returns false at the first byte that cannot be UTF-8. */
bool domi_utf8_check_further_bytes(domi_utf8 *at, const char *bytes, size_t size);

/* Returns whether the bytes are a text in UTF-8 whose last character is complete. */
static inline bool domi_utf8_is_complete_text(const char *bytes, size_t size)
{
    domi_utf8 at = {0};

    return domi_utf8_check_further_bytes(&at, bytes, size) && at.left == 0;
}

#endif
