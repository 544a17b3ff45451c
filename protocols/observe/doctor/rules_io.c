/* Rules about the io of a thread: buffers, wake-ups, its backend, and peers that read slowly. */
#include "protocols/observe/doctor/say.h"

/* receives a second that fail because no buffer is free, from which on they are reported */
#define STARVED_LEAST 10.0
/* Wake-ups of threads a second that find nothing to do. Each costs about 5 us on two threads
 * together, so this many cost 0.1 %. */
#define EMPTY_LEAST 200.0
/* share of all wake-ups of threads that find nothing to do, from which on it is reported */
#define EMPTY_MOST 0.5
/* number of CPUs that the program uses, below which its backend does not matter */
#define CPU_LEAST 0.2
/* channels a second that reach channel.requestsMax, from which on they are reported */
#define AT_ONCE 10.0
/* Bounds for the rule about small writes: writes a second on each connection, writes for each read,
 * and a size below that of a packet, because the kernel delays only smaller writes. */
#define WRITES_LEAST 5.0
#define WRITES_OFTEN 1.3
#define SEGMENT      1448.0
/* share of its time that each thread must sleep so that the CPU is no bottleneck */
#define ASLEEP 0.9
/* seconds in which peers read the waiting bytes at their present rate, from which on peers count as
 * slow */
#define SLOW 10.0
/* Values that are advised to programs whose peers read slowly. */
#define SEND_HIGH_LOW    65536u
#define SEND_TIMEOUT_LOW UINT64_C(5000000000)

/* --- receive buffers -------------------------------------------------------------------------- */

static bool judge_receive_buffers(const domi_span *span, domi_finding *finding)
{
    double starved = domi_span_count_to_events_a_second(span, span->all.receivers_starved);
    uint64_t count = span->after->settings.buffers_count;

    if (starved < STARVED_LEAST)
        return false;
    if (count < 32768)
        domi_finding_advise_value_of_key(
            finding, "io.buffers.count", "%u",
            (unsigned)domi_clamp_double_to_whole_number((double)count * 4, 64, 32768));
    else
        domi_finding_advise_in_words(finding,
                                     "let actors take what they read sooner (domus/channel.h)");
    return domi_finding_write_sentence(
        finding,
        "%s times a second a connection stops reading because none of the %u receive "
        "buffers of its thread is free.",
        domi_format_amount_as_word(starved).at, (unsigned)count);
}

/* --- wake-ups --------------------------------------------------------------------------------- */

static bool judge_empty_wakeups(const domi_span *span, domi_finding *finding)
{
    double empty = domi_span_count_to_events_a_second(span, span->all.wakeups_empty);
    double part = domi_span_quotient_of_counts(span->all.wakeups_empty, span->all.wakeups_received);

    if (empty < EMPTY_LEAST || part < EMPTY_MOST)
        return false;
    if (span->after->settings.stand_in_ns != 0) {
        domi_finding_advise_value_of_key(finding, "scheduler.idle.standIn", "0");
        domi_finding_advise_in_words(finding,
                                     "or a larger scheduler.steal.aggression, if threads steal");
    } else {
        domi_finding_advise_in_words(finding,
                                     "a larger scheduler.steal.aggression lets fewer threads look "
                                     "for the same actor");
    }
    return domi_finding_write_sentence(
        finding,
        "%s of the wake-ups, which are %s a second, find nothing to do, because another "
        "thread has done it by then.",
        domi_format_share_as_percent(part).at, domi_format_amount_as_word(empty).at);
}

/* --- the backend ------------------------------------------------------------------------------ */

static bool judge_backend_epoll(const domi_span *span, domi_finding *finding)
{
    const domi_look *look = span->after;
    bool is_epoll = look->backend[0] == 'e';

    if (!is_epoll || span->cpus_used < CPU_LEAST)
        return false;
    if (look->backend_why[0] == '\0')
        domi_finding_advise_value_of_key(finding, "io.backend", "auto");
    else
        domi_finding_advise_in_words(finding,
                                     "let the kernel or the container allow io_uring; io.backend: "
                                     "epoll only silences this");
    return domi_finding_write_sentence(finding, "The program asks the kernel for io by epoll: %s.",
                                       look->backend_why[0] != '\0' ? look->backend_why
                                                                    : "io.backend is set to it");
}

