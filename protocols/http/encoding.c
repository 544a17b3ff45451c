/* Reads which encodings of bodies a message's fields accept, and which one its own body has. */
#include "protocols/http/coding.h"

#include "protocols/http/fields.h"

#include <domus/http_media.h>

bool domi_http_does_client_prefer_gzip(domus_slice fields)
{
    domus_slice value;

    /* Without the field Accept-Encoding every encoding is allowed, but few clients that leave it
     * out know any, so plain bytes are sent. An empty field allows none, although
     * domus_http_accepts() takes an empty text for all. */
    if (!domus_http_field(fields, "accept-encoding", &value) || value.size == 0)
        return false;
    unsigned packed = domus_http_accepts(value, "gzip");
    return packed != 0 && packed >= domus_http_accepts(value, "identity");
}

bool domi_http_is_body_gzip(domus_slice fields)
{
    domi_http_elements walk = {.fields = fields, .name = "content-encoding"};
    const char *element;
    size_t size;
    bool is_gzip = false;

    while (domi_http_next_element_of_fields(&walk, &element, &size)) {
        if (size == 0)
            continue;
        if (is_gzip) /* the body has another encoding beside gzip, which may be gzip once more */
            return false;
        is_gzip = domi_http_is_word_regardless_of_case(element, size, "gzip") ||
                  domi_http_is_word_regardless_of_case(element, size, "x-gzip");
        if (!is_gzip)
            return false;
    }
    return is_gzip;
}

bool domi_http_do_fields_list_weak_tag(domus_slice fields, const char *etag)
{
    domi_http_elements walk = {.fields = fields, .name = "if-none-match"};
    size_t tag = strlen(etag);
    const char *element;
    size_t size;

    while (domi_http_next_element_of_fields(&walk, &element, &size)) {
        if (size == tag + 2 && memcmp(element, "W/", 2) == 0 && memcmp(element + 2, etag, tag) == 0)
            return true;
    }
    return false;
}
