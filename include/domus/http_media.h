/* Media types: those of files, and those that a client accepts.
 *
 * Thread-safety: any thread. */
#ifndef DOMUS_HTTP_MEDIA_H
#define DOMUS_HTTP_MEDIA_H

#include <domus/slice.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the media type of a file by the end of its name, such as "text/html; charset=utf-8";
 * "application/octet-stream" for an end that is not known. The name ends with a zero. */
DOMUS_API const char *domus_http_media_of(const char *name);

/* Returns whether the value of a field Content-Type is this type, "application/json", whatever its
 * parameters are. */
DOMUS_API bool domus_http_is_media(domus_slice value, const char *type);

/* Returns whether the value of a field Content-Type says that a body is JSON: "application/json",
 * or a type that ends with "+json" (RFC 6839). */
DOMUS_API bool domus_http_is_json(domus_slice value);

/* Returns how much a field Accept (or, with a type like "gzip", Accept-Encoding) wants a type, from
 * 0, not at all, to 1000. The most precise element counts, and an empty list is 1000. */
DOMUS_API unsigned domus_http_accepts(domus_slice value, const char *type);

#ifdef __cplusplus
}
#endif

#endif
