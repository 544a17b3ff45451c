/* python3-websockets and wslay as judges of WebSocket over real sockets: as clients of a domus
 * server, also through a proxy, and as servers of a domus client. Where these programs are not
 * installed, nothing is compared. */
#include "protocols/http/websocket/handshake.h"
#include "tests/runtime/running.h"
#include "tests/runtime/sockets.h"
#include "tests/support/crowd.h"

#include <domus/await.h>
#include <domus/http_proxy.h>
#include <domus/websocket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SCRIPT DOMT_SOURCE_DIR "/tests/runtime/websocket_peer.py"

static bool has_websockets_of_python(void)
{
    /* NOLINTNEXTLINE(cert-env33-c): a test may use the shell */
    if (system("timeout 60 /usr/bin/python3 -c 'import websockets' 2>/dev/null") == 0)
        return true;
    printf("no python3-websockets: nothing is compared with it\n");
    return false;
}

/* --- a server --------------------------------------------------------------------------------- */

static const domus_pipeline socket_pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_websocket_stage, NULL}, {NULL, NULL}}};
static const char *const protocols[] = {"echo", NULL};
static const char *const origins[] = {"https://a.example", NULL};
static const domus_websocket_service offer = {
    .pipeline = &socket_pipeline, .protocols = protocols, .origins = origins};

/* The proxy sends requests for paths below "/p" to this same server a second time. */
static domus_http_proxy proxy = {.path = "/p"};

static bool is_path_of_proxy(const domus_http_request *request)
{
    domus_slice path = domus_http_path(request);
    return path.size > 2 && memcmp(domus_slice_data(path), "/p/", 3) == 0;
}

static uint32_t marks_of_path(const void *payload)
{
    return is_path_of_proxy(payload) ? DOMUS_HTTP_PROXY_MARKS : 0;
}

static int accept_or_pass_on(domus_stack *stack, void *self, const void *payload)
{
    return is_path_of_proxy(payload) ? domus_http_pass(stack, payload, &proxy)
                                     : domus_websocket_accept(stack, payload, &offer, NULL);
}

static const domus_pipeline web = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, NULL}, {NULL, NULL}}};
static const domus_behaviour of_server = {
    .name = "echo",
    .kind = DOMUS_CHANNELS,
    .pipeline = &web,
    .on_peer = (const domus_on_peer[]){
        {&domus_http_request_type, accept_or_pass_on, DOMUS_HTTP_PROXY_FRAME, 0, marks_of_path},
        {.type = &domus_websocket_message_type, .handle = domt_on_websocket_message_echo},
        {.type = NULL}}};

/* Start the server of the test; `port` gets its port as text. */
static domus_system *start_websocket_server(char *port, size_t size)
{
    domus_system *system_ = domt_start_system_of_threads(2);
    char text[128];

    domus_endpoint served = domt_serve_channel_at_any_port(system_, &of_server);
    (void)domus_endpoint_text(&served, text, sizeof text);
    snprintf(port, size, "%s", strrchr(text, ':') + 1);
    return system_;
}

/* Run python3-websockets as a client at a port, or at a port and a path. */
static void run_python_client(const char *at)
{
    char command[512];
    snprintf(command, sizeof command, "timeout 60 /usr/bin/python3 " SCRIPT " client %s", at);
    ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c) */
}

DOMT_TEST(python_is_served_also_through_a_proxy)
{
    const domus_pool_options options = {
        .behaviour = &domus_http_streaming_connection, .connections_max = 2, .on_demand = true};
    char port[16], at[64];

    if (!has_websockets_of_python())
        return;
    domus_system *system_ = start_websocket_server(port, sizeof port);
    run_python_client(port);
    snprintf(at, sizeof at, "127.0.0.1:%s", port);
    ck_assert_int_eq(domus_outside_pool_open(system_, at, &options, &proxy.upstream), 0);
    snprintf(at, sizeof at, "%s/p", port);
    run_python_client(at);
    domt_end_system(system_);
}

/* --- wslay ------------------------------------------------------------------------------------ */

#ifdef DOMT_WSLAY
#include <wslay/wslay.h>

#define HELLO                                                                                      \
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"                   \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

static const size_t echo_sizes[] = {0, 125, 126, 65535, 65536, 1u << 20};
/* number of wslay's messages that came back; each size is sent once as text and once as bytes */
static unsigned echoed;
static char echo_bytes[1u << 20];

