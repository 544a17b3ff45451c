/* Gives entity tags to answers that handlers make (domus/http_tag.h). The stage has no part in it:
 * it gets an answer with the field ETag, or an answer 304. */
#include "protocols/http/coding.h"
#include "protocols/http/fields.h"
#include "protocols/http/session/signing.h"

#include <domus/http_condition.h>
#include <domus/http_date.h>
#include <domus/http_tag.h>

#include <assert.h>
#include <errno.h>
#include <nettle/sha2.h>

#define TAG_BYTES 16u  /* bytes of the body's hash that a tag shows */
#define OWN_MAX   256u /* bytes of a tag that the program has made, at most */

static_assert(DOMI_HTTP_64_SIZE(TAG_BYTES) + 2 == DOMUS_HTTP_TAG_SIZE, "its size");
static_assert(DOMUS_HTTP_TAG_SIZE < OWN_MAX, "both have room");

void domus_http_tag(const void *bytes, size_t size, char *to)
{
    uint8_t hash[TAG_BYTES];
    struct sha256_ctx context;

    sha256_init(&context);
    sha256_update(&context, size, bytes);
    sha256_digest(&context, sizeof hash, hash);
    *to++ = '"';
    to += domi_http_base64url_encode(to, hash, sizeof hash);
    *to++ = '"';
    *to = '\0';
}

/* An answer, with its tag and the time of its last change. */
typedef struct tagged {
    const domus_http_request *request;
    domus_http_response response; /* the response of the handler, which is owned here */
    char tag[OWN_MAX + 1];
    bool has_own_tag; /* the fields of the response have a tag already */
    int64_t modified;
} tagged;

/* Find the tag of an answer or make one, and find the time of its last change. Returns 0; -EINVAL
 * for a tag that is too long. */
static int find_tag_and_time_of_answer(tagged *answer)
{
    const domus_http_response *response = &answer->response;
    domus_slice value;

    if (domus_http_field(response->fields, "last-modified", &value) &&
        !domus_http_read_date(domus_slice_data(value), value.size, &answer->modified))
        answer->modified = 0;
    answer->has_own_tag = domus_http_field(response->fields, "etag", &value);
    if (!answer->has_own_tag) {
        domus_http_tag(domus_slice_data(response->body), response->body.size, answer->tag);
        return 0;
    }
    if (value.size > OWN_MAX)
        return -EINVAL;
    memcpy(answer->tag, domus_slice_data(value), value.size);
    answer->tag[value.size] = '\0';
    return 0;
}

/* Returns whether a field describes the body of an answer, so that it must not be in a 304 (RFC
 * 9110 15.4.5). */
static bool must_304_omit_field_about_body(domus_slice name)
{
    static const char *const names[] = {"content-type",  "content-encoding", "content-language",
                                        "content-range", "last-modified",    NULL};

    return domi_http_is_slice_any_word_of_list(name, names);
}

/* Make the fields of the answer, a 200 or a 304. Returns 0, or a negative errno. */
static int make_fields_of_200_or_304(const tagged *answer, bool is_304, domus_slice *ret_fields)
{
    domus_slice fields = answer->response.fields;
    bool is_weak = is_304 && answer->tag[0] == '"' &&
                   domi_http_does_client_prefer_gzip(answer->request->fields) &&
                   domi_http_do_fields_list_weak_tag(answer->request->fields, answer->tag);
    bool keeps_own = answer->has_own_tag && !is_weak;
    domus_appender made = {0};
    domus_http_line line;
    uint32_t at = 0;

    if (!keeps_own)
        (void)domus_append_text(&made, "ETag: %s%s\r\n", is_weak ? "W/" : "", answer->tag);
    if (!is_304) {
        (void)domus_append(&made, domus_slice_data(fields), fields.size);
        return domus_append_end(&made, ret_fields);
    }
    while (domus_http_next(fields, &at, &line)) {
        if (!must_304_omit_field_about_body(line.name) &&
            (keeps_own || !domi_http_is_slice_word_in_any_case(line.name, "etag")))
            (void)domi_http_add_field_unchanged(&made, &line);
    }
    return domus_append_end(&made, ret_fields);
}

/* Answer with a response, and consume the response. */
static int reply_with_tagged_response(domus_stack *stack, domus_http_response *response)
{
    int error = domus_reply(stack, &domus_http_response_type, response);

    if (error != 0)
        domus_http_response_type.release(response);
    return error;
}

static int reply_with_304(domus_stack *stack, tagged *answer)
{
    domus_http_response response = {.status = 304, .close = answer->response.close};
    int error = make_fields_of_200_or_304(answer, true, &response.fields);

    domus_http_response_type.release(&answer->response);
    return error != 0 ? error : reply_with_tagged_response(stack, &response);
}

static int reply_with_200(domus_stack *stack, tagged *answer)
{
    domus_slice fields;
    int error = answer->has_own_tag ? 0 : make_fields_of_200_or_304(answer, false, &fields);

    if (error != 0) {
        domus_http_response_type.release(&answer->response);
        return error;
    }
    if (!answer->has_own_tag) {
        domus_slice_free(answer->response.fields);
        answer->response.fields = fields;
    }
    return reply_with_tagged_response(stack, &answer->response);
}

int domus_http_reply_tagged(domus_stack *stack, const domus_http_response *response)
{
    const domus_http_request *request = domus_asked(stack, &domus_http_request_type);
    tagged answer = {.request = request, .response = *response};
    int error = request == NULL || response->stream.number != 0 ? -EINVAL : 0;

    if (error == 0 && (response->status != 200 ||
                       (request->method != DOMUS_HTTP_GET && request->method != DOMUS_HTTP_HEAD)))
        return reply_with_tagged_response(stack, &answer.response);
    if (error == 0)
        error = find_tag_and_time_of_answer(&answer);
    if (error != 0) {
        domus_http_response_type.release(&answer.response);
        return error;
    }
    const domus_http_version version = {answer.tag, answer.modified, true};
    unsigned status = domus_http_check_conditions(request, &version);
    if (status == 304)
        return reply_with_304(stack, &answer);
    if (status == 0)
        return reply_with_200(stack, &answer);
    domus_http_response_type.release(&answer.response);
    return domus_reply(stack, &domus_http_text_type,
                       &(domus_http_text){(uint16_t)status, "text/plain", "Precondition Failed\n"});
}
