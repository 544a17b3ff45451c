/* A payment desk. Clients send "pay ACCOUNT CENTS"; each payment is confirmed by the bank's ledger,
 * which takes a few milliseconds, and then booked. Two payments must not see the same balance, so a
 * desk raises a barrier while a payment is under way. */
#include <domus/main.h>
#include <domus/observe.h>

#include <stdio.h>
#include <string.h>

#define ACCOUNTS 1024

static struct settings {
    uint64_t ledger_ns;
    bool fixed;
} settings;

struct payment {
    uint32_t account, cents;
};
struct desk {
    int64_t balance[ACCOUNTS];
    domus_address ledger;
};
struct front {
    domus_address desk;
};
static const domus_type pay_type = {.name = "pay", .size = sizeof(struct payment)};
static const domus_type confirm_type = {.name = "confirm", .size = sizeof(struct payment)};
static const domus_type done_type = {.name = "done", .size = sizeof(int64_t)};

DOMUS_SEQUENCE(confirm, char)
{
    DOMUS_BEGIN;
    DOMUS_SLEEP(settings.ledger_ns);
    return domus_reply(stack, &done_type, &(int64_t){0});
    DOMUS_END;
}

static const domus_behaviour ledger_behaviour = {
    .name = "ledger",
    .kind = DOMUS_STATE,
    .on = (const domus_on[]){DOMUS_ON(&confirm_type, confirm), {0}},
};

static int fill_balances_and_find_ledger_at_mount(domus_stack *stack, void *self)
{
    struct desk *desk = self;

    for (int i = 0; i < ACCOUNTS; i++)
        desk->balance[i] = 100000000;
    return domus_name_find(stack, "ledger", &desk->ledger);
}

DOMUS_SEQUENCE(pay, struct payment)
{
    struct desk *desk = self;

    DOMUS_BEGIN;
    memcpy(frame, message, sizeof(*frame));
    domus_barrier(stack); /* nobody else books while we wait for the ledger */
    DOMUS_ASK(desk->ledger, &confirm_type, frame);
    if (answer->error < 0)
        return answer->error;
    desk->balance[frame->account] -= frame->cents;
    return domus_reply(stack, &done_type, &desk->balance[frame->account]);
    DOMUS_END;
}

static const domus_behaviour desk_behaviour = {
    .name = "desk",
    .kind = DOMUS_STATE,
    .state_size = sizeof(struct desk),
    .on_mount = fill_balances_and_find_ledger_at_mount,
    .on = (const domus_on[]){DOMUS_ON(&pay_type, pay), {0}},
};

static uint64_t account_of_payment_or_zero(const domus_type *type, const void *payload)
{
    return type == &pay_type ? ((const struct payment *)payload)->account : 0;
}

static int spawn_desks_at_mount(domus_stack *stack, void *self)
{
    const domus_routing by_account = {.route = DOMUS_ROUTE_HASH, .key = account_of_payment_or_zero};

    (void)self;
    return domus_spawn_many(stack, &desk_behaviour, NULL, settings.fixed ? 256 : 1, &by_account,
                            &(domus_spawn_options){.name = "desk"}, &(domus_address){0});
}

static const domus_behaviour counter_behaviour = {
    .name = "counter", .kind = DOMUS_STATE, .on_mount = spawn_desks_at_mount};

DOMUS_SEQUENCE(serve, char)
{
    struct front *front = self;
    const domus_packet *line = message;
    struct payment payment;
    char text[64];
    size_t length;

    DOMUS_BEGIN;
    length = line->bytes.size < sizeof(text) ? line->bytes.size : sizeof(text) - 1;
    memcpy(text, domus_slice_data(line->bytes), length);
    text[length] = 0;
    if (sscanf(text, "pay %u %u", &payment.account, &payment.cents) != 2 ||
        payment.account >= ACCOUNTS)
        return -EINVAL;
    if (front->desk.house == NULL && domus_name_find(stack, "desk", &front->desk) < 0)
        return -EAGAIN;
    DOMUS_ASK_WITHIN(front->desk, &pay_type, &payment, 5000000000);
    if (answer->error < 0)
        return answer->error;
    {
        domus_packet reply = {0};
        char out[64];
        int size = snprintf(out, sizeof(out), "balance %lld",
                            (long long)*(const int64_t *)answer->payload);

        if (domus_slice_copy(out, (size_t)size, &reply.bytes) < 0)
            return -ENOMEM;
        return domus_reply(stack, &domus_packet_type, &reply);
    }
    DOMUS_END;
}

static const domus_pipeline lines = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, NULL}, {0}}};
static const domus_behaviour client_behaviour = {
    .name = "client",
    .kind = DOMUS_CHANNELS,
    .shares_state = true,
    .pipeline = &lines,
    .on_peer = (const domus_on_peer[]){DOMUS_ON_PEER(&domus_packet_type, serve, 0), {0}}};
static const domus_behaviour front_behaviour = {.name = "front",
                                                .kind = DOMUS_CHANNELS,
                                                .state_size = sizeof(struct front),
                                                .channel = &client_behaviour};

static int start_service(domus_system *system, void *argument)
{
    domus_address address;
    int result;

    (void)argument;
    result = domus_outside_spawn_with(system, &ledger_behaviour, NULL,
                                      &(domus_spawn_options){.name = "ledger"}, &address);
    if (result == 0)
        result = domus_outside_spawn_with(system, &counter_behaviour, NULL, NULL, &address);
    return result < 0 ? result : domus_main_serve(system, "desk", &front_behaviour, NULL);
}

int main(int argc, char **argv)
{
    static const domus_config_key keys[] = {
        {DOMUS_KEY("ledgerTime", DURATION, struct settings, ledger_ns, 1000000, 1000000000,
                   4000000)},
        {DOMUS_KEY_SWITCH("fixed", struct settings, fixed, false)},
        {.path = NULL},
    };
    static const domus_section section = {.name = "desk", .keys = keys, .size = sizeof(settings)};

    return domus_main(argc, argv,
                      &(domus_program){.name = "payments",
                                       .start = start_service,
                                       .section = &section,
                                       .settings = &settings,
                                       .observe = &domus_observe_front});
}
