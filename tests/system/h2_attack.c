/* The thread of an attack on a server of HTTP/2, and the good client; tests/system/h2_attack.h
 * describes the functions. */
#include "tests/system/h2_attack.h"
#include "tests/support/process.h"

#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* pause after a lost connection, before an attacker connects again */
#define AGAIN_NS  UINT64_C(20000000)
#define ANSWER_MS 10000u
/* received bytes after which the good client opens its window again */
#define WINDOW_BYTES 30000u

/* --- attackers -------------------------------------------------------------------------------- */

static void count_end_and_close_connection(domt_h2_fight *fight, domt_h2_attacker *attacker,
                                           uint64_t begin_ns)
{
    uint64_t now_ns = domt_monotonic_ns();

    fight->ends++;
    if (fight->first_end_ns == 0)
        fight->first_end_ns = now_ns - begin_ns;
    attacker->is_open = false;
    attacker->next_ns = now_ns + AGAIN_NS;
    domt_h2_close_connection(&attacker->h2, true);
}

static void connect_attacker(domt_h2_fight *fight, domt_h2_attacker *attacker)
{
    const int few = 4096;

    attacker->stream = 1;
    attacker->round = 0;
    attacker->sent = 0;
    attacker->out.size = 0;
    attacker->is_open = domt_h2_open_connection(&attacker->h2, fight->port);
    if (fight->attack->is_deaf) /* a small buffer, so that the kernel keeps few unread bytes */
        (void)setsockopt(attacker->h2.fd, SOL_SOCKET, SO_RCVBUF, &few, sizeof few);
    if (!attacker->is_open) {
        domt_h2_close_connection(&attacker->h2, true);
        attacker->next_ns = domt_monotonic_ns() + AGAIN_NS;
    }
}

/* Send an attacker's collected bytes, as many as the server accepts now. Returns false if the
 * connection is lost. */
