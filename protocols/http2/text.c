/* A buffer of bytes that grows, for the texts and fields of HTTP/2. */
#include "protocols/http2/http2.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* bytes that a buffer allocates at first; each further allocation is twice as large */
#define ROOM_LEAST 512u

int domi_h2_append_text(domi_h2_text *text, const void *bytes, size_t size)
{
    if (size > text->room - text->size) {
        size_t room = text->room != 0 ? text->room : ROOM_LEAST;
        while (room - text->size < size)
            room *= 2;
        char *grown = realloc(text->bytes, room);
        if (grown == NULL)
            return -ENOMEM;
        text->bytes = grown;
        text->room = room;
    }
    if (size != 0)
        memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
    return 0;
}

void domi_h2_free_text(domi_h2_text *text)
{
    free(text->bytes);
    *text = (domi_h2_text){NULL, 0, 0};
}
