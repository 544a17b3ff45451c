/* The expectations that a test has of scripted peers: each function takes steps and lets time pass
 * until the expectation is met or has failed. */
#include "runtime/network/parts.h"
#include "runtime/testkit/parts.h"
#include "runtime/testkit/peer.h"

#include <domus/text.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct expected {
    const domus_peer *peer; /* peer that has to receive the expected bytes */
    const char *data;       /* bytes that the test expects the peer to receive */
    size_t size;            /* number of bytes that the test expects */
} expected;

int domi_peer_take_steps_until(domus_testkit *kit, bool (*is_done)(const void *),
                               const void *context, uint64_t within_ns)
{
    int result = domi_peer_move_network_time_to_kit(kit);

    if (result != 0)
        return result;
    uint64_t now_ns = domi_clock_now(&kit->system->clock);
    uint64_t until_ns = within_ns < UINT64_MAX - 1 - now_ns ? now_ns + within_ns : UINT64_MAX - 1;
    result = domi_testkit_run_until(kit, is_done, context, until_ns);
    if (kit->net->is_out_of_memory) {
        kit->net->is_out_of_memory = false;
        snprintf(kit->error, sizeof kit->error, "no memory for what the network holds");
        return -ENOMEM;
    }
    return result;
}

void domi_peer_format_bytes(const char *data, size_t size, char *text, size_t text_size)
{
    char escaped[4 * DOMI_PEER_SHOWN_MAX + 1];

    (void)domus_text_escape(data, size < DOMI_PEER_SHOWN_MAX ? size : DOMI_PEER_SHOWN_MAX, escaped,
                            sizeof escaped);
    snprintf(text, text_size, "\"%s\"%s", escaped, size > DOMI_PEER_SHOWN_MAX ? "..." : "");
}

static const char *describe_peer_state(const domus_peer *peer)
{
    if (peer->error != 0)
        return strerror(-peer->error);
    if (peer->has_end)
        return "the end of the stream";
    if (peer->socket == NULL)
        return "the peer is closed";
    return peer->is_connected ? "the stream goes on" : "it is not connected";
}

/* Write into the kit's error text what the peer expected, and what it has received instead. Returns
 * `result`. */
static int write_error_of_expectation(const domus_peer *peer, const char *what, int result)
{
    char got[4 * DOMI_PEER_SHOWN_MAX + 8];
    size_t size;
    const char *data = domus_peer_got(peer, &size);

    domi_peer_format_bytes(data, size, got, sizeof got);
    snprintf(peer->kit->error, sizeof peer->kit->error,
             "peer %u expected %s; it has %zu bytes: %s; %s", peer->number, what, size, got,
             describe_peer_state(peer));
    return result;
}

static bool is_stream_of_peer_over(const domus_peer *peer)
{
    return peer->has_end || peer->error != 0 || peer->socket == NULL;
}

/* Returns how many bytes from the first one on are received as expected. */
static size_t count_expected_bytes(const expected *expect)
{
    size_t held;
    const char *data = domus_peer_got(expect->peer, &held);
    size_t count = 0;

    while (count < held && count < expect->size && data[count] == expect->data[count])
        count++;
    return count;
}

static bool have_expected_bytes_come_or_failed(const void *expect_)
{
    const expected *expect = expect_;
    size_t held = domi_peer_bytes_count(&expect->peer->got);
    size_t equal = count_expected_bytes(expect);

    return equal == expect->size || equal < held || is_stream_of_peer_over(expect->peer);
}

