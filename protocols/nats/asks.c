/* Requests and flushes. The client receives them and forwards them to the channel, which sends them
 * and keeps them in slots until the answer comes. While they cannot be sent, the client keeps them.
 *
 * A request has a reply subject of its own, whose last part is the number of its slot and how many
 * asks the slot has had, so that a late answer finds no ask. The library fails an ask at its
 * deadline without telling anybody, so the slots are checked when the first deadline of one of them
 * has passed. */
#include "protocols/nats/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The notice by which a flush waits behind earlier notices: the client sends it to itself, and it
 * carries the kept ask. */
struct mark {
    domus_kept kept;
    uint64_t deadline_ns;
};

#define SLOTS_LEAST 64u

const domus_type domi_nats_flush_mark_type = {.name = "nats flush mark",
                                              .size = sizeof(struct mark)};
const domus_type domi_nats_expire_type = {.name = "nats looks at asks"};

/* --- slots ------------------------------------------------------------------------------------ */

static int double_slots_up_to_inflight_max(domi_nats_client *client)
{
    uint32_t count = client->slots_count != 0 ? 2 * client->slots_count : SLOTS_LEAST;

    if (count > client->options.inflight_max)
        count = client->options.inflight_max;
    if (count <= client->slots_count)
        return -ENOBUFS;
    domi_nats_slot *slots = realloc(client->slots, count * sizeof *slots);
    if (slots == NULL)
        return -ENOMEM;
    for (uint32_t i = count; i-- > client->slots_count;) {
        slots[i] = (domi_nats_slot){.next = client->free_slot};
        client->free_slot = i;
    }
    client->slots = slots;
    client->slots_count = count;
    return 0;
}

static void free_slot_of_ask(domi_nats_client *client, uint32_t place)
{
    domi_nats_slot *slot = &client->slots[place];

    slot->is_used = false;
    slot->next = client->free_slot;
    client->free_slot = place;
    client->slots_used--;
}

/* Set the client's timer so that the slots are checked for late asks when the given deadline has
 * passed. */
static void arm_timer_for_late_asks(domus_stack *stack, domi_nats_client *client,
                                    uint64_t deadline_ns)
{
    uint64_t now_ns = domus_now_ns(stack);
    uint64_t least_ns = now_ns + DOMI_NATS_LOOK_NS;

    if (deadline_ns < least_ns)
        deadline_ns = least_ns;
    if (client->expire_ns != 0 && client->expire_ns <= deadline_ns)
        return;
    if (client->expire_ns != 0)
        (void)domus_timer_cancel(stack, client->expire);
    client->expire_ns = 0;
    if (domus_after(stack, deadline_ns - now_ns, &domi_nats_expire_type, NULL, &client->expire) ==
        0)
        client->expire_ns = deadline_ns;
}

int domi_nats_fail_late_asks_at_timer(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;
    uint64_t now_ns = domus_now_ns(stack), next_ns = UINT64_MAX;

    (void)payload;
    client->expire_ns = 0;
    for (uint32_t i = 0; i < client->slots_count && client->slots_used != 0; i++) {
        domi_nats_slot *slot = &client->slots[i];
        if (!slot->is_used || slot->deadline_ns == UINT64_MAX)
            continue;
        if (slot->deadline_ns <= now_ns) {
            (void)domus_kept_fail(stack, slot->kept, -ETIMEDOUT);
            if (slot->ping == 0)
                free_slot_of_ask(client, i);
            else
                /* the slot of a late flush stays in use, because the server answers pings in their
                 * order */
                slot->deadline_ns = UINT64_MAX;
        } else if (slot->deadline_ns < next_ns) {
            next_ns = slot->deadline_ns;
        }
    }
    if (next_ns != UINT64_MAX)
        arm_timer_for_late_asks(stack, client, next_ns);
    return 0;
}

/* Keep the current ask in a free slot, whose place the caller gets. Returns 0 or a negative
 * errno. */
static int keep_current_ask_in_slot(domus_stack *stack, domi_nats_client *client,
                                    uint32_t *ret_place)
{
    int error = client->free_slot == DOMI_NATS_NONE ? double_slots_up_to_inflight_max(client) : 0;

    if (error != 0)
        return error;
    uint32_t place = client->free_slot;
    domi_nats_slot *slot = &client->slots[place];
    uint64_t deadline_ns = domus_deadline_ns(stack);
    error = domus_keep_working(stack, &slot->kept);
    if (error != 0)
        return error;
    client->free_slot = slot->next;
    client->slots_used++;
    slot->deadline_ns =
        deadline_ns != 0 ? deadline_ns : domus_now_ns(stack) + client->options.request_timeout_ns;
    slot->generation++;
    slot->is_used = true;
    slot->ping = 0;
    slot->next = DOMI_NATS_NONE;
    arm_timer_for_late_asks(stack, client, slot->deadline_ns);
    *ret_place = place;
    return 0;
}

