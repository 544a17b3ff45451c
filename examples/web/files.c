/* / and /static/: the files beneath web.root. The directory is opened once, before the site is
 * served, so no path of a request can lead out of it. */
#include "web.h"

#include <domus/http_files.h>

#include <errno.h>

static domus_http_files files; /* constant while requests are served */

int web_files_begin(domus_system *system)
{
    files.cache_control = "no-cache"; /* browsers ask each time whether it has changed */
    files.compressed = true;
    return domus_outside_file_open(system, web_settings.root,
                                   DOMUS_FILE_READ | DOMUS_FILE_DIRECTORY, 0, &files.root);
}

void web_files_end(void)
{
    domus_file_close(files.root);
    files.root = NULL;
}

static int serve_file(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    return domus_http_serve(stack, &files, domus_http_path(payload));
}

static int serve_static(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    return domus_http_serve(stack, &files, web_path_value(payload, "path"));
}

const domus_call web_serve_page = {serve_file, 0}, web_serve_static = {serve_static, 0};
