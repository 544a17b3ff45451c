/* A front: byte stages that a listener puts before the pipelines of its connections. The actors
 * behind it behave as without it. The front of this test changes each byte by a key that moves on,
 * so the test notices if the stage is left out or begins anew. */
#include "tests/runtime/running.h"
#include "tests/support/stages.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static const domus_pipeline_stage front[] = {
    {&domt_sip_stage, NULL}, {&domt_xor_stage, NULL}, {NULL, NULL}};

/* --- the service ------------------------------------------------------------------------------ */

static const domus_line_options line = {.role = DOMUS_ROLE_SERVER};
static const domus_delimiter_options semicolon = {.role = DOMUS_ROLE_SERVER, .delimiter = ';'};
static const domus_pipeline lines = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, &line}, {NULL, NULL}}};
/* A pipeline with as many stages as its own part may have. */
static const domus_pipeline long_pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domt_sip_stage, NULL},
                                             {&domt_sip_stage, NULL},
                                             {&domt_sip_stage, NULL},
                                             {&domus_delimiter_stage, &semicolon},
                                             {NULL, NULL}}};
static const domus_pipeline bytes = {
    .stages = (const domus_pipeline_stage[]){{&domus_bytes_stage, NULL}, {NULL, NULL}}};

/* Answer a packet with the same packet. */
static int reply_same_packet(domus_stack *stack, domus_slice text)
{
    domus_packet packet;
    int error = domus_slice_keep(text, &packet.bytes);

    if (error != 0)
        return error;
    error = domus_reply(stack, &domus_packet_type, &packet);
    if (error != 0)
        domus_slice_free(packet.bytes);
    return error;
}

/* Answer each message with the same bytes. The messages "long" and "bytes" change the pipeline of
 * the channel; the state is true when the new pipeline makes no requests of packets. */
static int echo_and_change_pipeline(domus_stack *stack, void *self, const void *payload)
{
    domus_channel *own = domus_channel_running(stack);
    domus_slice text = ((const domus_packet *)payload)->bytes;
    const domus_channel_options options = {.idle_timeout_ns = 60000 * DOMT_MS};
    bool *has_bytes = self;
    int error = domus_channel_set_options(stack, own, &options);

    if (error == 0 && *has_bytes)
        return domus_channel_send(stack, own, &domus_packet_type, payload);
    if (error == 0 && text.size == 4 && memcmp(domus_slice_data(text), "long", 4) == 0)
        error = domus_channel_set_pipeline(stack, own, &long_pipeline, 0);
    if (error == 0 && text.size == 5 && memcmp(domus_slice_data(text), "bytes", 5) == 0) {
        error = domus_channel_set_pipeline(stack, own, &bytes, 0);
        *has_bytes = true;
    }
    return error == 0 ? reply_same_packet(stack, text) : error;
}

static const domus_behaviour channel = {
    .name = "lines",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(bool),
    .pipeline = &lines,
    .on_peer =
        (const domus_on_peer[]){{.type = &domus_packet_type, .handle = echo_and_change_pipeline},
                                {.type = NULL}},
};

/* --- the client ------------------------------------------------------------------------------- */

typedef struct talk {
    int fd;
    uint32_t in, out; /* keys of the front for the bytes that come and the bytes that go */
} talk;

static talk begin_talk_at_port(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = 10};
    talk made = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};

    ck_assert_int_ge(made.fd, 0);
    (void)setsockopt(made.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ck_assert_int_eq(connect(made.fd, (const struct sockaddr *)&address, sizeof address), 0);
    return made;
}

static char change_byte_by_key(uint32_t *key, char byte)
{
    *key = *key * 1664525u + 1013904223u;
    return (char)(byte ^ (char)(*key >> 24));
}

static void send_changed_text(talk *with, const char *text)
{
    char sent[256];
    size_t size = strlen(text);

    ck_assert_uint_le(size, sizeof sent);
    for (size_t i = 0; i < size; i++)
        sent[i] = change_byte_by_key(&with->out, text[i]);
    ck_assert_int_eq(send(with->fd, sent, size, MSG_NOSIGNAL), (ssize_t)size);
}

static void expect_changed_text(talk *with, const char *text)
{
    for (size_t i = 0; text[i] != '\0';) {
        char byte;
        ssize_t got = recv(with->fd, &byte, 1, 0);
        /* on EINTR receive again, because the kernel is tearing down a ring that this thread has
         * made */
        if (got < 0 && errno == EINTR)
            continue;
        ck_assert_msg(got == 1, "no answer behind \"%.*s\"", (int)i, text);
        byte = change_byte_by_key(&with->in, byte);
        ck_assert_msg(byte == text[i], "'%c' behind \"%.*s\"", byte, (int)i, text);
        i++;
    }
}

/* Send requests to a service whose connections have the front, by a client that applies the same
 * keys, and check the answers. */
static void check_talks_through_front(uint16_t port)
{
    talk one = begin_talk_at_port(port), other = begin_talk_at_port(port);

    send_changed_text(&one, "first\nsecond\n");
    expect_changed_text(&one, "first\nsecond\n");
    send_changed_text(&one, "long\n");
    expect_changed_text(&one, "long\n");
    send_changed_text(&one, "a;bc;");
    expect_changed_text(&one, "a;bc;");
    send_changed_text(&one, "bytes;");
    expect_changed_text(&one, "bytes;");
    send_changed_text(&one, "no end");
    expect_changed_text(&one, "no end");
    send_changed_text(&other, "bytes\nand these");
    expect_changed_text(&other, "bytes\nand these");
    close(one.fd);
    close(other.fd);
}