/* --- peers that read slowly ------------------------------------------------------------------- */

static void advise_for_slow_peers(const domi_look_settings *settings, domi_finding *finding)
{
    if (settings->send_timeout_ns == 0 || settings->send_timeout_ns > SEND_TIMEOUT_LOW)
        domi_finding_advise_value_of_key(finding, "channel.sendTimeout", "5s");
    if (settings->send_high > SEND_HIGH_LOW && settings->send_low <= SEND_HIGH_LOW)
        domi_finding_advise_value_of_key(finding, "channel.sendHigh", "64KiB");
    domi_finding_advise_in_words(finding, "or send less to peers that do not keep up");
}

static bool judge_slowly_reading_peers(const domi_span *span, domi_finding *finding)
{
    const domi_look_counters *all = &span->all;

    if (all->queued_bytes == 0 || all->queued_bytes < span->after->settings.send_high ||
        (double)all->queued_bytes <
            SLOW * domi_span_count_to_events_a_second(span, all->sent_bytes))
        return false;
    advise_for_slow_peers(&span->after->settings, finding);
    return domi_finding_write_sentence(
        finding, "%s wait for peers that do not read, and in %s they took only %s.",
        domi_format_bytes_as_word((double)all->queued_bytes).at,
        domi_format_time_as_word(span->seconds * 1e9).at,
        domi_format_bytes_as_word((double)all->sent_bytes).at);
}

/* --- limits of requests on a connection ------------------------------------------------------- */

static bool is_every_thread_mostly_asleep(const domi_span *span)
{
    for (uint32_t i = 0; i < span->thread_count; i++) {
        if (span->threads[i].asleep < ASLEEP || span->threads[i].denied > 1 - ASLEEP)
            return false;
    }
    return span->thread_count != 0;
}

/* Returns whether channel.requestsMax is 1, one request after the other: then each request is
 * counted as one that reaches the limit, although none may wait. */
static bool is_requests_max_one(const domi_look_settings *settings)
{
    return settings->requests_max == 1 || settings->listener_requests == 1;
}

static bool judge_requests_max(const domi_span *span, domi_finding *finding)
{
    double rate = domi_span_count_to_events_a_second(span, span->all.channels_busy);
    uint64_t own = span->after->settings.listener_requests;
    uint64_t most = own != 0 ? own : span->after->settings.requests_max;

    if (rate < AT_ONCE || is_requests_max_one(&span->after->settings) || most == 0 ||
        !is_every_thread_mostly_asleep(span))
        return false;
    if (own != 0)
        domi_finding_advise_in_words(finding,
                                     "raise requestsMax in `channel` of the listener that has a "
                                     "small one of its own");
    else
        domi_finding_advise_value_of_key(
            finding, "channel.requestsMax", "%u",
            (unsigned)domi_clamp_double_to_whole_number((double)most * 4, 4, 1048576));
    return domi_finding_write_sentence(
        finding,
        "%s times a second a connection is not read because %u of its requests are under "
        "way, while all threads sleep for nearly all of their time.",
        domi_format_amount_as_word(rate).at, (unsigned)most);
}

/* --- small writes ----------------------------------------------------------------------------- */

/* Judge small writes on sockets that have no TCP_NODELAY. If each request is answered by one write,
 * or peers get a write only now and then, nothing is delayed, so this rule looks for writes that
 * follow each other quickly. */
static bool judge_small_delayed_writes(const domi_span *span, domi_finding *finding)
{
    const domi_look_counters *all = &span->all;
    double writes = domi_span_count_to_events_a_second(span, all->sends),
           reads = domi_span_count_to_events_a_second(span, all->reads);
    uint64_t delays = span->after->settings.delays,
             open = domi_look_count_open_connections(span->after);

    if (delays == 0 || writes < WRITES_LEAST * (double)(open != 0 ? open : 1) ||
        writes < WRITES_OFTEN * reads ||
        domi_span_quotient_of_counts(all->sent_bytes, all->sends) > SEGMENT)
        return false;
    if (delays == 1)
        domi_finding_advise_value_of_key(finding, "channel.socket.noDelay", "true");
    else
        domi_finding_advise_in_words(
            finding, "take `socket: {noDelay: false}` from `channel` of the listener");
    domi_finding_advise_in_words(finding, "or write all of an answer at once");
    return domi_finding_write_sentence(
        finding,
        "Connections are written to %s times a second, and read from %s times, while noDelay is "
        "false: the second of two small writes waits until the peer has acknowledged the first "
        "one, which a peer that has nothing to say does late.",
        domi_format_amount_as_word(writes).at, domi_format_amount_as_word(reads).at);
}

