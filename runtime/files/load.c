/* This file loads files: it opens a file, gets its status, and reads it as a whole if it is small.
 *
 * A load is tried in the call of the user, by system calls that never wait for a disk
 * (RESOLVE_CACHED, AT_STATX_DONT_SYNC, RWF_NOWAIT). So a file that the kernel has in memory costs
 * neither a message nor a turn of the ring. Other files are loaded by a helper thread. Both ways
 * have the same steps; `in_place` is true in the call of the user. The code runs on the thread that
 * runs the house of the stack, or on a helper thread. */
#include "base/page.h"
#include "house/conversation/stack.h"
#include "runtime/files/kept.h"
#include "runtime/files/kinds.h"
#include "runtime/os/disk.h"
#include "runtime/system/manager_options.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_BYTES_MAX 4095u
/* most times that a file is read again because it has changed during the read */
#define READS_MAX 4

static void release_loaded_file(void *payload)
{
    domus_file_loaded *loaded = payload;

    domus_slice_free(loaded->bytes);
    domus_file_close(loaded->file);
}

const domus_type domus_file_loaded_type = {
    .name = "file loaded", .size = sizeof(domus_file_loaded), .release = release_loaded_file};

/* The state of a load of a file that is under way. */
typedef struct loading {
    int directory;
    uint32_t flags;
    uint32_t size_max;
    bool in_place; /* true: the load runs within the user's call, and must not wait for a disk */
    /* true: only the file's status is wanted, so the file is not opened for reading */
    bool looks_only;
    int fd;                 /* descriptor of the file that is loaded, while it is open */
    struct domi_page *page; /* page with the bytes of the file; NULL: none were read */
    domus_file_loaded loaded;
} loading;

/* --- steps of a load -------------------------------------------------------------------------- */

static int open_path_of_load(const loading *load, const char *path)
{
    const struct open_how how = {
        .flags =
            load->looks_only ? O_PATH | O_CLOEXEC : O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
        .resolve =
            ((load->flags & DOMUS_FILE_BENEATH) != 0 ? RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS
                                                     : 0) |
            (load->in_place ? RESOLVE_CACHED : 0),
    };
    int fd = domi_disk_open(load->directory, path, &how);

    /* -ENXIO is returned for a socket or a FIFO without a reader, -EOPNOTSUPP by a kernel
     * without openat2(2) */
    if (fd == -ENXIO)
        return -EINVAL;
    return fd == -EOPNOTSUPP && load->in_place ? -EAGAIN : fd;
}

/* Open the first path of a load's list that exists, and get the file's status. Returns 0 or a
 * negative errno. */
static int open_first_path_that_exists(loading *load, const char *const *paths)
{
    int error = -ENOENT;

    for (uint32_t i = 0; paths[i] != NULL; i++) {
        int fd = open_path_of_load(load, paths[i]);
        error = fd < 0 ? fd : domi_disk_stat_without_waiting(fd, &load->loaded.status);
        if (error == 0 && S_ISDIR(load->loaded.status.mode) && paths[i + 1] != NULL)
            error = -EISDIR;
        if (error == 0) {
            load->fd = fd;
            load->loaded.path = paths[i];
            load->loaded.index = i;
            return 0;
        }
        if (fd >= 0)
            domi_disk_close(fd);
        if (error == -EAGAIN)
            return error;
    }
    return error;
}

static bool is_file_small(const loading *load)
{
    return S_ISREG(load->loaded.status.mode) && load->loaded.status.size <= load->size_max;
}

/* Read the whole file into the load's page. Returns 0; -EAGAIN if that would wait, or if the
 * file has become shorter meanwhile; another negative errno. */
static int read_file_into_page(loading *load)
{
    uint32_t size = (uint32_t)load->loaded.status.size;
    int result = load->in_place
                     ? domi_disk_read_without_waiting(load->fd, load->page->room, size, 0)
                     : domi_disk_read(load->fd, load->page->room, size, 0);

    if (result < 0)
        return result;
    return (uint32_t)result == size ? 0 : -EAGAIN;
}

/* --- loads in the call of the user ------------------------------------------------------------ */

/* Make a page of exactly the file's size for the load, and read the whole file into it. */
static int read_small_file(loading *load)
{
    if (load->loaded.status.size == 0)
        return 0;
    load->page = domi_page_new((size_t)load->loaded.status.size);
    if (load->page == NULL)
        return -ENOMEM;
    int error = read_file_into_page(load);
    if (error != 0) {
        domi_page_drop_owner(load->page);
        return error;
    }
    load->loaded.bytes = (domus_slice){&load->page->face, 0, (uint32_t)load->loaded.status.size};
    return 0;
}

