/* The nodes of a simulated cluster of clients of NATS, used through probes
 * (tests/cluster/broker.h). */
#include "tests/cluster/broker.h"

#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

/* --- hosts of clients ------------------------------------------------------------------------- */

struct host {
    void *context;
    domus_address *client;
    domus_address events;
};

static int open_client_on_mount(domus_stack *stack, void *self)
{
    struct host *host = self;

    return domus_testkit_cluster_open_client(stack, host->context, 0, host->client);
}

static int on_event_forward_to_probe(domus_stack *stack, void *self, const void *payload)
{
    const struct host *host = self;

    return domus_forward(stack, host->events);
}

static const domus_on rows[] = {
    {.type = &domus_nats_event_type, .handle = on_event_forward_to_probe},
    {.type = NULL},
};

static const domus_behaviour host_behaviour = {
    .name = "host",
    .kind = DOMUS_STATE,
    .state_size = sizeof(struct host),
    .on = rows,
    .on_mount = open_client_on_mount,
};

void domt_member_start_client(domt_member *member)
{
    member->kit = domus_testkit_cluster_kit(member->cluster, member->node);
    ck_assert_ptr_nonnull(member->kit);
    ck_assert_int_eq(domus_probe_new(member->kit, &member->probe), 0);
    ck_assert_int_eq(domus_probe_new(member->kit, &member->events), 0);
    struct host host = {domus_testkit_cluster_context(member->cluster, member->node),
                        &member->client, domus_probe_address(member->events)};
    ck_assert_int_eq(domus_outside_spawn(domus_testkit_system(member->kit), &host_behaviour, &host,
                                         &member->host),
                     0);
    ck_assert_int_eq(domus_testkit_cluster_run(member->cluster), 0);
    ck_assert_ptr_nonnull(member->client.house);
}

void domt_member_add_with_client(domus_testkit_cluster *cluster,
                                 const domus_testkit_node_options *options, domt_member *ret_member)
{
    *ret_member = (domt_member){.cluster = cluster};
    ck_assert_int_eq(domus_testkit_cluster_add_node(cluster, options, &ret_member->node), 0);
    domt_member_start_client(ret_member);
}

domus_testkit_cluster *domt_cluster_new(uint64_t seed, const domus_testkit_cluster_options *options)
{
    domus_testkit_cluster *cluster = NULL;

    ck_assert_int_eq(domus_testkit_cluster_new(seed, options, &cluster), 0);
    return cluster;
}

void domt_pass_time(domus_testkit_cluster *cluster, uint64_t by_ns)
{
    int error = domus_testkit_cluster_advance(cluster, by_ns);

    ck_assert_msg(error == 0, "%d: %s", error, domus_testkit_cluster_error(cluster));
}

domus_testkit_cluster *domt_cluster_new_with_members(uint64_t seed,
                                                     const domus_testkit_cluster_options *options,
                                                     uint32_t count, domt_member *members)
{
    domus_testkit_cluster *cluster = domt_cluster_new(seed, options);

    for (uint32_t i = 0; i < count; i++)
        domt_member_add_with_client(cluster, NULL, &members[i]);
    domt_pass_time(cluster, 10 * DOMT_MS);
    for (uint32_t i = 0; i < count; i++)
        domt_member_expect_event(&members[i], DOMUS_NATS_CONNECTED, 0);
    return cluster;
}

/* --- verbs ------------------------------------------------------------------------------------ */

uint64_t domt_member_subscribe(domt_member *member, const char *subject, const char *queue)
{
    domus_nats_subscription subscription = {0};
    domus_nats_subscribe subscribe;

    ck_assert_int_eq(domus_nats_subscribe_make(subject, queue, &subscribe), 0);
    subscribe.tag = 7;
    ck_assert_int_eq(
        domus_probe_ask(member->probe, member->client, &domus_nats_subscribe_type, &subscribe), 0);
    ck_assert_int_eq(
        domus_probe_expect(member->probe, &domus_nats_subscription_type, 0, &subscription), 0);
    ck_assert_uint_ne(subscription.number, 0);
    return subscription.number;
}

void domt_member_publish_bytes(domt_member *member, const char *subject, const void *data,
                               size_t size)
{
    domus_nats_publish publish = {0};

    ck_assert_int_eq(domus_nats_set_subject(&publish, subject), 0);
    ck_assert_int_eq(domus_nats_set_payload(&publish, data, size), 0);
    ck_assert_int_eq(
        domus_probe_send(member->probe, member->client, &domus_nats_publish_type, &publish), 0);
}

