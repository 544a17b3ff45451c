/* mailbox: 20 senders and one receiver. A sender sends 500 messages and waits for a receipt of the
 * last one, again and again. */
#include "bench/savina/rows.h"

#define SENDERS 20u
#define WINDOW  500u

static const domus_type mail_type = {.name = "mail"};
static const domus_type registered_type = {.name = "registered mail"};
static const domus_type receipt_type = {.name = "receipt"};
static const domus_type count_type = {.name = "count", .size = sizeof(uint64_t)};

struct receiver {
    domus_address office;
    uint64_t expected;
    uint64_t count;
};

static int count_received_mail(domus_stack *stack, void *self_, const void *nothing)
{
    struct receiver *self = self_;

    (void)nothing;
    if (++self->count < self->expected)
        return 0;
    return domus_notice(stack, self->office, &count_type, &self->count);
}

static int reply_with_receipt(domus_stack *stack, void *self, const void *nothing)
{
    stage_send_notice(stack, domus_sender(stack), &receipt_type, NULL);
    return count_received_mail(stack, self, nothing);
}

static const domus_behaviour receiver = {
    .name = "receiver",
    .state_size = sizeof(struct receiver),
    .on = (const domus_on[]){{.type = &mail_type, .handle = count_received_mail},
                             {.type = &registered_type, .handle = reply_with_receipt},
                             {.type = NULL}},
};

struct sender {
    domus_address to;
    uint64_t left;
};

static int send_window_of_mail(domus_stack *stack, void *self_, const void *nothing)
{
    struct sender *self = self_;

    (void)nothing;
    if (self->left == 0)
        return 0;
    self->left -= WINDOW;
    for (uint32_t i = 1; i < WINDOW; i++)
        stage_send_notice(stack, self->to, &mail_type, NULL);
    return domus_notice(stack, self->to, &registered_type, NULL);
}

static int start_sender_at_mount(domus_stack *stack, void *self)
{
    return send_window_of_mail(stack, self, NULL);
}

static const domus_behaviour sender = {
    .name = "sender",
    .state_size = sizeof(struct sender),
    .on =
        (const domus_on[]){{.type = &receipt_type, .handle = send_window_of_mail}, {.type = NULL}},
    .on_mount = start_sender_at_mount,
};

static int spawn_receiver_and_senders_of_mail(domus_stack *stack, void *self, const void *size_)
{
    uint64_t size = *(const uint64_t *)size_;
    struct receiver to = {.office = domus_self(stack), .expected = size};
    struct sender from = {.to = stage_spawn_child_of_root(stack, &receiver, &to),
                          .left = size / SENDERS};

    (void)self;
    for (uint32_t i = 0; i < SENDERS; i++)
        (void)stage_spawn_child_of_root(stack, &sender, &from);
    return 0;
}

static int add_count_of_sender(domus_stack *stack, void *self, const void *count)
{
    (void)self;
    return stage_end_root_with_result(stack, *(const uint64_t *)count);
}

static const domus_behaviour office = {
    .name = "office",
    .on = (const domus_on[]){{.type = &go_type, .handle = spawn_receiver_and_senders_of_mail},
                             {.type = &count_type, .handle = add_count_of_sender},
                             {.type = NULL}},
    .on_stop = stage_on_stop_of_root,
};

const struct stage_row row_mailbox = {.name = "mailbox", .root = &office};
