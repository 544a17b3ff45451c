/* Lists the names of files that the path of a request may mean (file_parts.h). */
#include "protocols/http/file_parts.h"

#include "protocols/http/coding.h"

#include <domus/http_query.h>

#include <errno.h>
#include <string.h>

/* Decode the path of a request. Returns 0; -ENOENT if no file can have this name; -EINVAL. */
static int decode_path_of_request(const domus_http_files *files, domus_slice path,
                                  domi_http_names *to)
{
    const char *index = files->index != NULL ? files->index : "index.html";
    char text[DOMI_HTTP_PATH_MAX + 1];
    const char *bytes = domus_slice_data(path);
    size_t skip = path.size != 0 && *bytes == '/';

    if (path.size > DOMI_HTTP_PATH_MAX)
        return -ENOENT;
    text[0] = '/';
    memcpy(text + 1, bytes + skip, path.size - skip);
    int64_t size = domus_http_decode_path(to->plain, text, path.size - skip + 1);
    if (size < 0)
        return -ENOENT;
    to->plain[size] = '\0';
    if (!files->hidden && strstr(to->plain, "/.") != NULL)
        return -ENOENT;
    if (to->plain[size - 1] != '/')
        return 0;
    size_t index_size = strlen(index);
    if (index_size > DOMI_HTTP_INDEX_MAX)
        return -EINVAL;
    memcpy(to->plain + size, index, index_size + 1);
    return index_size != 0 ? 0 : -ENOENT;
}

bool domi_http_may_send_gz_file_to_client(const domus_http_files *files,
                                          const domus_http_request *request)
{
    return files->compressed && domi_http_does_client_prefer_gzip(request->fields);
}

int domi_http_list_names_of_files(const domus_http_files *files, const domus_http_request *request,
                                  domus_slice path, domi_http_names *to)
{
    int error = decode_path_of_request(files, path, to);
    uint32_t count = 0;

    if (error != 0)
        return error;
    if (domi_http_may_send_gz_file_to_client(files, request)) {
        size_t size = strlen(to->plain + 1);
        memcpy(to->packed, to->plain + 1, size);
        memcpy(to->packed + size, ".gz", 4);
        to->list[count++] = to->packed;
    }
    to->list[count++] = to->plain + 1;
    to->list[count] = NULL;
    return 0;
}
