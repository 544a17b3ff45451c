/* A client of nats-server in a system of its own, which the thread of a test uses as an
 * outsider. */
#include "tests/nats/user.h"
#include "tests/support/suite.h"

#include <domus/spawn.h>

#include <string.h>
#include <time.h>

#define SECOND UINT64_C(1000000000)

static domus_nats_options opened;
static domus_address client;
static const domus_type opened_type = {.name = "opened"};

static int open_client_on_mount(domus_stack *stack, void *self)
{
    return domus_nats_open(stack, &opened, &client);
}

static int handle_address_of_client(domus_stack *stack, void *self, const void *payload)
{
    return domus_reply(stack, &opened_type, NULL);
}

static const domus_behaviour opener = {
    .name = "opener",
    .kind = DOMUS_STATE,
    .on = (const domus_on[]){{&opened_type, handle_address_of_client, 0}, {NULL, NULL, 0}},
    .on_mount = open_client_on_mount,
};

domus_address domt_nats_user_open_client(domt_nats_user *user, const domus_nats_options *options)
{
    domus_address address;

    opened = *options;
    ck_assert_int_eq(domus_outside_spawn(user->system, &opener, NULL, &address), 0);
    int result = domus_outsider_ask(user->outsider, address, &opened_type, NULL, 5 * SECOND, NULL);
    ck_assert_int_eq(result, 0);
    return client;
}

void domt_nats_user_start_system(domt_nats_user *user, const domus_nats_options *options)
{
    domus_config config;
    char error[200];

    domus_config_init(&config);
    config.system.threads = 1;
    ck_assert_msg(domus_system_new(&config, error, sizeof error, &user->system) == 0, "%s", error);
    ck_assert_int_eq(domus_system_start(user->system), 0);
    ck_assert_int_eq(domus_outside_attach(user->system, NULL, &user->outsider), 0);
    user->client = domt_nats_user_open_client(user, options);
}

void domt_nats_user_stop_system(domt_nats_user *user)
{
    (void)domus_outside_detach(user->outsider);
    ck_assert_int_ge(domus_system_stop(user->system), 0);
    domus_system_free(user->system);
}

domus_nats_status domt_nats_user_read_client_status(domt_nats_user *user)
{
    domus_nats_status status;
    domus_outside_reply reply = {.buffer = &status, .size = sizeof status};

    ck_assert_int_eq(domus_outsider_ask(user->outsider, user->client, &domus_nats_look_type, NULL,
                                        5 * SECOND, &reply),
                     0);
    return status;
}

void domt_nats_user_await_connection(domt_nats_user *user)
{
    for (int i = 0; i < 10000; i++) {
        if (domt_nats_user_read_client_status(user).connected)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    ck_abort_msg("the client does not connect");
}

void domt_nats_user_ask_successfully(domt_nats_user *user, const domus_type *type,
                                     const void *payload)
{
    int result = domus_outsider_ask(user->outsider, user->client, type, payload, 10 * SECOND, NULL);

    ck_assert_msg(result == 0, "%s: %s", type->name, strerrorname_np(-result));
}

void domt_nats_user_publish_bytes(domt_nats_user *user, const char *subject, const void *data,
                                  size_t size)
{
    domus_nats_publish publish = {.used = 0};

    ck_assert_int_eq(domus_nats_set_subject(&publish, subject), 0);
    ck_assert_int_eq(domus_nats_set_payload(&publish, data, size), 0);
    ck_assert_int_eq(
        domus_outsider_notice(user->outsider, user->client, &domus_nats_publish_type, &publish), 0);
}

uint64_t domt_nats_user_subscribe_to_subject(domt_nats_user *user, const char *subject,
                                             const char *queue, uint64_t tag)
{
    domus_nats_subscribe subscribe;
    domus_nats_subscription subscription;
    domus_outside_reply reply = {.buffer = &subscription, .size = sizeof subscription};

    ck_assert_int_eq(domus_nats_subscribe_make(subject, queue, &subscribe), 0);
    subscribe.tag = tag;
    ck_assert_int_eq(domus_outsider_ask(user->outsider, user->client, &domus_nats_subscribe_type,
                                        &subscribe, 5 * SECOND, &reply),
                     0);
    return subscription.number;
}

const domus_nats_message *domt_nats_user_receive_message(domt_nats_user *user)
{
    static domus_outside_message message;

    int result = domus_outside_receive(user->outsider, NULL, 10 * SECOND, &message);
    ck_assert_msg(result == 0, "no message: %s", strerrorname_np(-result));
    ck_assert_ptr_eq(message.type, &domus_nats_message_type);
    return message.payload;
}

int domt_nats_user_send_request(domt_nats_user *user, const char *subject, const char *payload,
                                uint64_t timeout_ns, domus_nats_message *ret_answer)
{
    domus_nats_publish publish = {.used = 0};
    domus_outside_reply reply = {.buffer = ret_answer, .size = sizeof *ret_answer};

    ck_assert_int_eq(domus_nats_set_subject(&publish, subject), 0);
    ck_assert_int_eq(domus_nats_set_payload(&publish, payload, strlen(payload)), 0);
    return domus_outsider_ask(user->outsider, user->client, &domus_nats_request_type, &publish,
                              timeout_ns, &reply);
}

bool domt_slice_has_text(domus_slice slice, const char *text)
{
    return domus_slice_equals(slice, text, strlen(text));
}