static ssize_t receive_for_wslay(wslay_event_context_ptr context, uint8_t *to, size_t size,
                                 int flags, void *fd)
{
    ssize_t result = recv(*(int *)fd, to, size, MSG_DONTWAIT);
    if (result > 0)
        return result;
    wslay_event_set_error(context, result < 0 && errno == EAGAIN ? WSLAY_ERR_WOULDBLOCK
                                                                 : WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
}

static ssize_t send_for_wslay(wslay_event_context_ptr context, const uint8_t *bytes, size_t size,
                              int flags, void *fd)
{
    ssize_t result = send(*(int *)fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (result < 0)
        wslay_event_set_error(context,
                              errno == EAGAIN ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
    return result;
}

static int make_fixed_mask(wslay_event_context_ptr context, uint8_t *to, size_t size, void *fd)
{
    memset(to, 0x5a, size);
    return 0;
}

/* Let wslay send its next message; behind the last one comes the word that makes the server
 * close. */
static void send_next_by_wslay(wslay_event_context_ptr context)
{
    bool is_last = echoed == 2 * sizeof echo_sizes / sizeof *echo_sizes;
    struct wslay_event_msg next = {
        is_last || echoed % 2 == 0 ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME,
        (const uint8_t *)(is_last ? "close" : echo_bytes), is_last ? 5 : echo_sizes[echoed / 2]};
    ck_assert_int_eq(wslay_event_queue_msg(context, &next), 0);
}

static void check_echo_or_close(wslay_event_context_ptr context,
                                const struct wslay_event_on_msg_recv_arg *heard, void *fd)
{
    if (heard->opcode == WSLAY_CONNECTION_CLOSE) {
        ck_assert_uint_eq(heard->status_code, 4000);
        ck_assert_uint_eq(heard->msg_length, 5);
        ck_assert_mem_eq(heard->msg + 2, "bye", 3);
        return;
    }
    ck_assert_uint_eq(heard->opcode, echoed % 2 == 0 ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME);
    ck_assert_uint_eq(heard->msg_length, echo_sizes[echoed / 2]);
    if (heard->msg_length != 0)
        ck_assert_mem_eq(heard->msg, echo_bytes, heard->msg_length);
    echoed++;
    send_next_by_wslay(context);
}

/* Read the head of an HTTP message from a socket, and no byte behind it. */
static void read_head_of_message(int fd, char text[1024])
{
    memset(text, 0, 1024);
    for (size_t size = 0; strstr(text, "\r\n\r\n") == NULL; size++) {
        ck_assert_uint_lt(size, 1023);
        ck_assert_int_eq(recv(fd, text + size, 1, 0), 1);
    }
}

static void read_and_check_handshake(int fd)
{
    char text[1024];
    read_head_of_message(fd, text);
    ck_assert_ptr_nonnull(strstr(text, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
}

/* Let wslay read and write until both sides have closed. */
static void run_wslay_until_closed(wslay_event_context_ptr context, int fd)
{
    while (wslay_event_want_read(context) || wslay_event_want_write(context)) {
        struct pollfd at = {.fd = fd};
        at.events = (short)((wslay_event_want_read(context) ? POLLIN : 0) |
                            (wslay_event_want_write(context) ? POLLOUT : 0));
        ck_assert_int_eq(poll(&at, 1, 10000), 1);
        ck_assert_int_eq(wslay_event_recv(context), 0);
        ck_assert_int_eq(wslay_event_send(context), 0);
    }
}

DOMT_TEST(server_talks_to_wslay)
{
    static const struct wslay_event_callbacks calls = {.recv_callback = receive_for_wslay,
                                                       .send_callback = send_for_wslay,
                                                       .genmask_callback = make_fixed_mask,
                                                       .on_msg_recv_callback = check_echo_or_close};
    wslay_event_context_ptr context;
    char port[16], byte;
    domus_system *system_ = start_websocket_server(port, sizeof port);
    int fd = domt_connect_to_port((uint16_t)strtoul(port, NULL, 10));

    memset(echo_bytes, 'e', sizeof echo_bytes);
    ck_assert_int_eq(send(fd, HELLO, sizeof HELLO - 1, 0), sizeof HELLO - 1);
    read_and_check_handshake(fd);
    ck_assert_int_eq(wslay_event_context_client_init(&context, &calls, &fd), 0);
    send_next_by_wslay(context);
    run_wslay_until_closed(context, fd);
    ck_assert_uint_eq(wslay_event_get_status_code_received(context), 4000);
    /* recv(2) returns 0, because the server has closed by FIN */
    ck_assert_int_eq(recv(fd, &byte, 1, 0), 0);
    wslay_event_context_free(context);
    close(fd);
    domt_end_system(system_);
}
#else
DOMT_TEST(server_talks_to_wslay)
{
    printf("no wslay: nothing is compared with it\n");
}
#endif

/* --- a client --------------------------------------------------------------------------------- */

#define ROUNDS 20u

static char connect_to[64];
/* state of the domus client: 0 while it goes on, 1 when all went well, or an error */
static _Atomic int outcome;

static const domus_http_options as_client = {.role = DOMUS_ROLE_CLIENT, .host = "a.example"};
static const domus_type *const asks[] = {&domus_http_request_type, NULL};
static const domus_pipeline http = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &as_client}, {NULL, NULL}},
    .encodes = asks,
    .holds_asks = true};
static const domus_websocket_options limits = {.role = DOMUS_ROLE_CLIENT, .pongs = true};
static const domus_pipeline client_pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_websocket_stage, &limits}, {NULL, NULL}}};
static const char *const wished[] = {"none", "echo", NULL};
static const domus_websocket_wish wish = {.target = "/path?query", .protocols = wished};
static const domus_type begin_type = {.name = "begin"};

