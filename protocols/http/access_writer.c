/* The actor that writes the lines of an access log. It asks a helper thread to take lines from the
 * queue and to write them until there are none, so only one thread at a time reads the queue. */
#include "protocols/http/access.h"

#include <domus/blocking.h>
#include <domus/spawn.h>
#include <domus/timer.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define FLUSH_DEFAULT UINT64_C(200000000)
#define STEP          65536u /* bytes that one write to the log's file has, at most */
#define STEPS_MAX     256u   /* writes that one flush of the queue makes, at most */

typedef struct writer {
    domus_http_access *access;
} writer;

static const domus_type flush_type = {.name = "flush of an access log"};

/* --- on a helper thread ----------------------------------------------------------------------- */

static int write_all_lines_to_file(int file, const char *lines, size_t size)
{
    while (size != 0) {
        ssize_t written = write(file, lines, size);
        if (written < 0 && errno != EINTR)
            return -errno;
        if (written > 0) {
            lines += written;
            size -= (size_t)written;
        }
    }
    return 0;
}

/* Write lines of the log to the file, or by the function of the options; `file` is a descriptor, or
 * negative if there is none. */
static int write_lines_to_file_or_user_function(const domus_http_access *access, int file,
                                                const char *lines, size_t size)
{
    if (access->path == NULL)
        return access->write(access->context, lines, size);
    return file >= 0 ? write_all_lines_to_file(file, lines, size) : -EIO;
}

static int write_queued_lines_on_helper_thread(void *argument)
{
    domus_http_access *access = argument;
    domi_http_access_queue *queue = access->queue;
    char *lines = malloc(STEP);
    int file = -1;

    if (lines == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < STEPS_MAX; i++) {
        size_t size = domi_http_access_take_lines(queue, lines, STEP);
        if (size == 0)
            break;
        if (file < 0 && access->path != NULL)
            file = open(access->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);
        if (write_lines_to_file_or_user_function(access, file, lines, size) != 0)
            domi_http_access_count_dropped_lines(queue, lines, size);
    }
    if (file >= 0)
        (void)close(file);
    free(lines);
    return 0;
}

/* --- the actor -------------------------------------------------------------------------------- */

static bool has_queue_any_lines(const domi_http_access_queue *queue)
{
    for (uint32_t i = 0; i < DOMUS_HTTP_ACCESS_QUEUES; i++) {
        /* relaxed: a line that is not seen here yet is written by the next flush */
        if (__atomic_load_n(&queue->rings[i].head, __ATOMIC_RELAXED) !=
            __atomic_load_n(&queue->rings[i].tail, __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

static int arm_timer_for_next_flush(domus_stack *stack, const domus_http_access *access)
{
    return domus_after(stack, access->flush_ns != 0 ? access->flush_ns : FLUSH_DEFAULT, &flush_type,
                       NULL, NULL);
}

/* Finish a flush of the queue. If no helper thread could be had, the actor goes on: the lines wait
 * for the next flush. */
static int finish_flush_of_queue(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error != -ECANCELED
               ? arm_timer_for_next_flush(stack, ((const writer *)self)->access)
               : 0;
}

static int flush_on_helper_if_any_lines_wait(domus_stack *stack, void *self, const void *payload)
{
    domus_http_access *access = ((const writer *)self)->access;

    (void)payload;
    if (!has_queue_any_lines(access->queue))
        return arm_timer_for_next_flush(stack, access);
    return domus_blocking(stack, write_queued_lines_on_helper_thread, access,
                          finish_flush_of_queue);
}

static int mount_writer_of_log(domus_stack *stack, void *self)
{
    return arm_timer_for_next_flush(stack, ((const writer *)self)->access);
}

static void stop_writer_of_log(domus_stack *stack, void *self)
{
    domi_http_access_queue *queue = ((const writer *)self)->access->queue;

    (void)stack;
    /* release: pairs with the acquire of the next writer, which begins after the last flush of this
     * one */
    __atomic_store_n(&queue->is_open, false, __ATOMIC_RELEASE);
}

static const domus_behaviour behaviour = {
    .name = "access log",
    .kind = DOMUS_STATE,
    .state_size = sizeof(writer),
    .on = (const domus_on[]){{&flush_type, flush_on_helper_if_any_lines_wait, 0}, {NULL, NULL, 0}},
    .on_mount = mount_writer_of_log,
    .on_stop = stop_writer_of_log,
};

/* Claim the queue of an access log for one writer. Returns 0; -EINVAL; -EALREADY when there is a
 * writer; -ENOMEM. */
static int claim_queue_for_writer(domus_http_access *access)
{
    if (access->path == NULL && access->write == NULL)
        return -EINVAL;
    domi_http_access_queue *queue = domi_http_access_get_queue(access);
    if (queue == NULL)
        return -ENOMEM;
    return __atomic_exchange_n(&queue->is_open, true, __ATOMIC_ACQUIRE) ? -EALREADY : 0;
}

/* Let go of the claimed queue if the writer's actor could not be made. Returns `error`. */
static int release_claimed_queue_on_error(int error, domus_http_access *access)
{
    domi_http_access_queue *queue = access->queue;

    if (error != 0)
        __atomic_store_n(&queue->is_open, false, __ATOMIC_RELEASE);
    return error;
}

int domus_http_access_open(domus_stack *stack, domus_http_access *access)
{
    writer state = {.access = access};
    domus_address address;
    int error = claim_queue_for_writer(access);

    if (error != 0)
        return error;
    return release_claimed_queue_on_error(domus_spawn(stack, &behaviour, &state, &address), access);
}

int domus_outside_http_access_open(domus_system *system, domus_http_access *access)
{
    writer state = {.access = access};
    domus_address address;
    int error = claim_queue_for_writer(access);

    if (error != 0)
        return error;
    return release_claimed_queue_on_error(domus_outside_spawn(system, &behaviour, &state, &address),
                                          access);
}

void domus_http_access_close(domus_http_access *access)
{
    domi_http_access_queue *queue = access->queue;

    if (queue == NULL)
        return;
    while ((access->path != NULL || access->write != NULL) && has_queue_any_lines(queue) &&
           write_queued_lines_on_helper_thread(access) == 0)
        continue;
    for (uint32_t i = 0; i < DOMUS_HTTP_ACCESS_QUEUES; i++)
        free(queue->rings[i].bytes);
    free(queue);
    access->queue = NULL;
}
