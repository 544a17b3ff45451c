/* The kinds of operations on files. The ring of a thread tries some of them first; helper
 * threads always do the others, because the kernel may wait in them. */
#include "runtime/files/kinds.h"

#include "base/page.h"
#include "runtime/os/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

/* ---- tries ------------------------------------------------------------------------------------*/

/* Open, read and write. The ring of the thread does the part that the
 * kernel has in memory, and a helper thread the rest.
 *
 * A try of a read or a write may do a part of it. Then it is tried again, until the file ends, all
 * is done, or the kernel has nothing more in memory. Some file systems refuse each write in the
 * ring. After WRITES_WAITED refusals in a row the writes of a handle go to helper threads at once.
 * The thread of the ring judges a try, and `work` runs on any thread. */

/* number of writes in a row that the ring refused to do, after which a handle's writes are not
 * tried in the ring any more */
#define WRITES_WAITED 4u

/* flags of an open with which it may make a new file */
#define MAKES (DOMUS_FILE_CREATE | DOMUS_FILE_UNNAMED)

const domus_type domus_file_written_type = {.name = "file written",
                                            .size = sizeof(domus_file_written)};

/* --- open ------------------------------------------------------------------------------------- */

static void set_flags_and_mode_of_open(domi_file_operation *operation)
{
    uint32_t flags = operation->flags;
    uint64_t access = (flags & DOMUS_FILE_WRITE) == 0  ? O_RDONLY
                      : (flags & DOMUS_FILE_READ) != 0 ? O_RDWR
                                                       : O_WRONLY;

    operation->how = (struct open_how){
        .flags = access | O_CLOEXEC | O_NOCTTY | O_NONBLOCK |
                 ((flags & DOMUS_FILE_CREATE) != 0 ? O_CREAT : 0) |
                 ((flags & DOMUS_FILE_EXCLUSIVE) != 0 ? O_EXCL : 0) |
                 ((flags & DOMUS_FILE_TRUNCATE) != 0 ? O_TRUNC : 0) |
                 ((flags & DOMUS_FILE_APPEND) != 0 ? O_APPEND : 0) |
                 ((flags & DOMUS_FILE_DIRECTORY) != 0 ? O_DIRECTORY : 0) |
                 ((flags & DOMUS_FILE_UNNAMED) != 0 ? O_TMPFILE : 0),
        .mode = (flags & MAKES) != 0 ? operation->mode : 0,
        .resolve = (flags & DOMUS_FILE_BENEATH) != 0 ? RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS : 0,
    };
}

static int prepare_open_of_file(domi_file_operation *operation, domi_manager *manager)
{
    (void)manager;
    int error = domi_file_new_handle(operation->system->files, &operation->opened);

    if (error != 0)
        return error;
    operation->opened->is_writable = (operation->flags & DOMUS_FILE_WRITE) != 0;
    operation->opened->appends = (operation->flags & DOMUS_FILE_APPEND) != 0;
    set_flags_and_mode_of_open(operation);
    return 0;
}

/* Store the descriptor that an open has returned in the handle, and check the file's kind. Returns
 * 0; -EINVAL if the file is neither a regular file nor a directory; another negative errno. `fd`
 * may be a negative errno, which is returned, but for -ENXIO (a socket, or a FIFO without a reader)
 * -EINVAL is. */
static int store_opened_descriptor(domi_file_operation *operation, int fd)
{
    domus_file *opened = operation->opened;

    if (fd < 0)
        return fd == -ENXIO ? -EINVAL : fd;
    opened->fd = fd;
    return domi_disk_check_kind_of_file(fd, &opened->is_directory);
}

static bool try_open_in_ring(domi_file_operation *operation, domi_io *io)
{
    if ((operation->flags & (MAKES | DOMUS_FILE_TRUNCATE)) != 0)
        return false;
    operation->how.resolve |= RESOLVE_CACHED;
    return domi_file_begin_try_open(io, &operation->attempt,
                                    domi_file_descriptor_of_directory(operation->file),
                                    operation->path, &operation->how);
}

