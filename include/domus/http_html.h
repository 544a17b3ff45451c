/* Texts within HTML.
 *
 * Thread-safety: any thread. */
#ifndef DOMUS_HTTP_HTML_H
#define DOMUS_HTTP_HTML_H

#include <domus/slice.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Append text to a page, so that it stays text: & < > " and ' become references such as "&lt;".
 * That is right between tags, and in values of attributes that stand in quotes; it is not in a
 * script, in a style, or for an address that a stranger has chosen ("javascript:...").
 *
 * `size` bytes become 6 * `size` at most, and the `size_max` of the appender bounds the page.
 * Returns as domus_append(). */
DOMUS_API int domus_http_append_html(domus_appender *page, const void *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
