/* The functions of domus/file.h that do not send. Each checks its arguments, and begins an
 * operation (operation.h). */
#include "house/conversation/stack.h"
#include "runtime/files/kinds.h"
#include "runtime/os/disk.h"

#include <errno.h>
#include <string.h>

#define PATH_BYTES_MAX 4095u
#define MODE_MAX       07777u

/* True if an operation on a file may use `size` bytes from `position` on. */
static bool is_range_in_file_valid(uint64_t position, uint64_t size)
{
    return position <= INT64_MAX && size <= INT64_MAX - position;
}

static int check_path_of_file(const char *path)
{
    if (path == NULL || path[0] == '\0')
        return -EINVAL;
    return strnlen(path, PATH_BYTES_MAX + 1) > PATH_BYTES_MAX ? -ENAMETOOLONG : 0;
}

static int check_path_and_flags(const char *path, uint32_t flags, uint32_t known)
{
    return (flags & ~known) != 0 ? -EINVAL : check_path_of_file(path);
}

static int check_arguments_of_open(const char *path, uint32_t flags, uint32_t mode)
{
    const uint32_t changes = DOMUS_FILE_CREATE | DOMUS_FILE_TRUNCATE | DOMUS_FILE_APPEND;
    const uint32_t exclusive = DOMUS_FILE_EXCLUSIVE | DOMUS_FILE_CREATE;
    const uint32_t named = DOMUS_FILE_CREATE | DOMUS_FILE_TRUNCATE | DOMUS_FILE_DIRECTORY;

    if ((flags & (DOMUS_FILE_READ | DOMUS_FILE_WRITE)) == 0 || mode > MODE_MAX ||
        ((flags & changes) != 0 && (flags & DOMUS_FILE_WRITE) == 0) ||
        (flags & exclusive) == DOMUS_FILE_EXCLUSIVE ||
        ((flags & DOMUS_FILE_DIRECTORY) != 0 && (flags & DOMUS_FILE_WRITE) != 0) ||
        ((flags & DOMUS_FILE_UNNAMED) != 0 &&
         ((flags & named) != 0 || (flags & DOMUS_FILE_WRITE) == 0)))
        return -EINVAL;
    return check_path_and_flags(path, flags,
                                DOMUS_FILE_READ | DOMUS_FILE_WRITE | changes | exclusive |
                                    DOMUS_FILE_DIRECTORY | DOMUS_FILE_BENEATH | DOMUS_FILE_UNNAMED);
}

int domus_file_open(domus_stack *stack, domus_file *directory, const char *path, uint32_t flags,
                    uint32_t mode, domus_resumed *then)
{
    int error = check_arguments_of_open(path, flags, mode);

    if (error != 0)
        return error;
    return domi_file_begin_operation(
        stack, &domi_file_open_verb,
        &(const domi_file_operation){.file = directory, .path = path, .flags = flags, .mode = mode},
        0, then);
}

static int begin_read_operation(domus_stack *stack, domus_file *file, uint64_t position,
                                uint32_t size, uint64_t tag, domus_resumed *then)
{
    if (file == NULL || !is_range_in_file_valid(position, size))
        return -EINVAL;
    if (size > stack->manager->config->files.read_max_bytes)
        return -EMSGSIZE;
    return domi_file_begin_operation(
        stack, &domi_file_read_verb,
        &(const domi_file_operation){.file = file, .position = position, .size = size}, tag, then);
}

int domus_file_read(domus_stack *stack, domus_file *file, uint64_t position, uint32_t size,
                    domus_resumed *then)
{
    return begin_read_operation(stack, file, position, size, 0, then);
}

int domus_file_read_add(domus_stack *stack, domus_file *file, uint64_t position, uint32_t size,
                        uint64_t tag)
{
    return begin_read_operation(stack, file, position, size, tag, NULL);
}

static int begin_write_operation(domus_stack *stack, domus_file *file, uint64_t position,
                                 domus_slice bytes, uint64_t tag, domus_resumed *then)
{
    if (file == NULL || !is_range_in_file_valid(position, bytes.size))
        return -EINVAL;
    return domi_file_begin_operation(
        stack, &domi_file_write_verb,
        &(const domi_file_operation){.file = file, .position = position, .bytes = bytes}, tag,
        then);
}

int domus_file_write(domus_stack *stack, domus_file *file, uint64_t position, domus_slice bytes,
                     domus_resumed *then)
{
    return begin_write_operation(stack, file, position, bytes, 0, then);
}