static int decide_after_try_of_open(domi_file_operation *operation, int result, bool is_lost)
{
    return is_lost || result == -EAGAIN ? DOMI_FILE_TRY_ELSEWHERE
                                        : store_opened_descriptor(operation, result);
}

static int open_file_on_helper(domi_file_operation *operation)
{
    operation->how.resolve &= ~(uint64_t)RESOLVE_CACHED;
    return store_opened_descriptor(
        operation, domi_disk_open(domi_file_descriptor_of_directory(operation->file),
                                  operation->path, &operation->how));
}

static void fill_answer_of_open(domi_file_operation *operation)
{
    operation->answer.file = operation->opened;
    operation->opened = NULL;
}

const domi_file_verb domi_file_open_verb = {
    .waits = {.name = "file open"},
    .reply = &domus_file_type,
    .prepare = prepare_open_of_file,
    .try = try_open_in_ring,
    .judge = decide_after_try_of_open,
    .work = open_file_on_helper,
    .fill = fill_answer_of_open,
};

/* --- read ------------------------------------------------------------------------------------- */

static int prepare_read_of_file(domi_file_operation *operation, domi_manager *manager)
{
    return operation->size != 0
               ? domi_file_make_page_to_read_into(operation, manager, operation->size)
               : 1;
}

static bool try_read_in_ring(domi_file_operation *operation, domi_io *io)
{
    /* Relaxed: if another thread sets `reads_wait` just now and this read does not see it, one
     * try in the ring is wasted. */
    if (atomic_load_explicit(&operation->file->reads_wait, memory_order_relaxed))
        return false;
    return domi_file_begin_try_read(
        io, &operation->attempt, operation->file->fd, operation->page->room + operation->done,
        operation->size - operation->done, operation->position + operation->done);
}

static int decide_after_try_of_read(domi_file_operation *operation, int result, bool is_lost)
{
    if (is_lost || result == -EAGAIN || result == -EINTR)
        return DOMI_FILE_TRY_ELSEWHERE;
    if (result == -EOPNOTSUPP) {
        atomic_store_explicit(&operation->file->reads_wait, true, memory_order_relaxed);
        return DOMI_FILE_TRY_ELSEWHERE;
    }
    if (result <= 0)
        return result;
    operation->done += (uint32_t)result;
    return operation->done < operation->size ? DOMI_FILE_TRY_AGAIN : 0;
}

static int read_file_on_helper(domi_file_operation *operation)
{
    int result =
        domi_disk_read(operation->file->fd, operation->page->room + operation->done,
                       operation->size - operation->done, operation->position + operation->done);

    if (result < 0)
        return result;
    operation->done += (uint32_t)result;
    return 0;
}

static void fill_answer_of_read(domi_file_operation *operation)
{
    operation->answer.slice = domi_file_take_bytes_of_page(operation, operation->done);
}

const domi_file_verb domi_file_read_verb = {
    .waits = {.name = "file read"},
    .reply = &domus_slice_type,
    .prepare = prepare_read_of_file,
    .try = try_read_in_ring,
    .judge = decide_after_try_of_read,
    .work = read_file_on_helper,
    .fill = fill_answer_of_read,
};

/* --- write ------------------------------------------------------------------------------------ */

/* Prepare a write to a file. Another thread may read the bytes later, so their page has to own them
 * if it only borrows the bytes of a received message. */
static int prepare_write_of_file(domi_file_operation *operation, domi_manager *manager)
{
    (void)manager;
    operation->size = operation->bytes.size;
    return operation->size != 0 ? domi_page_own_borrowed_bytes(domi_page_of_slice(operation->bytes))
                                : 1;
}

static bool try_write_in_ring(domi_file_operation *operation, domi_io *io)
{
    if (atomic_load_explicit(&operation->file->writes_waited, memory_order_relaxed) >=
        WRITES_WAITED)
        return false;
    return domi_file_begin_try_write(io, &operation->attempt, operation->file->fd,
                                     domus_slice_data(operation->bytes) + operation->done,
                                     operation->size - operation->done,
                                     operation->position + operation->done);
}

