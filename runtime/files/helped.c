/* Operations that helper threads always do, because the ring would use workers of the kernel for
 * them; and the pages that reads and listings fill. */
#include "runtime/files/kinds.h"

#include "base/page.h"
#include "runtime/os/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#define LIST_BYTES     16384u
#define LEFT_OVER_MOST 4096u /* bytes that a page may have beyond twice those that were read */

static_assert(LIST_BYTES >= DOMI_DISK_ENTRY_HEAD + NAME_MAX + 1, "each entry finds room");

const domus_type domus_file_status_type = {.name = "file status",
                                           .size = sizeof(domus_file_status)};
const domus_type domus_file_done_type = {.name = "file done"};

static void release_entries(void *payload)
{
    domus_slice_free(((domus_file_entries *)payload)->bytes);
}

const domus_type domus_file_entries_type = {
    .name = "file entries", .size = sizeof(domus_file_entries), .release = release_entries};

int domi_file_fd(const domus_file *directory)
{
    return directory != NULL ? directory->fd : AT_FDCWD;
}

int domi_file_make_page(domi_file_operation *operation, const domi_manager *manager, uint32_t size)
{
    if (manager->memory.busy && (operation->flags & DOMI_FILE_IS_SENT) == 0)
        return -EBUSY;
    operation->page = domi_page_new(size);
    return operation->page != NULL ? 0 : -ENOMEM;
}

domus_slice domi_file_take_page(domi_file_operation *operation, uint32_t size)
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

static int stat_work(domi_file_operation *operation)
{
    return domi_disk_stat(operation->file->fd, &operation->answer.status);
}

static int sync_work(domi_file_operation *operation)
{
    return domi_disk_sync(operation->file->fd, operation->flags != 0);
}

static int truncate_work(domi_file_operation *operation)
{
    return domi_disk_truncate(operation->file->fd, operation->position);
}

static domi_disk_name make_disk_name(const domi_file_operation *operation,
                                     const domus_file *directory, const char *path)
{
    return (domi_disk_name){domi_file_fd(directory), path,
                            (operation->flags & DOMUS_FILE_BENEATH) != 0};
}

static int rename_work(domi_file_operation *operation)
{
    return domi_disk_rename(make_disk_name(operation, operation->file, operation->path),
                            make_disk_name(operation, operation->to_file, operation->to),
                            (operation->flags & DOMUS_FILE_EXCLUSIVE) != 0);
}

static int link_work(domi_file_operation *operation)
{
    return domi_disk_link(operation->file->fd,
                          make_disk_name(operation, operation->to_file, operation->to));
}

static int remove_work(domi_file_operation *operation)
{
    return domi_disk_remove(make_disk_name(operation, operation->file, operation->path),
                            (operation->flags & DOMUS_FILE_DIRECTORY) != 0);
}

static int make_directory_work(domi_file_operation *operation)
{
    return domi_disk_make_directory(make_disk_name(operation, operation->file, operation->path),
                                    operation->mode);
}

static int list_prepare(domi_file_operation *operation, domi_manager *manager)
{
    operation->size = LIST_BYTES;
    return domi_file_make_page(operation, manager, LIST_BYTES);
}

static int list_work(domi_file_operation *operation)
{
    domi_disk_list list = {
        .bytes = operation->page->room,
        .room = LIST_BYTES,
        .count_max = DOMI_LIVE(operation->system, files.list_max),
        .position = operation->position,
    };
    int result = domi_disk_list_some(operation->file->fd, &list);

    operation->done = list.size;
    operation->count = list.count;
    operation->position = list.position;
    operation->last = list.last;
    return result;
}

static void list_fill(domi_file_operation *operation)
{
    operation->answer.entries = (domus_file_entries){
        .bytes = domi_file_take_page(operation, operation->done),
        .next = operation->position,
        .count = operation->count,
        .last = operation->last,
    };
}

const domi_file_verb domi_file_stat_verb = {
    .waits = {.name = "file stat"}, .reply = &domus_file_status_type, .work = stat_work};
const domi_file_verb domi_file_sync_verb = {
    .waits = {.name = "file sync"}, .reply = &domus_file_done_type, .work = sync_work};
const domi_file_verb domi_file_truncate_verb = {
    .waits = {.name = "file truncate"}, .reply = &domus_file_done_type, .work = truncate_work};
const domi_file_verb domi_file_rename_verb = {
    .waits = {.name = "file rename"}, .reply = &domus_file_done_type, .work = rename_work};
const domi_file_verb domi_file_link_verb = {
    .waits = {.name = "file link"}, .reply = &domus_file_done_type, .work = link_work};
const domi_file_verb domi_file_remove_verb = {
    .waits = {.name = "file remove"}, .reply = &domus_file_done_type, .work = remove_work};
const domi_file_verb domi_file_make_directory_verb = {.waits = {.name = "directory make"},
                                                      .reply = &domus_file_done_type,
                                                      .work = make_directory_work};
const domi_file_verb domi_file_list_verb = {
    .waits = {.name = "directory list"},
    .reply = &domus_file_entries_type,
    .prepare = list_prepare,
    .work = list_work,
    .fill = list_fill,
};