int domus_peer_expect(domus_peer *peer, const void *data, size_t size, uint64_t within_ns)
{
    const expected expect = {.peer = peer, .data = data, .size = size};
    int result = domi_peer_take_steps_until(peer->kit, have_expected_bytes_come_or_failed, &expect,
                                            within_ns);
    char what[4 * DOMI_PEER_SHOWN_MAX + 32];
    size_t equal = count_expected_bytes(&expect);

    if (result != 0 && result != -ETIME)
        return result;
    if (equal == size) {
        domus_peer_take(peer, size);
        return 0;
    }
    int length = snprintf(what, sizeof what, "%zu bytes: ", size);
    domi_peer_format_bytes(data, size, what + length, sizeof what - (size_t)length);
    if (equal < domi_peer_bytes_count(&peer->got))
        return write_error_of_expectation(peer, what, -EBADMSG);
    if (result == -ETIME)
        return write_error_of_expectation(peer, what, -ETIMEDOUT);
    return write_error_of_expectation(peer, what, peer->error != 0 ? peer->error : -EPIPE);
}

static bool has_connect_of_peer_ended(const void *peer_)
{
    const domus_peer *peer = peer_;

    return peer->is_connected || is_stream_of_peer_over(peer);
}

int domus_peer_expect_connected(domus_peer *peer, uint64_t within_ns)
{
    int result = domi_peer_take_steps_until(peer->kit, has_connect_of_peer_ended, peer, within_ns);

    if (result == -ETIME)
        return write_error_of_expectation(peer, "to be connected", -ETIMEDOUT);
    if (result != 0 || peer->is_connected)
        return result;
    return write_error_of_expectation(peer, "to be connected",
                                      peer->error != 0 ? peer->error : -EPIPE);
}

static bool has_peer_bytes_or_ended(const void *peer_)
{
    const domus_peer *peer = peer_;

    return domi_peer_bytes_count(&peer->got) != 0 || is_stream_of_peer_over(peer);
}

int domus_peer_expect_end(domus_peer *peer, uint64_t within_ns)
{
    int result = domi_peer_take_steps_until(peer->kit, has_peer_bytes_or_ended, peer, within_ns);

    if (result != 0 && result != -ETIME)
        return result;
    if (domi_peer_bytes_count(&peer->got) != 0)
        return write_error_of_expectation(peer, "the end of the stream", -EBADMSG);
    if (peer->has_end)
        return 0;
    return write_error_of_expectation(peer, "the end of the stream",
                                      peer->error != 0 ? peer->error : -ETIMEDOUT);
}

static bool has_stream_of_peer_ended(const void *peer)
{
    return is_stream_of_peer_over(peer);
}

int domus_peer_expect_reset(domus_peer *peer, uint64_t within_ns)
{
    int result = domi_peer_take_steps_until(peer->kit, has_stream_of_peer_ended, peer, within_ns);

    if (result != 0 && result != -ETIME)
        return result;
    if (peer->error != 0)
        return 0;
    return write_error_of_expectation(peer, "a reset", peer->has_end ? -EPIPE : -ETIMEDOUT);
}

int domus_peer_expect_nothing(domus_peer *peer, uint64_t within_ns)
{
    int result = domi_peer_take_steps_until(peer->kit, has_peer_bytes_or_ended, peer, within_ns);

    if (result == -ETIME)
        return 0;
    return result == 0 ? write_error_of_expectation(peer, "nothing", -EBADMSG) : result;
}

static bool has_listener_a_connection(const void *listener_)
{
    const domus_peer_listener *listener = listener_;

    return listener->socket == NULL || listener->socket->waiting_count != 0;
}

int domus_peer_accept(domus_peer_listener *listener, uint64_t within_ns, domus_peer **ret_peer)
{
    int result =
        domi_peer_take_steps_until(listener->kit, has_listener_a_connection, listener, within_ns);

    if (result == -ETIME || (result == 0 && listener->socket == NULL)) {
        snprintf(listener->kit->error, sizeof listener->kit->error,
                 "a listener of the test expected a connection, but none came");
        return -ETIMEDOUT;
    }
    if (result != 0)
        return result;
    return domi_peer_make_for_accepted_socket(listener->kit,
                                              domi_net_socket_accept(listener->socket), ret_peer);
}
