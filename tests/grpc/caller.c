/* The client of the gRPC service of called.h, by nghttp2. */
#include "tests/grpc/called.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void copy_bytes_as_text(char *to, size_t room, const uint8_t *value, size_t size)
{
    snprintf(to, room, "%.*s", (int)size, (const char *)value);
}

static int store_header_of_call(nghttp2_session *session, const nghttp2_frame *frame,
                                const uint8_t *name_, size_t name_size, const uint8_t *value,
                                size_t size, uint8_t flags, void *caller)
{
    domt_call *call = domt_called_find_call(caller, frame->hd.stream_id);
    char name[64];
    char text[64];

    copy_bytes_as_text(name, sizeof name, name_, name_size);
    copy_bytes_as_text(text, sizeof text, value, size);
    if (strcmp(name, ":status") == 0)
        call->http = (int)strtol(text, NULL, 10);
    else if (strcmp(name, "grpc-status") == 0)
        call->status = (int)strtol(text, NULL, 10);
    else if (strcmp(name, "grpc-message") == 0)
        copy_bytes_as_text(call->text, sizeof call->text, value, size);
    else if (strcmp(name, "content-type") == 0)
        copy_bytes_as_text(call->type, sizeof call->type, value, size);
    else if (strcmp(name, "grpc-encoding") == 0)
        copy_bytes_as_text(call->encoding, sizeof call->encoding, value, size);
    else if (strcmp(name, "grpc-accept-encoding") == 0)
        copy_bytes_as_text(call->accepts, sizeof call->accepts, value, size);
    else if (strcmp(name, "x-echo") == 0)
        copy_bytes_as_text(call->before, sizeof call->before, value, size);
    else if (strcmp(name, "x-echo-bin") == 0)
        copy_bytes_as_text(call->behind, sizeof call->behind, value, size);
    return 0;
}

static int store_received_data_of_call(nghttp2_session *session, uint8_t flags, int32_t id,
                                       const uint8_t *bytes, size_t size, void *caller)
{
    domt_call *call = domt_called_find_call(caller, id);

    ck_assert_uint_le(call->size + size, sizeof call->bytes);
    memcpy(call->bytes + call->size, bytes, size);
    call->size += size;
    return 0;
}

static int record_received_frame(nghttp2_session *session, const nghttp2_frame *frame, void *caller)
{
    bool is_head = frame->hd.type == NGHTTP2_HEADERS;

    if (!is_head && frame->hd.type != NGHTTP2_DATA)
        return 0;
    domt_call *call = domt_called_find_call(caller, frame->hd.stream_id);
    call->heads += is_head;
    call->ended |= (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    return 0;
}

static int record_end_of_stream(nghttp2_session *session, int32_t id, uint32_t code, void *caller)
{
    domt_called_find_call(caller, id)->closed = true;
    domt_called_find_call(caller, id)->code = code;
    return 0;
}

static ssize_t give_next_bytes_of_body(nghttp2_session *session, int32_t id, uint8_t *to,
                                       size_t size, uint32_t *flags, nghttp2_data_source *source,
                                       void *caller)
{
    domt_call *call = domt_called_find_call(caller, id);
    size_t part = call->step != 0 && call->step < size ? call->step : size;

    if (part > call->body_size)
        part = call->body_size;
    if (part == 0 && call->holds_end)
        return NGHTTP2_ERR_DEFERRED;
    if (part != 0)
        memcpy(to, call->body, part);
    call->body = (const char *)call->body + part;
    call->body_size -= part;
    if (call->body_size == 0 && !call->holds_end)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)part;
}

void domt_called_start_service(domt_caller *caller)
{
    domt_called_start_service_with(caller, &domt_called_behaviour, 1);
}

void domt_called_start_service_with(domt_caller *caller, const domus_behaviour *behaviour,
                                    uint64_t seed)
{
    nghttp2_session_callbacks *callbacks;
    domus_config config;

    domus_config_init(&config);
    config.system.threads = DOMT_CALLED_THREADS;
    memset(caller, 0, sizeof *caller);
    domt_called_now = (domt_called){.begun = 0};
    caller->kit = domt_kit_new_listening(&config, "grpc", DOMT_CALLED_AT, seed);
    ck_assert_int_eq(domus_serve(domus_testkit_system(caller->kit), "grpc", behaviour, NULL, NULL),
                     0);
    for (uint32_t i = 0; i < DOMT_CALLED_THREADS; i++) {
        domus_system *system = domus_testkit_system(caller->kit);
        ck_assert_int_eq(domus_outside_spawn_on(system, i, &domt_called_far_behaviour, NULL,
                                                &domt_called_far[i]),
                         0);
        ck_assert_int_eq(domus_outside_spawn_on(system, i, &domt_called_late_behaviour, NULL,
                                                &domt_called_late[i]),
                         0);
    }
    ck_assert_int_eq(domus_testkit_run(caller->kit), 0);
    caller->peer = domt_kit_connect_peer(caller->kit, DOMT_CALLED_AT);
    ck_assert_int_eq(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, store_header_of_call);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks,
                                                              store_received_data_of_call);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, record_received_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, record_end_of_stream);
    ck_assert_int_eq(nghttp2_session_client_new(&caller->session, callbacks, caller), 0);
    nghttp2_session_callbacks_del(callbacks);
    ck_assert_int_eq(nghttp2_submit_settings(caller->session, NGHTTP2_FLAG_NONE, NULL, 0), 0);
}