const domi_rule domi_rules_of_io[] = {
    {.name = "buffers-starved",
     .title = "No receive buffer is free",
     .keys = "io.buffers.count",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_receive_buffers,
     .limit =
         "A connection that finds no buffer is not read until one comes back, whatever time the "
         "thread has.",
     .cause = "More connections get bytes at a time than the thread has receive buffers, or actors "
              "keep what they have read. Seen by: 10 receives a second or more that end without a "
              "buffer.",
     .remedy =
         "Raise io.buffers.count. Each buffer takes io.buffers.size (4 KiB) of memory for each "
         "thread."},
    {.name = "requests-full",
     .title = "Connections with all the requests that they may have",
     .keys = "channel.requestsMax",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_requests_max,
     .limit = "A connection at channel.requestsMax is not read until one of its requests is "
              "answered, so a client that sends many at a time waits for round trips.",
     .cause =
         "Clients send many requests on one connection, and each waits for something else than "
         "the CPU. Seen by: 10 times a second or more, while all threads sleep for 90 % of "
         "their time. Silent with 1, which is chosen so that requests come one by one.",
     .remedy = "Raise channel.requestsMax, which lets each connection take more memory; or let "
               "clients open more connections."},
    {.name = "small-writes",
     .title = "Small writes that wait for each other",
     .keys = "channel.socket.noDelay",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_small_delayed_writes,
     .limit = "Without TCP_NODELAY the kernel sends no small packet while another one is not "
              "acknowledged (Nagle's algorithm), and a peer that has nothing to send acknowledges "
              "late, on Linux by 40 ms.",
     .cause = "channel.socket.noDelay is false, and answers are written in pieces. Seen by: 5 "
              "writes a second or more to each connection, which are shorter than a packet on "
              "average, 1.3 of them for each read.",
     .remedy = "Set channel.socket.noDelay to true, its default: the library sends what a turn "
               "has written as one piece anyway."},
    {.name = "slow-readers",
     .title = "Peers that do not read",
     .keys = "channel.sendHigh, channel.sendTimeout",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_slowly_reading_peers,
     .limit = "What peers do not take stays in memory, up to channel.sendHigh for each, and a "
              "connection is not read meanwhile.",
     .cause =
         "Peers are slower than what is sent to them, or have gone without closing. Seen by: "
         "queued bytes of channel.sendHigh or more at both looks, for which peers would take 10 s "
         "at the rate at which they have read in between.",
     .remedy = "Lower channel.sendTimeout, so that peers that take nothing are reset sooner, and "
               "channel.sendHigh, so that each of them holds less."},
    {.name = "wakeups-empty",
     .title = "Wake-ups without work",
     .keys = "scheduler.idle.standIn, scheduler.steal.aggression",
     .harm = DOMI_HARM_COST,
     .judge = judge_empty_wakeups,
     .limit = "A wake-up takes two system calls and a change of context on the thread that finds "
              "nothing.",
     .cause = "A thread is woken for an actor that another one runs or steals first. Seen by: 200 "
              "wake-ups a second or more that find nothing, which are half of all or more.",
     .remedy = "Set scheduler.idle.standIn to 0, so that the sleeper runs its actors itself. "
               "Messages to sleeping threads then cost a wake-up each."},
    {.name = "epoll",
     .title = "The kernel is asked by epoll",
     .keys = "io.backend",
     .harm = DOMI_HARM_COST,
     .judge = judge_backend_epoll,
     .limit = "With epoll each read and each write is a system call of its own; with io_uring one "
              "enter has many of them.",
     .cause =
         "io.backend is epoll, or the kernel, a sysctl (kernel.io_uring_disabled) or a seccomp "
         "filter refuses io_uring, as many containers do. Seen by: the backend, if the program "
         "uses a fifth of a CPU or more.",
     .remedy = "Allow io_uring, or take io.backend: epoll away."},
    {.name = NULL}};
