/* / and /static/: the files beneath web.root. The directory is opened once, before the site is
 * served, so no path of a request can lead out of it. */
#include "web.h"

#include <domus/http_files.h>

#include <errno.h>

/* the directory that is served, constant while requests are served */
static domus_http_files files;

int web_open_files(domus_system *system)
{
    files.cache_control = "no-cache"; /* browsers ask each time whether a file has changed */
    files.compressed = true;
    return domus_outside_file_open(system, web_settings.root,
                                   DOMUS_FILE_READ | DOMUS_FILE_DIRECTORY, 0, &files.root);
}

void web_close_files(void)
{
    domus_file_close(files.root);
    files.root = NULL;
}

static int serve_file_of_root(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    return domus_http_serve(stack, &files, domus_http_path(payload));
}

static int serve_static_file(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    return domus_http_serve(stack, &files, web_value_of_path_segment(payload, "path"));
}

const domus_call web_serve_page = {serve_file_of_root, 0},
                 web_serve_static = {serve_static_file, 0};