void domt_member_publish(domt_member *member, const char *subject, const char *reply,
                         const char *text)
{
    domus_nats_publish publish = {0};

    ck_assert_int_eq(domus_nats_set_subject(&publish, subject), 0);
    if (reply != NULL)
        ck_assert_int_eq(domus_nats_set_reply(&publish, reply), 0);
    ck_assert_int_eq(domus_nats_set_payload(&publish, text, strlen(text)), 0);
    ck_assert_int_eq(
        domus_probe_send(member->probe, member->client, &domus_nats_publish_type, &publish), 0);
}

void domt_member_request(domt_member *member, const char *subject, const char *headers,
                         const char *text)
{
    domus_nats_publish publish = {0};
    char block[512];

    ck_assert_int_eq(domus_nats_set_subject(&publish, subject), 0);
    ck_assert_int_eq(domus_nats_set_payload(&publish, text, strlen(text)), 0);
    if (headers != NULL) {
        snprintf(block, sizeof block, "NATS/1.0\r\n%s\r\n", headers);
        ck_assert_int_eq(domus_slice_copy(block, strlen(block), &publish.headers), 0);
    }
    ck_assert_int_eq(
        domus_probe_ask(member->probe, member->client, &domus_nats_request_type, &publish), 0);
}

/* --- received messages ------------------------------------------------------------------------ */

static void copy_slice_as_text(char *to, size_t room, domus_slice part)
{
    snprintf(to, room, "%.*s", (int)part.size, domus_slice_data(part));
}

domt_heard domt_copy_and_free_message(domus_nats_message *message)
{
    domt_heard heard = {
        .subscription = message->subscription, .tag = message->tag, .status = message->status};

    copy_slice_as_text(heard.subject, sizeof heard.subject, domus_nats_subject(message));
    copy_slice_as_text(heard.reply, sizeof heard.reply, domus_nats_reply_to(message));
    copy_slice_as_text(heard.headers, sizeof heard.headers, domus_nats_headers(message));
    copy_slice_as_text(heard.payload, sizeof heard.payload, domus_nats_payload(message));
    domus_slice_free(message->bytes);
    return heard;
}

domt_heard domt_member_receive_message(domt_member *member)
{
    domus_nats_message message;
    int error = domus_probe_expect(member->probe, &domus_nats_message_type, 0, &message);

    ck_assert_msg(error == 0, "%d: %s", error, domus_testkit_error(member->kit));
    return domt_copy_and_free_message(&message);
}

void domt_member_expect_text(domt_member *member, const char *text)
{
    domt_heard heard = domt_member_receive_message(member);

    ck_assert_str_eq(heard.payload, text);
}

void domt_hear_nothing(domt_member *member)
{
    ck_assert_int_eq(domus_probe_expect_nothing(member->probe, 0), 0);
}

void domt_member_expect_failure(domt_member *member, int error)
{
    int result = domus_probe_expect_error(member->probe, error, 0);

    ck_assert_msg(result == 0, "%d: %s", result, domus_testkit_error(member->kit));
}

void domt_member_expect_done(domt_member *member)
{
    int error = domus_probe_expect(member->probe, &domus_nats_done_type, 0, NULL);

    ck_assert_msg(error == 0, "%d: %s", error, domus_testkit_error(member->kit));
}

void domt_member_expect_event(domt_member *member, domus_nats_happening happening, int error)
{
    domus_nats_event event;
    int result = domus_probe_expect(member->events, &domus_nats_event_type, 0, &event);

    ck_assert_msg(result == 0, "%d: %s", result, domus_testkit_error(member->kit));
    ck_assert_int_eq(event.happening, happening);
    ck_assert_int_eq(event.error, error);
    ck_assert(domus_address_equals(event.of, member->client));
}

domus_nats_status domt_status_of_member(domt_member *member)
{
    domus_nats_status status;

    ck_assert_int_eq(domus_probe_ask(member->probe, member->client, &domus_nats_look_type, NULL),
                     0);
    ck_assert_int_eq(domus_probe_expect(member->probe, &domus_nats_status_type, 0, &status), 0);
    return status;
}
