/* The queue of messages that wait in a client, because there is no connection or a slow one, in the
 * order in which they came. A waiting publication is owned by its entry; a waiting ask is kept, and
 * its payload stays in it. The client sends as many messages as the connection accepts at once, and
 * more when the connection has sent these. */
#include "protocols/nats/state.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* bytes that each waiting message counts, beside the bytes that it owns */
#define MESSAGE_BYTES 320u

const domus_type domi_nats_pump_type = {.name = "nats pumps"};
const domus_type domi_nats_look_type = {.name = "nats looks at what waits"};

static_assert(sizeof(domi_nats_waiting) <= MESSAGE_BYTES + 16, "the bound of memory is kept");

/* --- the queue -------------------------------------------------------------------------------- */

/* Add an entry at the end of the queue of waiting messages. Returns 0; -ENOBUFS; -ENOMEM. */
static int add_to_queue_of_waiting(domi_nats_client *client, uint64_t bytes, bool is_ask,
                                   domi_nats_waiting **ret_waiting)
{
    bytes += MESSAGE_BYTES;
    if (bytes > client->options.buffer_max ||
        client->waiting_bytes > client->options.buffer_max - bytes)
        return -ENOBUFS;
    size_t size = is_ask ? offsetof(domi_nats_waiting, publish) : sizeof(domi_nats_waiting);
    domi_nats_waiting *waiting = malloc(size);
    if (waiting == NULL)
        return -ENOMEM;
    waiting->next = NULL;
    waiting->is_ask = is_ask;
    waiting->bytes = bytes;
    waiting->before = client->end;
    *client->end = waiting;
    client->end = &waiting->next;
    client->waiting++;
    client->waiting_bytes += bytes;
    *ret_waiting = waiting;
    return 0;
}

/* Take a waiting ask out of the list of asks. */
static void unlink_ask_that_is_not_sent_yet(domi_nats_client *client, domi_nats_waiting *waiting)
{
    *waiting->before_ask = waiting->next_ask;
    if (waiting->next_ask != NULL)
        waiting->next_ask->before_ask = waiting->before_ask;
    else
        client->end_of_asks = waiting->before_ask;
    client->waiting_asks--;
}

/* Remove a waiting message from the queue, and free it. */
static void remove_waiting_message(domi_nats_client *client, domi_nats_waiting *waiting)
{
    *waiting->before = waiting->next;
    if (waiting->next != NULL)
        waiting->next->before = waiting->before;
    else
        client->end = waiting->before;
    if (waiting->is_ask)
        unlink_ask_that_is_not_sent_yet(client, waiting);
    else
        domus_nats_publish_free(&waiting->publish);
    client->waiting--;
    client->waiting_bytes -= waiting->bytes;
    free(waiting);
}

void domi_nats_arm_pump_of_waiting_messages(domus_stack *stack, domi_nats_client *client)
{
    if (domi_nats_is_logged_in(client) && !client->is_pumping &&
        domus_after(stack, 0, &domi_nats_pump_type, NULL, NULL) == 0)
        client->is_pumping = true;
}

int domi_nats_queue_publish_to_wait(domus_stack *stack, domi_nats_client *client,
                                    const domus_nats_publish *publish)
{
    domi_nats_waiting *waiting;
    uint64_t bytes = (uint64_t)publish->subject.size + publish->reply.size + publish->headers.size +
                     publish->payload.size;
    int error = domus_take(stack);

    if (error != 0)
        return error;
    error = add_to_queue_of_waiting(client, bytes, false, &waiting);
    if (error != 0) {
        domus_nats_publish owned = *publish;
        domus_nats_publish_free(&owned);
        return error;
    }
    waiting->publish = *publish;
    domi_nats_arm_pump_of_waiting_messages(stack, client);
    return 0;
}

/* Set the client's timer so that waiting asks are checked when this deadline has passed. */
static void arm_timer_for_waiting_asks(domus_stack *stack, domi_nats_client *client,
                                       uint64_t deadline_ns)
{
    uint64_t now_ns = domus_now_ns(stack);

    if (deadline_ns < now_ns + DOMI_NATS_LOOK_NS)
        deadline_ns = now_ns + DOMI_NATS_LOOK_NS;
    if (client->look_ns != 0 && client->look_ns <= deadline_ns)
        return;
    if (client->look_ns != 0)
        (void)domus_timer_cancel(stack, client->look);
    client->look_ns = 0;
    if (domus_after(stack, deadline_ns - now_ns, &domi_nats_look_type, NULL, &client->look) == 0)
        client->look_ns = deadline_ns;
}

