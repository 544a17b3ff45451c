/* Rules about memory: the levels at which the library acts, what the library refuses because of
 * them, and foreign memory, which the library only observes. */
#include "protocols/observe/doctor/say.h"

#define LEVEL_CRITICAL 2u
/* the value of channel.sendHigh that is advised to programs that are short of memory */
#define SEND_HIGH_LOW   65536u
#define MAILBOX_MAX_LOW 1024u

static bool was_memory_critical(const domi_span *span)
{
    const domi_look_memory *now = &span->after->memory;

    return now->own_level >= LEVEL_CRITICAL || now->fulls > span->before->memory.fulls ||
           span->all.busy != 0;
}

static bool was_memory_high(const domi_span *span)
{
    return span->after->memory.own_level != 0 || span->all.channels_shed != 0;
}

static bool was_memory_high_by_foreign_use(const domi_span *span)
{
    const domi_look_memory *now = &span->after->memory, *then = &span->before->memory;

    return now->level != 0 || now->highs > then->highs || now->criticals > then->criticals;
}

/* Advise smaller queues of bytes and messages, where the configured ones are larger than the
 * advised values. */
static void advise_smaller_queues(const domi_look_settings *settings, domi_finding *finding)
{
    if (settings->send_high > SEND_HIGH_LOW && settings->send_low <= SEND_HIGH_LOW)
        domi_finding_advise_value_of_key(finding, "channel.sendHigh", "64KiB");
    if (settings->mailbox_max > MAILBOX_MAX_LOW)
        domi_finding_advise_value_of_key(finding, "scheduler.mailboxMax", "%u", MAILBOX_MAX_LOW);
}

/* Advise a larger memory limit: `auto` if the configuration sets the limit, else more memory for
 * the cgroup or the machine. */
static void advise_larger_memory_limit(const domi_look *look, domi_finding *finding)
{
    uint64_t own = look->settings.memory_limit;

    if (own != 0 && look->memory.limit_bytes >= own)
        domi_finding_advise_value_of_key(finding, "memory.limit", "auto");
    else
        domi_finding_advise_in_words(finding,
                                     "the limit is that of the cgroup or the machine: give it more "
                                     "memory (MemoryMax= of systemd)");
}

static void advise_memory_setting(const domi_look *look, domi_finding *finding)
{
    if (look->memory.foreign_bytes > look->memory.own_bytes)
        domi_finding_advise_in_words(finding,
                                     "most of it is not the library's: see what the program "
                                     "allocates, or what else is in the cgroup");
    else
        advise_smaller_queues(&look->settings, finding);
    advise_larger_memory_limit(look, finding);
}

static bool judge_critical_memory(const domi_span *span, domi_finding *finding)
{
    const domi_look_memory *memory = &span->after->memory;

    if (!was_memory_critical(span))
        return false;
    advise_memory_setting(span->after, finding);
    return domi_finding_write_sentence(
        finding,
        "Memory is critical: %s of %s are used, of which the library has %s, and %s "
        "messages a second are refused.",
        domi_format_bytes_as_word((double)memory->used_bytes).at,
        domi_format_bytes_as_word((double)memory->limit_bytes).at,
        domi_format_bytes_as_word((double)memory->own_bytes).at,
        domi_format_amount_as_word(domi_span_count_to_events_a_second(span, span->all.busy)).at);
}

static bool judge_high_memory(const domi_span *span, domi_finding *finding)
{
    const domi_look_memory *memory = &span->after->memory;

    if (!was_memory_high(span) || was_memory_critical(span))
        return false;
    advise_memory_setting(span->after, finding);
    return domi_finding_write_sentence(
        finding,
        "Memory is high: the library has %s, of a budget of %s, and %s of %s are used; %s "
        "connections were reset for it.",
        domi_format_bytes_as_word((double)memory->own_bytes).at,
        domi_format_bytes_as_word((double)memory->budget_bytes).at,
        domi_format_bytes_as_word((double)memory->used_bytes).at,
        domi_format_bytes_as_word((double)memory->limit_bytes).at,
        domi_format_amount_as_word((double)span->all.channels_shed).at);
}

static bool judge_high_foreign_memory(const domi_span *span, domi_finding *finding)
{
    const domi_look_memory *memory = &span->after->memory;

    if (!was_memory_high_by_foreign_use(span) || was_memory_high(span) || was_memory_critical(span))
        return false;
    domi_finding_advise_in_words(finding,
                                 "see what the program allocates, and what else is in the cgroup "
                                 "or on the machine");
    advise_larger_memory_limit(span->after, finding);
    return domi_finding_write_sentence(
        finding,
        "%s of %s are used, of which the library has only %s: nothing is "
        "refused for it yet.",
        domi_format_bytes_as_word((double)memory->used_bytes).at,
        domi_format_bytes_as_word((double)memory->limit_bytes).at,
        domi_format_bytes_as_word((double)memory->own_bytes).at);
}

const domi_rule domi_rules_of_memory[] = {
    {.name = "memory-critical",
     .title = "Memory is critical",
     .keys = "memory.limit, memory.critical, channel.sendHigh, scheduler.mailboxMax",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_critical_memory,
     .limit = "Above memory.critical asks and notices are refused everywhere, so that the kernel "
              "does not end the process.",
     .cause =
         "The library has more than the budget that memory.critical gives it. Seen by: that level, "
         "any message that was refused for it, or a time at which allocations failed.",
     .remedy = "Give the program more memory (memory.limit, which auto sets to all that the cgroup "
               "or the machine has, or its cgroup), or let less wait: "
               "scheduler.mailboxMax for messages, channel.sendHigh for peers that read slowly, "
               "channel.maxConnections for connections."},
    {.name = "memory-high",
     .title = "Memory is high",
     .keys = "memory.limit, memory.high, channel.sendHigh, scheduler.mailboxMax",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_high_memory,
     .limit = "Above the budget accepting pauses, messages of foreign threads are refused, and "
              "connections that take nothing are reset.",
     .cause = "The library has more than the budget that memory.high gives it. Seen by: that level "
              "at the end, or any connection that was reset for it.",
     .remedy = "As for memory-critical."},
    {.name = "memory-foreign",
     .title = "Others take the memory",
     .keys = "memory.limit, memory.high",
     .harm = DOMI_HARM_COST,
     .judge = judge_high_foreign_memory,
     .limit = "What others take leaves the library a smaller budget, and at the limit the kernel "
              "ends a process, which may be this one.",
     .cause =
         "The program's own allocations, or other processes of its cgroup or machine, have most of "
         "the limit. Seen by: memory.high of all memory, at the end or at any time, while the "
         "library is within its budget.",
     .remedy = "Find who has it; it may be as it should be. Otherwise give the cgroup more."},
    {.name = NULL}};
