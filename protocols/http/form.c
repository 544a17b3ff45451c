/* Reads forms (domus/http_form.h). A form is checked once; later reads rely on its escapes being
 * valid. */
#include "protocols/http/fields.h"
#include "protocols/http/texts.h"
#include "protocols/http/websocket/utf8.h"

#include <domus/http_form.h>
#include <domus/http_media.h>

#include <errno.h>

#define FIELDS    100u
#define NAME      128u
#define VALUE     65536u
#define FLAG_ROOM 6u

bool domus_http_is_form(const domus_http_request *request)
{
    domus_slice type;

    return domus_http_field(request->fields, "content-type", &type) &&
           domus_http_is_media(type, "application/x-www-form-urlencoded");
}

/* Returns how many bytes a text of a form has after decoding; -EPROTO for an invalid escape. */
static int64_t decoded_size_of_form_text(domus_slice encoded)
{
    const char *text = domus_slice_data(encoded);
    size_t size = 0;

    for (size_t i = 0; i < encoded.size; i++, size++) {
        if (text[i] != '%')
            continue;
        if (encoded.size - i < 3 || domi_http_value_of_hex_digit(text[i + 1]) < 0 ||
            domi_http_value_of_hex_digit(text[i + 2]) < 0)
            return -EPROTO;
        i += 2;
    }
    return (int64_t)size;
}

/* Set `ret_words` to the text that tells what is wrong, and return the error. */
static int fail_with_reason(int error, const char *words, const char **ret_wrong)
{
    if (ret_wrong != NULL)
        *ret_wrong = words;
    return error;
}

static uint32_t limit_of_form_or_default(uint32_t limit, uint32_t otherwise)
{
    return limit != 0 ? limit : otherwise;
}

int domus_http_form_read(domus_slice body, const domus_http_form_limits *limits,
                         domus_http_form *ret_form, const char **ret_wrong)
{
    const domus_http_form_limits none = {.fields_max = 0};
    domus_http_parameter field;
    uint32_t count = 0;
    uint32_t at = 0;

    if (limits == NULL)
        limits = &none;
    while (domus_http_next_parameter(body, &at, &field)) {
        int64_t name = decoded_size_of_form_text(field.name);
        int64_t value = decoded_size_of_form_text(field.value);
        if (count++ == limit_of_form_or_default(limits->fields_max, FIELDS))
            return fail_with_reason(-EMSGSIZE, "too many fields", ret_wrong);
        if (name < 0 || value < 0)
            return fail_with_reason(-EPROTO, "an escape is wrong", ret_wrong);
        if (name > limit_of_form_or_default(limits->name_max, NAME))
            return fail_with_reason(-EMSGSIZE, "the name of a field is too long", ret_wrong);
        if (value > limit_of_form_or_default(limits->value_max, VALUE))
            return fail_with_reason(-EMSGSIZE, "a field is too long", ret_wrong);
    }
    ret_form->body = body;
    return 0;
}

bool domus_http_form_next(const domus_http_form *form, uint32_t *at,
                          domus_http_parameter *ret_field)
{
    return domus_http_next_parameter(form->body, at, ret_field);
}

/* Find the field of a form with this name, which must be the only one. Returns 0; -ENOENT;
 * -ENOTUNIQ. */
static int find_only_field_with_name(const domus_http_form *form, const char *name,
                                     domus_slice *ret_value)
{
    domus_http_parameter field;
    uint32_t count = 0;
    uint32_t at = 0;

    while (domus_http_next_parameter(form->body, &at, &field)) {
        if (!domi_http_does_encoded_name_equal(field.name, name))
            continue;
        *ret_value = field.value;
        count++;
    }
    return count == 0 ? -ENOENT : count > 1 ? -ENOTUNIQ : 0;
}

int64_t domus_http_form_text(const domus_http_form *form, const char *name, char *to, size_t room)
{
    domus_slice value;
    int error = find_only_field_with_name(form, name, &value);

    if (error != 0)
        return error;
    int64_t size = decoded_size_of_form_text(value);
    if (size < 0)
        return -EILSEQ; /* only a form that was not checked can have invalid escapes */
    if ((uint64_t)size >= room)
        return -EMSGSIZE;
    (void)domus_http_decode(to, domus_slice_data(value), value.size, true);
    to[size] = '\0';
    return domi_utf8_is_complete_text(to, (size_t)size) && strlen(to) == (size_t)size ? size
                                                                                      : -EILSEQ;
}

int domus_http_form_number(const domus_http_form *form, const char *name, int64_t least,
                           int64_t most, int64_t *ret_number)
{
    char text[DOMI_HTTP_NUMBER_ROOM];
    int64_t size = domus_http_form_text(form, name, text, sizeof text);

    if (size < 0)
        return size == -ENOENT || size == -ENOTUNIQ ? (int)size : -EINVAL;
    return domi_http_read_whole_number(text, least, most, ret_number);
}

int domus_http_form_flag(const domus_http_form *form, const char *name, bool *ret_flag)
{
    static const char *const words[][2] = {{"off", "on"}, {"0", "1"}, {"false", "true"}};
    char text[FLAG_ROOM];
    int64_t size = domus_http_form_text(form, name, text, sizeof text);

    if (size == -ENOENT)
        *ret_flag = false;
    if (size == -ENOENT || size == -ENOTUNIQ)
        return size == -ENOENT ? 0 : (int)size;
    for (size_t i = 0; size >= 0 && i < sizeof words / sizeof words[0]; i++) {
        for (int flag = 0; flag < 2; flag++) {
            if (strcmp(text, words[i][flag]) != 0)
                continue;
            *ret_flag = flag != 0;
            return 0;
        }
    }
    return -EINVAL;
}
