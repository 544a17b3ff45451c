/* This file notes shortages, logs the begin and the end of each spell (shortage.h), and runs the
 * timer that finds the ends. */
#include "io/resources/shortage.h"

#include "io/acceptors/acceptor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define SECOND_NS     UINT64_C(1000000000)
#define LOOK_EVERY_NS SECOND_NS
#define QUIET_MIN_NS  SECOND_NS
#define QUIET_MAX_NS  (64 * SECOND_NS)
#define CALM_NS       (64 * SECOND_NS)

bool domi_shortage_note(domi_shortage *shortage, uint64_t now_ns)
{
    bool begins = shortage->begun_ns == 0;

    if (begins) {
        bool is_again = shortage->ended_ns != 0 && now_ns - shortage->ended_ns < CALM_NS;
        shortage->begun_ns = now_ns;
        shortage->times = 0;
        if (!is_again)
            shortage->quiet_ns = QUIET_MIN_NS;
        else if (shortage->quiet_ns < QUIET_MAX_NS)
            shortage->quiet_ns *= 2;
    }
    shortage->last_ns = now_ns;
    shortage->times++;
    return begins;
}

bool domi_shortage_end(domi_shortage *shortage, uint64_t now_ns, uint64_t *ret_lasted_ns)
{
    if (shortage->begun_ns == 0 || now_ns - shortage->last_ns < shortage->quiet_ns)
        return false;
    *ret_lasted_ns = shortage->last_ns - shortage->begun_ns;
    shortage->begun_ns = 0;
    shortage->ended_ns = now_ns;
    return true;
}

__attribute__((format(printf, 4, 5))) static void
log_line(domi_io *io, domus_log_level level, const domi_acceptor *acceptor, const char *format, ...)
{
    char text[DOMUS_LOG_TEXT_MAX + 1] = "";
    int length = 0;
    va_list arguments;

    if (io->manager->say == NULL)
        return;
    if (acceptor != NULL)
        length = snprintf(text, sizeof text,
                          "listener %s: ", acceptor->name != NULL ? acceptor->name : "?");
    va_start(arguments, format);
    (void)vsnprintf(text + length, sizeof text - (size_t)length, format, arguments);
    va_end(arguments);
    io->manager->say(io->manager, level, text);
}

static void look_later(domi_io *io)
{
    if (!domi_wheel_is_armed(&io->shortage_timer.node))
        domi_wheel_arm(&io->wheel, &io->shortage_timer.node, io->manager->now_ns + LOOK_EVERY_NS);
}

/* Note a shortage and arm the timer. Returns whether a spell begins. */
static bool note(domi_io *io, domi_shortage *shortage, domi_counter *spells)
{
    bool begins = domi_shortage_note(shortage, io->manager->now_ns);

    if (begins)
        domi_counter_add(spells, 1);
    look_later(io);
    return begins;
}

void domi_shortage_of_connections(domi_acceptor *acceptor)
{
    domi_io *io = acceptor->io;

    if (note(io, &acceptor->shortages[DOMI_SHORTAGE_CONNECTIONS], &io->counters.full))
        log_line(io, DOMUS_LOG_WARNING, acceptor,
                 "all %" PRIu32 " connections of channel.maxConnections are taken: new ones wait",
                 io->config->channel.connections_max);
}

static uint64_t descriptors_max(void)
{
    struct rlimit limit = {0};

    (void)getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
}

void domi_shortage_of_accept(domi_acceptor *acceptor, int error)
{
    domi_io *io = acceptor->io;
    bool is_memory = error == -ENOBUFS || error == -ENOMEM;
    domi_shortage *shortage =
        &acceptor->shortages[is_memory ? DOMI_SHORTAGE_KERNEL : DOMI_SHORTAGE_DESCRIPTORS];

    if (!note(io, shortage, &io->counters.unacceptable))
        return;
    if (is_memory)
        log_line(io, DOMUS_LOG_WARNING, acceptor,
                 "the kernel has no memory for a connection (%s): new ones wait",
                 strerrorname_np(-error));
    else if (error == -EMFILE)
        log_line(io, DOMUS_LOG_WARNING, acceptor,
                 "all %" PRIu64 " descriptors of this process (RLIMIT_NOFILE) are in use: new "
                 "connections wait",
                 descriptors_max());
    else
        log_line(io, DOMUS_LOG_WARNING, acceptor,
                 "all descriptors of this machine (fs.file-max) are in use: new connections wait");
}

