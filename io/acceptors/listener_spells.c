/* Records the shortages of listeners, and logs when a spell of shortage begins and ends. */
#include "io/acceptors/acceptors.h"

#include "io/resources/spells.h"

#include <domus/text.h>

#include <errno.h>
#include <inttypes.h>
#include <sys/resource.h>

static const char *get_listener_name(const domi_acceptor *acceptor)
{
    return acceptor->name != NULL ? acceptor->name : "?";
}

void domi_shortage_record_max_connections(domi_acceptor *acceptor)
{
    domi_io *io = acceptor->io;

    if (domi_spell_record_shortage(io, &acceptor->shortages[DOMI_SHORTAGE_CONNECTIONS],
                                   &io->counters.full_spells))
        domi_io_log_about_listener(
            io, DOMUS_LOG_WARNING, get_listener_name(acceptor),
            "all %" PRIu32 " connections of channel.maxConnections are taken: new ones wait",
            io->config->channel.connections_max);
}

static uint64_t get_descriptor_limit(void)
{
    struct rlimit limit = {0};

    (void)getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
}

void domi_shortage_record_failed_accept(domi_acceptor *acceptor, int error)
{
    domi_io *io = acceptor->io;
    bool is_memory = error == -ENOBUFS || error == -ENOMEM;
    bool is_short = error == -EMFILE || error == -ENFILE;
    domi_shortage *shortage = &acceptor->shortages[is_memory  ? DOMI_SHORTAGE_KERNEL
                                                   : is_short ? DOMI_SHORTAGE_DESCRIPTORS
                                                              : DOMI_SHORTAGE_REFUSED];

    if (!domi_spell_record_shortage(io, shortage, &io->counters.accept_spells))
        return;
    if (!is_memory && !is_short)
        domi_io_log_about_listener(
            io, DOMUS_LOG_WARNING, get_listener_name(acceptor),
            "the kernel refuses to accept a connection (%s: a filter of system calls or "
            "a security module): new ones wait",
            domus_error_name(error));
    else if (is_memory)
        domi_io_log_about_listener(io, DOMUS_LOG_WARNING, get_listener_name(acceptor),
                                   "the kernel has no memory for a connection (%s): new ones wait",
                                   domus_error_name(error));
    else if (error == -EMFILE)
        domi_io_log_about_listener(io, DOMUS_LOG_WARNING, get_listener_name(acceptor),
                                   "all %" PRIu64
                                   " descriptors of this process (RLIMIT_NOFILE) are in use: new "
                                   "connections wait",
                                   get_descriptor_limit());
    else
        domi_io_log_about_listener(
            io, DOMUS_LOG_WARNING, get_listener_name(acceptor),
            "all descriptors of this machine (fs.file-max) are in use: new connections wait");
}

void domi_shortage_record_full_address(domi_acceptor *acceptor, const domi_peer_key *key,
                                       uint32_t most)
{
    domi_io *io = acceptor->io;
    char shown[DOMI_PEER_TEXT_SIZE];

    domi_counter_add(&io->counters.refused_by_address, 1);
    if (!domi_spell_record_shortage(io, &acceptor->shortages[DOMI_SHORTAGE_ADDRESS],
                                    &io->counters.address_spells))
        return;
    domi_peer_write_key_as_text(key, shown, sizeof shown);
    domi_io_log_about_listener(
        io, DOMUS_LOG_WARNING, get_listener_name(acceptor),
        "%s has %" PRIu32 " connections, the most that %s allows: more are reset at once", shown,
        most, key->is_local ? "channel.maxPerLoopback" : "channel.maxPerAddress");
}

/* Prolong the spells of shortage of a paused acceptor, except that of addresses. While it is paused
 * it does not try to accept, so nothing tells that the shortage is over; and its pause may be as
 * long as the quiet time after which a spell ends. */
static void prolong_spells_of_paused_acceptor(domi_acceptor *acceptor)
{
    if (!domi_wheel_is_armed(&acceptor->timer.node))
        return;
    for (uint32_t kind = 0; kind < DOMI_SHORTAGES; kind++)
        if (kind != DOMI_SHORTAGE_ADDRESS)
            acceptor->shortages[kind].last_ns = acceptor->io->manager->now_ns;
}

void domi_shortages_end_spells_at_timer(domi_io *io)
{
    static const char *const over[DOMI_SHORTAGES] = {
        [DOMI_SHORTAGE_CONNECTIONS] = "there is room for new connections again",
        [DOMI_SHORTAGE_DESCRIPTORS] = "there are descriptors for new connections again",
        [DOMI_SHORTAGE_KERNEL] = "the kernel has memory for new connections again",
        [DOMI_SHORTAGE_REFUSED] = "the kernel accepts connections again",
        [DOMI_SHORTAGE_ADDRESS] = "no connection is reset for its address any more",
    };
    bool any = domi_spell_end_buffer_shortage_if_quiet(io);

    any |= domi_spells_end_proxy_resets_if_quiet(io);
    any |= domi_spell_end_conversations_if_quiet(io);
    any |= domi_spell_end_failures_if_quiet(io);
    for (uint32_t slot = 0; slot < DOMI_ACCEPTORS_MAX; slot++) {
        domi_acceptor *acceptor = io->acceptors[slot];
        if (acceptor != NULL)
            prolong_spells_of_paused_acceptor(acceptor);
        for (uint32_t kind = 0; acceptor != NULL && kind < DOMI_SHORTAGES; kind++)
            any |= domi_spell_end_shortage_if_quiet(io, get_listener_name(acceptor),
                                                    &acceptor->shortages[kind], over[kind]);
    }
    if (any)
        domi_spells_arm_timer_of_checks(io);
}
