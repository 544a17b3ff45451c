/* Queues of tasks, and the release of what a task owns. */
#include "protocols/sqlite/task.h"

#include <stdlib.h>
#include <string.h>

void domi_sqlite_queue_add_last(domi_sqlite_queue *queue, domi_sqlite_task *task)
{
    task->queue = queue;
    task->next = NULL;
    task->before = queue->last;
    if (queue->last != NULL)
        queue->last->next = task;
    else
        queue->first = task;
    queue->last = task;
    queue->count++;
    queue->bytes += task->bytes;
}

void domi_sqlite_queue_add_first(domi_sqlite_queue *queue, domi_sqlite_task *task)
{
    task->queue = queue;
    task->before = NULL;
    task->next = queue->first;
    if (queue->first != NULL)
        queue->first->before = task;
    else
        queue->last = task;
    queue->first = task;
    queue->count++;
    queue->bytes += task->bytes;
}

void domi_sqlite_queue_remove_task(domi_sqlite_task *task)
{
    domi_sqlite_queue *queue = task->queue;

    if (task->before != NULL)
        task->before->next = task->next;
    else
        queue->first = task->next;
    if (task->next != NULL)
        task->next->before = task->before;
    else
        queue->last = task->before;
    task->queue = NULL;
    task->next = task->before = NULL;
    queue->count--;
    queue->bytes -= task->bytes;
}

void domi_sqlite_clear_outcome_of_task(domi_sqlite_task *task)
{
    if (task->has_result) {
        domus_slice_free(task->result.cells);
        domus_slice_free(task->result.bytes);
    }
    free(task->failure);
    memset(&task->result, 0, sizeof task->result);
    task->failure = NULL;
    task->error = 0;
    task->has_result = task->is_bounced = task->is_grouped = false;
}

void domi_sqlite_free_texts_of_request(domus_sql_request *request)
{
    domus_slice_free(request->text);
    domus_slice_free(request->more);
    request->text = request->more = (domus_slice){NULL, 0, 0};
}
