/* Looks whether bytes are UTF-8 (RFC 3629), as they come: in pieces that are cut anywhere. */
#ifndef DOMI_PROTOCOLS_HTTP_WEBSOCKET_UTF8_H
#define DOMI_PROTOCOLS_HTTP_WEBSOCKET_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place in a text; `{0}` begins one. */
typedef struct domi_utf8 {
    uint8_t left; /* bytes that the character has yet to come; 0: between two */
    uint8_t low;  /* the range of the next of them */
    uint8_t high;
} domi_utf8;

/* Go on with `size` bytes. Returns false at the first byte that no text can have there. */
bool domi_utf8_go_on(domi_utf8 *at, const char *bytes, size_t size);

/* Returns whether these bytes are a whole text. */
static inline bool domi_utf8_is_text(const char *bytes, size_t size)
{
    domi_utf8 at = {0};

    return domi_utf8_go_on(&at, bytes, size) && at.left == 0;
}

#endif
