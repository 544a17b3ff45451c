/* Decides which answers are compressed, compresses complete ones, and changes the fields of answers
 * that are or might be compressed. */
#include "protocols/http/fields.h"
#include "protocols/http/outgoing.h"

#include <errno.h>

static const char encoding_field[] = "Content-Encoding: gzip\r\n";
static const char vary_field[] = "Vary: Accept-Encoding\r\n";

/* --- answers that may be compressed ----------------------------------------------------------- */

static bool does_text_end_with(const char *text, size_t size, const char *end)
{
    size_t length = strlen(end);

    return size > length && domi_http_is_same_regardless_of_case(text + size - length, end, length);
}

/* Returns whether compression makes bodies of this media type smaller. */
static bool is_media_type_compressible(const char *type, size_t size)
{
    static const char *const types[] = {
        "application/json",         "application/javascript",
        "application/xml",          "application/wasm",
        "application/x-javascript", "application/manifest+json",
        "application/graphql",      "application/x-www-form-urlencoded",
        "application/sql",          "application/x-ndjson",
        "application/yaml",
    };
    const char *mark = size != 0 ? memchr(type, ';', size) : NULL;

    if (mark != NULL)
        size = (size_t)(mark - type);
    while (size != 0 && (type[size - 1] == ' ' || type[size - 1] == '\t'))
        size--;
    if (size > 5 && domi_http_is_same_regardless_of_case(type, "text/", 5))
        return true;
    if (does_text_end_with(type, size, "+json") || does_text_end_with(type, size, "+xml"))
        return true;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (domi_http_is_word_regardless_of_case(type, size, types[i]))
            return true;
    }
    return false;
}

static bool has_compressible_media(const domi_http_outgoing *answer)
{
    domus_slice value;

    if (answer->media_size != 0)
        return is_media_type_compressible(answer->media, answer->media_size);
    return domus_http_field(answer->fields, "content-type", &value) &&
           is_media_type_compressible(domus_slice_data(value), value.size);
}

/* Returns whether the fields of an answer forbid transformations (no-transform), as an answer from
 * another server may (RFC 9110 7.7). */
static bool does_answer_forbid_transform(const domi_http_outgoing *answer)
{
    return domi_http_do_fields_list_word(answer->fields, "cache-control", "no-transform");
}

/* Returns whether an answer may be compressed for clients that accept it. */
static bool may_answer_be_compressed(const domus_http_gzip *gzip, bool is_stream,
                                     const domi_http_outgoing *answer)
{
    uint64_t size = answer->body_size != 0 ? answer->body_size : answer->length;
    bool is_small = (size != 0 || !is_stream) && size < domi_http_gzip_least_size(gzip);
    domus_slice value;

    if (domi_http_is_status_without_body(answer->status) || answer->status == 206 || is_small)
        return false;
    if (answer->body_size > domi_http_gzip_max_whole_size(gzip))
        return false;
    return has_compressible_media(answer) &&
           !domus_http_field(answer->fields, "content-encoding", &value) &&
           !domus_http_field(answer->fields, "content-range", &value) &&
           !does_answer_forbid_transform(answer);
}

/* --- fields of answers that may be compressed ------------------------------------------------- */

/* Returns whether the field Vary of an answer already names Accept-Encoding. */
static bool has_vary_accept_encoding(domus_slice fields)
{
    return domi_http_do_fields_list_word(fields, "vary", "accept-encoding") ||
           domi_http_do_fields_list_word(fields, "vary", "*");
}

/* Add the fields about compression before the answer's own, and make a strong tag a weak one if
 * `is_packed`. Returns 0; -ENOMEM. */
static int add_fields_about_compression(domi_http_outgoing *answer, bool is_packed,
                                        domi_http_packed *packed)
{
    domus_slice fields = answer->fields;
    const char *text = domus_slice_data(fields);
    domus_appender made = {0};
    size_t before = 0;
    domus_slice tag;

    if (is_packed)
        (void)domus_append(&made, encoding_field, sizeof encoding_field - 1);
    if (!has_vary_accept_encoding(fields))
        (void)domus_append(&made, vary_field, sizeof vary_field - 1);
    if (is_packed && domus_http_field(fields, "etag", &tag) && tag.size != 0 &&
        *domus_slice_data(tag) == '"') {
        before = tag.offset - fields.offset;
        (void)domus_append(&made, text, before);
        (void)domus_append(&made, "W/", 2);
    }
    (void)domus_append(&made, text + before, fields.size - before);
    int error = domus_append_end(&made, &packed->fields);
    if (error == 0)
        answer->fields = packed->fields;
    return error;
}

/* --- answers ---------------------------------------------------------------------------------- */

/* Compress a complete body of an answer. Returns whether it became smaller. */
static bool compress_whole_body_if_smaller(domus_http_gzip *gzip, domi_http_outgoing *answer,
                                           domi_http_packed *packed)
{
    const char *body = answer->text != NULL ? answer->text : domus_slice_data(answer->body);
    domi_http_deflater *deflater = domi_http_deflater_take_from_pool(gzip);

    if (deflater == NULL)
        return false;
    int error =
        domi_http_deflate_whole_body(deflater, body, (uint32_t)answer->body_size, &packed->body);
    domi_http_deflater_give_back(deflater);
    if (error != 0)
        return false;
    answer->text = NULL;
    answer->body = packed->body;
    answer->body_size = packed->body.size;
    return true;
}

/* Get a stream of zlib that compresses the pieces of an answer; an answer to HEAD needs none.
 * Returns false if there is no stream, or the client speaks HTTP/1.0. */
static bool begin_compressed_stream(domus_http_gzip *gzip, uint64_t id, domi_http_outgoing *answer)
{
    if ((id & DOMI_HTTP_ID_NEW) == 0)
        return false;
    if ((id & DOMI_HTTP_ID_HEAD) == 0) {
        answer->deflater = domi_http_deflater_take_from_pool(gzip);
        if (answer->deflater == NULL)
            return false;
        if (answer->length != 0)
            domi_http_deflater_expect_length(answer->deflater, answer->length);
    }
    answer->length = 0;
    return true;
}

/* Remove the length from a complete answer to HEAD, as the body would be compressed. */
static bool omit_length_of_answer_to_head(domi_http_outgoing *answer)
{
    answer->has_no_length = true;
    return true;
}

int domi_http_compress_answer_if_allowed(domi_http_state *state, uint64_t id, bool is_stream,
                                         domi_http_outgoing *answer, domi_http_packed *packed)
{
    domus_http_gzip *gzip = state->options.gzip;
    bool may_be = may_answer_be_compressed(gzip, is_stream, answer);
    bool is_packed = false;

    if (may_be && (id & DOMI_HTTP_ID_GZIP) != 0)
        is_packed = is_stream ? begin_compressed_stream(gzip, id, answer)
                    : (id & DOMI_HTTP_ID_HEAD) != 0
                        ? omit_length_of_answer_to_head(answer)
                        : compress_whole_body_if_smaller(gzip, answer, packed);
    if (!may_be && answer->status != 304)
        return 0;
    int error = add_fields_about_compression(answer, is_packed, packed);
    if (error != 0 && answer->deflater != NULL)
        domi_http_deflater_give_back(answer->deflater);
    if (error != 0)
        domus_slice_free(packed->body);
    return error;
}
