/* The actor of a bucket of keys and values (domus/nats_kv.h). */
#include "protocols/nats/kv.h"

#include <domus/await.h>
#include <domus/spawn.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* messages that may wait in the mailbox of a watch's actor: the most that any actor may have */
#define WATCH_MAILBOX 65535u

/* --- watches and lists ------------------------------------------------------------------------ */

/* Spawn the actor of a watch or list, and forward the current ask to it. */
static int spawn_watch_and_forward_ask_to_it(domus_stack *stack, domi_kv *kv)
{
    const domus_spawn_options options = {.mailbox_max = WATCH_MAILBOX};
    domi_kv_watch watch = {.client = kv->js.client,
                           .random = domi_js_next_random_number(&kv->random)};
    domus_address address;

    memcpy(watch.bucket, kv->bucket, sizeof kv->bucket);
    int error = domus_spawn_with(stack, &domi_kv_watch_behaviour, &watch, &options, &address);
    if (error != 0)
        return error;
    error = domus_forward(stack, address);
    if (error != 0)
        (void)domus_stop(stack, address);
    return error;
}

DOMUS_SEQUENCE(serve_watch, char)
{
    domi_kv *kv = self;

    DOMUS_BEGIN;
    DOMI_JS_AWAIT_OPEN(stack, &kv->js, then, answer);
    return spawn_watch_and_forward_ask_to_it(stack, kv);
    DOMUS_END;
}

/* --- status and removal of the bucket --------------------------------------------------------- */

static int reply_with_bucket_status(domus_stack *stack, domi_kv *kv, const domus_answer *answer)
{
    domus_nats_stream_status stream;
    int error = domi_js_mark_unopened_if_stream_is_gone(
        &kv->js, domi_js_read_stream_status(answer, &stream));

    if (error != 0)
        return error;
    const domus_nats_kv_status status = {
        .entries = stream.messages,
        .bytes = stream.bytes,
        .revision = stream.last_sequence,
        .bytes_max = stream.bytes_max,
        .ttl_ns = stream.age_max_ns,
        .history = (uint32_t)stream.messages_per_subject,
        .value_max = stream.message_max,
        .replicas = stream.replicas,
        .storage = stream.storage,
        .allow_direct = stream.allow_direct,
    };
    return domus_reply(stack, &domus_nats_kv_status_type, &status);
}

DOMUS_SEQUENCE(serve_look, char)
{
    domi_kv *kv = self;

    DOMUS_BEGIN;
    DOMI_JS_AWAIT_OPEN(stack, &kv->js, then, answer);
    DOMUS_AWAIT(domi_js_ask_server(stack, kv->js.client, (domus_slice){NULL, 0, 0}, then,
                                   "$JS.API.STREAM.INFO.%s", kv->js.stream));
    return reply_with_bucket_status(stack, kv, answer);
    DOMUS_END;
}

DOMUS_SEQUENCE(serve_remove, char)
{
    domi_kv *kv = self;

    DOMUS_BEGIN;
    kv->js.is_open = false;
    DOMUS_AWAIT(domi_js_ask_server(stack, kv->js.client, (domus_slice){NULL, 0, 0}, then,
                                   "$JS.API.STREAM.DELETE.%s", kv->js.stream));
    return domi_js_reply_done_or_error(stack, answer);
    DOMUS_END;
}

/* --- the actor -------------------------------------------------------------------------------- */

static void free_bucket_config_at_stop(domus_stack *stack, void *self)
{
    domi_kv *kv = self;

    (void)stack;
    domus_slice_free(kv->js.create);
}

/* Reset the state of the bucket's actor for a restart; the configuration of the bucket stays. */
static int mark_bucket_unopened_at_restart(domus_stack *stack, void *self, int error)
{
    domi_kv *kv = self;

    (void)stack, (void)error;
    kv->js.is_open = false;
    return 0;
}

static const domus_on rows[] = {
    {.type = &domus_nats_kv_get_type,
     .handle = domi_kv_serve_get_of_key,
     .frame_size = DOMI_KV_FRAME},
    {.type = &domus_nats_kv_put_type,
     .handle = domi_kv_serve_change_of_key,
     .frame_size = DOMI_KV_FRAME},
    DOMUS_ON(&domus_nats_kv_watch_type, serve_watch),
    DOMUS_ON(&domus_nats_kv_keys_type, serve_watch),
    DOMUS_ON(&domus_nats_kv_look_type, serve_look),
    DOMUS_ON(&domus_nats_kv_remove_type, serve_remove),
    {.type = NULL},
};

static const domus_behaviour bucket = {
    .name = "nats_kv",
    .kind = DOMUS_STATE,
    .state_size = sizeof(domi_kv),
    .on = rows,
    .on_stop = free_bucket_config_at_stop,
    .on_restart = mark_bucket_unopened_at_restart,
};

/* Write the configuration of a bucket's stream as JSON, as other clients of NATS do. */
static int write_config_of_bucket(const domi_kv *kv, const domus_nats_kv_config *config,
                                  domus_slice *ret_json)
{
    char subjects[DOMI_KV_SUBJECT_SIZE];

    if (config->history > DOMUS_NATS_KV_HISTORY_MAX)
        return -EINVAL;
    domi_kv_make_subject_of_key(kv->bucket, ">", subjects);
    const domus_nats_stream_config stream = {
        .subjects = subjects,
        .description = config->description,
        .storage = config->storage,
        .replicas = config->replicas,
        .message_max = config->value_max,
        .messages_per_subject = config->history != 0 ? config->history : 1,
        .bytes_max = config->bytes_max,
        .age_max_ns = config->ttl_ns,
        .refuses_new = true,
        .allow_direct = true,
        .allow_rollup = true,
        .deny_delete = true,
    };
    return domi_js_write_stream_config(kv->js.stream, &stream, ret_json);
}

int domus_nats_kv_open(domus_stack *stack, const domus_nats_kv_options *options,
                       domus_address *ret_bucket)
{
    domi_kv kv = {.js = {.client = options->client, .reads_any = options->reads_any}};

    if (!domi_kv_is_valid_bucket_name(options->bucket) || options->client.house == NULL)
        return -EINVAL;
    memcpy(kv.bucket, options->bucket, strlen(options->bucket));
    (void)snprintf(kv.js.stream, sizeof kv.js.stream, "KV_%s", kv.bucket);
    kv.random = domi_js_seed_or_random_number(options->seed);
    int error =
        options->create != NULL ? write_config_of_bucket(&kv, options->create, &kv.js.create) : 0;
    if (error == 0)
        error = domus_spawn(stack, &bucket, &kv, ret_bucket);
    if (error != 0)
        domus_slice_free(kv.js.create);
    return error;
}