void domi_shortage_of_address(domi_acceptor *acceptor, const domi_peer_key *key, uint32_t most)
{
    domi_io *io = acceptor->io;
    char shown[DOMI_PEER_TEXT_SIZE];

    domi_counter_add(&io->counters.refused, 1);
    if (!note(io, &acceptor->shortages[DOMI_SHORTAGE_ADDRESS], &io->counters.greedy))
        return;
    domi_peer_print(key, shown, sizeof shown);
    log_line(io, DOMUS_LOG_WARNING, acceptor,
             "%s has %" PRIu32 " connections, the most that %s allows: more are reset at once",
             shown, most, key->is_local ? "channel.maxPerLoopback" : "channel.maxPerAddress");
}

void domi_shortage_of_buffers(domi_io *io)
{
    if (note(io, &io->buffers_shortage, &io->counters.bufferless))
        log_line(io, DOMUS_LOG_WARNING, NULL,
                 "all %" PRIu32
                 " receive buffers (io.buffers.count) are in use: connections wait to be "
                 "read",
                 io->config->io.buffers.count);
}

/* Log that a spell is over, if it is. Returns whether it still goes on. */
static bool goes_on(domi_io *io, const domi_acceptor *acceptor, domi_shortage *shortage,
                    const char *what_is_over)
{
    uint64_t lasted_ns;

    if (shortage->begun_ns == 0)
        return false;
    if (!domi_shortage_end(shortage, io->manager->now_ns, &lasted_ns))
        return true;
    log_line(io, DOMUS_LOG_INFO, acceptor,
             "%s (it lasted %" PRIu64 ".%03" PRIu64 " s and was met %" PRIu64 " times)",
             what_is_over, lasted_ns / SECOND_NS, lasted_ns % SECOND_NS / (SECOND_NS / 1000),
             shortage->times);
    return false;
}

/* Keep the spells of a paused acceptor going. While it is paused it does not try to accept, so
 * nothing tells that the shortage is over; and its pause may be as long as the quiet time. */
static void hold_spells(domi_acceptor *acceptor)
{
    if (!domi_wheel_is_armed(&acceptor->timer.node))
        return;
    for (uint32_t kind = 0; kind < DOMI_SHORTAGES; kind++)
        if (kind != DOMI_SHORTAGE_ADDRESS)
            acceptor->shortages[kind].last_ns = acceptor->io->manager->now_ns;
}

void domi_shortages_handle_timer(domi_io *io)
{
    static const char *const over[DOMI_SHORTAGES] = {
        [DOMI_SHORTAGE_CONNECTIONS] = "there is room for new connections again",
        [DOMI_SHORTAGE_DESCRIPTORS] = "there are descriptors for new connections again",
        [DOMI_SHORTAGE_KERNEL] = "the kernel has memory for new connections again",
        [DOMI_SHORTAGE_ADDRESS] = "no connection is reset for its address any more",
    };
    bool any = false;

    /* a channel that starves does not note the shortage again, so note it here */
    if (io->starved.head != NULL)
        io->buffers_shortage.last_ns = io->manager->now_ns;
    any |= goes_on(io, NULL, &io->buffers_shortage, "there are receive buffers again");
    for (uint32_t slot = 0; slot < DOMI_ACCEPTORS_MAX; slot++) {
        domi_acceptor *acceptor = io->acceptors[slot];
        if (acceptor != NULL)
            hold_spells(acceptor);
        for (uint32_t kind = 0; acceptor != NULL && kind < DOMI_SHORTAGES; kind++)
            any |= goes_on(io, acceptor, &acceptor->shortages[kind], over[kind]);
    }
    if (any)
        look_later(io);
}
