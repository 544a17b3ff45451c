/* / and /static/: the files beneath web.root. The directory is opened once, before the site is
 * served, so no path of a request can lead out of it. */
#include "web.h"

#include <domus/http_files.h>

#include <errno.h>

static const domus_type open_type = {.name = "open the root"};
static domus_http_files files; /* constant while requests are served */

/* An actor opens the directory, because only actors do. */
DOMUS_SEQUENCE(open_root, char)
{
    DOMUS_BEGIN;
    DOMUS_AWAIT(domus_file_open(stack, NULL, web_settings.root,
                                DOMUS_FILE_READ | DOMUS_FILE_DIRECTORY, 0, then));
    if (answer->error == 0 && domus_take_answer(stack, answer) == 0)
        return domus_reply(stack, answer->type, answer->payload);
    return answer->error != 0 ? answer->error : -ENOMEM;
    DOMUS_END;
}

static const domus_behaviour opener = {
    .name = "opener", .on = (const domus_on[]){DOMUS_ON(&open_type, open_root), {NULL, NULL, 0}}};

int web_files_begin(domus_system *system)
{
    domus_outside_reply reply = {.buffer = &files.root, .size = sizeof files.root};
    domus_address address;
    int error = domus_outside_spawn(system, &opener, NULL, &address);

    if (error == 0)
        error = domus_outside_ask(system, address, &open_type, NULL, 0, &reply);
    if (error == 0)
        error = domus_outside_stop(system, address);
    files.cache_control = "no-cache"; /* browsers ask each time whether it has changed */
    files.compressed = true;
    return error;
}

void web_files_end(void)
{
    domus_file_close(files.root);
    files.root = NULL;
}

static int serve(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    return domus_http_serve(stack, &files, domus_http_path(payload));
}

static int serve_static(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    return domus_http_serve(stack, &files, web_path_value(payload, "path"));
}

const domus_call web_serve_page = {serve, 0}, web_serve_static = {serve_static, 0};
