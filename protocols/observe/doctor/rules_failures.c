/* Rules about mistakes and failures that the library counts: the program goes on, but loses
 * work. */
#include "protocols/observe/doctor/say.h"

/* failures of actors a second below which they count as errors of single clients */
#define FAILED_LEAST   10.0
#define RESTARTS_LEAST 1.0 /* restarts of actors a second from which on they are reported */
/* channels a second, reset by an error of a handler, from which on they are reported */
#define REFUSED_LEAST   10.0
#define DATAGRAMS_LEAST 10.0 /* refused datagrams a second from which on they are reported */
#define MIB             1048576u
#define LEVEL_WARNING   1u /* number of the log.level `warning` */
#define LINES_MOST      65536u

static const domi_span_actors *find_failing_behaviour(const domi_span *span)
{
    const domi_span_actors *most = NULL;

    for (uint32_t i = 0; i < span->actors_count; i++) {
        if (span->actors[i].failures > (most != NULL ? most->failures : 0))
            most = &span->actors[i];
    }
    return most;
}

static bool judge_failures_of_actors(const domi_span *span, domi_finding *finding)
{
    double rate = domi_span_count_to_events_a_second(span, span->all.failures);
    double restarts = domi_span_count_to_events_a_second(span, span->all.restarts);
    const domi_span_actors *most = find_failing_behaviour(span);

    if (rate < FAILED_LEAST && restarts < RESTARTS_LEAST)
        return false;
    domi_finding_advise_in_words(finding,
                                 "domus log tells the errors and where they come from; a delay "
                                 "between restarts is a rule of the parent (domus/supervise.h)");
    return domi_finding_write_sentence(
        finding,
        "Handlers fail %s times a second, and actors begin anew %s times a second; most "
        "failures are those of %.40s.",
        domi_format_amount_as_word(rate).at, domi_format_amount_as_word(restarts).at,
        most != NULL ? most->name : "no behaviour that is counted");
}

static bool judge_mistakes_of_actors(const domi_span *span, domi_finding *finding)
{
    const domi_look_counters *all = &span->all;

    if (all->waits_lost + all->results_unknown + all->circles == 0)
        return false;
    domi_finding_advise_in_words(finding,
                                 "the log has one line for each behaviour and type, with what is "
                                 "wrong there (domus/conversation.h)");
    return domi_finding_write_sentence(
        finding,
        "The program makes mistakes: %s waits whose function is never called, %s results "
        "that mean nothing, %s asks that would wait for themselves.",
        domi_format_amount_as_word((double)all->waits_lost).at,
        domi_format_amount_as_word((double)all->results_unknown).at,
        domi_format_amount_as_word((double)all->circles).at);
}

static bool judge_reset_channels(const domi_span *span, domi_finding *finding)
{
    double rate = domi_span_count_to_events_a_second(span, span->all.channels_refused);

    if (rate < REFUSED_LEAST)
        return false;
    domi_finding_advise_in_words(finding,
                                 "answer what is wrong with a request, instead of returning an "
                                 "error, if its client is to learn of it");
    return domi_finding_write_sentence(
        finding,
        "%s connections a second are reset, because a handler of a request "
        "returns an error.",
        domi_format_amount_as_word(rate).at);
}

static domi_word format_receive_buffer_size_as_word(uint64_t bytes)
{
    return bytes != 0 ? domi_format_bytes_as_word((double)bytes) : (domi_word){"the kernel's size"};
}

/* Advise a receive buffer of twice the size, and at least 4 MiB, which is more than kernels give by
 * default. */
static void advise_receive_buffer(uint64_t present, domi_finding *finding)
{
    uint64_t mib = domi_clamp_double_to_whole_number((double)present * 2 / MIB, 4, 1024);

    if (mib * MIB > present)
        domi_finding_advise_value_of_key(finding, "channel.socket.receiveBuffer", "%uMiB",
                                         (unsigned)mib);
    domi_finding_advise_in_words(finding, "the kernel caps it at net.core.rmem_max");
}

