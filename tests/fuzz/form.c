/* Fuzzes forms. The first byte chooses limits, the rest is the body. Every reading function returns
 * the decoded value of a field, and a form that is written again from its fields has the same
 * fields. */
#include "tests/fuzz/support/fuzz.h"

#include <domus/http_form.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 1024u

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* Decode a text of the form into `to`, and end it with a zero. Returns its size. */
static size_t decode(domus_slice text, char to[ROOM])
{
    must(text.size < ROOM);
    int64_t size = domus_http_decode(to, domus_slice_data(text), text.size, true);
    must(size >= 0 && size <= text.size);
    to[size] = '\0';
    return (size_t)size;
}

/* Check what each reading function returns for a field with this decoded name and value. */
static void check_field(const domus_http_form *form, const char *name, const char *value,
                        size_t size)
{
    char text[ROOM], exact[ROOM];
    int64_t number;
    bool flag;

    int64_t got = domus_http_form_text(form, name, text, sizeof text);
    must(got != -ENOENT && got != -EMSGSIZE);
    if (got >= 0) {
        must((size_t)got == size && memcmp(text, value, size + 1) == 0);
        must(domus_http_form_text(form, name, exact, size + 1) == got);
        must(domus_http_form_text(form, name, exact, size) == -EMSGSIZE);
    }
    if (domus_http_form_number(form, name, -1000, INT64_MAX, &number) == 0)
        must(got > 0 && number == strtoll(text, NULL, 10) && number >= -1000);
    if (domus_http_form_flag(form, name, &flag) == 0)
        must(got > 0);
}

/* Write the fields of a form as a new form. */
static domus_slice write_form(const domus_http_form *form, uint32_t *ret_count)
{
    domus_http_parameter field;
    domus_appender to = {0};
    domus_slice made;
    char text[ROOM];

    *ret_count = 0;
    for (uint32_t at = 0; domus_http_form_next(form, &at, &field); ++*ret_count) {
        (void)domus_append(&to, "&", 1);
        (void)domus_http_encode(&to, text, decode(field.name, text));
        (void)domus_append(&to, "=", 1);
        (void)domus_http_encode(&to, text, decode(field.value, text));
    }
    must(domus_append_end(&to, &made) == 0);
    return made;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const domus_http_form_limits limits = {
        .fields_max = size != 0 ? data[0] % 16u + 1 : 1, .name_max = 40, .value_max = 200};
    domus_http_form form, again;
    domus_http_parameter field;
    const char *wrong = NULL;
    char name[ROOM], value[ROOM];
    uint32_t count, count_again;
    domus_slice body;

    if (size == 0 || size > 700)
        return 0;
    must(domus_slice_copy(data + 1, size - 1, &body) == 0);
    int error = domus_http_form_read(body, &limits, &form, &wrong);
    must((error == 0) == (wrong == NULL));
    if (error == 0) {
        for (uint32_t at = 0; domus_http_form_next(&form, &at, &field);) {
            size_t name_size = decode(field.name, name);
            size_t value_size = decode(field.value, value);
            must(name_size <= 40 && value_size <= 200);
            if (strlen(name) == name_size)
                check_field(&form, name, value, value_size);
        }
        domus_slice written = write_form(&form, &count);
        must(count <= limits.fields_max);
        must(domus_http_form_read(written, &limits, &again, NULL) == 0);
        domus_slice twice = write_form(&again, &count_again);
        must(count == count_again &&
             domus_slice_equals(twice, domus_slice_data(written), written.size));
        domus_slice_free(written);
        domus_slice_free(twice);
    }
    domus_slice_free(body);
    return 0;
}
