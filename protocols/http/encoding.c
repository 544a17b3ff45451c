/* Reads what messages say of encodings. */
#include "protocols/http/encoding.h"

#include "protocols/http/fields.h"

#include <domus/http_media.h>

bool domi_http_wants_gzip(domus_slice fields)
{
    domus_slice value;

    /* Without the field every encoding is allowed, but few of such clients know any. An empty field
     * allows none, where domus_http_accepts() means all. */
    if (!domus_http_field(fields, "accept-encoding", &value) || value.size == 0)
        return false;
    unsigned packed = domus_http_accepts(value, "gzip");
    return packed != 0 && packed >= domus_http_accepts(value, "identity");
}

bool domi_http_is_gzip(domus_slice fields)
{
    domus_slice value;

    if (!domus_http_field(fields, "content-encoding", &value))
        return false;
    return domi_http_slice_is(value, "gzip") || domi_http_slice_is(value, "x-gzip");
}
