/* Media types: of files by their names, and those that a request accepts. */
#include "protocols/http/chars.h"

#include <domus/http_media.h>

const char *domus_http_media_of(const char *name)
{
    static const char *const types[][2] = {
        {"html", "text/html; charset=utf-8"},
        {"htm", "text/html; charset=utf-8"},
        {"css", "text/css; charset=utf-8"},
        {"js", "text/javascript; charset=utf-8"},
        {"mjs", "text/javascript; charset=utf-8"},
        {"txt", "text/plain; charset=utf-8"},
        {"md", "text/markdown; charset=utf-8"},
        {"csv", "text/csv; charset=utf-8"},
        {"xml", "application/xml"},
        {"json", "application/json"},
        {"pdf", "application/pdf"},
        {"zip", "application/zip"},
        {"gz", "application/gzip"},
        {"wasm", "application/wasm"},
        {"svg", "image/svg+xml"},
        {"png", "image/png"},
        {"jpg", "image/jpeg"},
        {"jpeg", "image/jpeg"},
        {"gif", "image/gif"},
        {"webp", "image/webp"},
        {"avif", "image/avif"},
        {"ico", "image/vnd.microsoft.icon"},
        {"woff2", "font/woff2"},
        {"woff", "font/woff"},
        {"mp3", "audio/mpeg"},
        {"mp4", "video/mp4"},
        {"webm", "video/webm"},
    };
    const char *dot = strrchr(name, '.');
    const char *end = dot != NULL ? dot + 1 : "";
    size_t size = strlen(end);

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (domi_http_is_word_regardless_of_case(end, size, types[i][0]))
            return types[i][1];
    }
    return "application/octet-stream";
}

/* Returns how many bytes of a media type stand before its parameters. */
static size_t size_of_media_type(const char *text, size_t size)
{
    const char *end = size != 0 ? memchr(text, ';', size) : NULL;
    const char *from = text;
    size_t length = end != NULL ? (size_t)(end - text) : size;

    domi_http_trim_spaces_and_tabs(&from, &length);
    return length;
}

bool domus_http_is_media(domus_slice value, const char *type)
{
    const char *text = domus_slice_data(value);

    return domi_http_is_word_regardless_of_case(text, size_of_media_type(text, value.size), type);
}

bool domus_http_is_json(domus_slice value)
{
    static const char suffix[] = "+json";
    const char *text = domus_slice_data(value);
    size_t size = size_of_media_type(text, value.size);
    size_t end = sizeof suffix - 1;

    return domi_http_is_word_regardless_of_case(text, size, "application/json") ||
           (size > end && domi_http_is_same_regardless_of_case(text + size - end, suffix, end));
}

/* Returns the weight that an element of Accept has, in thousandths: 800 for "text/html;q=0.8"; 0 if
 * the element is invalid. */
static unsigned weight_of_accept_element(const char *text, size_t size)
{
    unsigned weight = 0;
    unsigned unit = 1000;

    for (size_t i = 0; i + 2 < size; i++) {
        if (text[i] != ';')
            continue;
        const char *name = text + i + 1;
        size_t left = size - i - 1;
        domi_http_trim_spaces_and_tabs(&name, &left);
        if (left < 3 || domi_http_small_letter_of(name[0]) != 'q' || name[1] != '=')
            continue;
        for (size_t k = 2; k < left && name[k] != ';' && unit != 0; k++) {
            if (name[k] == '.' && k == 3)
                continue;
            if (name[k] < '0' || name[k] > '9')
                return 0;
            weight += (unsigned)(name[k] - '0') * unit;
            unit /= 10;
        }
        return weight < 1000 ? weight : 1000;
    }
    return 1000;
}

/* Returns how precisely an element of Accept matches a media type: 3 by its full name, 2 by "text"
 * with a star for the rest, 1 by stars alone; 0: it does not match. */
static unsigned precision_of_accept_element(const char *element, size_t size, const char *type)
{
    const char *slash = strchr(type, '/');
    size_t kind = slash != NULL ? (size_t)(slash - type) + 1 : 0;

    if (domi_http_is_word_regardless_of_case(element, size, type))
        return 3;
    if (kind != 0 && size == kind + 1 && element[kind] == '*' &&
        domi_http_is_same_regardless_of_case(element, type, kind))
        return 2;
    return (size == 1 && *element == '*') || (size == 3 && memcmp(element, "*/*", 3) == 0);
}

unsigned domus_http_accepts(domus_slice value, const char *type)
{
    const char *text = domus_slice_data(value);
    const char *element;
    size_t size;
    size_t at = 0;
    unsigned best = 0;
    unsigned weight = 0;

    if (value.size == 0)
        return 1000;
    while (domi_http_next_element_of_list(text, value.size, &at, &element, &size)) {
        unsigned precision =
            precision_of_accept_element(element, size_of_media_type(element, size), type);
        if (precision > best) {
            best = precision;
            weight = weight_of_accept_element(element, size);
        }
    }
    return weight;
}
