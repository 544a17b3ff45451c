/* The clerk actor of the tests of files, and the system in which it works
 * (tests/runtime/files.h). */
#include "tests/runtime/files.h"
#include "tests/support/kits.h"

#include "runtime/files/handle.h"
#include "runtime/system/system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

domt_files domt_files_now;

static void release_result_of_file_operation(void *payload)
{
    domt_done *done = payload;

    domus_file_close(done->file);
    domus_slice_free(done->bytes);
}

const domus_type domt_deed_type = {.name = "deed", .size = sizeof(domt_deed)};
static const domus_type done_type = {
    .name = "done", .size = sizeof(domt_done), .release = release_result_of_file_operation};

static void record_loaded_file(domt_done *done, const domus_file_loaded *loaded)
{
    done->file = loaded->file;
    done->bytes = loaded->bytes;
    done->status = loaded->status;
    done->index = loaded->index;
}

static int reply_with_result(domus_stack *stack, void *self, const domus_answer *answer)
{
    domt_done done = {.error = answer->error, .tag = answer->tag};

    if (answer->error == 0) {
        const void *payload = answer->payload;
        if (answer->type == &domus_file_type)
            done.file = *(domus_file *const *)payload;
        else if (answer->type == &domus_slice_type)
            done.bytes = *(const domus_slice *)payload;
        else if (answer->type == &domus_file_written_type)
            done.written = *(const domus_file_written *)payload;
        else if (answer->type == &domus_file_status_type)
            done.status = *(const domus_file_status *)payload;
        else if (answer->type == &domus_file_entries_type)
            done.entries = *(const domus_file_entries *)payload;
        else if (answer->type == &domus_file_loaded_type)
            record_loaded_file(&done, payload);
        else if (answer->type != &domus_file_done_type)
            done.error = -EPROTO;
        if (answer->type == &domus_file_entries_type)
            done.bytes = done.entries.bytes;
        (void)domus_take_answer(stack, answer);
    }
    return domus_reply(stack, &done_type, &done);
}

static int begin_write_of_file(domus_stack *stack, const domt_deed *deed)
{
    domus_slice bytes = {NULL, 0, 0};
    int result = domus_slice_copy(deed->bytes, (size_t)deed->size, &bytes);

    if (result == 0)
        result = domus_file_write(stack, deed->file, deed->position, bytes, reply_with_result);
    if (result < 0)
        domus_slice_free(bytes);
    return result;
}

static int load_file_now(domus_stack *stack, const domt_deed *deed)
{
    domus_file_loaded loaded;
    domt_done done = {0};

    if (deed->position != 0)
        (void)usleep((useconds_t)(deed->position * 1000));
    int error = domus_file_load_now(stack, deed->file, deed->paths, deed->flags,
                                    (uint32_t)deed->size, &loaded);

    if (error != 0)
        return error;
    record_loaded_file(&done, &loaded);
    return domus_reply(stack, &done_type, &done);
}

static int begin_file_operation(domus_stack *stack, const domt_deed *deed)
{
    switch (deed->kind) {
    case DOMT_OPEN:
        return domus_file_open(stack, deed->file, deed->path, deed->flags, deed->mode,
                               reply_with_result);
    case DOMT_READ:
        return domus_file_read(stack, deed->file, deed->position, (uint32_t)deed->size,
                               reply_with_result);
    case DOMT_WRITE:
        return begin_write_of_file(stack, deed);
    case DOMT_SYNC:
        return domus_file_sync(stack, deed->file, deed->flags != 0, reply_with_result);
    case DOMT_TRUNCATE:
        return domus_file_truncate(stack, deed->file, deed->size, reply_with_result);
    case DOMT_STAT:
        return domus_file_stat(stack, deed->file, reply_with_result);
    case DOMT_RENAME:
        return domus_file_rename(stack, deed->file, deed->path, deed->to_file, deed->to,
                                 deed->flags, reply_with_result);
    case DOMT_LINK:
        return domus_file_link(stack, deed->file, deed->to_file, deed->to, deed->flags,
                               reply_with_result);
    case DOMT_REMOVE:
        return domus_file_remove(stack, deed->file, deed->path, deed->flags, reply_with_result);
    case DOMT_MAKE_DIRECTORY:
        return domus_file_make_directory(stack, deed->file, deed->path, deed->flags, deed->mode,
                                         reply_with_result);
    case DOMT_LIST:
        return domus_file_list(stack, deed->file, deed->position, reply_with_result);
    case DOMT_LOAD:
        return domus_file_load(stack, deed->file, deed->paths, deed->flags, (uint32_t)deed->size,
                               deed->position, reply_with_result);
    case DOMT_LOAD_NOW:
        return load_file_now(stack, deed);
    }
    return -EPROTO;
}

static int on_deed_do_file_operation(domus_stack *stack, void *self, const void *payload)
{
    int result = begin_file_operation(stack, payload);
    if (result >= 0)
        return result;
    const domt_done done = {.returned = result, .error = result};
    return domus_reply(stack, &done_type, &done);
}

const domus_behaviour domt_clerk = {
    .name = "clerk",
    .on = (const domus_on[]){{&domt_deed_type, on_deed_do_file_operation, 0}, {0}}};

/* --- the system ------------------------------------------------------------------------------- */

