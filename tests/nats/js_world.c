/* A bucket, stream or consumer in a kit, with a probe as the client. */
#include "tests/nats/js_world.h"

#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

/* The options of the actor that the next opener opens as its child; one of the pointers is not
 * NULL. */
static struct {
    const domus_nats_kv_options *kv;
    const domus_nats_stream_options *stream;
    const domus_nats_consumer_options *consumer;
    domus_address opened;
    int result;
} opening;

static int open_child_on_mount(domus_stack *stack, void *self)
{
    if (opening.kv != NULL)
        opening.result = domus_nats_kv_open(stack, opening.kv, &opening.opened);
    else if (opening.stream != NULL)
        opening.result = domus_nats_stream_open(stack, opening.stream, &opening.opened);
    else
        opening.result = domus_nats_consumer_open(stack, opening.consumer, &opening.opened);
    return 0;
}

static const domus_behaviour opener = {
    .name = "opener", .kind = DOMUS_STATE, .on_mount = open_child_on_mount};

void domt_js_world_begin(domt_js_world *world)
{
    char error[200];
    domus_config config;

    domus_config_init(&config);
    config.system.threads = 1;
    ck_assert_int_eq(
        domus_testkit_new(&config, domus_testkit_seed(1), error, sizeof error, &world->kit), 0);
    ck_assert_int_eq(domus_probe_new(world->kit, &world->client), 0);
    ck_assert_int_eq(domus_probe_new(world->kit, &world->user), 0);
}

void domt_js_world_end(domt_js_world *world)
{
    domus_testkit_free(world->kit);
}

static int spawn_opener_and_wait(domt_js_world *world)
{
    domus_address address;

    ck_assert_int_eq(domus_outside_spawn(domus_testkit_system(world->kit), &opener, NULL, &address),
                     0);
    ck_assert_int_eq(domus_testkit_run(world->kit), 0);
    world->opened = opening.opened;
    return opening.result;
}

int domt_js_open_bucket(domt_js_world *world, const domus_nats_kv_options *options)
{
    domus_nats_kv_options own = *options;

    own.client = domus_probe_address(world->client);
    own.seed = 1;
    memset(&opening, 0, sizeof opening);
    opening.kv = &own;
    return spawn_opener_and_wait(world);
}

int domt_js_open_stream(domt_js_world *world, const domus_nats_stream_options *options)
{
    domus_nats_stream_options own = *options;

    own.client = domus_probe_address(world->client);
    memset(&opening, 0, sizeof opening);
    opening.stream = &own;
    return spawn_opener_and_wait(world);
}

int domt_js_open_consumer(domt_js_world *world, const domus_nats_consumer_options *options)
{
    domus_nats_consumer_options own = *options;

    own.client = domus_probe_address(world->client);
    own.seed = 1;
    memset(&opening, 0, sizeof opening);
    opening.consumer = &own;
    return spawn_opener_and_wait(world);
}

/* Copy a part of a publication, such as its subject or payload, from its slice or its inline bytes
 * as a string. */
static void copy_part_of_publication(const domus_nats_publish *publish, domus_slice slice,
                                     uint8_t at, uint8_t size, char *to, size_t room)
{
    if (slice.size != 0)
        snprintf(to, room, "%.*s", (int)slice.size, domus_slice_data(slice));
    else
        snprintf(to, room, "%.*s", size, publish->bytes + at);
}

void domt_js_expect_publication(domt_js_world *world, const domus_type *type, const char *subject,
                                const char *headers, const char *body, char reply[64])
{
    domus_nats_publish publish;
    char text[2048], expected[1024];
    int error = domus_probe_expect(world->client, type, 10 * DOMT_SECOND, &publish);

    ck_assert_msg(error == 0, "%s: %s\n%s", subject, domus_testkit_error(world->kit),
                  domus_testkit_trace(world->kit));
    copy_part_of_publication(&publish, publish.subject, publish.subject_at, publish.subject_size,
                             text, sizeof text);
    ck_assert_str_eq(text, subject);
    copy_part_of_publication(&publish, publish.payload, publish.payload_at, publish.payload_size,
                             text, sizeof text);
    if (body != NULL)
        ck_assert_str_eq(text, body);
    snprintf(text, sizeof text, "%.*s", (int)publish.headers.size,
             domus_slice_data(publish.headers));
    expected[0] = '\0';
    if (headers != NULL)
        snprintf(expected, sizeof expected, "NATS/1.0\r\n%s\r\n\r\n", headers);
    ck_assert_str_eq(text, expected);
    if (reply != NULL)
        copy_part_of_publication(&publish, publish.reply, publish.reply_at, publish.reply_size,
                                 reply, 64);
    domus_nats_publish_free(&publish);
}