int domi_nats_queue_ask_to_wait(domus_stack *stack, domi_nats_client *client, domus_kept kept,
                                uint64_t deadline_ns, uint64_t bytes)
{
    domi_nats_waiting *waiting;
    int error = add_to_queue_of_waiting(client, bytes, true, &waiting);

    if (error != 0) {
        client->counted.refused++;
        (void)domus_kept_fail(stack, kept, error);
        return 0;
    }
    waiting->kept = kept;
    waiting->deadline_ns =
        deadline_ns != 0 ? deadline_ns : domus_now_ns(stack) + client->options.request_timeout_ns;
    waiting->next_ask = NULL;
    waiting->before_ask = client->end_of_asks;
    *client->end_of_asks = waiting;
    client->end_of_asks = &waiting->next_ask;
    client->waiting_asks++;
    arm_timer_for_waiting_asks(stack, client, waiting->deadline_ns);
    domi_nats_arm_pump_of_waiting_messages(stack, client);
    return 0;
}

int domi_nats_fail_late_waiting_asks(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;
    domi_nats_waiting *waiting = client->first_ask, *next;
    uint64_t now_ns = domus_now_ns(stack), next_ns = UINT64_MAX;

    (void)payload;
    client->look_ns = 0;
    for (; waiting != NULL; waiting = next) {
        next = waiting->next_ask;
        if (waiting->deadline_ns <= now_ns) {
            (void)domus_kept_fail(stack, waiting->kept, -ETIMEDOUT);
            remove_waiting_message(client, waiting);
        } else if (waiting->deadline_ns < next_ns) {
            next_ns = waiting->deadline_ns;
        }
    }
    if (next_ns != UINT64_MAX)
        arm_timer_for_waiting_asks(stack, client, next_ns);
    return 0;
}

void domi_nats_free_waiting_messages(domi_nats_client *client)
{
    while (client->first != NULL)
        remove_waiting_message(client, client->first);
}

/* --- sending the queue ------------------------------------------------------------------------ */

/* Send the first message of the queue to the server. Returns 0; or an error if it cannot be sent
 * now. */
static int send_first_waiting_message(domus_stack *stack, domi_nats_client *client)
{
    domi_nats_waiting *waiting = client->first;
    int error;

    if (waiting->is_ask) {
        error = domus_kept_forward(stack, waiting->kept, client->connection);
        if (error == -ESTALE)
            return error;
        client->forwarded += error == 0 ? waiting->bytes - MESSAGE_BYTES : 0;
        if (error != 0 && error != -ENOENT) {
            client->counted.refused++;
            (void)domus_kept_fail(stack, waiting->kept, error);
        }
    } else {
        error = domi_nats_send_publish(stack, client, &waiting->publish);
        if (error == -EPIPE || error == -ENOBUFS)
            return error;
        client->counted.refused += error != 0;
    }
    remove_waiting_message(client, waiting);
    return 0;
}

static bool has_waiting_messages(const domi_nats_client *client)
{
    return client->first != NULL || !domi_nats_are_subscriptions_renewed(client);
}

/* Send as many messages of the queue as the connection accepts now. */
static void send_waiting_as_room_allows(domus_stack *stack, domi_nats_client *client)
{
    while (domi_nats_is_logged_in(client) && has_waiting_messages(client) &&
           domi_nats_has_send_window_room(client)) {
        int error = domi_nats_are_subscriptions_renewed(client)
                        ? send_first_waiting_message(stack, client)
                        : domi_nats_renew_next_subscription(stack, client);
        if (error != 0)
            break;
    }
}

static int send_waiting_as_connection_has_room(domus_stack *stack, void *self,
                                               const domus_answer *answer)
{
    domi_nats_client *client = self;

    if (answer->error != 0 || !domi_nats_is_logged_in(client))
        return 0;
    return domi_nats_send_waiting_of_logged_in(stack, self, NULL);
}

int domi_nats_send_waiting_of_logged_in(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;

    (void)payload;
    if (!domi_nats_is_logged_in(client))
        return 0; /* there is no connection: the next one begins to send the queue by itself */
    /* the channel has handled the forwarded requests, or their askers do not wait any more */
    client->forwarded = 0;
    send_waiting_as_room_allows(stack, client);
    if (!domi_nats_is_logged_in(client) || !has_waiting_messages(client)) {
        client->is_pumping = false;
        return 0;
    }
    int result = domus_channel_flush_to(stack, client->channel, DOMI_NATS_WINDOW / 2,
                                        send_waiting_as_connection_has_room);
    if (result != DOMUS_PARKED) {
        client->is_pumping = false;
        domi_nats_arm_pump_of_waiting_messages(stack, client);
        return 0;
    }
    return result;
}
