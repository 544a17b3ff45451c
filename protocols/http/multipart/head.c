/* Reads the head of a part of a form, which lies complete in the buffer of the parser. The texts of
 * the head are decoded in place, because decoding makes none longer. */
#include "protocols/http/multipart/multipart.h"

#include "protocols/http/chars.h"
#include "protocols/http/websocket/utf8.h"

#include <domus/http_query.h>

#include <errno.h>

/* A text of a part's head, in the buffer of the parser. */
typedef struct text {
    char *at; /* first byte of the text; NULL: the head has no such text */
    size_t size;
} text;

/* The texts that the head of a part has, as far as it was read. */
typedef struct findings {
    bool has_disposition;
    text name;
    text filename;
    text filename_star;
    text type;
} findings;

/* Decode in place a text that stood in quotes. */
static void decode_quoted_text(text *quoted)
{
    const char *from = quoted->at;
    size_t size = quoted->size;
    size_t to = 0;

    for (size_t i = 0; i < size; i++) {
        char byte = from[i];
        if (byte == '\\' && i + 1 < size && (from[i + 1] == '"' || from[i + 1] == '\\'))
            byte = from[++i];
        else if (byte == '%' && size - i >= 3 && from[i + 1] == '2' && from[i + 2] == '2') {
            byte = '"';
            i += 2;
        }
        quoted->at[to++] = byte;
    }
    quoted->size = to;
}

/* Decode in place the value of a parameter `filename*`, such as "UTF-8'en'a%20b". Returns whether
 * it is valid. */
static bool decode_extended_filename(text *value)
{
    const char *charset_end = memchr(value->at, '\'', value->size);
    const char *end = value->at + value->size;

    if (charset_end == NULL || !domi_http_is_word_regardless_of_case(
                                   value->at, (size_t)(charset_end - value->at), "utf-8"))
        return false;
    const char *from = memchr(charset_end + 1, '\'', (size_t)(end - charset_end - 1));
    if (from == NULL)
        return false;
    from++;
    int64_t size = domus_http_decode(value->at, from, (size_t)(end - from), false);
    if (size < 0)
        return false;
    value->size = (size_t)size;
    return domi_utf8_is_complete_text(value->at, value->size) &&
           domi_http_count_text_bytes(value->at, value->size) == value->size;
}

/* Store the text of a parameter. Returns false if the head has the parameter twice, or its text is
 * invalid. */
static bool store_text_of_parameter(text *place, const domi_multipart_parameter *from,
                                    bool is_extended)
{
    if (place->at != NULL || (is_extended && from->quoted))
        return false;
    *place = (text){(char *)(uintptr_t)from->value, from->value_size};
    if (is_extended)
        return decode_extended_filename(place);
    if (from->quoted)
        decode_quoted_text(place);
    return true;
}

static const char *read_content_disposition(findings *told, const char *value, size_t size)
{
    domi_multipart_parameter parameter;
    size_t at = domi_http_count_token_bytes(value, size);
    int found;

    if (told->has_disposition)
        return "a part has two Content-Disposition";
    told->has_disposition = true;
    if (!domi_http_is_word_regardless_of_case(value, at, "form-data"))
        return "a part is no form-data";
    while ((found = domi_multipart_next_parameter(value, size, &at, &parameter)) > 0) {
        bool is_right = true;
        if (domi_http_is_word_regardless_of_case(parameter.name, parameter.name_size, "name"))
            is_right = store_text_of_parameter(&told->name, &parameter, false);
        else if (domi_http_is_word_regardless_of_case(parameter.name, parameter.name_size,
                                                      "filename"))
            is_right = store_text_of_parameter(&told->filename, &parameter, false);
        else if (domi_http_is_word_regardless_of_case(parameter.name, parameter.name_size,
                                                      "filename*"))
            is_right = store_text_of_parameter(&told->filename_star, &parameter, true);
        if (!is_right)
            return "a parameter of Content-Disposition is wrong, or there twice";
    }
    return found < 0 ? "Content-Disposition is wrong" : NULL;
}

static const char *read_content_type(findings *told, char *value, size_t size)
{
    if (told->type.at != NULL)
        return "a part has two Content-Type";
    told->type = (text){value, size};
    return NULL;
}

/* Read a line of a part's head, without its end. Returns the text of an error; NULL on success. */
static const char *read_line_of_part_head(findings *told, char *line, size_t size)
{
    size_t name = domi_http_count_token_bytes(line, size);

    if (name == 0 || name == size || line[name] != ':')
        return "a line in the head of a part is no field";
    const char *value = line + name + 1;
    size_t value_size = size - name - 1;
    domi_http_trim_spaces_and_tabs(&value, &value_size);
    if (domi_http_count_text_bytes(value, value_size) != value_size)
        return "a control character stands in the head of a part";
    if (domi_http_is_word_regardless_of_case(line, name, "content-disposition"))
        return read_content_disposition(told, value, value_size);
    if (domi_http_is_word_regardless_of_case(line, name, "content-type"))
        return read_content_type(told, (char *)(uintptr_t)value, value_size);
    if (domi_http_is_word_regardless_of_case(line, name, "content-transfer-encoding") &&
        !domi_http_is_word_regardless_of_case(value, value_size, "binary") &&
        !domi_http_is_word_regardless_of_case(value, value_size, "8bit") &&
        !domi_http_is_word_regardless_of_case(value, value_size, "7bit"))
        return "a part is encoded";
    return NULL;
}

/* Return a text of the part's head for an event, and write a zero behind it: the line end there
 * leaves room for the zero. */
static const char *put_zero_behind_text_of_head(const text *is, uint32_t *ret_size)
{
    *ret_size = (uint32_t)is->size;
    if (is->at == NULL)
        return NULL;
    is->at[is->size] = '\0';
    return is->at;
}

int domi_multipart_read_head_of_part(domus_http_multipart *form,
                                     domus_http_multipart_event *ret_event)
{
    findings told = {.has_disposition = false};
    const char *wrong = NULL;
    char *at = form->head;
    /* begin of the empty line at the end of the head */
    char *end = form->head + form->head_size - 2;

    while (at < end && wrong == NULL) {
        char *line_end = memchr(at, '\n', (size_t)(end - at));
        wrong = read_line_of_part_head(&told, at, (size_t)(line_end - 1 - at));
        at = line_end + 1;
    }
    if (wrong == NULL && told.name.at == NULL)
        wrong = "a part has no name";
    if (wrong != NULL)
        return domi_multipart_fail_parser(form, -EPROTO, wrong);
    const text *filename = told.filename_star.at != NULL ? &told.filename_star : &told.filename;
    if (told.name.size > form->limits.name_max)
        return domi_multipart_fail_parser(form, -EMSGSIZE, "the name of a part is too long");
    if (filename->at != NULL && filename->size > form->limits.filename_max)
        return domi_multipart_fail_parser(form, -EMSGSIZE, "a file name is too long");
    ret_event->kind = DOMUS_HTTP_PART;
    ret_event->name = put_zero_behind_text_of_head(&told.name, &ret_event->name_size);
    ret_event->filename = put_zero_behind_text_of_head(filename, &ret_event->filename_size);
    ret_event->type = put_zero_behind_text_of_head(&told.type, &ret_event->type_size);
    if (ret_event->type == NULL)
        ret_event->type = "";
    return 0;
}