/* --- tests ------------------------------------------------------------------------------------ */

static domus_system *make_system_with_front(void)
{
    static const domus_listener_config listener = {
        .name = "front", .address = "127.0.0.1:0", .backlog = 64};
    domus_config config = domt_config_of_threads(2);

    config.listeners = &listener;
    config.listener_count = 1;
    return domt_start_system(&config);
}

DOMT_TEST(front_of_a_listener_stays_when_the_pipeline_changes)
{
    const domus_serve_options options = {.front = front};
    domus_system *system = make_system_with_front();
    uint16_t port;

    ck_assert_int_eq(domus_serve_with(system, "front", &channel, NULL, &options, &port), 0);
    check_talks_through_front(port);
    domt_end_system(system);
}

static _Atomic uint32_t own_port;
static _Atomic int own_error;

static int listen_with_front_in_mount(domus_stack *stack, void *self)
{
    const domus_listen_options options = {.front = front};
    domus_endpoint at, got;

    int error = domus_endpoint_parse("127.0.0.1:0", &at);
    if (error == 0)
        error = domus_listen(stack, &at, &options, NULL, &got);
    atomic_store(&own_port, error == 0 ? got.port : 0);
    atomic_store(&own_error, error);
    return error;
}

DOMT_TEST(listeners_of_actors_have_fronts)
{
    static const domus_behaviour service = {.name = "service",
                                            .kind = DOMUS_CHANNELS,
                                            .channel = &channel,
                                            .on_mount = listen_with_front_in_mount};
    domus_system *system = make_system_with_front();

    atomic_store(&own_port, 0);
    (void)domt_spawn(system, 0, &service, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&own_port) != 0);
    check_talks_through_front((uint16_t)atomic_load(&own_port));
    domt_end_system(system);
}

DOMT_TEST(listeners_of_actors_whose_channels_have_no_pipeline_take_no_front)
{
    static const domus_behaviour raw = {.name = "raw", .kind = DOMUS_CHANNELS};
    static const domus_behaviour service = {.name = "service",
                                            .kind = DOMUS_CHANNELS,
                                            .channel = &raw,
                                            .on_mount = listen_with_front_in_mount};
    domus_system *system = make_system_with_front();

    atomic_store(&own_error, 1);
    (void)domt_spawn(system, 0, &service, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&own_error) != 1);
    ck_assert_int_eq(atomic_load(&own_error), -EINVAL);
    domt_end_system(system);
}

static int refuse_options_of_front(const void *options)
{
    return -EDOM;
}

/* A listener that is meant for TLS must not be served without encryption by a program that has no
 * TLS. */
DOMT_TEST(listener_that_is_to_speak_tls_is_not_served_without_a_front)
{
    static const domus_listener_config listener = {
        .name = "front", .address = "127.0.0.1:0", .backlog = 64, .tls.cert_files = "a.pem"};
    const domus_serve_options options = {.front = front};
    domus_config config = domt_config_of_threads(2);
    uint16_t port;

    config.listeners = &listener;
    config.listener_count = 1;
    domus_system *system = domt_start_system(&config);
    ck_assert_int_eq(domus_serve(system, "front", &channel, NULL, &port), -EINVAL);
    ck_assert_str_eq(domus_system_error(system),
                     "listener front: the configuration wants TLS (tls.certFile), and the program "
                     "puts none in front");
    ck_assert_int_eq(domus_serve_with(system, "front", &channel, NULL, &options, &port), 0);
    check_talks_through_front(port);
    domt_end_system(system);
}

DOMT_TEST(wrong_front_of_a_listener_is_refused)
{
    static const domus_behaviour raw = {.name = "raw", .kind = DOMUS_CHANNELS};
    static const domus_behaviour acceptor = {
        .name = "acceptor", .kind = DOMUS_CHANNELS, .channel = &raw};
    static const domus_pipeline_stage three[] = {
        {&domt_sip_stage, NULL}, {&domt_sip_stage, NULL}, {&domt_sip_stage, NULL}, {NULL, NULL}};
    static const domus_pipeline_stage message[] = {{&domus_line_stage, &line}, {NULL, NULL}};
    domus_stage checked = domt_sip_stage;
    checked.check = refuse_options_of_front;
    const domus_pipeline_stage refused[] = {{&checked, NULL}, {NULL, NULL}};
    static const domus_pipeline_stage none[] = {{NULL, NULL}};
    domus_system *system = make_system_with_front();
    uint16_t port;

    const struct {
        const domus_pipeline_stage *front;
        const domus_behaviour *behaviour;
        int error;
    } rows[] = {{three, &channel, -EINVAL},  {message, &channel, -EINVAL},
                {refused, &channel, -EDOM},  {front, &raw, -EINVAL},
                {front, &acceptor, -EINVAL}, {none, &raw, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const domus_serve_options options = {.front = rows[i].front};
        ck_assert_int_eq(
            domus_serve_with(system, "front", rows[i].behaviour, NULL, &options, &port),
            rows[i].error);
    }
    domt_end_system(system);
}

DOMT_SUITE(60)
