/* Makes and frees the state of zlib by which a client decompresses the body of a response. */
#include "protocols/http/coding.h"

#include <errno.h>
#include <stdlib.h>

#define WINDOW    15
#define GZIP_HEAD 16 /* added to zlib's window bits: selects the format gzip alone */

int domi_http_begin_to_decompress(domi_http_state *state)
{
    struct domi_http_inflater *inflater = calloc(1, sizeof *inflater);

    if (inflater == NULL)
        return -ENOMEM;
    if (inflateInit2(&inflater->zlib, WINDOW + GZIP_HEAD) != Z_OK) {
        free(inflater);
        return -ENOMEM;
    }
    state->inflater = inflater;
    return 0;
}

void domi_http_free_inflater(domi_http_state *state)
{
    if (state->inflater != NULL)
        (void)inflateEnd(&state->inflater->zlib);
    free(state->inflater);
    state->inflater = NULL;
}

bool domi_http_may_compressed_body_end(const domi_http_state *state)
{
    return !state->inflater->is_begun || state->inflater->is_whole;
}
