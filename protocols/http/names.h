/* The names of the files that a request for a static file may mean. Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_NAMES_H
#define DOMI_PROTOCOLS_HTTP_NAMES_H

#include <domus/http_files.h>

#define DOMI_HTTP_PATH_MAX                                                                         \
    3800u /* bytes of an encoded path, at most; with the name of an index it fits into 4095 */
#define DOMI_HTTP_INDEX_MAX 255u

/* The paths that are tried for a request. */
typedef struct domi_http_names {
    char plain[DOMI_HTTP_PATH_MAX + 2 + DOMI_HTTP_INDEX_MAX + 1];
    char packed[DOMI_HTTP_PATH_MAX + 2 + DOMI_HTTP_INDEX_MAX + 4];
    const char *list[3];
} domi_http_names;

/* Returns whether NAME.gz may be sent in place of NAME. */
bool domi_http_wants_packed(const domus_http_files *files, const domus_http_request *request);

/* List the file names for a path, which is still encoded. Returns 0; -ENOENT if no file can have
 * such a name; -EINVAL. */
int domi_http_list_names(const domus_http_files *files, const domus_http_request *request,
                         domus_slice path, domi_http_names *to);

#endif