/* --- requests in the channel ------------------------------------------------------------------ */

static void write_token_of_slot_as_hex(uint64_t token, char *text)
{
    for (uint32_t i = DOMI_NATS_TOKEN_SIZE; i-- > 0; token >>= 4)
        text[i] = "0123456789abcdef"[token & 15];
}

/* Read the token at the end of the reply subject of an answer. Returns false if it is no token of
 * this client. */
static bool read_token_of_reply_subject(const domi_nats_client *client, domus_slice subject,
                                        uint64_t *ret_token)
{
    const char *text = domus_slice_data(subject);
    uint64_t token = 0;

    if (subject.size != DOMI_NATS_REPLY_SIZE ||
        memcmp(text, client->inbox, DOMI_NATS_INBOX_SIZE) != 0)
        return false;
    for (uint32_t i = DOMI_NATS_INBOX_SIZE; i < DOMI_NATS_REPLY_SIZE; i++) {
        uint32_t digit = (unsigned char)text[i] - (uint32_t)'0';
        if (digit > 9) {
            digit = (unsigned char)text[i] - (uint32_t)'a';
            if (digit > 5)
                return false;
            digit += 10;
        }
        token = token << 4 | digit;
    }
    *ret_token = token;
    return true;
}

/* Send a request to the server, with the token of its slot in its reply subject. */
static int send_request_with_token_of_slot(domus_stack *stack, domi_nats_client *client,
                                           const domus_nats_publish *publish, uint32_t place)
{
    char reply[DOMI_NATS_REPLY_SIZE];
    const domi_nats_inboxed inboxed = {publish, reply, sizeof reply};
    uint64_t size = domi_nats_size_of_publish(publish);

    memcpy(reply, client->inbox, DOMI_NATS_INBOX_SIZE);
    write_token_of_slot_as_hex((uint64_t)client->slots[place].generation << 16 | place,
                               reply + DOMI_NATS_INBOX_SIZE);
    int error = domus_channel_send(stack, client->channel, &domi_nats_inboxed_type, &inboxed);
    if (error != 0)
        return error;
    client->counted.out_messages++;
    client->counted.out_bytes += size;
    return 0;
}

int domi_nats_send_request_in_channel(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;
    const domus_nats_publish *publish = payload;
    uint64_t bytes = domi_nats_size_of_publish(publish);
    uint32_t place;

    client->forwarded -= bytes < client->forwarded ? bytes : client->forwarded;
    if (!domi_nats_is_logged_in(client))
        return domi_nats_count_and_fail_current_ask(stack, client, -EPIPE);
    int error = domi_nats_check_against_server_limits(client, publish);
    if (error == 0)
        error = keep_current_ask_in_slot(stack, client, &place);
    if (error != 0)
        return domi_nats_count_and_fail_current_ask(stack, client, error);
    error = send_request_with_token_of_slot(stack, client, publish, place);
    if (error != 0) {
        client->counted.refused++;
        (void)domus_kept_fail(stack, client->slots[place].kept, error);
        free_slot_of_ask(client, place);
    }
    return 0;
}

/* Returns whether an answer is the server's status 503: nobody has subscribed to the request's
 * subject. */
static bool is_status_no_responders(const domus_nats_message *message)
{
    return message->status == 503 && message->payload_size == 0;
}

int domi_nats_answer_request_of_message(domus_stack *stack, domi_nats_client *client,
                                        const domus_nats_message *message)
{
    domus_nats_message answer = *message;
    uint64_t token;

    if (!read_token_of_reply_subject(client, domus_nats_subject(message), &token) ||
        (token & 0xffff) >= client->slots_count)
        goto unknown;
    uint32_t place = token & 0xffff;
    domi_nats_slot *slot = &client->slots[place];
    if (!slot->is_used || slot->ping != 0 || slot->generation != token >> 16)
        goto unknown;
    int error;
    if (is_status_no_responders(message)) {
        error = domus_kept_fail(stack, slot->kept, -ECONNREFUSED);
    } else if ((error = domus_take(stack)) == 0) {
        /* the fields of the answer were copied from the message, so the answer now owns the
         * bytes */
        answer.bytes = message->bytes;
        error = domus_kept_reply(stack, slot->kept, &domus_nats_message_type, &answer);
        if (error != 0)
            domus_slice_free(answer.bytes);
    } else {
        (void)domus_kept_fail(stack, slot->kept, error);
        error = 0;
    }
    free_slot_of_ask(client, place);
    if (error == 0)
        return 0;
unknown:
    client->counted.unknown++;
    return 0;
}

/* --- flushes in the channel ------------------------------------------------------------------- */