typedef struct hands_frame {
    domus_websocket_key key;
    domus_http_request request;
} hands_frame;

/* sizes of the client's messages, used in turn */
static const uint32_t sizes[] = {0, 1, 125, 126, 65535, 65536, 300000};
static uint32_t sent;  /* number of messages that the client has sent; it has sent as many pings */
static uint32_t pongs; /* number of pongs that the client has received */

/* Let the client send its next message; text and binary messages of many sizes alternate. */
static int send_next_message_of_client(domus_stack *stack)
{
    static char bytes[300000];
    domus_websocket_message message = {.binary = sent % 2 == 1};
    domus_channel *channel = domus_channel_running(stack);

    if (sent == ROUNDS)
        return domus_websocket_close_channel(stack, channel, 4001, "done");
    memset(bytes, 'a' + (int)(sent % 26), sizeof bytes);
    ck_assert_int_eq(domus_slice_copy(bytes, sizes[sent % 7], &message.bytes), 0);
    sent++;
    int error = domus_channel_send(stack, channel, &domus_websocket_ping_type, &message.bytes);
    ck_assert_int_eq(error, message.bytes.size <= 125 ? 0 : -EMSGSIZE);
    error = domus_channel_send(stack, channel, &domus_websocket_message_type, &message);
    domus_slice_free(message.bytes);
    return error;
}

DOMUS_SEQUENCE(shake_hands, hands_frame)
{
    DOMUS_BEGIN;
    (void)message;
    ck_assert_int_eq(domus_websocket_request(&wish, &frame->request, &frame->key), 0);
    DOMUS_ASK(domus_self(stack), &domus_http_request_type, &frame->request);
    ck_assert_int_eq(answer->error, 0);
    const char *protocol = NULL;
    ck_assert_int_eq(domus_websocket_check(&wish, &frame->key, answer->payload, &protocol), 0);
    ck_assert_str_eq(protocol, "echo");
    ck_assert_int_eq(
        domus_channel_set_pipeline(stack, domus_channel_running(stack), &client_pipeline, 0), 0);
    return domus_notice(stack, domus_self(stack), &begin_type, NULL);
    DOMUS_END;
}

static int send_first_message(domus_stack *stack, void *self, const void *payload)
{
    return send_next_message_of_client(stack);
}

/* Handle an echo, which must be the message that the client has sent last. */
static int check_echo_and_send_next(domus_stack *stack, void *self, const void *payload)
{
    const domus_websocket_message *message = payload;
    ck_assert_uint_eq(message->binary, (sent - 1) % 2);
    ck_assert_uint_eq(message->bytes.size, sizes[(sent - 1) % 7]);
    for (uint32_t i = 0; i < message->bytes.size; i += 97)
        ck_assert_int_eq(domus_slice_data(message->bytes)[i], 'a' + (int)((sent - 1) % 26));
    return send_next_message_of_client(stack);
}

static int count_pong(domus_stack *stack, void *self, const void *payload)
{
    pongs++;
    return 0;
}

static int check_code_of_close(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_uint_eq(((const domus_websocket_close *)payload)->code, 4001);
    ck_assert_uint_eq(pongs, 9); /* 9 of the client's 20 messages are small enough for a ping */
    return 0;
}

static int record_end_of_connection(domus_stack *stack, void *self, const void *payload)
{
    int error = ((const domus_channel_event *)payload)->error;
    atomic_store(&outcome, error != 0 ? error : 1);
    return 0;
}

