/* This file opens a file for a foreign thread, which has no stack: a new actor opens the file and
 * is asked for its handle. */
#include <domus/await.h>
#include <domus/file.h>
#include <domus/system.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct wish {
    /* path of the file; the message owns it, because the foreign thread may give up before the
     * actor reads it */
    char *path;
    uint32_t flags;
    uint32_t mode;
};

static void release_path_of_open_request(void *payload)
{
    free(((struct wish *)payload)->path);
}

static const domus_type wish_type = {
    .name = "open a file", .size = sizeof(struct wish), .release = release_path_of_open_request};

DOMUS_SEQUENCE(open_file, char)
{
    const struct wish *wish = message;

    DOMUS_BEGIN;
    DOMUS_AWAIT(domus_file_open(stack, NULL, wish->path, wish->flags, wish->mode, then));
    (void)domus_stop(stack, domus_self(stack));
    if (answer->error != 0)
        return answer->error;
    int error = domus_take_answer(stack, answer);
    return error != 0 ? error : domus_reply(stack, answer->type, answer->payload);
    DOMUS_END;
}

static const domus_behaviour opener = {
    .name = "opener",
    .kind = DOMUS_STATE,
    .on = (const domus_on[]){DOMUS_ON(&wish_type, open_file), {NULL, NULL, 0}},
};

int domus_outside_file_open(domus_system *system, const char *path, uint32_t flags, uint32_t mode,
                            domus_file **ret_file)
{
    struct wish wish = {strdup(path), flags, mode};
    void *file = NULL; /* receives the pointer to the domus_file that was opened */
    domus_outside_reply reply = {.buffer = &file, .size = sizeof file};
    domus_address address;

    if (wish.path == NULL)
        return -ENOMEM;
    int error = domus_outside_spawn(system, &opener, NULL, &address);
    if (error != 0) {
        free(wish.path);
        return error;
    }
    error = domus_outside_ask(system, address, &wish_type, &wish, 0, &reply);
    if (error != 0)
        /* the new actor stops by itself only after it was asked, so after a failed ask it is
         * stopped */
        (void)domus_outside_stop(system, address);
    else
        *ret_file = file;
    return error;
}
