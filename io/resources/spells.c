/* Counts and logs spells of shortage (spells.h). */
#include "io/resources/spells.h"

#include <domus/text.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define SECOND_NS UINT64_C(1000000000)
/* time between two checks of spells of shortage that last, in nanoseconds */
#define LOOK_EVERY_NS SECOND_NS

bool domi_spell_record_shortage(domi_io *io, domi_shortage *shortage, domi_counter *spells)
{
    bool begins = domi_shortage_record(shortage, io->manager->now_ns);

    if (begins && spells != NULL)
        domi_counter_add(spells, 1);
    domi_spells_arm_timer_of_checks(io);
    return begins;
}

void domi_io_log_about_listener(domi_io *io, domus_log_level level, const char *listener,
                                const char *format, ...)
{
    char text[DOMUS_LOG_TEXT_MAX + 1] = "";
    int length = 0;
    va_list arguments;

    if (io->manager->hooks.say == NULL)
        return;
    if (listener != NULL)
        length = snprintf(text, sizeof text, "listener %s: ", listener);
    va_start(arguments, format);
    (void)vsnprintf(text + length, sizeof text - (size_t)length, format, arguments);
    va_end(arguments);
    io->manager->hooks.say(io->manager, level, text);
}

bool domi_spell_end_shortage_if_quiet(domi_io *io, const char *listener, domi_shortage *shortage,
                                      const char *what_is_over)
{
    uint64_t lasted_ns;

    if (shortage->begun_ns == 0)
        return false;
    if (!domi_shortage_end_quiet_spell(shortage, io->manager->now_ns, &lasted_ns))
        return true;
    domi_io_log_about_listener(
        io, DOMUS_LOG_INFO, listener,
        "%s (it lasted %" PRIu64 ".%03" PRIu64 " s and was met %" PRIu64 " times)", what_is_over,
        lasted_ns / SECOND_NS, lasted_ns % SECOND_NS / (SECOND_NS / 1000), shortage->times);
    return false;
}

void domi_spells_arm_timer_of_checks(domi_io *io)
{
    if (!domi_wheel_is_armed(&io->shortage_timer.node))
        domi_wheel_arm_node(&io->wheel, &io->shortage_timer.node,
                            io->manager->now_ns + LOOK_EVERY_NS);
}

void domi_spell_record_no_free_buffer(domi_io *io)
{
    if (domi_spell_record_shortage(io, &io->buffers_shortage, &io->counters.buffer_spells))
        domi_io_log_about_listener(
            io, DOMUS_LOG_WARNING, NULL,
            "all %" PRIu32 " receive buffers (io.buffers.count) are in use: connections wait to be "
            "read",
            io->config->io.buffers.count);
}

bool domi_spell_end_buffer_shortage_if_quiet(domi_io *io)
{
    /* while a channel starves it records the shortage of buffers only once, so this check records
     * it again */
    if (io->starved.head != NULL)
        io->buffers_shortage.last_ns = io->manager->now_ns;
    return domi_spell_end_shortage_if_quiet(io, NULL, &io->buffers_shortage,
                                            "there are receive buffers again");
}

void domi_spell_record_proxy_reset(domi_io *io, domi_proxy_refusal why, const char *listener,
                                   const struct sockaddr_storage *from)
{
    const char *name = listener != NULL && listener[0] != '\0' ? listener : "?";
    bool is_client = why == DOMI_PROXY_CLIENT;
    domi_io_counters *counters = &io->counters;
    char text[DOMI_PEER_TEXT_SIZE];
    domi_peer_key key;

    domi_counter_add(is_client ? &counters->refused_by_address : &counters->proxies_refused, 1);
    if (!domi_spell_record_shortage(io, &io->proxies[why],
                                    is_client ? &counters->address_spells : NULL))
        return;
    domi_peer_get_key_of_address(from, &key);
    domi_peer_write_key_as_text(&key, text, sizeof text);
    if (why == DOMI_PROXY_ELSEWHERE)
        domi_io_log_about_listener(
            io, DOMUS_LOG_WARNING, name,
            "%s is in no network of proxyProtocol.from: its connections are reset", text);
    else if (why == DOMI_PROXY_HEADER)
        domi_io_log_about_listener(
            io, DOMUS_LOG_WARNING, name,
            "a connection from %s did not begin with a PROXY header, and was reset", text);
    else
        domi_io_log_about_listener(
            io, DOMUS_LOG_WARNING, name,
            "%s, a client of a proxy, has as many connections as it may have: more are "
            "reset at once",
            text);
}

bool domi_spells_end_proxy_resets_if_quiet(domi_io *io)
{
    static const char *const over[DOMI_PROXY_REFUSALS] = {
        [DOMI_PROXY_ELSEWHERE] = "no connection from elsewhere than a proxy is reset any more",
        [DOMI_PROXY_HEADER] = "no connection is reset for its PROXY header any more",
        [DOMI_PROXY_CLIENT] = "no client of a proxy is reset for its address any more",
    };
    bool any = false;

    for (uint32_t why = 0; why < DOMI_PROXY_REFUSALS; why++)
        any |= domi_spell_end_shortage_if_quiet(io, NULL, &io->proxies[why], over[why]);
    return any;
}

bool domi_spell_record_conversations_max(domi_io *io)
{
    return domi_spell_record_shortage(io, &io->conversations_shortage, NULL);
}

bool domi_spell_end_conversations_if_quiet(domi_io *io)
{
    return domi_spell_end_shortage_if_quiet(
        io, NULL, &io->conversations_shortage,
        "no actor comes to scheduler.conversationsMax any more");
}

/* Returns a number that stands for a failed request's fault; different faults nearly always have
 * different numbers (FNV-1a). */
static uint64_t hash_failure_to_number(const char *behaviour, const char *what, int error)
{
    uint64_t number = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)(unsigned)error;

    for (const char *at = behaviour; *at != '\0'; at++)
        number = (number ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    for (const char *at = what; *at != '\0'; at++)
        number = (number ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    return number;
}

/* Record that the fault of a failed request is logged. Returns false if it was logged in this spell
 * already, or if too many were. */
static bool record_failure_if_new(domi_io *io, uint64_t number)
{
    for (uint32_t i = 0; i < io->failures_told_count; i++)
        if (io->failures_told[i] == number)
            return false;
    if (io->failures_told_count == DOMI_FAILURES_TOLD)
        return false;
    io->failures_told[io->failures_told_count++] = number;
    return true;
}

void domi_spell_record_failed_request(domi_io *io, const char *behaviour, const char *what,
                                      int error)
{
    if (domi_spell_record_shortage(io, &io->failures_shortage, NULL))
        io->failures_told_count = 0;
    if (record_failure_if_new(io, hash_failure_to_number(behaviour, what, error)))
        domi_io_log_about_listener(io, DOMUS_LOG_WARNING, NULL,
                                   "a request has failed: %s of actors %s: %s (%d)", what,
                                   behaviour, domus_error_name(error), error);
}

bool domi_spell_end_failures_if_quiet(domi_io *io)
{
    return domi_spell_end_shortage_if_quiet(io, NULL, &io->failures_shortage,
                                            "no request fails any more");
}