static bool judge_refused_datagrams(const domi_span *span, domi_finding *finding)
{
    double lost = domi_span_count_to_events_a_second(span, span->all.datagrams_lost);
    double dropped = domi_span_count_to_events_a_second(span, span->all.datagrams_dropped);

    if (lost + dropped < DATAGRAMS_LEAST)
        return false;
    if (lost >= dropped)
        advise_receive_buffer(span->after->settings.receive_buffer, finding);
    else
        domi_finding_advise_in_words(finding,
                                     "let actors take datagrams sooner, and see how long they are "
                                     "(domus/datagram.h): no key helps against these");
    return domi_finding_write_sentence(
        finding,
        "%s datagrams a second are lost in the kernel, at a receive buffer of %s, and %s are "
        "thrown away here, because they are too long or nobody reads them.",
        domi_format_amount_as_word(lost).at,
        format_receive_buffer_size_as_word(span->after->settings.receive_buffer).at,
        domi_format_amount_as_word(dropped).at);
}

static bool judge_lost_log_lines(const domi_span *span, domi_finding *finding)
{
    uint64_t dropped = span->all.log_lines_dropped, lines = span->after->settings.log_lines;

    if (dropped == 0)
        return false;
    if (span->after->settings.log_level > LEVEL_WARNING)
        domi_finding_advise_value_of_key(finding, "log.level", "warning");
    if (lines < LINES_MOST)
        domi_finding_advise_value_of_key(
            finding, "log.queueMax", "%u",
            (unsigned)domi_clamp_double_to_whole_number((double)lines * 4, 16, LINES_MOST));
    domi_finding_advise_in_words(finding,
                                 "see which lines these are (domus log), and who reads them");
    return domi_finding_write_sentence(finding, "%s lines of the log were dropped in %s.",
                                       domi_format_amount_as_word((double)dropped).at,
                                       domi_format_time_as_word(span->seconds * 1e9).at);
}

const domi_rule domi_rules_of_failures[] = {
    {.name = "handlers-fail",
     .title = "Handlers that fail",
     .keys = "",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_failures_of_actors,
     .limit =
         "The work of a handler that fails is lost, and an actor that is restarted begins with "
         "nothing.",
     .cause =
         "Functions of actors return negative errnos. Seen by: 10 failures a second or more, or "
         "one restart a second.",
     .remedy = "Read the log. An error that is expected is better an answer than a failure."},
    {.name = "mistakes",
     .title = "Mistakes of the program",
     .keys = "",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_mistakes_of_actors,
     .limit = "A wait that is lost is never resumed, so what hangs on it never happens.",
     .cause = "A function asks twice in a turn or forgets `return`, returns a positive number, or "
              "actors ask each other in a circle. Seen by: any of these.",
     .remedy = "Read the log, which names the behaviour and the type, and mend the function."},
    {.name = "requests-fail",
     .title = "Connections that errors reset",
     .keys = "",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_reset_channels,
     .limit = "A client whose connection is reset gets no answer, and pays for a new connection.",
     .cause = "A handler of a channel, or a conversation that it began, returns a negative errno. "
              "Seen by: 10 connections a second or more.",
     .remedy = "Read the log, and answer with an error of the protocol where a client is to know."},
    {.name = "datagrams-lost",
     .title = "Datagrams that are lost",
     .keys = "channel.socket.receiveBuffer",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_refused_datagrams,
     .limit =
         "The kernel keeps datagrams only as long as the receive buffer of the socket has room.",
     .cause =
         "Bursts that are larger than the buffer, or a thread that is busy elsewhere. Seen by: "
         "10 datagrams a second or more.",
     .remedy = "If most are lost in the kernel, raise channel.socket.receiveBuffer (and "
               "net.core.rmem_max with it), or give the "
               "socket a thread with less to do."},
    {.name = "log-dropped",
     .title = "Lines of the log are dropped",
     .keys = "log.level, log.queueMax",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_lost_log_lines,
     .limit =
         "A thread writes a bounded number of lines a second, and log.queueMax of them wait for "
         "whoever reads standard error.",
     .cause = "Too much is said, or nobody reads it. Seen by: any line that was dropped.",
     .remedy = "Say less (log.level), read faster, or let more lines wait."},
    {.name = NULL}};