void domt_js_expect_request(domt_js_world *world, const char *subject, const char *headers,
                            const char *body)
{
    domt_js_expect_publication(world, &domus_nats_request_type, subject, headers, body, NULL);
}

domus_nats_message domt_js_make_message(const char *subject, const char *reply, const char *headers,
                                        const char *payload)
{
    domus_nats_message message = {.subject_size = (uint16_t)strlen(subject),
                                  .reply_at = (uint16_t)strlen(subject),
                                  .reply_size = (uint16_t)(reply != NULL ? strlen(reply) : 0),
                                  .headers_size = (uint32_t)(headers != NULL ? strlen(headers) : 0),
                                  .payload_size = (uint32_t)strlen(payload)};
    domus_appender bytes = {0};
    unsigned status = 0;

    (void)domus_append(&bytes, subject, strlen(subject));
    if (reply != NULL)
        (void)domus_append(&bytes, reply, strlen(reply));
    if (headers != NULL) {
        (void)domus_append(&bytes, headers, strlen(headers));
        if (sscanf(headers, "NATS/1.0 %3u", &status) == 1)
            message.status = (uint16_t)status;
    }
    (void)domus_append(&bytes, payload, strlen(payload));
    ck_assert_int_eq(domus_append_end(&bytes, &message.bytes), 0);
    return message;
}

void domt_js_answer_request(domt_js_world *world, const char *headers, const char *payload)
{
    domus_nats_message message = domt_js_make_message("_INBOX.x.1", NULL, headers, payload);

    ck_assert_int_eq(domus_probe_reply(world->client, &domus_nats_message_type, &message), 0);
}

void domt_js_deliver_message(domt_js_world *world, domus_address to, uint64_t tag,
                             domus_nats_message message)
{
    message.tag = tag;
    message.subscription = 1;
    ck_assert_int_eq(domus_probe_send(world->client, to, &domus_nats_message_type, &message), 0);
}

void domt_js_expect_failed_ask(domt_js_world *world, int error)
{
    int result = domus_probe_expect_error(world->user, error, 10 * DOMT_SECOND);

    ck_assert_msg(result == 0, "%d: %s", result, domus_testkit_error(world->kit));
}

domus_address domt_js_expect_subscription(domt_js_world *world, uint64_t number, uint64_t *ret_tag,
                                          char inbox[64])
{
    domus_nats_subscribe subscribe;
    domus_nats_subscription subscription = {.number = number};
    int error =
        domus_probe_expect(world->client, &domus_nats_subscribe_type, 60 * DOMT_SECOND, &subscribe);

    ck_assert_msg(error == 0, "%s", domus_testkit_error(world->kit));
    ck_assert_uint_eq(subscribe.queue.size, 0);
    snprintf(inbox, 64, "%.*s", (int)subscribe.subject.size, domus_slice_data(subscribe.subject));
    *ret_tag = subscribe.tag;
    domus_nats_subscribe_type.release(&subscribe);
    ck_assert_int_eq(domus_probe_reply(world->client, &domus_nats_subscription_type, &subscription),
                     0);
    return subscribe.to;
}

void domt_js_expect_unsubscription_within(domt_js_world *world, uint64_t number, uint64_t within_ns)
{
    domus_nats_unsubscribe unsubscribe;
    int error =
        domus_probe_expect(world->client, &domus_nats_unsubscribe_type, within_ns, &unsubscribe);

    ck_assert_msg(error == 0, "%s", domus_testkit_error(world->kit));
    ck_assert_uint_eq(unsubscribe.number, number);
    ck_assert_uint_eq(unsubscribe.messages_max, 0);
}

void domt_js_expect_unsubscription(domt_js_world *world, uint64_t number)
{
    domt_js_expect_unsubscription_within(world, number, DOMT_SECOND / 100);
}

bool domt_js_slice_has_text(domus_slice slice, const char *text)
{
    return domus_slice_equals(slice, text, strlen(text));
}
