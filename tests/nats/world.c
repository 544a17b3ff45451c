/* A client in a test kit, and its servers; world.h describes the functions. */
#include "tests/nats/world.h"

#include <domus/spawn.h>

#include <string.h>

domus_testkit *domt_kit;
domus_probe *domt_probe;
domus_probe *domt_event_probe;
domus_address domt_nats;

void domt_expect_success(int result)
{
    ck_assert_msg(result == 0, "%d: %s\n%s", result, domus_testkit_error(domt_kit),
                  domus_testkit_trace(domt_kit));
}

void domt_nats_run_kit(void)
{
    domt_expect_success(domus_testkit_run(domt_kit));
}

void domt_nats_advance_kit_time(uint64_t time_ns)
{
    domt_expect_success(domus_testkit_advance(domt_kit, time_ns));
}

/* --- the client ------------------------------------------------------------------------------- */

static domus_nats_options opened;

/* An actor that opens the client of NATS as its child. */
static int open_client_on_mount(domus_stack *stack, void *self)
{
    return domus_nats_open(stack, &opened, &domt_nats);
}

static const domus_behaviour opener = {
    .name = "opener", .kind = DOMUS_STATE, .on_mount = open_client_on_mount};

void domt_nats_make_kit(void)
{
    domt_kit = domt_kit_new(NULL, 3);
    domt_expect_success(domus_probe_new(domt_kit, &domt_probe));
    domt_expect_success(domus_probe_new(domt_kit, &domt_event_probe));
}

void domt_nats_open_client(const domus_nats_options *options)
{
    domus_address address;

    opened = options != NULL ? *options : (domus_nats_options){.servers = PLACE};
    if (opened.servers == NULL)
        opened.servers = PLACE;
    if (opened.events.house == NULL)
        opened.events = domus_probe_address(domt_event_probe);
    if (opened.seed == 0)
        opened.seed = 7;
    domt_nats = (domus_address){NULL, 0};
    ck_assert_int_eq(domus_outside_spawn(domus_testkit_system(domt_kit), &opener, NULL, &address),
                     0);
    domt_nats_run_kit();
    ck_assert_ptr_nonnull(domt_nats.house);
}

domus_peer_listener *domt_nats_listen_as_server(const char *at)
{
    domus_peer_listener *listener;

    domt_expect_success(domus_peer_listen(domt_kit, at, 0, &listener));
    return listener;
}

domus_peer_listener *domt_nats_begin_with_server_and_client(const domus_nats_options *options)
{
    domt_nats_make_kit();
    domus_peer_listener *listener = domt_nats_listen_as_server(PLACE);
    domt_nats_open_client(options);
    return listener;
}

void domt_nats_end_kit(void)
{
    domus_testkit_free(domt_kit);
}

/* --- servers ---------------------------------------------------------------------------------- */

domus_peer *domt_nats_accept_connection(domus_peer_listener *listener)
{
    domus_peer *peer;

    domt_expect_success(domus_peer_accept(listener, 60 * SECOND, &peer));
    return peer;
}

void domt_nats_send_to_client(domus_peer *peer, const char *text)
{
    domt_expect_success(domus_peer_send(peer, text, strlen(text)));
    domt_nats_run_kit();
}

void domt_nats_expect_text_from_client(domus_peer *peer, const char *text)
{
    domt_expect_success(domus_peer_expect(peer, text, strlen(text), 5 * SECOND));
}

const char *domt_nats_read_line_from_client(domus_peer *peer)
{
    static char line[40000];
    size_t size;

    for (int i = 0; i < 5000; i++) {
        const char *got = domus_peer_got(peer, &size);
        const char *end = size != 0 ? memchr(got, '\n', size) : NULL;
        if (end == NULL) {
            domt_nats_advance_kit_time(MS);
            continue;
        }
        size = (size_t)(end - got) + 1;
        ck_assert(size < sizeof line && size >= 2 && end[-1] == '\r');
        memcpy(line, got, size);
        line[size - 2] = '\0';
        domus_peer_take(peer, size);
        return line;
    }
    ck_abort_msg("no line came: %s", domus_testkit_trace(domt_kit));
}

const char *domt_nats_let_client_log_in(domus_peer *peer, const char *info)
{
    static char inbox[100];

    domt_nats_send_to_client(peer, info != NULL ? info : INFO);
    ck_assert_int_eq(strncmp(domt_nats_read_line_from_client(peer), "CONNECT {", 9), 0);
    domt_nats_expect_text_from_client(peer, "PING\r\n");
    domt_nats_send_to_client(peer, "PONG\r\n");
    const char *line = domt_nats_read_line_from_client(peer);
    ck_assert_int_eq(strncmp(line, "SUB _INBOX.", 11), 0);
    size_t size = strlen(line);
    ck_assert_str_eq(line + size - 4, ".* 0");
    memcpy(inbox, line + 4, size - 4 - 3);
    inbox[size - 4 - 3] = '\0';
    domt_nats_expect_event(DOMUS_NATS_CONNECTED, 0);
    return inbox;
}