/* Make a handle that owns the load's open file. Returns 0; -EMFILE; -ENOMEM. */
static int make_handle_of_open_file(domus_stack *stack, loading *load)
{
    domus_system *system = stack->manager->system;
    int error = domi_file_new_handle(system->files, &load->loaded.file);

    if (error != 0)
        return error;
    load->loaded.file->fd = load->fd;
    load->loaded.file->is_directory = S_ISDIR(load->loaded.status.mode);
    return 0;
}

static int check_load_arguments(const domus_stack *stack, const char *const *paths, uint32_t flags,
                                uint32_t allowed, uint32_t size_max)
{
    uint32_t count = 0;

    if (paths == NULL || paths[0] == NULL || (flags & ~allowed) != 0)
        return -EINVAL;
    for (; paths[count] != NULL; count++) {
        if (count == DOMUS_FILE_PATHS_MAX || paths[count][0] == '\0')
            return -EINVAL;
        if (strnlen(paths[count], PATH_BYTES_MAX + 1) > PATH_BYTES_MAX)
            return -ENAMETOOLONG;
    }
    return size_max > stack->manager->config->files.read_max_bytes ? -EMSGSIZE : 0;
}

static int load_file_without_waiting(domus_stack *stack, loading *load, const char *const *paths)
{
    int error = open_first_path_that_exists(load, paths);

    if (error != 0)
        return error;
    if (is_file_small(load)) {
        error = read_small_file(load);
        domi_disk_close(load->fd);
    } else {
        error = make_handle_of_open_file(stack, load);
        if (error != 0)
            domi_disk_close(load->fd);
    }
    return error;
}

/* --- kept files ------------------------------------------------------------------------------- */

/* Returns the thread whose table of kept files a load may use; NULL: no table may be used.
 * Detached actors and the outside have no table. A load without a directory uses none, because
 * the working directory may change. */
static domi_thread *find_thread_with_kept_files(const domi_manager *manager,
                                                const domus_file *directory, uint32_t flags)
{
    if ((flags & DOMUS_FILE_KEPT) == 0 || directory == NULL || manager->index >= manager->threads ||
        manager->config->files.kept_max_bytes == 0)
        return NULL;
    return manager->thread;
}

/* Check by a file's present status whether it has changed since its bytes were kept. Returns 0;
 * -ESTALE if it has changed; another negative errno if the check has failed. */
static int check_kept_file_is_unchanged(const loading *load, const domi_kept_file *file,
                                        const char *const *paths)
{
    loading look = {
        .directory = load->directory, .flags = load->flags, .in_place = true, .looks_only = true};
    int error = open_first_path_that_exists(&look, paths);

    if (error != 0)
        return error;
    domi_disk_close(look.fd);
    return look.loaded.index == file->index &&
                   domi_kept_are_statuses_same(&look.loaded.status, &file->status)
               ? 0
               : -ESTALE;
}

/* Answer a load with the kept bytes of its file. Returns 0; -ESTALE if no bytes are kept or the
 * file has changed; another negative errno if the file is not accessible. */
static int answer_with_kept_bytes(domi_thread *thread, loading *load, domi_kept_file *file,
                                  const char *const *paths)
{
    uint64_t now_ns = thread->manager.now_ns;

    if (file->bytes.page == NULL)
        return -ESTALE;
    if (now_ns - file->looked_ns >= thread->config->files.kept_time_ns) {
        int error = check_kept_file_is_unchanged(load, file, paths);
        if (error != 0)
            return error;
        file->looked_ns = now_ns;
    }
    load->loaded = (domus_file_loaded){
        .status = file->status, .path = paths[file->index], .index = file->index};
    domi_counter_add(&thread->counters.files_kept, 1);
    return domus_slice_keep(file->bytes, &load->loaded.bytes);
}

/* Load a file by the thread's table of kept files: use the kept bytes if the file is unchanged,
 * else load the file within the user's call, and note it in the table. */
static int load_by_kept_files(domus_stack *stack, domi_thread *thread, loading *load,
                              domi_kept_name name)
{
    if (thread->kept == NULL)
        thread->kept =
            domi_kept_new(thread->config->files.kept_max_bytes, thread->system->peers.hash_key);
    if (thread->kept == NULL)
        return load_file_without_waiting(stack, load, name.paths);

    domi_kept_file *file = domi_kept_find_file(thread->kept, name);
    int error = file != NULL ? answer_with_kept_bytes(thread, load, file, name.paths) : -ESTALE;
    if (error == -ESTALE) {
        domi_kept_times times = {.turn_ns = thread->manager.now_ns,
                                 .begun_ns = domi_system_read_clock(&thread->manager)};
        error = load_file_without_waiting(stack, load, name.paths);
        if (error == 0 && load->loaded.bytes.page != NULL) {
            times.done_ns = domi_system_read_clock(&thread->manager);
            domi_kept_record_loaded_file(thread->kept, name, file, &load->loaded, times);
            return 0;
        }
        if (error == 0 && file != NULL && file->bytes.page != NULL)
            /* the file has changed and no new bytes were loaded, so its old bytes must not be
             * kept */
            domi_kept_forget_file(thread->kept, file);
    } else if (error != 0 && error != -EAGAIN) {
        domi_kept_forget_file(thread->kept, file);
    }
    return error;
}

