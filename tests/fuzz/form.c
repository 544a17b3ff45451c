/* Fuzzes the forms of HTTP. The first byte of an input chooses limits, the rest is the body. Every
 * reading function returns the decoded value of a field, and a form that is written again from its
 * fields has the same fields. */
#include "tests/fuzz/support/fuzz.h"

#include <domus/http_form.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 1024u

/* Decode a field's name or value into `to`, with a zero byte behind it. Returns its size. */
static size_t decode_field_text(domus_slice text, char to[ROOM])
{
    domt_fuzz_abort_unless(text.size < ROOM);
    int64_t size = domus_http_decode(to, domus_slice_data(text), text.size, true);
    domt_fuzz_abort_unless(size >= 0 && size <= text.size);
    to[size] = '\0';
    return (size_t)size;
}

/* Check that each reading function that accepts a field with this decoded name returns its decoded
 * value. */
static void check_reading_of_field(const domus_http_form *form, const char *name, const char *value,
                                   size_t size)
{
    char text[ROOM], exact[ROOM];
    int64_t number;
    bool flag;

    int64_t got = domus_http_form_text(form, name, text, sizeof text);
    domt_fuzz_abort_unless(got != -ENOENT && got != -EMSGSIZE);
    if (got >= 0) {
        domt_fuzz_abort_unless((size_t)got == size && memcmp(text, value, size + 1) == 0);
        domt_fuzz_abort_unless(domus_http_form_text(form, name, exact, size + 1) == got);
        domt_fuzz_abort_unless(domus_http_form_text(form, name, exact, size) == -EMSGSIZE);
    }
    if (domus_http_form_number(form, name, -1000, INT64_MAX, &number) == 0)
        domt_fuzz_abort_unless(got > 0 && number == strtoll(text, NULL, 10) && number >= -1000);
    if (domus_http_form_flag(form, name, &flag) == 0)
        domt_fuzz_abort_unless(got > 0);
}

/* Write all fields of a form of HTTP as the body of a new form. */
static domus_slice write_fields_as_form(const domus_http_form *form, uint32_t *ret_count)
{
    domus_http_parameter field;
    domus_appender to = {0};
    domus_slice made;
    char text[ROOM];

    *ret_count = 0;
    for (uint32_t at = 0; domus_http_form_next(form, &at, &field); ++*ret_count) {
        (void)domus_append(&to, "&", 1);
        (void)domus_http_encode(&to, text, decode_field_text(field.name, text));
        (void)domus_append(&to, "=", 1);
        (void)domus_http_encode(&to, text, decode_field_text(field.value, text));
    }
    domt_fuzz_abort_unless(domus_append_end(&to, &made) == 0);
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
    domt_fuzz_abort_unless(domus_slice_copy(data + 1, size - 1, &body) == 0);
    int error = domus_http_form_read(body, &limits, &form, &wrong);
    domt_fuzz_abort_unless((error == 0) == (wrong == NULL));
    if (error == 0) {
        for (uint32_t at = 0; domus_http_form_next(&form, &at, &field);) {
            size_t name_size = decode_field_text(field.name, name);
            size_t value_size = decode_field_text(field.value, value);
            domt_fuzz_abort_unless(name_size <= 40 && value_size <= 200);
            if (strlen(name) == name_size)
                check_reading_of_field(&form, name, value, value_size);
        }
        domus_slice written = write_fields_as_form(&form, &count);
        domt_fuzz_abort_unless(count <= limits.fields_max);
        domt_fuzz_abort_unless(domus_http_form_read(written, &limits, &again, NULL) == 0);
        domus_slice twice = write_fields_as_form(&again, &count_again);
        domt_fuzz_abort_unless(count == count_again &&
                               domus_slice_equals(twice, domus_slice_data(written), written.size));
        domus_slice_free(written);
        domus_slice_free(twice);
    }
    domus_slice_free(body);
    return 0;
}
