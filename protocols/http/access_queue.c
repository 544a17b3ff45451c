/* The queue of the lines of an access log (access.h). */
#include "protocols/http/access.h"

#include <stdlib.h>
#include <string.h>

#define RING_DEFAULT 262144u
#define RING_LEAST   16384u

domi_http_access_queue *domi_http_access_get_queue(domus_http_access *access)
{
    /* acquire: pairs with the release of the thread that has made the queue, so that its members
     * are seen as they were set */
    domi_http_access_queue *queue = __atomic_load_n(&access->queue, __ATOMIC_ACQUIRE);
    void *none = NULL;

    if (queue != NULL)
        return queue;
    queue = aligned_alloc(alignof(domi_http_access_queue), sizeof *queue);
    if (queue == NULL)
        return NULL;
    memset(queue, 0, sizeof *queue);
    queue->ring_bytes = RING_LEAST;
    while (queue->ring_bytes < (access->queue_bytes != 0 ? access->queue_bytes : RING_DEFAULT))
        queue->ring_bytes *= 2;
    if (__atomic_compare_exchange_n(&access->queue, &none, queue, false, __ATOMIC_RELEASE,
                                    __ATOMIC_ACQUIRE))
        return queue;
    free(queue); /* another thread has made the queue first, so that one is used */
    return none;
}

/* Returns the ring of the queue that this thread uses; the rings are given to new threads in
 * turn. */
static domi_http_access_ring *ring_of_this_thread(domi_http_access_queue *queue)
{
    static uint32_t threads;
    static _Thread_local uint32_t own;

    if (own == 0) /* relaxed: only the number of the thread itself matters */
        own = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED) | UINT32_C(1) << 31;
    return &queue->rings[own % DOMUS_HTTP_ACCESS_QUEUES];
}

/* Copy a line into a ring whose flag `is_taken` this thread has set. Returns false if the line does
 * not fit. */
static bool copy_line_into_ring(const domi_http_access_queue *queue, domi_http_access_ring *ring,
                                const char *line, size_t size)
{
    if (ring->bytes == NULL)
        ring->bytes = malloc(queue->ring_bytes);
    uint64_t head = ring->head;
    /* acquire: pairs with the reader's release of `tail`, so that the freed bytes were read before
     * they are overwritten */
    uint64_t used = head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
    if (ring->bytes == NULL || size > queue->ring_bytes - used)
        return false;
    uint64_t at = head & (queue->ring_bytes - 1);
    size_t first = size < queue->ring_bytes - at ? size : (size_t)(queue->ring_bytes - at);
    memcpy(ring->bytes + at, line, first);
    memcpy(ring->bytes, line + first, size - first);
    /* release: pairs with the reader's acquire of `head`, so that the line's bytes are written
     * before the reader sees them */
    __atomic_store_n(&ring->head, head + size, __ATOMIC_RELEASE);
    return true;
}

void domi_http_access_put_line(domi_http_access_queue *queue, const char *line, size_t size)
{
    domi_http_access_ring *ring = ring_of_this_thread(queue);
    bool is_in = false;

    /* acquire, and release when it is reset: a thread sees the ring as the thread before it has
     * left the ring */
    if (!__atomic_exchange_n(&ring->is_taken, true, __ATOMIC_ACQUIRE)) {
        is_in = copy_line_into_ring(queue, ring, line, size);
        __atomic_store_n(&ring->is_taken, false, __ATOMIC_RELEASE);
    }
    if (!is_in)
        domi_http_access_count_dropped_lines(queue, "\n", 1);
}

/* Returns how many bytes from the ring's tail on are complete lines that fit into `room`. */
static size_t count_bytes_of_whole_lines(const domi_http_access_queue *queue,
                                         const domi_http_access_ring *ring, uint64_t head,
                                         size_t room)
{
    uint64_t size = head - ring->tail < room ? head - ring->tail : room;

    while (size != 0 && ring->bytes[(ring->tail + size - 1) & (queue->ring_bytes - 1)] != '\n')
        size--;
    return (size_t)size;
}

static size_t take_lines_from_ring(const domi_http_access_queue *queue, domi_http_access_ring *ring,
                                   char *to, size_t room)
{
    uint64_t head =
        /* acquire: pairs with the release of `head` in copy_line_into_ring() */
        __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

    if (head == ring->tail)
        return 0;
    size_t size = count_bytes_of_whole_lines(queue, ring, head, room);
    uint64_t at = ring->tail & (queue->ring_bytes - 1);
    size_t first = size < queue->ring_bytes - at ? size : (size_t)(queue->ring_bytes - at);
    memcpy(to, ring->bytes + at, first);
    memcpy(to + first, ring->bytes, size - first);
    /* release: pairs with the writer's acquire of `tail`, so that the bytes are read before a
     * writer reuses their place */
    __atomic_store_n(&ring->tail, ring->tail + size, __ATOMIC_RELEASE);
    return size;
}

size_t domi_http_access_take_lines(domi_http_access_queue *queue, char *to, size_t room)
{
    size_t taken = 0;

    for (uint32_t i = 0; i < DOMUS_HTTP_ACCESS_QUEUES; i++) {
        domi_http_access_ring *ring = &queue->rings[(queue->next + i) % DOMUS_HTTP_ACCESS_QUEUES];
        taken += take_lines_from_ring(queue, ring, to + taken, room - taken);
    }
    queue->next++;
    return taken;
}

void domi_http_access_count_dropped_lines(domi_http_access_queue *queue, const char *lines,
                                          size_t size)
{
    uint64_t count = 0;

    for (size_t i = 0; i < size; i++)
        count += lines[i] == '\n';
    /* relaxed: the count of dropped lines orders nothing else */
    (void)__atomic_add_fetch(&queue->dropped, count, __ATOMIC_RELAXED);
}

size_t domus_http_access_take(domus_http_access *access, char *to, size_t room)
{
    domi_http_access_queue *queue = __atomic_load_n(&access->queue, __ATOMIC_ACQUIRE);

    return queue != NULL ? domi_http_access_take_lines(queue, to, room) : 0;
}

uint64_t domus_http_access_dropped(const domus_http_access *access)
{
    domi_http_access_queue *queue = __atomic_load_n(&access->queue, __ATOMIC_ACQUIRE);

    return queue != NULL ? __atomic_load_n(&queue->dropped, __ATOMIC_RELAXED) : 0;
}