void domt_called_end_service(domt_caller *caller)
{
    domus_peer_close(caller->peer);
    nghttp2_session_del(caller->session);
    ck_assert_int_eq(domus_testkit_stop(caller->kit), 0);
    domus_testkit_free(caller->kit);
}

int32_t domt_called_begin_call(domt_caller *caller, const char *path, const void *body, size_t size,
                               const char *const *fields)
{
    const char *all[24] = {":method", "POST",    ":scheme", "http",         ":authority",
                           "a",       ":path",   path,      "content-type", "application/grpc",
                           "te",      "trailers"};
    const nghttp2_data_provider provider = {.read_callback = give_next_bytes_of_body};
    nghttp2_nv named[12];
    size_t count = 6;

    for (; fields != NULL && *fields != NULL; fields += 2) {
        size_t at = strcmp(fields[0], "content-type") == 0 ? 4
                    : strcmp(fields[0], ":method") == 0    ? 0
                                                           : count++;
        ck_assert_uint_lt(at, sizeof named / sizeof *named);
        all[2 * at] = fields[0];
        all[2 * at + 1] = fields[1];
    }
    for (size_t i = 0; i < count; i++)
        named[i] =
            (nghttp2_nv){(uint8_t *)(uintptr_t)all[2 * i], (uint8_t *)(uintptr_t)all[2 * i + 1],
                         strlen(all[2 * i]), strlen(all[2 * i + 1]), NGHTTP2_NV_FLAG_NONE};
    int32_t id = nghttp2_submit_request(caller->session, NULL, named, count, &provider, NULL);
    ck_assert_int_gt(id, 0);
    *domt_called_find_call(caller, id) = (domt_call){.status = -1, .body = body, .body_size = size};
    return id;
}

void domt_called_advance_time(domt_caller *caller, uint64_t ns)
{
    for (unsigned i = 0; i < 50; i++) {
        const uint8_t *bytes;
        ssize_t sent;
        size_t size;
        while ((sent = nghttp2_session_mem_send(caller->session, &bytes)) > 0)
            (void)domus_peer_send(caller->peer, bytes, (size_t)sent);
        ck_assert_int_eq(domus_testkit_run(caller->kit), 0);
        ck_assert_int_eq(domus_testkit_advance(caller->kit, ns / 50 + 20000), 0);
        const char *got = domus_peer_got(caller->peer, &size);
        if (size == 0)
            continue;
        ck_assert_int_eq(nghttp2_session_mem_recv(caller->session, (const uint8_t *)got, size),
                         (ssize_t)size);
        domus_peer_take(caller->peer, size);
    }
}

domt_frame domt_called_make_frame(const char *text, size_t size, bool is_packed)
{
    domt_frame frame = {.size = size + 5};

    ck_assert_uint_le(frame.size, sizeof frame.bytes);
    frame.bytes[0] = is_packed;
    frame.bytes[3] = (uint8_t)(size >> 8);
    frame.bytes[4] = (uint8_t)size;
    memcpy(frame.bytes + 5, text, size);
    return frame;
}

domt_call *domt_called_make_unary_call_and_check(domt_caller *caller, const char *path,
                                                 const void *body, size_t size,
                                                 const char *const *fields, int status,
                                                 const char *text)
{
    int32_t id = domt_called_begin_call(caller, path, body, size, fields);
    domt_call *call = domt_called_find_call(caller, id);

    domt_called_advance_time(caller, DOMT_CALLED_MS);
    ck_assert_int_eq(call->http, 200);
    ck_assert_int_eq(call->status, status);
    ck_assert_str_eq(call->type, "application/grpc");
    ck_assert(call->ended);
    if (text != NULL) {
        domt_frame frame = domt_called_make_frame(text, strlen(text), false);
        ck_assert_uint_eq(call->size, frame.size);
        ck_assert_int_eq(memcmp(call->bytes, frame.bytes, frame.size), 0);
    }
    return call;
}
