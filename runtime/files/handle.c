/* This file counts the uses of file handles, and closes a file after the last use.
 *
 * A file that may be written is closed by a helper thread, because the kernel may write its bytes
 * to the disk then. Handles are not counted on the meter of memory, because they may be freed by a
 * thread that has no meter. */
#include "runtime/files/handle.h"

#include "base/check.h"
#include "base/memory.h"
#include "runtime/os/disk.h"

#include <errno.h>
#include <stddef.h>

static void release_file_of_payload(void *payload)
{
    domus_file_close(*(domus_file **)payload);
}

const domus_type domus_file_type = {
    .name = "file", .size = sizeof(domus_file *), .release = release_file_of_payload};

/* --- the common part of handles --------------------------------------------------------------- */

domi_files *domi_files_new(domi_workers *workers, uint32_t open_max)
{
    domi_files *files = domi_memory_new(sizeof *files);

    if (files == NULL)
        return NULL;
    pthread_mutex_init(&files->mutex, NULL);
    files->workers = workers;
    files->users = 1;
    files->open_max = open_max;
    return files;
}

/* Release one use of the part that all file handles of a system share; the last release frees
 * the part. Its mutex is locked at the call, and unlocked at the return. */
static void unlock_and_release_use_of_common_part(domi_files *files)
{
    bool is_last = --files->users == 0;

    pthread_mutex_unlock(&files->mutex);
    if (!is_last)
        return;
    pthread_mutex_destroy(&files->mutex);
    domi_meter *counted = domi_memory_set_meter(NULL);
    domi_memory_free(files);
    (void)domi_memory_set_meter(counted);
}

static void unlink_work_from_list(domi_file_left *left)
{
    *left->place = left->next;
    if (left->next != NULL)
        left->next->place = left->place;
    left->place = NULL;
}

static void link_work_to_list(domi_files *files, domi_file_left *left)
{
    left->place = &files->left;
    left->next = files->left;
    if (left->next != NULL)
        left->next->place = &left->next;
    files->left = left;
}

void domi_file_left_add_work_under_way(domi_files *files, domi_file_left *left)
{
    pthread_mutex_lock(&files->mutex);
    link_work_to_list(files, left);
    pthread_mutex_unlock(&files->mutex);
}

void domi_file_left_remove_work_that_ended(domi_files *files, domi_file_left *left)
{
    pthread_mutex_lock(&files->mutex);
    unlink_work_from_list(left);
    pthread_mutex_unlock(&files->mutex);
}

void domi_files_free(domi_files *files)
{
    if (files == NULL)
        return;
    pthread_mutex_lock(&files->mutex);
    files->workers = NULL;
    while (files->left != NULL) {
        domi_file_left *left = files->left;
        unlink_work_from_list(left);
        pthread_mutex_unlock(&files->mutex);
        left->drop(left);
        pthread_mutex_lock(&files->mutex);
    }
    unlock_and_release_use_of_common_part(files);
}

/* --- handles ---------------------------------------------------------------------------------- */

int domi_file_new_handle(domi_files *files, domus_file **ret_file)
{
    /* Relaxed: the number of open handles protects no other data. */
    if (atomic_fetch_add_explicit(&files->open, 1, memory_order_relaxed) >= files->open_max) {
        atomic_fetch_sub_explicit(&files->open, 1, memory_order_relaxed);
        return -EMFILE;
    }
    domi_meter *counted = domi_memory_set_meter(NULL);
    domus_file *file = domi_memory_new(sizeof *file);
    (void)domi_memory_set_meter(counted);
    if (file == NULL) {
        atomic_fetch_sub_explicit(&files->open, 1, memory_order_relaxed);
        return -ENOMEM;
    }
    atomic_init(&file->users, 1);
    file->fd = -1;
    file->files = files;
    pthread_mutex_lock(&files->mutex);
    files->users++;
    file->serial = ++files->serials;
    pthread_mutex_unlock(&files->mutex);
    *ret_file = file;
    return 0;
}

domus_file *domus_file_keep(domus_file *file)
{
    /* Relaxed: the caller already counts as a user, so the handle cannot be freed meanwhile. */
    atomic_fetch_add_explicit(&file->users, 1, memory_order_relaxed);
    return file;
}

bool domus_file_is_directory(const domus_file *file)
{
    return file->is_directory;
}

static void free_handle_of_file(domus_file *file)
{
    domi_files *files = file->files;
    domi_meter *counted = domi_memory_set_meter(NULL);

    domi_memory_free(file);
    (void)domi_memory_set_meter(counted);
    atomic_fetch_sub_explicit(&files->open, 1, memory_order_relaxed);
    pthread_mutex_lock(&files->mutex);
    unlock_and_release_use_of_common_part(files);
}

static int close_descriptor_of_file(void *file_)
{
    domus_file *file = file_;
    int fd = file->fd;

    file->fd = -1;
    domi_disk_close(fd);
    return 0;
}

static void free_file_and_close_if_open(domi_file_left *left)
{
    domus_file *file = (domus_file *)(void *)((char *)left - offsetof(domus_file, left));

    /* the descriptor is still open here if the helper threads have cancelled the job when they
     * were stopped */
    if (file->fd >= 0)
        domi_disk_close(file->fd);
    free_handle_of_file(file);
}

static void free_handle_after_close(domi_job *job)
{
    domus_file *file = (domus_file *)(void *)((char *)job - offsetof(domus_file, job));

    domi_file_left_remove_work_that_ended(file->files, &file->left);
    free_file_and_close_if_open(&file->left);
}

/* Let a helper thread close the file of a handle. Returns false if no helper thread takes that
 * job. The mutex of the common part is held during the call, so that the helper threads are not
 * freed meanwhile. */
static bool close_by_helper_thread(domus_file *file)
{
    domi_files *files = file->files;

    file->job = (domi_job){
        .function = close_descriptor_of_file, .argument = file, .done = free_handle_after_close};
    file->left.drop = free_file_and_close_if_open;
    pthread_mutex_lock(&files->mutex);
    bool handed = files->workers != NULL;
    if (handed) {
        link_work_to_list(files, &file->left);
        handed = domi_workers_submit_job(files->workers, &file->job) == 0;
        if (!handed)
            unlink_work_from_list(&file->left);
    }
    pthread_mutex_unlock(&files->mutex);
    return handed;
}

void domus_file_close(domus_file *file)
{
    /* acq_rel: all that other users did with the handle comes before the last user closes the
     * file. */
    if (file == NULL || atomic_fetch_sub_explicit(&file->users, 1, memory_order_acq_rel) != 1)
        return;
    if (file->fd >= 0 && file->is_writable && close_by_helper_thread(file))
        return;
    if (file->fd >= 0)
        domi_disk_close(file->fd);
    free_handle_of_file(file);
}