int domus_file_load_now(domus_stack *stack, domus_file *directory, const char *const *paths,
                        uint32_t flags, uint32_t size_max, domus_file_loaded *ret_loaded)
{
    loading load = {.directory = domi_file_descriptor_of_directory(directory),
                    .flags = flags,
                    .size_max = size_max,
                    .in_place = true};
    domi_thread *keeper = find_thread_with_kept_files(stack->manager, directory, flags);
    int error =
        check_load_arguments(stack, paths, flags, DOMUS_FILE_BENEATH | DOMUS_FILE_KEPT, size_max);

    if (error == 0 && stack->manager->memory.busy)
        error = -EBUSY;
    if (error == 0)
        error = keeper != NULL
                    ? load_by_kept_files(stack, keeper, &load,
                                         (domi_kept_name){directory->serial, flags, paths})
                    : load_file_without_waiting(stack, &load, paths);
    if (error == 0)
        *ret_loaded = load.loaded;
    return error;
}

/* --- loads on a helper thread ----------------------------------------------------------------- */

static int prepare_load_of_file(domi_file_operation *operation, domi_manager *manager)
{
    int error = domi_file_make_page_to_read_into(operation, manager, operation->size);

    return error != 0 ? error : domi_file_new_handle(operation->system->files, &operation->opened);
}

/* Fill `ret_paths` with the paths of a load's list, which stand one behind the other in the
 * operation's text. */
static void get_list_of_paths(const domi_file_operation *operation,
                              const char *ret_paths[DOMUS_FILE_PATHS_MAX + 1])
{
    const char *at = operation->path;
    uint32_t count = 0;

    for (; at < operation->path + operation->path_size; at += strlen(at) + 1)
        ret_paths[count++] = at;
    ret_paths[count] = NULL;
}

/* Read the file that a load has just opened if it is small, else put it into the operation's
 * handle. Returns 0; -EAGAIN if the file has changed meanwhile; another negative errno. */
static int read_opened_file(domi_file_operation *operation, loading *load)
{
    if (!is_file_small(load)) {
        operation->opened->fd = load->fd;
        operation->opened->is_directory = S_ISDIR(load->loaded.status.mode);
        load->loaded.file = operation->opened;
        return 0;
    }
    int error = load->loaded.status.size != 0 ? read_file_into_page(load) : 0;
    operation->done = (uint32_t)load->loaded.status.size;
    domi_disk_close(load->fd);
    return error;
}

static int load_file_on_helper(domi_file_operation *operation)
{
    const char *paths[DOMUS_FILE_PATHS_MAX + 1];
    loading load = {
        .directory = domi_file_descriptor_of_directory(operation->file),
        .flags = operation->flags,
        .size_max = operation->size,
        .page = operation->page,
    };
    int error = -EAGAIN;

    get_list_of_paths(operation, paths);
    for (int i = 0; i < READS_MAX && error == -EAGAIN; i++) {
        error = open_first_path_that_exists(&load, paths);
        if (error == 0)
            error = read_opened_file(operation, &load);
    }
    operation->answer.loaded = load.loaded;
    return error != -EAGAIN ? error : -EBUSY;
}

static void fill_answer_of_load(domi_file_operation *operation)
{
    if (operation->answer.loaded.file != NULL)
        /* from this line on the answer owns the handle, so the operation does not close it */
        operation->opened = NULL;
    else
        operation->answer.loaded.bytes = domi_file_take_bytes_of_page(operation, operation->done);
}

const domi_file_verb domi_file_load_verb = {
    .waits = {.name = "file load"},
    .reply = &domus_file_loaded_type,
    .prepare = prepare_load_of_file,
    .work = load_file_on_helper,
    .fill = fill_answer_of_load,
};

int domus_file_load(domus_stack *stack, domus_file *directory, const char *const *paths,
                    uint32_t flags, uint32_t size_max, uint64_t tag, domus_resumed *then)
{
    char list[DOMUS_FILE_PATHS_MAX * (PATH_BYTES_MAX + 1)];
    uint32_t size = 0;
    int error = check_load_arguments(stack, paths, flags, DOMUS_FILE_BENEATH, size_max);

    if (error != 0)
        return error;
    for (; *paths != NULL; paths++) {
        uint32_t bytes = (uint32_t)strlen(*paths) + 1;
        memcpy(list + size, *paths, bytes);
        size += bytes;
    }
    return domi_file_begin_operation(
        stack, &domi_file_load_verb,
        &(const domi_file_operation){
            .file = directory, .path = list, .path_size = size, .flags = flags, .size = size_max},
        tag, then);
}
