/* Reads the parameters of the fields Content-Type and Content-Disposition. Any thread. */
#include "protocols/http/chars.h"
#include "protocols/http/multipart/multipart.h"

#include <errno.h>

static size_t skip_spaces_in_field_value(const char *text, size_t size, size_t at)
{
    while (at < size && domi_http_is_space_or_tab(text[at]))
        at++;
    return at;
}

/* Returns how many bytes of a quoted string stand before its closing quote; a quote behind '\' does
 * not close it. Returns `size` if there is no closing quote. */
static size_t size_of_quoted_string(const char *text, size_t size)
{
    size_t at = 0;

    while (at < size && text[at] != '"') {
        bool is_pair =
            text[at] == '\\' && at + 1 < size && (text[at + 1] == '"' || text[at + 1] == '\\');
        at += is_pair ? 2 : 1;
    }
    return at;
}

/* Read the value of a parameter, which begins at `at`. Returns where it ends; 0 if it is
 * invalid. */
static size_t read_value_of_parameter(const char *text, size_t size, size_t at,
                                      domi_multipart_parameter *to)
{
    to->quoted = at < size && text[at] == '"';
    at += to->quoted ? 1 : 0;
    to->value = text + at;
    to->value_size = to->quoted ? size_of_quoted_string(text + at, size - at)
                                : domi_http_count_token_bytes(text + at, size - at);
    at += to->value_size;
    if (to->quoted)
        return at < size ? at + 1 : 0;
    return to->value_size != 0 ? at : 0;
}

int domi_multipart_next_parameter(const char *text, size_t size, size_t *at,
                                  domi_multipart_parameter *ret_parameter)
{
    size_t begin = skip_spaces_in_field_value(text, size, *at);
    size_t from = begin;

    while (from < size && text[from] == ';') /* parameters between two ';' may be empty */
        from = skip_spaces_in_field_value(text, size, from + 1);
    *at = from;
    if (from == size)
        return 0;
    size_t name = domi_http_count_token_bytes(text + from, size - from);
    size_t equals = from + name;
    if (from == begin || name == 0 || equals == size || text[equals] != '=')
        return -EPROTO;
    ret_parameter->name = text + from;
    ret_parameter->name_size = name;
    *at = read_value_of_parameter(text, size, equals + 1, ret_parameter);
    return *at != 0 ? 1 : -EPROTO;
}
