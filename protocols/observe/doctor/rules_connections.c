/* Rules about connections that are refused, and descriptors that run out. */
#include "protocols/observe/doctor/say.h"

/* share of the descriptors that a process may have, from which on they count as scarce */
#define NEARLY 0.9
/* share of channel.maxConnections from which on the next burst of connections is refused */
#define AT_MOST 0.98
/* number of connections a second, closed because the client sent nothing, from which on they
 * matter */
#define SILENT_LEAST 5.0
/* share of the accepted connections that are closed because the client sent nothing */
#define SILENT_PART 0.5
#define TRIED_LEAST 5u /* number of connects below which their failures show no pattern */
/* share of the connects that fail, from which on this counts as an illness */
#define FAILED_PART 0.5

/* Advise a larger channel.maxConnections. At its start a program lowers that key to what its limit
 * of descriptors allows, at least half of that limit, so a larger value would be lowered again. */
static void advise_max_connections(uint64_t most, uint64_t files_max, domi_finding *finding)
{
    uint64_t wanted = domi_clamp_double_to_whole_number((double)most * 2, 1, 1048576);

    if (files_max != 0 && wanted > files_max / 2)
        wanted = files_max / 2;
    if (wanted > most)
        domi_finding_advise_value_of_key(finding, "channel.maxConnections", "%u", (unsigned)wanted);
    else if (files_max != 0)
        domi_finding_advise_in_words(finding,
                                     "first raise the limit of descriptors, which allows no more: "
                                     "LimitNOFILE= of systemd, ulimit -n");
    else
        domi_finding_advise_in_words(finding, "spread the clients over more processes");
}

static bool judge_max_connections(const domi_span *span, domi_finding *finding)
{
    uint64_t open = domi_look_count_open_connections(span->after),
             most = span->after->settings.connections_max;

    if (most == 0 || (double)open < AT_MOST * (double)most)
        return false;
    advise_max_connections(most, span->after->machine.files_max, finding);
    return domi_finding_write_sentence(
        finding,
        "%u connections are open, and %u is the most: further ones wait at the "
        "listener (accepting has paused %s times a second).",
        (unsigned)open, (unsigned)most,
        domi_format_amount_as_word(
            domi_span_count_to_events_a_second(span, span->all.accept_pauses))
            .at);
}

/* Judge the limits of connections from one address (channel.maxPerAddress and
 * channel.maxPerLoopback); a service that sets both to 100 % has no such limit. */
static bool judge_connections_per_address(const domi_span *span, domi_finding *finding)
{
    const domi_look_settings *settings = &span->after->settings;
    bool is_strange = settings->address_percent < settings->loopback_percent;
    uint64_t percent = is_strange ? settings->address_percent : settings->loopback_percent;

    if (span->all.refused_by_address == 0)
        return false;
    domi_finding_advise_value_of_key(
        finding, is_strange ? "channel.maxPerAddress" : "channel.maxPerLoopback", "%u%%",
        (unsigned)domi_clamp_double_to_whole_number((double)percent * 2, 1, 100));
    return domi_finding_write_sentence(
        finding,
        "%s connections a second are reset because their address has its share of "
        "channel.maxConnections (%u %% of %u).",
        domi_format_amount_as_word(
            domi_span_count_to_events_a_second(span, span->all.refused_by_address))
            .at,
        (unsigned)percent, (unsigned)settings->connections_max);
}

static bool are_descriptors_scarce(const domi_look_machine *machine)
{
    return machine->files_max != 0 &&
           (double)machine->files_open >= NEARLY * (double)machine->files_max;
}

static void advise_more_descriptors(const domi_look *look, domi_finding *finding)
{
    uint64_t wanted =
        domi_clamp_double_to_whole_number((double)look->machine.files_max * 0.8, 1, 1048576);

    if (wanted < look->settings.connections_max)
        domi_finding_advise_value_of_key(finding, "channel.maxConnections", "%u", (unsigned)wanted);
    domi_finding_advise_in_words(finding,
                                 "or raise the limit: LimitNOFILE= of systemd, ulimit -n; or see "
                                 "whether descriptors leak");
}

static bool judge_descriptors(const domi_span *span, domi_finding *finding)
{
    const domi_look_machine *machine = &span->after->machine;
    bool has_failed = span->all.accept_spells != 0;

    if (!are_descriptors_scarce(machine) && !has_failed)
        return false;
    if (are_descriptors_scarce(machine))
        advise_more_descriptors(span->after, finding);
    else
        domi_finding_advise_in_words(finding,
                                     "the log has the error: it may be the limit of the whole "
                                     "machine (fs.file-max), or memory of the kernel");
    return domi_finding_write_sentence(
        finding, "The process has %u descriptors open of %s that it may have%s.",
        (unsigned)machine->files_open,
        machine->files_max != 0 ? domi_format_amount_as_word((double)machine->files_max).at
                                : "any number",
        has_failed ? ", and accepting has failed" : "");
}