static bool send_collected_bytes(domt_h2_fight *fight, domt_h2_attacker *attacker)
{
    while (attacker->sent < attacker->out.size) {
        ssize_t part = send(attacker->h2.fd, attacker->out.data + attacker->sent,
                            attacker->out.size - attacker->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (part < 0)
            return errno == EAGAIN || errno == EINTR;
        attacker->sent += (size_t)part;
        fight->bytes += (uint64_t)part;
    }
    attacker->sent = attacker->out.size = 0;
    return true;
}

/* Read all bytes that have come to an attacker. Returns false if the server has ended the
 * connection. */
static bool read_frames_of_server(domt_h2_fight *fight, domt_h2_attacker *attacker)
{
    domt_h2_frame frame;
    domt_h2_read result;

    while ((result = domt_h2_read_next_frame(&attacker->h2, 0, &frame)) == DOMT_H2_FRAME) {
        fight->resets += frame.type == DOMT_H2_RST_STREAM;
        if (frame.type == DOMT_H2_GOAWAY) {
            fight->code = frame.size >= 8 ? domt_h2_u32_of_bytes(frame.payload + 4) : 0;
            return false;
        }
    }
    return result == DOMT_H2_LATE;
}

/* Returns whether the server has closed a connection that reads nothing: it has sent RST, or
 * FIN. */
static bool is_closed_by_server(const domt_h2_attacker *attacker)
{
    struct pollfd state = {.fd = attacker->h2.fd, .events = POLLRDHUP};

    return poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static void do_next_action_of_attacker(domt_h2_fight *fight, domt_h2_attacker *attacker,
                                       uint64_t begin_ns, uint64_t due)
{
    if (!attacker->is_open) {
        if (domt_monotonic_ns() >= attacker->next_ns)
            connect_attacker(fight, attacker);
        return;
    }
    if (attacker->out.size == 0 && attacker->round <= due) {
        fight->attack->add(attacker);
        attacker->round++;
    }
    bool is_there = send_collected_bytes(fight, attacker);
    if (is_there && fight->attack->is_deaf)
        is_there = !is_closed_by_server(attacker);
    else if (!fight->attack->is_deaf)
        is_there = read_frames_of_server(fight, attacker) && is_there;
    if (!is_there)
        count_end_and_close_connection(fight, attacker, begin_ns);
}

static void *run_attack_thread(void *fight_)
{
    domt_h2_fight *fight = fight_;
    uint64_t begin_ns = domt_monotonic_ns();
    uint32_t rounds = fight->attack->rounds != 0 ? fight->attack->rounds : 100;

    /* a lower priority, so that the good client goes first where both want a CPU */
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 10);
    while (!atomic_load(&fight->is_over)) {
        uint64_t due = (domt_monotonic_ns() - begin_ns) * rounds / 1000000000u;
        for (uint32_t i = 0; i < fight->count; i++)
            do_next_action_of_attacker(fight, &fight->attackers[i], begin_ns, due);
        domt_sleep_ms(1);
    }
    return NULL;
}

void domt_h2_begin_attack(domt_h2_fight *fight)
{
    fight->count = fight->attack->connections != 0 ? fight->attack->connections : 2;
    ck_assert_uint_le(fight->count, DOMT_H2_ATTACKERS_MAX);
    fight->attackers = calloc(fight->count, sizeof *fight->attackers);
    ck_assert_ptr_nonnull(fight->attackers);
    fight->code = UINT32_MAX;
    for (uint32_t i = 0; i < fight->count; i++)
        connect_attacker(fight, &fight->attackers[i]);
    ck_assert_int_eq(pthread_create(&fight->thread, NULL, run_attack_thread, fight), 0);
}

void domt_h2_end_attack(domt_h2_fight *fight)
{
    atomic_store(&fight->is_over, true);
    ck_assert_int_eq(pthread_join(fight->thread, NULL), 0);
    for (uint32_t i = 0; i < fight->count; i++) {
        if (fight->attackers[i].is_open)
            domt_h2_close_connection(&fight->attackers[i].h2, true);
    }
    free(fight->attackers);
}

/* --- the good client -------------------------------------------------------------------------- */

/* Send a request of the good client, and read to the end of the answer. */
static bool make_request_and_read_answer(domt_h2 *h2, uint32_t stream)
{
    static domt_h2_bytes out;
    uint64_t until_ns = domt_monotonic_ns() + ANSWER_MS * UINT64_C(1000000);
    uint32_t came = 0;
    domt_h2_frame frame;

    out.size = 0;
    domt_h2_add_headers_frame(&out, DOMT_H2_END_STREAM | DOMT_H2_END_HEADERS, stream, DOMT_H2_GET);
    domt_h2_send(h2, &out);
    while (domt_monotonic_ns() < until_ns &&
           domt_h2_read_next_frame(h2, ANSWER_MS, &frame) == DOMT_H2_FRAME) {
        bool is_ours = frame.stream == stream;
        bool is_part = frame.type == DOMT_H2_DATA || frame.type == DOMT_H2_HEADERS;
        if (frame.type == DOMT_H2_GOAWAY || (is_ours && frame.type == DOMT_H2_RST_STREAM))
            return false;
        came += frame.type == DOMT_H2_DATA ? frame.size : 0;
        bool is_last = is_ours && is_part && (frame.flags & DOMT_H2_END_STREAM) != 0;
        if (came > 0 && (is_last || came > WINDOW_BYTES)) {
            domt_h2_add_number_frame(&out, DOMT_H2_WINDOW_UPDATE, 0, came);
            if (!is_last)
                domt_h2_add_number_frame(&out, DOMT_H2_WINDOW_UPDATE, stream, came);
            domt_h2_send(h2, &out);
            came = 0;
        }
        if (is_last)
            return true;
    }
    return false;
}

domt_h2_good domt_h2_measure_good_client(domt_h2 *h2, uint32_t *stream, uint32_t count)
{
    uint64_t *took_ns = calloc(count, sizeof *took_ns);
    uint64_t begin_ns = domt_monotonic_ns();
    domt_h2_good good = {0};

    ck_assert_ptr_nonnull(took_ns);
    for (uint32_t i = 0; i < count && good.failed == 0; i++) {
        uint64_t due_ns = begin_ns + i * UINT64_C(1000000);
        while (domt_monotonic_ns() < due_ns)
            domt_sleep_ms(1);
        uint64_t now_ns = domt_monotonic_ns();
        good.failed += !make_request_and_read_answer(h2, *stream);
        took_ns[i] = domt_monotonic_ns() - now_ns;
        *stream += 2;
    }
    qsort(took_ns, count, sizeof *took_ns, domt_compare_u64);
    good.p50_ms = (double)took_ns[count / 2] / 1e6;
    good.p99_ms = (double)took_ns[count - 1 - count / 100] / 1e6;
    good.worst_ms = (double)took_ns[count - 1] / 1e6;
    free(took_ns);
    return good;
}