int domi_nats_send_ping_of_flush_in_channel(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;
    uint32_t place;

    (void)payload;
    if (!domi_nats_is_logged_in(client))
        return domi_nats_count_and_fail_current_ask(stack, client, -EPIPE);
    int error = keep_current_ask_in_slot(stack, client, &place);
    if (error != 0)
        return domi_nats_count_and_fail_current_ask(stack, client, error);
    domi_nats_slot *slot = &client->slots[place];
    error = domi_nats_send_ping(stack, client);
    if (error != 0) {
        (void)domus_kept_fail(stack, slot->kept, error);
        free_slot_of_ask(client, place);
        return 0;
    }
    slot->ping = client->pings;
    if (client->last_flush != DOMI_NATS_NONE)
        client->slots[client->last_flush].next = place;
    else
        client->first_flush = place;
    client->last_flush = place;
    return 0;
}

void domi_nats_answer_flushes(domus_stack *stack, domi_nats_client *client)
{
    while (client->first_flush != DOMI_NATS_NONE) {
        uint32_t place = client->first_flush;
        domi_nats_slot *slot = &client->slots[place];
        if (slot->ping > client->pongs)
            return;
        client->first_flush = slot->next;
        if (client->first_flush == DOMI_NATS_NONE)
            client->last_flush = DOMI_NATS_NONE;
        (void)domus_kept_reply(stack, slot->kept, &domus_nats_done_type, NULL);
        free_slot_of_ask(client, place);
    }
}

void domi_nats_fail_all_asks_in_slots(domus_stack *stack, domi_nats_client *client)
{
    for (uint32_t i = 0; i < client->slots_count && client->slots_used != 0; i++) {
        if (!client->slots[i].is_used)
            continue;
        (void)domus_kept_fail(stack, client->slots[i].kept, -EPIPE);
        free_slot_of_ask(client, i);
    }
    client->first_flush = client->last_flush = DOMI_NATS_NONE;
}

/* --- asks in the client ----------------------------------------------------------------------- */

/* Returns 0 if the client may take one more request or flush, otherwise the negative errno with
 * which the client refuses it. */
static int errno_unless_client_may_take_ask(const domi_nats_client *client)
{
    if (client->draining)
        return -ESHUTDOWN;
    if (client->options.fails_fast && !domi_nats_is_logged_in(client))
        return -ENOTCONN;
    return client->slots_used + client->waiting_asks >= client->options.inflight_max ? -ENOBUFS : 0;
}

int domi_nats_forward_or_queue_request(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;
    const domus_nats_publish *publish = payload;
    domus_kept kept;
    int error = domi_nats_check_parts_of_publish(publish, (domi_nats_bytes){"", 0});

    if (error == 0 && domi_nats_reply_of_publish(publish).size != 0)
        error = -EINVAL;
    if (error == 0)
        error = errno_unless_client_may_take_ask(client);
    if (error == 0 && domi_nats_is_logged_in(client))
        error = domi_nats_check_against_server_limits(client, publish);
    if (error != 0)
        return domi_nats_count_and_fail_current_ask(stack, client, error);
    uint64_t bytes = domi_nats_size_of_publish(publish);
    if (domi_nats_may_send_without_queue(client)) {
        error = domus_forward(stack, client->connection);
        if (error == 0) {
            client->forwarded += bytes;
            return 0;
        }
        if (error != -ESTALE)
            return domi_nats_count_and_fail_current_ask(stack, client, error);
    }
    uint64_t deadline_ns = domus_deadline_ns(stack);
    error = domus_keep_working(stack, &kept);
    if (error != 0)
        return domi_nats_count_and_fail_current_ask(stack, client, error);
    return domi_nats_queue_ask_to_wait(stack, client, kept, deadline_ns, bytes);
}

/* The asker's notices may still wait in the client's mailbox although they were sent before its
 * flush, because asks are taken first. So the client sends a notice to itself, which comes behind
 * them. */
int domi_nats_keep_flush_and_send_mark(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;
    struct mark mark = {.deadline_ns = domus_deadline_ns(stack)};
    int error = errno_unless_client_may_take_ask(client);

    (void)payload;
    if (error == 0)
        error = domus_keep_working(stack, &mark.kept);
    if (error != 0)
        return domi_nats_count_and_fail_current_ask(stack, client, error);
    error = domus_notice(stack, client->self, &domi_nats_flush_mark_type, &mark);
    if (error != 0)
        (void)domus_kept_fail(stack, mark.kept, error);
    return 0;
}

int domi_nats_forward_flush_behind_its_mark(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;
    struct mark mark;

    memcpy(&mark, payload, sizeof mark);
    if (!domus_address_equals(domus_sender(stack), client->self))
        return 0;
    if (domi_nats_may_send_without_queue(client)) {
        int error = domus_kept_forward(stack, mark.kept, client->connection);
        if (error == 0 || error == -ENOENT)
            return 0;
        if (error != -ESTALE) {
            (void)domus_kept_fail(stack, mark.kept, error);
            return 0;
        }
    }
    return domi_nats_queue_ask_to_wait(stack, client, mark.kept, mark.deadline_ns, 0);
}