static bool judge_failed_connects(const domi_span *span, domi_finding *finding)
{
    uint64_t tried = span->all.connects, failed = span->all.connects_failed;

    if (tried < TRIED_LEAST || domi_span_quotient_of_counts(failed, tried) < FAILED_PART)
        return false;
    domi_finding_advise_in_words(finding,
                                 "the log has the address and the error of each: see whether the "
                                 "other side runs (domus/connect.h)");
    return domi_finding_write_sentence(
        finding, "%s of %u connects that actors have asked for have failed.",
        domi_format_share_as_percent(domi_span_quotient_of_counts(failed, tried)).at,
        (unsigned)tried);
}

/* Judge connections that are closed because the client sends nothing. Scanners send nothing either,
 * so this is reported only if most connections end in this way. */
static bool judge_silent_connections(const domi_span *span, domi_finding *finding)
{
    uint64_t after_ns = span->after->settings.first_byte_ns;
    double silent = domi_span_count_to_events_a_second(span, span->all.channels_silent);
    double part = domi_span_quotient_of_counts(span->all.channels_silent, span->all.accepted);

    if (silent < SILENT_LEAST || part < SILENT_PART)
        return false;
    if (after_ns != 0)
        domi_finding_advise_value_of_key(finding, "channel.firstByteTimeout", "0");
    domi_finding_advise_in_words(
        finding, "0 if clients of this protocol listen first; otherwise see who they "
                 "are");
    return domi_finding_write_sentence(
        finding,
        "%s connections a second are closed, %s of those that come, because their clients have "
        "sent nothing for %s.",
        domi_format_amount_as_word(silent).at, domi_format_share_as_percent(part).at,
        domi_format_time_as_word((double)after_ns).at);
}

const domi_rule domi_rules_of_connections[] = {
    {.name = "connections-full",
     .title = "As many connections as there may be",
     .keys = "channel.maxConnections",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_max_connections,
     .limit =
         "At channel.maxConnections no connection is accepted until another one has closed, and "
         "clients wait in the listener's queue, and then for a time-out.",
     .cause = "More clients than places. Seen by: open connections at 98 % of "
              "channel.maxConnections or more.",
     .remedy = "Raise channel.maxConnections; a program lowers it to what its limit of descriptors "
               "allows, so raise that one first if it is the bound. Or lower "
               "channel.idleTimeout, so that idle clients leave."},
    {.name = "address-share",
     .title = "Addresses that have their share",
     .keys = "channel.maxPerAddress, channel.maxPerLoopback",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_connections_per_address,
     .limit = "An address with its share of channel.maxConnections gets its further connections "
              "reset at once.",
     .cause = "One address opens very many connections: an attack, or a proxy or a NAT that many "
              "clients stand behind. Seen by: any connection that was reset for it.",
     .remedy =
         "If the clients are wanted, raise channel.maxPerAddress (100% takes the bound away), "
         "or let the proxy name them (proxyProtocol of the listener). Otherwise leave it."},
    {.name = "first-byte",
     .title = "Clients that are closed because they are silent",
     .keys = "channel.firstByteTimeout",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_silent_connections,
     .limit = "A connection whose peer sends nothing within channel.firstByteTimeout is closed, "
              "whatever it gets meanwhile.",
     .cause = "Clients that listen and do not speak first, or a limit that is too short for them; "
              "scanners and attackers do the same. Seen by: half of the connections that come, and "
              "5 a second or more.",
     .remedy =
         "Set channel.firstByteTimeout to 0 where clients listen first, or to what they need. "
         "If they are strangers, leave it."},
    {.name = "files-full",
     .title = "Descriptors run out",
     .keys = "channel.maxConnections",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_descriptors,
     .limit = "Each connection, file and thread's ring takes descriptors of RLIMIT_NOFILE; without "
              "one, accepting, connecting and opening files fail.",
     .cause = "The limit of the process is too low for its connections, or descriptors leak. Seen "
              "by: 90 % of the limit in use, or a spell in which accepting has failed, for want of "
              "descriptors or of memory.",
     .remedy = "Raise the limit where the program is started (LimitNOFILE= of systemd), or lower "
               "channel.maxConnections below it, so that the library refuses in good order."},
    {.name = "connects-fail",
     .title = "Connects that bring no connection",
     .keys = "",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_failed_connects,
     .limit = "An actor that asks for a connection waits for up to connect.timeout before it knows "
              "that there is none.",
     .cause = "The other side does not listen, refuses, or is not reached. Seen by: half of five "
              "connects or more that failed.",
     .remedy = "See whether the other side runs. A lower connect.timeout tells sooner."},
    {.name = NULL}};