domus_peer *domt_nats_accept_client_login(domus_peer_listener *listener)
{
    domus_peer *peer = domt_nats_accept_connection(listener);

    (void)domt_nats_let_client_log_in(peer, NULL);
    return peer;
}

domus_peer *domt_nats_begin_with_logged_in_client(const domus_nats_options *options,
                                                  domus_peer_listener **ret_listener)
{
    domus_peer_listener *listener = domt_nats_begin_with_server_and_client(options);
    domus_peer *peer = domt_nats_accept_connection(listener);

    (void)domt_nats_let_client_log_in(peer, NULL);
    if (ret_listener != NULL)
        *ret_listener = listener;
    return peer;
}

/* --- the user --------------------------------------------------------------------------------- */

domus_nats_publish domt_nats_make_publication(const char *subject, const char *payload)
{
    domus_nats_publish publish = {.used = 0};

    ck_assert_int_eq(domus_nats_set_subject(&publish, subject), 0);
    ck_assert_int_eq(domus_nats_set_payload(&publish, payload, strlen(payload)), 0);
    return publish;
}

void domt_nats_publish_by_probe(const char *subject, const char *payload)
{
    domus_nats_publish publish = domt_nats_make_publication(subject, payload);

    domt_expect_success(
        domus_probe_send(domt_probe, domt_nats, &domus_nats_publish_type, &publish));
    domt_nats_run_kit();
}

void domt_nats_request_by_probe(const char *subject, const char *payload, uint64_t within_ns)
{
    domus_nats_publish publish = domt_nats_make_publication(subject, payload);

    domt_expect_success(
        within_ns != 0
            ? domus_probe_ask_within(domt_probe, domt_nats, &domus_nats_request_type, &publish,
                                     within_ns)
            : domus_probe_ask(domt_probe, domt_nats, &domus_nats_request_type, &publish));
    domt_nats_run_kit();
}

uint64_t domt_nats_subscribe_by_probe(const char *subject, const char *queue, uint64_t max,
                                      uint64_t tag)
{
    domus_nats_subscribe subscribe;
    domus_nats_subscription subscription;

    ck_assert_int_eq(domus_nats_subscribe_make(subject, queue, &subscribe), 0);
    subscribe.messages_max = max;
    subscribe.tag = tag;
    domt_expect_success(
        domus_probe_ask(domt_probe, domt_nats, &domus_nats_subscribe_type, &subscribe));
    domt_expect_success(
        domus_probe_expect(domt_probe, &domus_nats_subscription_type, SECOND, &subscription));
    ck_assert_uint_ne(subscription.number, 0);
    return subscription.number;
}

void domt_nats_expect_message(domus_probe *probe, const char *subject, const char *payload,
                              uint64_t tag)
{
    domus_nats_message message;

    domt_expect_success(domus_probe_expect(probe, &domus_nats_message_type, 5 * SECOND, &message));
    ck_assert(domus_slice_equals(domus_nats_subject(&message), subject, strlen(subject)));
    domus_slice got = domus_nats_payload(&message);
    ck_assert_msg(domus_slice_equals(got, payload, strlen(payload)), "%.*s", (int)got.size,
                  domus_slice_data(got));
    ck_assert_uint_eq(message.tag, tag);
    domus_nats_message_type.release(&message);
}

void domt_nats_expect_failed_ask(int error)
{
    domt_expect_success(domus_probe_expect_error(domt_probe, error, 60 * SECOND));
}

void domt_nats_expect_event(domus_nats_happening happening, int error)
{
    domus_nats_event event;

    domt_expect_success(
        domus_probe_expect(domt_event_probe, &domus_nats_event_type, 60 * SECOND, &event));
    ck_assert_msg(event.happening == happening && event.error == error, "%d %d %s", event.happening,
                  event.error, event.text);
    ck_assert(domus_address_equals(event.of, domt_nats));
}

domus_nats_status domt_nats_read_client_status(void)
{
    domus_nats_status status;
    domus_probe *other;

    domt_expect_success(domus_probe_new(domt_kit, &other));
    domt_expect_success(domus_probe_ask(other, domt_nats, &domus_nats_look_type, NULL));
    domt_expect_success(domus_probe_expect(other, &domus_nats_status_type, SECOND, &status));
    return status;
}
