/* The network's events that lie in the future, in a heap, and its random draws. A due event is
 * handed to connection.c or datagram.c through the pointer domi_net.carry_out. */
#include "runtime/network/parts.h"

#include "base/check.h"
#include "base/memory.h"

#include <errno.h>

#define HEAP_FIRST 64u /* number of events for which the heap has room when it is made first */

/* --- the heap of events ---------------------------------------------------------------------- */

static bool is_event_due_before_other(const domi_net_event *one, const domi_net_event *other)
{
    return one->due_ns != other->due_ns ? one->due_ns < other->due_ns : one->number < other->number;
}

static bool grow_heap_of_events(domi_net *net)
{
    uint32_t capacity = net->heap_capacity != 0 ? net->heap_capacity * 2 : HEAP_FIRST;
    domi_net_event **heap = domi_memory_new(capacity * sizeof(domi_net_event *));

    if (heap == NULL)
        return false;
    for (uint32_t i = 0; i < net->heap_count; i++)
        heap[i] = net->heap[i];
    domi_memory_free(net->heap);
    net->heap = heap;
    net->heap_capacity = capacity;
    return true;
}

/* Put an event into the heap of future events, at its place by time. Returns false if there is
 * no memory. */
static bool push_event_into_heap(domi_net *net, domi_net_event *event)
{
    if (net->heap_count == net->heap_capacity && !grow_heap_of_events(net))
        return false;
    uint32_t at = net->heap_count++;
    for (uint32_t parent = (at - 1) / 2;
         at != 0 && is_event_due_before_other(event, net->heap[parent]); parent = (at - 1) / 2) {
        net->heap[at] = net->heap[parent];
        at = parent;
    }
    net->heap[at] = event;
    return true;
}

/* Remove the event that is due first from the heap, and return it; the heap's last event fills
 * the gap. */
static domi_net_event *pop_event_from_heap(domi_net *net)
{
    domi_net_event *first = net->heap[0];
    domi_net_event *last = net->heap[--net->heap_count];
    uint32_t at = 0;

    for (uint32_t child = 1; child < net->heap_count; child = 2 * at + 1) {
        if (child + 1 < net->heap_count &&
            is_event_due_before_other(net->heap[child + 1], net->heap[child]))
            child++;
        if (!is_event_due_before_other(net->heap[child], last))
            break;
        net->heap[at] = net->heap[child];
        at = child;
    }
    net->heap[at] = last;
    return first;
}

bool domi_net_add_event(domi_net *net, const domi_net_event *event)
{
    domi_net_event *added = domi_memory_new(sizeof *added);

    if (added != NULL) {
        *added = *event;
        added->number = net->event_count++;
    }
    if (added == NULL || !push_event_into_heap(net, added)) {
        domi_memory_free(added);
        net->is_out_of_memory = true;
        return false;
    }
    if (event->connection != NULL)
        event->connection->events++;
    return true;
}

uint64_t domi_net_time_of_next_event(const domi_net *net)
{
    return net->heap_count != 0 ? net->heap[0]->due_ns : UINT64_MAX;
}

void domi_net_advance_time(domi_net *net, uint64_t now_ns)
{
    while (domi_net_time_of_next_event(net) <= now_ns) {
        domi_net_event *event = pop_event_from_heap(net);

        if (event->due_ns > net->now_ns)
            net->now_ns = event->due_ns;
        if (event->connection != NULL && domi_net_is_connection_blocked(event->connection)) {
            domi_net_events_put(&event->connection->held, event);
            continue;
        }
        net->carry_out(net, event);
        domi_memory_free(event);
    }
    if (now_ns > net->now_ns)
        net->now_ns = now_ns;
}

void domi_net_release_held_events(domi_net_connection *connection)
{
    domi_net *net = connection->net;

    while (connection->held.head != NULL) {
        domi_net_event *event = domi_net_events_take(&connection->held);

        if (event->due_ns < net->now_ns)
            event->due_ns = net->now_ns;
        /* the held event is numbered anew: events with one due time are carried out in the order of
         * their numbers */
        event->number = net->event_count++;
        if (!push_event_into_heap(net, event)) {
            net->is_out_of_memory = true;
            connection->events--;
            domi_memory_free(event);
        }
    }
}

/* --- random draws ---------------------------------------------------------------------------- */

bool domi_net_draw_whether_fault_happens(domi_net *net, uint32_t of_a_million)
{
    return of_a_million != 0 && domi_random_below(&net->random, DOMUS_NET_ALWAYS) < of_a_million;
}

int domi_net_draw_socket_failure(domi_net *net)
{
    if (domi_net_draw_whether_fault_happens(net, net->faults.no_descriptors))
        return -EMFILE;
    if (domi_net_draw_whether_fault_happens(net, net->faults.no_memory))
        return domi_random_below(&net->random, 2) == 0 ? -ENOBUFS : -ENOMEM;
    return 0;
}

uint64_t domi_net_draw_latency_of_packet(domi_net *net)
{
    const domus_net_faults *faults = &net->faults;

    if (faults->latency_max_ns <= faults->latency_min_ns)
        return faults->latency_min_ns;
    return faults->latency_min_ns +
           domi_random_below(&net->random, faults->latency_max_ns - faults->latency_min_ns + 1);
}

/* --- traces and counts ------------------------------------------------------------------------ */

void domi_net_trace_event_of_connection(const domi_net_connection *connection, const char *what,
                                        uint8_t side, uint64_t amount)
{
    const domi_net *net = connection->net;
    const domi_net_note note = {
        .what = what, .number = connection->number, .amount = amount, .side = side};

    if (net->note != NULL)
        net->note(net->note_context, &note);
}

void domi_net_trace_event_of_datagram(const domi_net *net, const char *what,
                                      const domi_net_datagram *datagram)
{
    const domi_net_note note = {
        .what = what, .number = datagram->number, .amount = datagram->size, .is_datagram = true};

    if (net->note != NULL)
        net->note(net->note_context, &note);
}

uint64_t domi_net_count_datagrams_in_flight(const domi_net *net)
{
    const domus_net_datagrams *all = &net->datagrams;

    return all->sent + all->doubled - all->received - all->lost - all->overflowed - all->unclaimed;
}

static void check_counts_of_datagrams(const domi_net *net)
{
    uint64_t held = 0;

    for (uint32_t i = 0; i < net->heap_count; i++)
        held += net->heap[i]->kind == DOMI_NET_DATAGRAM;
    for (const domi_net_socket *one = net->bound; one != NULL; one = one->next_bound)
        held += one->mail.inbox_count;
    DOMI_CHECK(domi_net_count_datagrams_in_flight(net) == held);
}

void domi_net_check_that_counts_add_up(const domi_net *net)
{
    uint64_t held = 0;

    for (const domi_net_connection *one = net->first; one != NULL; one = one->next) {
        for (int side = 0; side < 2; side++) {
            const domi_net_pipe *pipe = &one->pipes[side];

            DOMI_CHECK(pipe->head <= pipe->arrived && pipe->arrived <= pipe->departed &&
                       pipe->departed <= pipe->tail);
            DOMI_CHECK(pipe->taken == pipe->received + pipe->lost + (pipe->tail - pipe->head));
            held += pipe->tail - pipe->head;
        }
    }
    DOMI_CHECK(net->totals.sent == net->totals.received + net->totals.lost + held);
    check_counts_of_datagrams(net);
}
