/* Gets and changes of keys. Each change is a message that the server stores only if the condition
 * in its headers holds, so of several changes of a key at the same revision only one succeeds.
 *
 * With several replicas nats-server 2.9 checks the revision before it sends the change to the other
 * servers, and not again when it stores it, so two simultaneous changes would both be stored. (A
 * revision of 0 is checked again.) But when it stores, it does check for another message with the
 * same id. So the id of a change is made of key and revision: of several such changes one is
 * stored, and the others are duplicates. */
#include "protocols/nats/kv.h"

#include <domus/await.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* how often a create is tried when the key has the marker of a delete, at most */
#define TRIES_MAX 3u

/* --- get -------------------------------------------------------------------------------------- */

static int ask_stream_for_entry_of_key(domus_stack *stack, const domi_kv *kv, uint64_t revision,
                                       const char *key, domus_resumed *then)
{
    char subject[DOMI_KV_SUBJECT_SIZE];

    domi_kv_make_subject_of_key(kv->bucket, key, subject);
    return domi_js_ask_for_message(stack, &kv->js, revision, subject, then);
}

/* Read an entry from the server's answer to a get; the entry may be a delete. Ownership: the entry
 * is the caller's; after an error `ret_entry` is unchanged. */
static int read_entry_of_answer(const domi_kv *kv, const domus_answer *answer, const char *key,
                                domus_nats_kv_entry *ret_entry)
{
    domus_nats_stream_message message;
    domus_nats_kv_entry entry;
    int error = domi_js_read_message_of_answer(answer, &message);

    if (error != 0)
        return error;
    error = domi_kv_read_entry_of_message(kv->bucket, &message, &entry);
    if (error == 0 && !domus_slice_equals(domus_nats_kv_key(&entry), key, strlen(key)))
        error = -ENOENT; /* the message with this revision belongs to another key */
    if (error == 0)
        *ret_entry = entry;
    else
        domus_slice_free(message.bytes);
    return error;
}

static int reply_with_entry(domus_stack *stack, domi_kv *kv, const domus_answer *answer)
{
    const domus_nats_kv_get *get = domus_asked(stack, &domus_nats_kv_get_type);
    domus_nats_kv_entry entry = {0};

    if (get == NULL)
        return -ECANCELED;
    int error = domi_js_mark_unopened_if_stream_is_gone(
        &kv->js, read_entry_of_answer(kv, answer, get->key, &entry));
    if (error != 0)
        return error;
    if (entry.operation == DOMUS_NATS_KV_PUT)
        error = domus_reply(stack, &domus_nats_kv_entry_type, &entry);
    else
        error = -ENOENT;
    if (error != 0)
        domus_slice_free(entry.bytes);
    return error;
}

static int ask_stream_for_entry_of_asked_get(domus_stack *stack, const domi_kv *kv,
                                             domus_resumed *then)
{
    const domus_nats_kv_get *get = domus_asked(stack, &domus_nats_kv_get_type);

    return get != NULL ? ask_stream_for_entry_of_key(stack, kv, get->revision, get->key, then)
                       : -ECANCELED;
}

DOMUS_SEQUENCE(serve_get, char)
{
    domi_kv *kv = self;

    DOMUS_BEGIN;
    {
        const domus_nats_kv_get *get = message;
        int error = get != NULL ? domus_nats_kv_check_key(get->key) : -EINVAL;
        if (error != 0)
            return error;
    }
    DOMI_JS_AWAIT_OPEN(stack, &kv->js, then, answer);
    DOMUS_AWAIT(ask_stream_for_entry_of_asked_get(stack, kv, then));
    return reply_with_entry(stack, kv, answer);
    DOMUS_END;
}

/* --- changes ---------------------------------------------------------------------------------- */

/* The variables that a change of a key keeps between its turns. */
typedef struct change {
    uint64_t expected; /* revision that the key must have for the change to be stored */
    uint32_t tries;
    bool is_conditional;
} change;

static int check_asked_change_of_key(const domus_nats_kv_put *put)
{
    if (put == NULL || put->operation > DOMUS_NATS_KV_PURGE ||
        put->condition > DOMUS_NATS_KV_IF_REVISION)
        return -EINVAL;
    if (put->operation != DOMUS_NATS_KV_PUT &&
        (put->condition == DOMUS_NATS_KV_IF_NONE || put->value.size != 0))
        return -EINVAL;
    return domus_nats_kv_check_key(put->key);
}

/* Add a header with the id of the change, so that the server stores only one change of the key at
 * this revision. */
static int add_id_of_change(domus_appender *headers, const char *key, uint64_t revision)
{
    char id[DOMUS_NATS_KV_KEY_MAX + 24];

    (void)snprintf(id, sizeof id, "%s@%llu", key, (unsigned long long)revision);
    return domus_nats_headers_add(headers, "Nats-Msg-Id", id);
}

/* Make the headers of a change of a key; a put without a condition has no headers. */
static int make_headers_of_change(const domus_nats_kv_put *put, const change *frame,
                                  domus_slice *ret_headers)
{
    domus_appender headers = {0};
    int error = 0;

    if (put->operation == DOMUS_NATS_KV_PUT && !frame->is_conditional) {
        *ret_headers = (domus_slice){NULL, 0, 0};
        return 0;
    }
    if (frame->is_conditional)
        error = domi_js_add_header_with_number(&headers, "Nats-Expected-Last-Subject-Sequence",
                                               frame->expected);
    if (error == 0 && frame->is_conditional && frame->expected != 0)
        error = add_id_of_change(&headers, put->key, frame->expected);
    if (error == 0 && put->operation != DOMUS_NATS_KV_PUT)
        error = domus_nats_headers_add(&headers, "KV-Operation",
                                       put->operation == DOMUS_NATS_KV_DELETE ? "DEL" : "PURGE");
    if (error == 0 && put->operation == DOMUS_NATS_KV_PURGE)
        error = domus_nats_headers_add(&headers, "Nats-Rollup", "sub");
    if (error == 0)
        return domus_nats_headers_end(&headers, ret_headers);
    domus_append_drop(&headers);
    return error;
}