static const domus_behaviour of_client = {
    .name = "socket",
    .kind = DOMUS_CHANNELS,
    .pipeline = &http,
    .on_open = DOMUS_BY(shake_hands),
    .on_close = {record_end_of_connection, 0},
    .on = (const domus_on[]){{.type = &begin_type, .handle = send_first_message}, {.type = NULL}},
    .on_peer = (const domus_on_peer[]){
        {.type = &domus_websocket_message_type, .handle = check_echo_and_send_next},
        {.type = &domus_websocket_pong_type, .handle = count_pong},
        {.type = &domus_websocket_close_type, .handle = check_code_of_close},
        {.type = NULL}}};

typedef struct no_frame {
    char unused;
} no_frame;

DOMUS_SEQUENCE(connect_to_peer, no_frame)
{
    DOMUS_BEGIN;
    (void)message;
    DOMUS_AWAIT(domus_connect(stack, connect_to, NULL, then));
    ck_assert_int_eq(answer->error, 0);
    return 0;
    DOMUS_END;
}

static const domus_behaviour client = {
    .name = "client",
    .kind = DOMUS_CHANNELS,
    .channel = &of_client,
    .on = (const domus_on[]){DOMUS_ON(&begin_type, connect_to_peer), {.type = NULL}}};

/* Start a system whose WebSocket client connects to this port. */
static domus_system *start_client_at_port(unsigned port)
{
    domus_config config = domt_config_of_threads(2);
    snprintf(connect_to, sizeof connect_to, "127.0.0.1:%u", port);
    domus_system *system_ = domt_start_system(&config);
    domt_send_notice(system_, domt_spawn(system_, 1, &client, NULL), &begin_type, NULL);
    return system_;
}

static void check_talk_ended_well(domus_system *system_)
{
    DOMT_WAIT_FOR(30, atomic_load(&outcome) != 0);
    ck_assert_int_eq(atomic_load(&outcome), 1);
    ck_assert_uint_eq(sent, ROUNDS);
    domt_end_system(system_);
}

DOMT_TEST(client_talks_to_python_websockets)
{
    unsigned port;

    if (!has_websockets_of_python())
        return;
    /* NOLINTNEXTLINE(cert-env33-c) */
    FILE *peer = popen("timeout 60 /usr/bin/python3 " SCRIPT " server", "r");
    ck_assert_ptr_nonnull(peer);
    ck_assert_int_eq(fscanf(peer, "%u", &port), 1);
    domus_system *system_ = start_client_at_port(port);
    check_talk_ended_well(system_);
    ck_assert_int_eq(pclose(peer), 0);
}

#ifdef DOMT_WSLAY
/* Send each received message back; wslay itself answers pings and the close. */
static void echo_message_by_wslay(wslay_event_context_ptr context,
                                  const struct wslay_event_on_msg_recv_arg *heard, void *fd)
{
    struct wslay_event_msg back = {heard->opcode, heard->msg, heard->msg_length};
    if (heard->opcode == WSLAY_TEXT_FRAME || heard->opcode == WSLAY_BINARY_FRAME)
        ck_assert_int_eq(wslay_event_queue_msg(context, &back), 0);
}

/* Accept the connection of the domus client, and answer its handshake. Returns the socket. */
static int accept_and_answer_handshake(int listener)
{
    static const char field[] = "Sec-WebSocket-Key: ";
    domus_websocket_key key;
    char text[1024];
    int fd = accept(listener, NULL, NULL);

    ck_assert_int_ge(fd, 0);
    read_head_of_message(fd, text);
    const char *at = strstr(text, field);
    ck_assert_ptr_nonnull(at);
    domi_websocket_make_answer_to_key(at + strlen(field), &key);
    int size = snprintf(text, sizeof text,
                        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                        "Connection: Upgrade\r\nSec-WebSocket-Protocol: echo\r\n"
                        "Sec-WebSocket-Accept: %s\r\n\r\n",
                        key.accept);
    ck_assert_int_eq(send(fd, text, (size_t)size, 0), size);
    return fd;
}

DOMT_TEST(client_talks_to_wslay)
{
    static const struct wslay_event_callbacks calls = {.recv_callback = receive_for_wslay,
                                                       .send_callback = send_for_wslay,
                                                       .on_msg_recv_callback =
                                                           echo_message_by_wslay};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    wslay_event_context_ptr context;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    domus_system *system_ = start_client_at_port(ntohs(at.sin_port));
    int fd = accept_and_answer_handshake(listener);
    ck_assert_int_eq(wslay_event_context_server_init(&context, &calls, &fd), 0);
    run_wslay_until_closed(context, fd);
    ck_assert_uint_eq(wslay_event_get_status_code_received(context), 4001);
    wslay_event_context_free(context);
    close(fd);
    close(listener);
    check_talk_ended_well(system_);
}
#else
DOMT_TEST(client_talks_to_wslay)
{
}
#endif

DOMT_SUITE(100)
