/* Rules about memory: its levels, and what is refused because of them. */
#include "protocols/observe/doctor/say.h"

#define LEVEL_CRITICAL 2u

static bool is_critical(const domi_span *span)
{
    const domi_look_memory *now = &span->after->memory, *then = &span->before->memory;

    return now->level >= LEVEL_CRITICAL || now->own_level >= LEVEL_CRITICAL ||
           now->criticals > then->criticals || now->fulls > then->fulls || span->all.busy != 0;
}

static bool is_high(const domi_span *span)
{
    const domi_look_memory *now = &span->after->memory;

    return now->level != 0 || now->own_level != 0 || now->highs > span->before->memory.highs ||
           span->all.channels_shed != 0;
}

static void advise(const domi_look_memory *memory, domi_finding *finding)
{
    if (memory->foreign_bytes > memory->own_bytes) {
        domi_finding_advise(finding, "most of it is not the library's: see what the program "
                                     "allocates, or what else is in the cgroup; and");
    } else {
        domi_finding_set(finding, "channel.sendHigh", "64KiB");
        domi_finding_set(finding, "scheduler.mailboxMax", "1024");
    }
    domi_finding_set(finding, "memory.limit", "%uMiB",
                     (unsigned)domi_clamp((double)memory->limit_bytes * 2 / 1048576, 1, 1048576));
}

static bool judge_critical(const domi_span *span, domi_finding *finding)
{
    const domi_look_memory *memory = &span->after->memory;

    if (!is_critical(span))
        return false;
    advise(memory, finding);
    return domi_finding_say(
        finding,
        "Memory is critical: %s of %s are used, of which the library has %s, and %s "
        "messages a second are refused.",
        domi_word_bytes((double)memory->used_bytes).at,
        domi_word_bytes((double)memory->limit_bytes).at,
        domi_word_bytes((double)memory->own_bytes).at,
        domi_word_amount(domi_span_rate(span, span->all.busy)).at);
}

static bool judge_high(const domi_span *span, domi_finding *finding)
{
    const domi_look_memory *memory = &span->after->memory;

    if (!is_high(span) || is_critical(span))
        return false;
    advise(memory, finding);
    return domi_finding_say(
        finding,
        "Memory is high: %s of %s are used, of which the library has %s; %s connections "
        "were reset for it.",
        domi_word_bytes((double)memory->used_bytes).at,
        domi_word_bytes((double)memory->limit_bytes).at,
        domi_word_bytes((double)memory->own_bytes).at,
        domi_word_amount((double)span->all.channels_shed).at);
}

const domi_rule domi_rules_of_memory[] = {
    {.name = "memory-critical",
     .title = "Memory is critical",
     .keys = "memory.limit, memory.critical, channel.sendHigh, scheduler.mailboxMax",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_critical,
     .limit = "Above memory.critical asks and notices are refused everywhere, so that the kernel "
              "does not end the process.",
     .cause =
         "More is taken than memory.critical of the limit. Seen by: that level, or any message "
         "that was refused for it.",
     .remedy = "Give the program more memory (memory.limit or its cgroup), or let less wait: "
               "scheduler.mailboxMax for messages, channel.sendHigh for peers that read slowly, "
               "channel.maxConnections for connections."},
    {.name = "memory-high",
     .title = "Memory is high",
     .keys = "memory.limit, memory.high, channel.sendHigh, scheduler.mailboxMax",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_high,
     .limit = "Above the budget accepting pauses, messages of foreign threads are refused, and "
              "connections that take nothing are reset.",
     .cause = "More is taken than memory.high of the limit. Seen by: that level at the end, or any "
              "time that it was reached.",
     .remedy = "As for memory-critical."},
    {.name = NULL}};
