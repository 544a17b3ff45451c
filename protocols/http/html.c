/* Escapes text for the use in HTML. Any thread. */
#include <domus/http_html.h>

#include <string.h>

/* Returns HTML's character reference for a byte; NULL if the byte needs none. */
static const char *find_html_reference_for_byte(char byte)
{
    switch (byte) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

int domus_http_append_html(domus_appender *page, const void *text, size_t size)
{
    const char *from = text;
    /* bytes just before the current one that need no reference, and are appended together */
    size_t plain = 0;

    for (size_t i = 0; i < size; i++) {
        const char *reference = find_html_reference_for_byte(from[i]);
        if (reference == NULL) {
            plain++;
            continue;
        }
        (void)domus_append(page, from + i - plain, plain);
        (void)domus_append(page, reference, strlen(reference));
        plain = 0;
    }
    return domus_append(page, from + size - plain, plain);
}