void domt_files_begin(const domus_config *config, bool in_kit)
{
    domt_files *now = &domt_files_now;
    domus_config own = config != NULL ? *config : domt_config_of_threads(2);

    *now = (domt_files){.open_fds = domt_count_directory_entries("/proc/self/fd")};
    domt_tree_make(&now->tree);
    if (in_kit) {
        now->kit = domt_kit_new(&own, 1);
        now->system = domus_testkit_system(now->kit);
        ck_assert_int_eq(domus_probe_new(now->kit, &now->probe), 0);
    } else {
        now->system = domt_start_system(&own);
    }
    for (uint32_t i = 0; i < 2; i++)
        now->clerks[i] = domt_spawn(now->system, i, &domt_clerk, NULL);
    domt_done done = domt_file_order(
        (domt_deed){.kind = DOMT_OPEN, .path = now->tree.root, .flags = DOMUS_FILE_READ});
    ck_assert_int_eq(done.error, 0);
    now->root = done.file;
}

void domt_files_end(void)
{
    domt_files *now = &domt_files_now;

    domus_file_close(now->root);
    if (now->kit != NULL) {
        ck_assert_int_eq(domus_testkit_stop(now->kit), 0);
        domus_testkit_free(now->kit);
    } else {
        domt_end_system(now->system);
    }
    domt_tree_remove_copy(&now->tree);
    ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), now->open_fds);
}

static domt_done ask_clerk_in_kit(domus_address clerk, const domt_deed *deed)
{
    domt_files *now = &domt_files_now;
    domt_done done;

    ck_assert_int_eq(domus_probe_ask(now->probe, clerk, &domt_deed_type, deed), 0);
    int result = domus_probe_expect(now->probe, &done_type, 0, &done);
    ck_assert_msg(result == 0, "%s", domus_testkit_error(now->kit));
    return done;
}

domt_done domt_file_order_from_clerk(uint32_t clerk, domt_deed deed)
{
    domt_files *now = &domt_files_now;
    domt_done done = {.error = 1};
    domus_outside_reply reply = {.buffer = &done, .size = sizeof done};

    if (now->kit != NULL)
        return ask_clerk_in_kit(now->clerks[clerk], &deed);
    ck_assert_int_eq(
        domus_outside_ask(now->system, now->clerks[clerk], &domt_deed_type, &deed, 0, &reply), 0);
    ck_assert_ptr_eq(reply.type, &done_type);
    return done;
}

domt_done domt_file_order(domt_deed deed)
{
    return domt_file_order_from_clerk(0, deed);
}

/* --- deeds in short --------------------------------------------------------------------------- */

int domt_file_open(const char *path, uint32_t flags, domus_file **ret_file)
{
    domt_done done = domt_file_order((domt_deed){.kind = DOMT_OPEN,
                                                 .file = domt_files_now.root,
                                                 .path = path,
                                                 .flags = flags,
                                                 .mode = 0644});

    *ret_file = done.file;
    return done.error;
}

domus_file *domt_file_must_open(const char *path, uint32_t flags)
{
    domus_file *file = NULL;
    int error = domt_file_open(path, flags, &file);

    ck_assert_msg(error == 0, "open of %s: %s", path, strerror(-error));
    ck_assert_ptr_nonnull(file);
    return file;
}

void domt_file_must_read(domus_file *file, uint64_t position, uint32_t size, const char *text)
{
    domt_done done = domt_file_order(
        (domt_deed){.kind = DOMT_READ, .file = file, .position = position, .size = size});

    ck_assert_int_eq(done.error, 0);
    ck_assert_msg(domus_slice_equals(done.bytes, text, strlen(text)), "%u bytes: %.*s, not %s",
                  done.bytes.size, (int)done.bytes.size, domus_slice_data(done.bytes), text);
    domus_slice_free(done.bytes);
}

void domt_file_must_write(domus_file *file, uint64_t position, const char *text)
{
    domt_done done = domt_file_order((domt_deed){.kind = DOMT_WRITE,
                                                 .file = file,
                                                 .position = position,
                                                 .bytes = text,
                                                 .size = strlen(text)});

    ck_assert_int_eq(done.error, 0);
    ck_assert_uint_eq(done.written.bytes, strlen(text));
    ck_assert_int_eq(done.written.error, 0);
}

const char *domt_file_whole_path(const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", domt_files_now.tree.root, name);
    return path;
}

char domt_file_byte_at(uint64_t position)
{
    return (char)('a' + position % 25);
}

int domt_file_make_unnamed(uint64_t size)
{
    static char block[250 * 4096];
    char path[] = "/tmp/domt-send-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(unlink(path), 0);
    for (uint32_t i = 0; i < sizeof block; i++)
        block[i] = domt_file_byte_at(i);
    for (uint64_t at = 0; at < size;) {
        uint64_t part = size - at < sizeof block ? size - at : sizeof block;
        ck_assert_int_eq(pwrite(fd, block, (size_t)part, (off_t)at), (ssize_t)part);
        at += part;
    }
    return fd;
}

domus_file *domt_file_handle_of_descriptor(domus_system *system, int fd)
{
    domus_file *file;

    ck_assert_int_eq(domi_file_new_handle(system->files, &file), 0);
    file->fd = fd;
    return file;
}

uint64_t domt_count_helper_jobs(void)
{
    domi_workers *workers = domt_files_now.system->workers;

    return workers != NULL ? domi_counter_read(&workers->counters.jobs) : 0;
}

uint32_t domt_count_threads_named(const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    uint32_t count = 0;

    ck_assert_ptr_nonnull(tasks);
    for (struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        char path[300], text[64] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        if (file == NULL)
            continue;
        if (fgets(text, sizeof text, file) != NULL)
            count += strncmp(text, name, strlen(name)) == 0;
        (void)fclose(file);
    }
    (void)closedir(tasks);
    return count;
}

void domt_files_run_in_kit_and_system(void (*hold)(void))
{
    for (int is_kit = 0; is_kit < 2; is_kit++) {
        domt_files_begin(NULL, is_kit != 0);
        hold();
        domt_files_end();
    }
}