/* Judge what a try of a write in the ring has returned. A write that the ring has lost may still
 * have happened; so it is done again, except on a file that is appended to, where this would do
 * harm. */
static int decide_after_try_of_write(domi_file_operation *operation, int result, bool is_lost)
{
    domus_file *file = operation->file;

    if (is_lost)
        return file->appends ? result : DOMI_FILE_TRY_ELSEWHERE;
    if (result == -EAGAIN || result == -EOPNOTSUPP || result == -EINTR) {
        atomic_fetch_add_explicit(&file->writes_waited, result != -EINTR, memory_order_relaxed);
        return DOMI_FILE_TRY_ELSEWHERE;
    }
    if (result <= 0) {
        operation->error = result != 0 ? result : -EIO;
        return operation->done != 0 ? 0 : operation->error;
    }
    atomic_store_explicit(&file->writes_waited, 0, memory_order_relaxed);
    operation->done += (uint32_t)result;
    return operation->done < operation->size ? DOMI_FILE_TRY_AGAIN : 0;
}

static int write_file_on_helper(domi_file_operation *operation)
{
    operation->done +=
        domi_disk_write(operation->file->fd, domus_slice_data(operation->bytes) + operation->done,
                        operation->size - operation->done, operation->position + operation->done,
                        &operation->error);
    return operation->done != 0 ? 0 : operation->error;
}

static void fill_answer_of_write(domi_file_operation *operation)
{
    operation->answer.written = (domus_file_written){operation->done, operation->error};
}

const domi_file_verb domi_file_write_verb = {
    .waits = {.name = "file write"},
    .reply = &domus_file_written_type,
    .prepare = prepare_write_of_file,
    .try = try_write_in_ring,
    .judge = decide_after_try_of_write,
    .work = write_file_on_helper,
    .fill = fill_answer_of_write,
};

/* ---- helped -----------------------------------------------------------------------------------*/

/* Operations that helper threads always do, because the ring would use workers of the kernel for
 * them. Also the pages that reads and listings fill. */

#define LIST_BYTES 16384u
/* most bytes that a page may have unused, beyond as many as were read, before the bytes that
 * were read are copied out of it */
#define LEFT_OVER_MOST 4096u

static_assert(LIST_BYTES >= DOMI_DISK_ENTRY_HEAD + NAME_MAX + 1, "each entry finds room");

const domus_type domus_file_status_type = {.name = "file status",
                                           .size = sizeof(domus_file_status)};
const domus_type domus_file_done_type = {.name = "file done"};

static void release_page_of_entries(void *payload)
{
    domus_slice_free(((domus_file_entries *)payload)->bytes);
}

const domus_type domus_file_entries_type = {
    .name = "file entries", .size = sizeof(domus_file_entries), .release = release_page_of_entries};

int domi_file_descriptor_of_directory(const domus_file *directory)
{
    return directory != NULL ? directory->fd : AT_FDCWD;
}

int domi_file_make_page_to_read_into(domi_file_operation *operation, const domi_manager *manager,
                                     uint32_t size)
{
    if (manager->memory.busy && (operation->flags & DOMI_FILE_IS_SENT) == 0)
        return -EBUSY;
    operation->page = domi_page_new(size);
    return operation->page != NULL ? 0 : -ENOMEM;
}

domus_slice domi_file_take_bytes_of_page(domi_file_operation *operation, uint32_t size)
{
    domus_slice bytes = {NULL, 0, 0};

    if (size == 0)
        return bytes;
    if (operation->size > 2 * (uint64_t)size + LEFT_OVER_MOST &&
        domus_slice_copy(operation->page->room, size, &bytes) == 0)
        return bytes;
    bytes = (domus_slice){&operation->page->face, 0, size};
    operation->page = NULL;
    return bytes;
}

static int stat_file_on_helper(domi_file_operation *operation)
{
    return domi_disk_stat(operation->file->fd, &operation->answer.status);
}

