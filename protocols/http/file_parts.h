/* The parts of a server of static files: the names that a request may mean, and several ranges in
 * one answer. Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_FILE_PARTS_H
#define DOMI_PROTOCOLS_HTTP_FILE_PARTS_H

#include <domus/file.h>
#include <domus/http_files.h>
#include <domus/http_range.h>

/* ---- names.c ----------------------------------------------------------------------------------*/

/* The names of the files that a request for a static file may mean. Any thread. */

/* bytes of a path with its escapes, at most; with the name of an index it fits into 4095 */
#define DOMI_HTTP_PATH_MAX  3800u
#define DOMI_HTTP_INDEX_MAX 255u

/* The paths of files that are tried for one request. */
typedef struct domi_http_names {
    char plain[DOMI_HTTP_PATH_MAX + 2 + DOMI_HTTP_INDEX_MAX + 1];
    char packed[DOMI_HTTP_PATH_MAX + 2 + DOMI_HTTP_INDEX_MAX + 4];
    const char *list[3];
} domi_http_names;

/* Returns whether the file NAME.gz may be sent in place of NAME. */
bool domi_http_may_send_gz_file_to_client(const domus_http_files *files,
                                          const domus_http_request *request);

/* List the names of files that a path, whose escapes are not decoded yet, may mean. Returns 0;
 * -ENOENT if no file can have such a name; -EINVAL. */
int domi_http_list_names_of_files(const domus_http_files *files, const domus_http_request *request,
                                  domus_slice path, domi_http_names *to);

/* ---- byteranges.c -----------------------------------------------------------------------------*/

/* Bodies of the media type multipart/byteranges: several ranges of one resource in one answer (RFC
 * 9110 14.6). Any thread. */

#define DOMI_HTTP_RANGES_MOST 64u
/* bytes of the boundary between the ranges of a body, with a zero at its end */
#define DOMI_HTTP_BOUNDARY_SIZE 33u

/* The parts of a body of multipart/byteranges: each is the head of a range and the range; the last
 * part is the end of the body, without a range. `{.count = 0}` is empty. */
typedef struct domi_http_byteranges {
    domus_file_part parts[DOMI_HTTP_RANGES_MOST + 1];
    uint32_t count;
    uint64_t size; /* bytes of the whole body of multipart/byteranges */
    char boundary[DOMI_HTTP_BOUNDARY_SIZE];
} domi_http_byteranges;

/* Make the parts of a body for `count` ranges (2..DOMI_HTTP_RANGES_MOST) of a resource with
 * `length` bytes and this media type (NULL: it is not told). The boundary is random, so nobody can
 * have put it into the resource's bytes. The caller frees the texts of the parts, or passes them
 * on. Returns 0; -ENOMEM; the error of getrandom(2). */
int domi_http_make_parts_of_ranges(const domus_http_range *ranges, uint32_t count, uint64_t length,
                                   const char *media, domi_http_byteranges *ret_body);
void domi_http_free_byteranges(domi_http_byteranges *body);

/* Make a body of ranges as one slice, from `whole`, the bytes of the resource. Returns 0;
 * -ENOMEM. */
int domi_http_join_ranges_into_body(const domi_http_byteranges *body, domus_slice whole,
                                    domus_slice *ret_slice);

#endif
