/* Makes parsers of multipart/form-data: reads the boundary from the Content-Type, checks the
 * limits, and allocates the memory. */
#include "protocols/http/chars.h"
#include "protocols/http/multipart/multipart.h"

#include <domus/http_media.h>

#include <errno.h>
#include <stdlib.h>

#define MANY        65536u
#define PARTS       64u
#define HEAD        2048u
#define HEAD_LEAST  64u
#define NAME        128u
#define FILENAME    255u
#define WHOLE_BYTES (UINT64_C(64) << 20)

/* Returns whether the bytes may be a boundary of multipart (RFC 2046, 5.1.1). */
static bool is_valid_boundary(const char *text, size_t size)
{
    if (size == 0 || size > DOMUS_HTTP_BOUNDARY_MAX || text[size - 1] == ' ')
        return false;
    for (size_t i = 0; i < size; i++) {
        char lower = domi_http_small_letter_of(text[i]);
        bool is_letter = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
        if (!is_letter && (text[i] == '\0' || strchr("'()+_,-./:=? ", text[i]) == NULL))
            return false;
    }
    return true;
}

/* Find the parameter with the boundary in a Content-Type. Returns 0; -EPROTO. */
static int find_boundary_in_content_type(const char *text, size_t size,
                                         domi_multipart_parameter *ret_boundary)
{
    const char *mark = memchr(text, ';', size);
    size_t at = mark != NULL ? (size_t)(mark - text) : size;
    domi_multipart_parameter parameter;
    uint32_t boundaries = 0;
    int found;

    while ((found = domi_multipart_next_parameter(text, size, &at, &parameter)) > 0) {
        if (!domi_http_is_word_regardless_of_case(parameter.name, parameter.name_size, "boundary"))
            continue;
        boundaries++;
        *ret_boundary = parameter;
    }
    if (found < 0 || boundaries != 1 ||
        !is_valid_boundary(ret_boundary->value, ret_boundary->value_size))
        return -EPROTO;
    return 0;
}

/* Replace zeros in the limits by defaults. Returns 0; -EINVAL. */
static int fill_in_defaults_of_limits(domus_http_multipart_limits *limits)
{
    if (limits->parts_max == 0)
        limits->parts_max = PARTS;
    if (limits->head_max == 0)
        limits->head_max = HEAD;
    if (limits->name_max == 0)
        limits->name_max = NAME;
    if (limits->filename_max == 0)
        limits->filename_max = FILENAME;
    if (limits->whole_max == 0)
        limits->whole_max = WHOLE_BYTES;
    if (limits->part_max == 0)
        limits->part_max = limits->whole_max;
    return limits->parts_max > MANY || limits->head_max > MANY || limits->head_max < HEAD_LEAST ||
                   limits->name_max > MANY || limits->filename_max > MANY
               ? -EINVAL
               : 0;
}

int domus_http_multipart_open(domus_slice content_type, const domus_http_multipart_limits *limits,
                              domus_http_multipart **ret_form)
{
    /* the bytes that stand before each boundary */
    static const char before[] = {'\r', '\n', '-', '-'};
    domus_http_multipart_limits made = {.parts_max = 0};
    domi_multipart_parameter boundary = {.value = NULL};

    if (limits != NULL)
        made = *limits;
    int error = fill_in_defaults_of_limits(&made);
    if (error != 0)
        return error;
    if (!domus_http_is_media(content_type, "multipart/form-data"))
        return -EMEDIUMTYPE;
    error =
        find_boundary_in_content_type(domus_slice_data(content_type), content_type.size, &boundary);
    if (error != 0)
        return error;
    domus_http_multipart *form = malloc(sizeof *form + made.head_max);
    if (form == NULL)
        return -ENOMEM;
    memset(form, 0, sizeof *form);
    form->limits = made;
    form->wrong = "";
    /* CR LF count as matched: the body begins with a line, so the first boundary may come without
     * them */
    form->matched = form->assumed = 2;
    memcpy(form->delimiter, before, sizeof before);
    memcpy(form->delimiter + sizeof before, boundary.value, boundary.value_size);
    form->delimiter_size = (uint32_t)(sizeof before + boundary.value_size);
    *ret_form = form;
    return 0;
}

domus_http_multipart *domus_http_multipart_close(domus_http_multipart *form)
{
    free(form);
    return NULL;
}

const char *domus_http_multipart_wrong(const domus_http_multipart *form)
{
    return form->wrong;
}