/* Send the change to the server. The ask keeps the value, too, because a create may be sent
 * again. */
static int send_change_of_ask_to_stream(domus_stack *stack, const domi_kv *kv, const change *frame,
                                        domus_resumed *then)
{
    const domus_nats_kv_put *put = domus_asked(stack, &domus_nats_kv_put_type);
    char subject[DOMI_KV_SUBJECT_SIZE];
    domus_nats_publish request = {0};

    if (put == NULL)
        return -ECANCELED;
    domi_kv_make_subject_of_key(kv->bucket, put->key, subject);
    int error = domus_nats_set_subject(&request, subject);
    if (error == 0)
        error = make_headers_of_change(put, frame, &request.headers);
    if (error == 0)
        error = domus_slice_keep(put->value, &request.payload);
    if (error == 0)
        error = domus_ask(stack, kv->js.client, &domus_nats_request_type, &request, then);
    if (error < 0)
        domus_nats_publish_free(&request);
    return error;
}

/* Handle the server's answer to a change. `ret_again` is set if the key may have the marker of a
 * delete, so that the create must be tried again at the marker's revision. Returns as a handler
 * does. */
static int reply_with_revision_or_try_again(domus_stack *stack, domi_kv *kv, change *frame,
                                            const domus_answer *answer, bool *ret_again)
{
    const domus_nats_kv_put *put = domus_asked(stack, &domus_nats_kv_put_type);
    domus_nats_stream_ack ack;
    int error =
        domi_js_mark_unopened_if_stream_is_gone(&kv->js, domi_js_read_publish_ack(answer, &ack));

    if (error == 0 && ack.duplicate)
        error = -EEXIST; /* another change of the key at this revision was stored */
    if (error == 0)
        return domus_reply(stack, &domus_nats_kv_revision_type,
                           &(domus_nats_kv_revision){ack.sequence});
    *ret_again = error == -EEXIST && put != NULL && put->condition == DOMUS_NATS_KV_IF_NONE &&
                 ++frame->tries < TRIES_MAX;
    return error;
}

static int ask_stream_for_last_entry_of_put_key(domus_stack *stack, const domi_kv *kv,
                                                domus_resumed *then)
{
    const domus_nats_kv_put *put = domus_asked(stack, &domus_nats_kv_put_type);

    return put != NULL ? ask_stream_for_entry_of_key(stack, kv, 0, put->key, then) : -ECANCELED;
}

/* Read the revision of a delete's marker, and let the create expect that revision. Returns -EEXIST
 * if the key has a value. */
static int expect_revision_of_delete_marker(domus_stack *stack, const domi_kv *kv, change *frame,
                                            const domus_answer *answer)
{
    const domus_nats_kv_put *put = domus_asked(stack, &domus_nats_kv_put_type);
    domus_nats_kv_entry entry = {0};

    if (put == NULL)
        return -ECANCELED;
    int error = read_entry_of_answer(kv, answer, put->key, &entry);
    domus_slice_free(entry.bytes);
    if (error != 0 && error != -ENOENT)
        return error;
    if (error == 0 && entry.operation == DOMUS_NATS_KV_PUT)
        return -EEXIST;
    frame->expected = error == 0 ? entry.revision : 0;
    return 0;
}

DOMUS_SEQUENCE(serve_put, change)
{
    domi_kv *kv = self;

    DOMUS_BEGIN;
    {
        const domus_nats_kv_put *put = message;
        int error = check_asked_change_of_key(put);
        if (error != 0 || put == NULL) /* `message` is not NULL in the first turn of a sequence */
            return error;
        frame->is_conditional = put->condition != DOMUS_NATS_KV_ALWAYS;
        frame->expected = put->condition == DOMUS_NATS_KV_IF_REVISION ? put->revision : 0;
    }
    DOMI_JS_AWAIT_OPEN(stack, &kv->js, then, answer);
    for (;;) {
        DOMUS_AWAIT(send_change_of_ask_to_stream(stack, kv, frame, then));
        {
            bool is_again = false;
            int result = reply_with_revision_or_try_again(stack, kv, frame, answer, &is_again);
            if (!is_again)
                return result;
        }
        DOMUS_AWAIT(ask_stream_for_last_entry_of_put_key(stack, kv, then));
        {
            int error = expect_revision_of_delete_marker(stack, kv, frame, answer);
            if (error != 0)
                return error;
        }
    }
    DOMUS_END;
}

static_assert(sizeof(struct domi_serve_get_frame) <= DOMI_KV_FRAME, "too large a frame");
static_assert(sizeof(struct domi_serve_put_frame) <= DOMI_KV_FRAME, "too large a frame");

int domi_kv_serve_get_of_key(domus_stack *stack, void *self, const void *payload)
{
    return domi_serve_get_begin(stack, self, payload);
}

int domi_kv_serve_change_of_key(domus_stack *stack, void *self, const void *payload)
{
    return domi_serve_put_begin(stack, self, payload);
}