int domus_file_write_add(domus_stack *stack, domus_file *file, uint64_t position, domus_slice bytes,
                         uint64_t tag)
{
    return begin_write_operation(stack, file, position, bytes, tag, NULL);
}

static int begin_operation_on_file(domus_stack *stack, const domi_file_verb *verb, domus_file *file,
                                   uint64_t position, uint32_t flags, domus_resumed *then)
{
    if (file == NULL || !is_range_in_file_valid(position, 0))
        return -EINVAL;
    return domi_file_begin_operation(
        stack, verb,
        &(const domi_file_operation){.file = file, .position = position, .flags = flags}, 0, then);
}

int domus_file_sync(domus_stack *stack, domus_file *file, bool data_only, domus_resumed *then)
{
    return begin_operation_on_file(stack, &domi_file_sync_verb, file, 0, data_only, then);
}

int domus_file_truncate(domus_stack *stack, domus_file *file, uint64_t size, domus_resumed *then)
{
    return begin_operation_on_file(stack, &domi_file_truncate_verb, file, size, 0, then);
}

int domus_file_stat(domus_stack *stack, domus_file *file, domus_resumed *then)
{
    return begin_operation_on_file(stack, &domi_file_stat_verb, file, 0, 0, then);
}

int domus_file_list(domus_stack *stack, domus_file *directory, uint64_t position,
                    domus_resumed *then)
{
    return begin_operation_on_file(stack, &domi_file_list_verb, directory, position, 0, then);
}

int domus_file_rename(domus_stack *stack, domus_file *from_directory, const char *from,
                      domus_file *to_directory, const char *to, uint32_t flags, domus_resumed *then)
{
    int error = check_path_and_flags(from, flags, DOMUS_FILE_BENEATH | DOMUS_FILE_EXCLUSIVE);

    if (error == 0)
        error = check_path_of_file(to);
    if (error != 0)
        return error;
    return domi_file_begin_operation(stack, &domi_file_rename_verb,
                                     &(const domi_file_operation){.file = from_directory,
                                                                  .path = from,
                                                                  .to_file = to_directory,
                                                                  .to = to,
                                                                  .flags = flags},
                                     0, then);
}

int domus_file_link(domus_stack *stack, domus_file *file, domus_file *directory, const char *path,
                    uint32_t flags, domus_resumed *then)
{
    int error = file != NULL ? check_path_and_flags(path, flags, DOMUS_FILE_BENEATH) : -EINVAL;

    if (error != 0)
        return error;
    return domi_file_begin_operation(
        stack, &domi_file_link_verb,
        &(const domi_file_operation){
            .file = file, .to_file = directory, .to = path, .flags = flags},
        0, then);
}

int domus_file_remove(domus_stack *stack, domus_file *directory, const char *path, uint32_t flags,
                      domus_resumed *then)
{
    int error = check_path_and_flags(path, flags, DOMUS_FILE_BENEATH | DOMUS_FILE_DIRECTORY);

    if (error != 0)
        return error;
    return domi_file_begin_operation(
        stack, &domi_file_remove_verb,
        &(const domi_file_operation){.file = directory, .path = path, .flags = flags}, 0, then);
}

int domus_file_make_directory(domus_stack *stack, domus_file *directory, const char *path,
                              uint32_t flags, uint32_t mode, domus_resumed *then)
{
    int error = mode > MODE_MAX ? -EINVAL : check_path_and_flags(path, flags, DOMUS_FILE_BENEATH);

    if (error != 0)
        return error;
    return domi_file_begin_operation(
        stack, &domi_file_make_directory_verb,
        &(const domi_file_operation){.file = directory, .path = path, .flags = flags, .mode = mode},
        0, then);
}

bool domus_file_next_entry(const domus_file_entries *entries, uint32_t *at,
                           domus_file_entry *ret_entry)
{
    const char *bytes = domus_slice_data(entries->bytes) + *at;

    if (*at >= entries->bytes.size)
        return false;
    memcpy(&ret_entry->inode, bytes, sizeof ret_entry->inode);
    ret_entry->kind = (domus_file_kind)bytes[sizeof ret_entry->inode];
    ret_entry->name = bytes + DOMI_DISK_ENTRY_HEAD;
    *at += (uint32_t)(DOMI_DISK_ENTRY_HEAD + strlen(ret_entry->name) + 1);
    return true;
}
