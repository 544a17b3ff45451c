/* Starts a nats-server with JetStream, and uses it by a client; js_server.h describes the
 * functions. */
#include "tests/nats/js_server.h"

#include "tests/support/suite.h"

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void start_jetstream_server(domt_js_server *js, uint16_t port)
{
    char config[200];

    snprintf(config, sizeof config, "jetstream { store_dir: \"%s\" }", js->store);
    domt_nats_server_start(&js->server, config, port);
}

void domt_js_server_start_with_client(domt_js_server *js)
{
    snprintf(js->store, sizeof js->store, "/tmp/domus-js-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(js->store));
    start_jetstream_server(js, 0);
    domt_nats_user_start_system(&js->user,
                                &(domus_nats_options){.servers = js->server.url,
                                                      .request_timeout_ns = 2 * DOMT_SECOND,
                                                      .backoff_max_ns = DOMT_SECOND / 5});
}

void domt_js_server_kill_and_restart(domt_js_server *js)
{
    uint16_t port = js->server.port;

    domt_nats_server_stop(&js->server);
    start_jetstream_server(js, port);
}

static int remove_file_of_store(const char *path, const struct stat *status, int flag,
                                struct FTW *walk)
{
    return remove(path);
}

void domt_js_server_stop_with_client(domt_js_server *js)
{
    domt_nats_user_stop_system(&js->user);
    domt_nats_server_stop(&js->server);
    ck_assert_int_eq(nftw(js->store, remove_file_of_store, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* The options for one call of an open function in a turn of the test's outsider, and its result. */
typedef struct opening {
    const domus_nats_kv_options *kv;
    const domus_nats_stream_options *stream;
    const domus_nats_consumer_options *consumer;
    domus_address address;
    int result;
} opening;

static int open_actor_in_turn(domus_stack *stack, void *argument)
{
    opening *one = argument;

    if (one->kv != NULL)
        one->result = domus_nats_kv_open(stack, one->kv, &one->address);
    else if (one->stream != NULL)
        one->result = domus_nats_stream_open(stack, one->stream, &one->address);
    else
        one->result = domus_nats_consumer_open(stack, one->consumer, &one->address);
    return 0;
}

static domus_address open_actor_and_wait(domt_js_server *js, opening *one)
{
    ck_assert_int_eq(domus_outsider_act(js->user.outsider, open_actor_in_turn, one), 0);
    ck_assert_int_eq(one->result, 0);
    return one->address;
}

domus_address domt_js_server_open_bucket(domt_js_server *js, const domus_nats_kv_options *options)
{
    domus_nats_kv_options own = *options;

    own.client = js->user.client;
    return open_actor_and_wait(js, &(opening){.kv = &own});
}

domus_address domt_js_server_open_stream(domt_js_server *js,
                                         const domus_nats_stream_options *options)
{
    domus_nats_stream_options own = *options;

    own.client = js->user.client;
    return open_actor_and_wait(js, &(opening){.stream = &own});
}

domus_address domt_js_server_open_consumer(domt_js_server *js,
                                           const domus_nats_consumer_options *options)
{
    domus_nats_consumer_options own = *options;

    own.client = js->user.client;
    return open_actor_and_wait(js, &(opening){.consumer = &own});
}

int domt_js_server_ask_actor(domt_js_server *js, domus_address to, const domus_type *type,
                             const void *payload, void *ret_answer, uint32_t size)
{
    domus_outside_reply reply = {.buffer = ret_answer, .size = size};

    uint64_t timeout_ns = js->ask_ns != 0 ? js->ask_ns : 10 * DOMT_SECOND;

    return domus_outsider_ask(js->user.outsider, to, type, payload, timeout_ns,
                              ret_answer != NULL ? &reply : NULL);
}

int domt_js_server_put_entry(domt_js_server *js, domus_address bucket, const char *key,
                             const char *value, domus_nats_kv_operation operation,
                             domus_nats_kv_condition condition, uint64_t revision,
                             uint64_t *ret_revision)
{
    domus_nats_kv_put put = {
        .operation = (uint8_t)operation, .condition = (uint8_t)condition, .revision = revision};
    domus_nats_kv_revision got = {0};

    memcpy(put.key, key, strlen(key) + 1);
    if (value != NULL)
        ck_assert_int_eq(domus_slice_copy(value, strlen(value), &put.value), 0);
    int error =
        domt_js_server_ask_actor(js, bucket, &domus_nats_kv_put_type, &put, &got, sizeof got);
    if (ret_revision != NULL && error == 0)
        *ret_revision = got.revision;
    return error;
}

int domt_js_server_get_entry(domt_js_server *js, domus_address bucket, const char *key,
                             uint64_t revision, domus_nats_kv_entry *ret_entry)
{
    domus_nats_kv_get get = {.revision = revision};

    memcpy(get.key, key, strlen(key) + 1);
    return domt_js_server_ask_actor(js, bucket, &domus_nats_kv_get_type, &get, ret_entry,
                                    sizeof *ret_entry);
}

const void *domt_js_server_receive_notice(domt_js_server *js, const domus_type *type,
                                          uint64_t within_ns)
{
    static domus_outside_message message;
    int result = domus_outside_receive(js->user.outsider, NULL, within_ns, &message);

    ck_assert_msg(result == 0, "no %s came: %s", type->name, strerrorname_np(-result));
    ck_assert_str_eq(message.type->name, type->name);
    return message.payload;
}
