/* Reads the fields and targets of received messages. Their heads were checked, so each line is a
 * name up to ':', and a value up to CR LF; fields that a user has made are read as far as they have
 * this form. */
#include "protocols/http/fields.h"

/* Returns the value of the field whose colon is at `at`, in a line that ends at `end`. */
static domus_slice value_of_field_line(domus_slice fields, size_t at, size_t end)
{
    const char *data = domus_slice_data(fields);
    const char *value = data + at + 1;
    size_t size = end - at - 1;

    if (size != 0 && data[end - 1] == '\r')
        size--;
    domi_http_trim_spaces_and_tabs(&value, &size);
    return domi_http_borrow_part_of_slice(fields, (size_t)(value - data), size);
}

bool domus_http_next(domus_slice fields, uint32_t *at, domus_http_line *ret_line)
{
    const char *data = domus_slice_data(fields);

    if (*at >= fields.size)
        return false;
    const char *end = memchr(data + *at, '\n', fields.size - *at);
    size_t line = end != NULL ? (size_t)(end - data) : fields.size;
    const char *colon = memchr(data + *at, ':', line - *at);
    if (colon == NULL)
        return false;
    ret_line->name = domi_http_borrow_part_of_slice(fields, *at, (size_t)(colon - data) - *at);
    ret_line->value = value_of_field_line(fields, (size_t)(colon - data), line);
    *at = (uint32_t)line + 1;
    return true;
}

bool domus_http_field(domus_slice fields, const char *name, domus_slice *ret_value)
{
    const char *data = domus_slice_data(fields);
    size_t size = strlen(name);

    for (size_t at = 0; at < fields.size;) {
        const char *end = memchr(data + at, '\n', fields.size - at);
        size_t line = end != NULL ? (size_t)(end - data) : fields.size;
        if (line - at > size && data[at + size] == ':' &&
            domi_http_is_word_regardless_of_case(data + at, size, name)) {
            *ret_value = value_of_field_line(fields, at + size, line);
            return true;
        }
        at = line + 1;
    }
    return false;
}

bool domi_http_is_slice_any_word_of_list(domus_slice slice, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (domi_http_is_slice_word_in_any_case(slice, *words))
            return true;
    }
    return false;
}

/* Find the next field that has the walk's name. */
static bool find_next_field_with_name_of_walk(domi_http_elements *walk)
{
    domus_http_line line;

    while (domus_http_next(walk->fields, &walk->at, &line)) {
        if (domi_http_is_slice_word_in_any_case(line.name, walk->name)) {
            walk->list = line.value;
            walk->in = 0;
            return true;
        }
    }
    return false;
}

bool domi_http_next_element_of_fields(domi_http_elements *walk, const char **ret_element,
                                      size_t *ret_size)
{
    if (walk->at == 0 && !find_next_field_with_name_of_walk(
                             walk)) /* at the start of the walk, find the first field */
        return false;
    while (!domi_http_next_element_of_list(domus_slice_data(walk->list), walk->list.size, &walk->in,
                                           ret_element, ret_size)) {
        if (!find_next_field_with_name_of_walk(walk))
            return false;
    }
    return true;
}

bool domi_http_do_fields_list_word(domus_slice fields, const char *name, const char *word)
{
    domi_http_elements walk = {.fields = fields, .name = name};
    const char *element;
    size_t size;

    while (domi_http_next_element_of_fields(&walk, &element, &size)) {
        if (domi_http_is_word_regardless_of_case(element, size, word))
            return true;
    }
    return false;
}

/* --- parts of the target ---------------------------------------------------------------------- */

/* Returns the offset of the path in a target; in a target that is a URL the path stands behind the
 * host. */
static size_t offset_of_path_in_target(domus_slice target)
{
    const char *data = domus_slice_data(target);
    size_t at = 0;

    if (target.size == 0 || *data == '/' || *data == '*')
        return 0;
    while (at + 2 < target.size && memcmp(data + at, "://", 3) != 0)
        at++;
    at += 3;
    while (at < target.size && data[at] != '/' && data[at] != '?')
        at++;
    return at < target.size ? at : target.size;
}

static size_t offset_of_query_in_target(domus_slice target)
{
    const char *data = domus_slice_data(target);
    const char *mark = target.size != 0 ? memchr(data, '?', target.size) : NULL;

    return mark != NULL ? (size_t)(mark - data) : target.size;
}

domus_slice domus_http_host(const domus_http_request *request)
{
    size_t end = offset_of_path_in_target(request->target);
    domus_slice host = {NULL, 0, 0};

    if (end == 0) {
        (void)domus_http_field(request->fields, "host", &host);
        return host;
    }
    const char *data = domus_slice_data(request->target);
    size_t at = end;
    while (at > 0 && data[at - 1] != '/')
        at--;
    return domi_http_borrow_part_of_slice(request->target, at, end - at);
}

domus_slice domus_http_path(const domus_http_request *request)
{
    size_t at = offset_of_path_in_target(request->target);
    size_t end = offset_of_query_in_target(request->target);

    return domi_http_borrow_part_of_slice(request->target, at, end > at ? end - at : 0);
}

domus_slice domus_http_query(const domus_http_request *request)
{
    size_t at = offset_of_query_in_target(request->target);

    if (at < request->target.size)
        at++;
    return domi_http_borrow_part_of_slice(request->target, at, request->target.size - at);
}