static int sync_file_on_helper(domi_file_operation *operation)
{
    return domi_disk_sync(operation->file->fd, operation->flags != 0);
}

static int truncate_file_on_helper(domi_file_operation *operation)
{
    return domi_disk_truncate(operation->file->fd, operation->position);
}

static domi_disk_name make_path_of_directory_and_name(const domi_file_operation *operation,
                                                      const domus_file *directory, const char *path)
{
    return (domi_disk_name){domi_file_descriptor_of_directory(directory), path,
                            (operation->flags & DOMUS_FILE_BENEATH) != 0};
}

static int rename_file_on_helper(domi_file_operation *operation)
{
    return domi_disk_rename(
        make_path_of_directory_and_name(operation, operation->file, operation->path),
        make_path_of_directory_and_name(operation, operation->to_file, operation->to),
        (operation->flags & DOMUS_FILE_EXCLUSIVE) != 0);
}

static int link_file_on_helper(domi_file_operation *operation)
{
    return domi_disk_link(operation->file->fd, make_path_of_directory_and_name(
                                                   operation, operation->to_file, operation->to));
}

static int remove_file_on_helper(domi_file_operation *operation)
{
    return domi_disk_remove(
        make_path_of_directory_and_name(operation, operation->file, operation->path),
        (operation->flags & DOMUS_FILE_DIRECTORY) != 0);
}

static int make_directory_on_helper(domi_file_operation *operation)
{
    return domi_disk_make_directory(
        make_path_of_directory_and_name(operation, operation->file, operation->path),
        operation->mode);
}

static int prepare_list_of_directory(domi_file_operation *operation, domi_manager *manager)
{
    operation->size = LIST_BYTES;
    return domi_file_make_page_to_read_into(operation, manager, LIST_BYTES);
}

static int list_directory_on_helper(domi_file_operation *operation)
{
    domi_disk_list list = {
        .bytes = operation->page->room,
        .room = LIST_BYTES,
        .count_max = DOMI_LIVE(operation->system, files.list_max),
        .position = operation->position,
    };
    int result = domi_disk_list_part_of_directory(operation->file->fd, &list);

    operation->done = list.size;
    operation->count = list.count;
    operation->position = list.position;
    operation->last = list.last;
    return result;
}

static void fill_answer_of_list(domi_file_operation *operation)
{
    operation->answer.entries = (domus_file_entries){
        .bytes = domi_file_take_bytes_of_page(operation, operation->done),
        .next = operation->position,
        .count = operation->count,
        .last = operation->last,
    };
}

const domi_file_verb domi_file_stat_verb = {
    .waits = {.name = "file stat"}, .reply = &domus_file_status_type, .work = stat_file_on_helper};
const domi_file_verb domi_file_sync_verb = {
    .waits = {.name = "file sync"}, .reply = &domus_file_done_type, .work = sync_file_on_helper};
const domi_file_verb domi_file_truncate_verb = {.waits = {.name = "file truncate"},
                                                .reply = &domus_file_done_type,
                                                .work = truncate_file_on_helper};
const domi_file_verb domi_file_rename_verb = {.waits = {.name = "file rename"},
                                              .reply = &domus_file_done_type,
                                              .work = rename_file_on_helper};
const domi_file_verb domi_file_link_verb = {
    .waits = {.name = "file link"}, .reply = &domus_file_done_type, .work = link_file_on_helper};
const domi_file_verb domi_file_remove_verb = {.waits = {.name = "file remove"},
                                              .reply = &domus_file_done_type,
                                              .work = remove_file_on_helper};
const domi_file_verb domi_file_make_directory_verb = {.waits = {.name = "directory make"},
                                                      .reply = &domus_file_done_type,
                                                      .work = make_directory_on_helper};
const domi_file_verb domi_file_list_verb = {
    .waits = {.name = "directory list"},
    .reply = &domus_file_entries_type,
    .prepare = prepare_list_of_directory,
    .work = list_directory_on_helper,
    .fill = fill_answer_of_list,
};
