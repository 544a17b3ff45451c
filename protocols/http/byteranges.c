/* Makes the bodies of answers with several ranges, multipart/byteranges (file_parts.h). */
#include "protocols/http/file_parts.h"

#include "protocols/http/websocket/websocket.h"

#include <string.h>

static_assert(DOMI_HTTP_RANGES_MOST + 1 <= DOMUS_FILE_PARTS_MAX, "a body is one answer");

/* Draw a random boundary for the parts of a body. Returns 0; the error of getrandom(2). */
static int draw_boundary_of_ranges(char *boundary)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t drawn[(DOMI_HTTP_BOUNDARY_SIZE - 1) / 2];
    int error = domi_websocket_draw_random_bytes(drawn, sizeof drawn);

    for (size_t i = 0; error == 0 && i < sizeof drawn; i++) {
        boundary[2 * i] = digits[drawn[i] >> 4];
        boundary[2 * i + 1] = digits[drawn[i] & 15];
    }
    boundary[DOMI_HTTP_BOUNDARY_SIZE - 1] = '\0';
    return error;
}

/* Write the head that stands before a range, or for NULL the end of the body. Returns 0;
 * -ENOMEM. */
static int make_head_of_range(const domi_http_byteranges *body, const domus_http_range *range,
                              uint64_t length, const char *media, domus_slice *ret_text)
{
    domus_appender text = {0};

    (void)domus_append_text(&text, "%s--%s%s\r\n", body->count != 0 ? "\r\n" : "", body->boundary,
                            range == NULL ? "--" : "");
    if (range != NULL && media != NULL)
        (void)domus_append_text(&text, "Content-Type: %s\r\n", media);
    if (range != NULL)
        (void)domus_http_add_content_range(&text, *range, length);
    if (range != NULL)
        (void)domus_append(&text, "\r\n", 2);
    return domus_append_end(&text, ret_text);
}

int domi_http_make_parts_of_ranges(const domus_http_range *ranges, uint32_t count, uint64_t length,
                                   const char *media, domi_http_byteranges *ret_body)
{
    domi_http_byteranges *body = ret_body;

    body->count = 0;
    body->size = 0;
    int error = draw_boundary_of_ranges(body->boundary);
    for (uint32_t i = 0; error == 0 && i <= count; i++) {
        const domus_http_range *range = i < count ? &ranges[i] : NULL;
        domus_file_part part = {.size = 0};
        error = make_head_of_range(body, range, length, media, &part.before);
        if (error != 0)
            break;
        if (range != NULL) {
            part.position = range->first;
            part.size = range->last - range->first + 1;
        }
        body->parts[body->count++] = part;
        body->size += part.before.size + part.size;
    }
    if (error != 0)
        domi_http_free_byteranges(body);
    return error;
}

void domi_http_free_byteranges(domi_http_byteranges *body)
{
    for (uint32_t i = 0; i < body->count; i++)
        domus_slice_free(body->parts[i].before);
    body->count = 0;
}

int domi_http_join_ranges_into_body(const domi_http_byteranges *body, domus_slice whole,
                                    domus_slice *ret_slice)
{
    domus_appender joined = {0};

    for (uint32_t i = 0; i < body->count; i++) {
        const domus_file_part *part = &body->parts[i];
        (void)domus_append(&joined, domus_slice_data(part->before), part->before.size);
        if (part->size != 0)
            (void)domus_append(&joined, domus_slice_data(whole) + part->position,
                               (size_t)part->size);
    }
    return domus_append_end(&joined, ret_slice);
}
