/* Rules about messages: messages that mailboxes refuse, limits of messages that were reached, and
 * messages that wait. */
#include "protocols/observe/doctor/say.h"

/* asks and notices that mailboxes refuse, from which on they are reported: one is too many */
#define REFUSED_LEAST 1u
#define WAITS_LEAST   3u /* number of measured waits below which their mean says nothing */
/* ns that messages wait in the mailbox on average, from which on people notice */
#define WAIT_LONG     1e8
#define EXPIRED_LEAST 10.0 /* asks a second that expire, from which on they are reported */
#define GONE_LEAST    10.0 /* asks a second that are cancelled, from which on they are reported */
/* share of all asks that are cancelled, from which on this is no exception */
#define GONE_PART 0.5
/* messages a second that no actor handles, from which on they are reported */
#define LETTERS_LEAST 10.0
/* share of its time that each thread must be idle so that messages do not wait for the CPU */
#define IDLE   0.5
#define HARDLY 0.1 /* share of a thread's time below which an actor works little */
#define MIB    UINT64_C(1048576)
/* the largest value, in MiB, that is advised for the bound of a thread's messages */
#define THREAD_MAX_HIGH UINT64_C(1048576)

/* Find the behaviour whose messages wait longest in the mailbox, on average. */
static const domi_span_actors *find_behaviour_waiting_longest(const domi_span *span)
{
    const domi_span_actors *longest = NULL;

    for (uint32_t i = 0; i < span->actors_count; i++) {
        const domi_span_actors *one = &span->actors[i];
        if (one->waits < WAITS_LEAST)
            continue;
        if (longest == NULL || domi_span_quotient_of_counts(one->wait_ns, one->waits) >
                                   domi_span_quotient_of_counts(longest->wait_ns, longest->waits))
            longest = one;
    }
    return longest;
}

static bool judge_full_mailboxes(const domi_span *span, domi_finding *finding)
{
    const domi_span_actors *waiting = find_behaviour_waiting_longest(span);
    uint64_t most = span->after->settings.mailbox_max;

    if (span->all.refusals < REFUSED_LEAST)
        return false;
    if (most < 32768)
        domi_finding_advise_value_of_key(
            finding, "scheduler.mailboxMax", "%u",
            (unsigned)domi_clamp_double_to_whole_number((double)most * 4, 1024, 65535));
    domi_finding_advise_in_words(finding,
                                 "and let senders wait for answers (domus_ask()), or spread the "
                                 "receiver over more actors");
    return domi_finding_write_sentence(
        finding,
        "%s messages a second are refused, because %u wait at their receiver "
        "already%s%.40s%s.",
        domi_format_amount_as_word(domi_span_count_to_events_a_second(span, span->all.refusals)).at,
        (unsigned)most, waiting != NULL ? "; those of " : "", waiting != NULL ? waiting->name : "",
        waiting != NULL ? " wait for longest" : "");
}

/* Advise a memory.threadMax four times as high, and at least 64 MiB, if that of all threads is at
 * most half of the memory's limit, or no limit is known. */
static void advise_more_messages_per_thread(const domi_look *look, domi_finding *finding)
{
    uint64_t most = look->settings.thread_max, limit = look->memory.limit_bytes;
    uint64_t wanted = most / MIB < 16 ? 64 : most / MIB * 4;

    if (wanted <= THREAD_MAX_HIGH &&
        (limit == 0 ||
         wanted <= limit / MIB / 2 / (look->thread_count != 0 ? look->thread_count : 1)))
        domi_finding_advise_value_of_key(finding, "memory.threadMax", "%uMiB", (unsigned)wanted);
    domi_finding_advise_in_words(finding, "see which actors keep what they get, or handle it late "
                                          "(domus actors)");
}

static bool judge_max_messages_of_thread(const domi_span *span, domi_finding *finding)
{
    uint64_t most = span->after->settings.thread_max;

    if (span->all.thread_max_refusals < REFUSED_LEAST || most == 0)
        return false;
    advise_more_messages_per_thread(span->after, finding);
    return domi_finding_write_sentence(
        finding,
        "%s messages a second are refused, because those of their sender's "
        "thread that nobody has handled and freed yet take %s.",
        domi_format_amount_as_word(
            domi_span_count_to_events_a_second(span, span->all.thread_max_refusals))
            .at,
        domi_format_bytes_as_word((double)most).at);
}

static bool judge_max_conversations(const domi_span *span, domi_finding *finding)
{
    uint64_t most = span->after->settings.conversations_max;

    if (span->all.conversations_full == 0)
        return false;
    domi_finding_advise_value_of_key(
        finding, "scheduler.conversationsMax", "%u",
        (unsigned)domi_clamp_double_to_whole_number((double)most * 4, 64, 1048576));
    return domi_finding_write_sentence(
        finding,
        "%s times an actor had %u conversations that wait for an answer, and then handled "
        "no message until one of them ended.",
        domi_format_amount_as_word((double)span->all.conversations_full).at, (unsigned)most);
}

static bool judge_max_timers(const domi_span *span, domi_finding *finding)
{
    uint64_t most = span->after->settings.timers_max;

    if (span->all.timers_refused == 0)
        return false;
    domi_finding_advise_value_of_key(
        finding, "scheduler.timersMax", "%u",
        (unsigned)domi_clamp_double_to_whole_number((double)most * 4, 1024, 16777216));
    return domi_finding_write_sentence(
        finding, "%s timers were not made, because their thread has %u of them.",
        domi_format_amount_as_word((double)span->all.timers_refused).at, (unsigned)most);
}

static bool judge_max_detached_threads(const domi_span *span, domi_finding *finding)
{
    uint64_t most = span->after->settings.detached_max;

    if (most == 0 || span->after->usage.detached_busy < most ||
        span->before->usage.detached_busy < most)
        return false;
    domi_finding_advise_value_of_key(
        finding, "detached.threadsMax", "%u",
        (unsigned)domi_clamp_double_to_whole_number((double)most * 2, 1, 512));
    return domi_finding_write_sentence(
        finding,
        "All %u threads that detached actors and outsiders may have are taken, "
        "so one more is refused.",
        (unsigned)most);
}

/* Returns whether messages to actors of this behaviour wait although these actors work little and
 * no thread is busy. Actors of pools wait for runners, and actors that have reached their number of
 * conversations wait for a conversation's end, so both are excluded. */
static bool is_waiting_while_idle(const domi_span *span, const domi_span_actors *one)
{
    for (uint32_t i = 0; i < span->thread_count; i++) {
        if (span->threads[i].asleep < IDLE)
            return false;
    }
    return span->thread_count != 0 && one->pool[0] == '\0' && span->all.conversations_full == 0 &&
           (double)one->run_ns <= HARDLY * 1e9 * span->seconds;
}

static bool write_sentence_of_waiting_mail(const domi_span_actors *one, domi_finding *finding)
{
    domi_finding_advise_in_words(finding,
                                 "let them handle others meanwhile (without domus_barrier()), or "
                                 "spread the work over more actors (domus/router.h)");
    return domi_finding_write_sentence(
        finding,
        "Messages to %.40s wait for %s on average, though no thread is busy and %s of its actors "
        "hardly work: it seems that they take no message while they wait for an answer.",
        one->name,
        domi_format_time_as_word(domi_span_quotient_of_counts(one->wait_ns, one->waits)).at,
        domi_format_amount_as_word((double)one->alive).at);
}

static bool judge_waits_in_mailboxes(const domi_span *span, domi_finding *finding)
{
    const domi_span_actors *one = find_behaviour_waiting_longest(span);

    if (one == NULL || domi_span_quotient_of_counts(one->wait_ns, one->waits) < WAIT_LONG)
        return false;
    if (is_waiting_while_idle(span, one))
        return write_sentence_of_waiting_mail(one, finding);
    if (one->alive == 1)
        domi_finding_advise_in_words(
            finding, "spread its work over several actors (domus/router.h), or make "
                     "each message cheaper (domus flame)");
    else
        domi_finding_advise_in_words(finding,
                                     "make each message cheaper (domus flame), give these actors a "
                                     "pool, or let fewer in (channel.requestsMax)");
    return domi_finding_write_sentence(
        finding,
        "Messages to %.40s wait for %s on average; %s of its actors handle %s a second, "
        "in %s each.",
        one->name,
        domi_format_time_as_word(domi_span_quotient_of_counts(one->wait_ns, one->waits)).at,
        domi_format_amount_as_word((double)one->alive).at,
        domi_format_amount_as_word(domi_span_count_to_events_a_second(span, one->messages)).at,
        domi_format_time_as_word(domi_span_quotient_of_counts(one->run_ns, one->messages)).at);
}

static bool judge_expired_asks(const domi_span *span, domi_finding *finding)
{
    double rate = domi_span_count_to_events_a_second(span, span->all.asks_expired);

    if (rate < EXPIRED_LEAST)
        return false;
    domi_finding_advise_in_words(finding,
                                 "find who makes them wait (domus top, WAIT), or give them a later "
                                 "deadline (domus_ask_within())");
    return domi_finding_write_sentence(
        finding,
        "%s asks a second are dropped, because their deadline passes before "
        "they are handled.",
        domi_format_amount_as_word(rate).at);
}

/* Judge asks that are cancelled because their asker has gone away, when they are many. */
static bool judge_cancelled_asks(const domi_span *span, domi_finding *finding)
{
    double rate = domi_span_count_to_events_a_second(span, span->all.cancels);
    double part = domi_span_quotient_of_counts(span->all.cancels, span->all.asks);

    if (rate < GONE_LEAST || part < GONE_PART)
        return false;
    domi_finding_advise_in_words(finding,
                                 "let old asks fail before they are worked on: a deadline that is "
                                 "shorter than their clients' patience (domus_ask_within())");
    domi_finding_advise_in_words(finding,
                                 "and let fewer wait (scheduler.mailboxMax, channel.requestsMax)");
    return domi_finding_write_sentence(
        finding,
        "%s asks a second are cancelled, %s of all, because who has asked is "
        "gone before the answer comes.",
        domi_format_amount_as_word(rate).at, domi_format_share_as_percent(part < 1 ? part : 1).at);
}

static bool judge_dead_letters(const domi_span *span, domi_finding *finding)
{
    double rate = domi_span_count_to_events_a_second(span, span->all.dead_letters);

    if (rate < LETTERS_LEAST)
        return false;
    domi_finding_advise_in_words(
        finding, "watch the receiver (domus/supervise.h), so that its senders know "
                 "when it has gone; domus/letters.h tells which messages these are");
    return domi_finding_write_sentence(
        finding,
        "%s messages a second go to actors that are gone, or that have no "
        "function for them.",
        domi_format_amount_as_word(rate).at);
}

const domi_rule domi_rules_of_mail[] = {
    {.name = "mailbox-full",
     .title = "Mailboxes that refuse",
     .keys = "scheduler.mailboxMax",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_full_mailboxes,
     .limit =
         "An actor with scheduler.mailboxMax messages refuses asks and notices, and its sender "
         "gets an error for each.",
     .cause = "A receiver is slower than its senders, for longer than its mailbox lasts. Seen by: "
              "any message that was refused.",
     .remedy =
         "Raise scheduler.mailboxMax for bursts. If it lasts, no mailbox is large enough: let "
         "senders wait for answers, spread the receiver over more actors, or make its "
         "messages cheaper."},
    {.name = "messages-full",
     .title = "Messages at the bound of their thread",
     .keys = "memory.threadMax",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_max_messages_of_thread,
     .limit = "The messages that a thread has sent take no more than memory.threadMax: beyond it "
              "asks and notices of its actors fail with -ENOBUFS.",
     .cause = "Receivers are slower than the thread, or keep its messages for long. Seen by: any "
              "message that was refused for it.",
     .remedy = "Raise memory.threadMax, or take it away (none): without it memory.critical bounds "
               "all memory. If it lasts, see who keeps messages."},
    {.name = "conversations-full",
     .title = "Conversations at their maximum",
     .keys = "scheduler.conversationsMax",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_max_conversations,
     .limit = "An actor with scheduler.conversationsMax conversations handles no asks and notices "
              "until one of them ends.",
     .cause = "An actor asks another one that is slower than itself, or that does not answer. Seen "
              "by: any time that the number was reached.",
     .remedy = "See whom it waits for (domus actors), and give these asks a deadline. Raise "
               "scheduler.conversationsMax if so many are meant; each takes about 1 KiB."},
    {.name = "timers-full",
     .title = "Timers at their maximum",
     .keys = "scheduler.timersMax",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_max_timers,
     .limit = "A thread with scheduler.timersMax timers makes no further one: the call fails with "
              "-ENOBUFS.",
     .cause =
         "More timers than expected, or timers that nobody cancels. Seen by: any timer that was "
         "not made.",
     .remedy =
         "Cancel timers that are not needed any more, or raise scheduler.timersMax; each takes "
         "about 128 bytes."},
    {.name = "detached-full",
     .title = "Threads of detached actors at their maximum",
     .keys = "detached.threadsMax",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_max_detached_threads,
     .limit = "A detached actor has a thread of its own, and with detached.threadsMax of them a "
              "further one is refused.",
     .cause = "Too many detached actors at a time. Seen by: all of them taken at both looks.",
     .remedy =
         "Raise detached.threadsMax, or use a pool (domus/pools.h), which shares its threads."},
    {.name = "asks-expire",
     .title = "Asks whose deadline passes",
     .keys = "",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_expired_asks,
     .limit = "An ask that is dropped has waited for nothing, and its asker tries again or fails.",
     .cause = "Receivers are so far behind that answers would come too late. Seen by: 10 asks a "
              "second or more that were dropped.",
     .remedy =
         "Find who makes them wait: another finding here often says it. A later deadline only "
         "lets them wait for longer."},
    {.name = "askers-gone",
     .title = "Work for those who have gone",
     .keys = "",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_cancelled_asks,
     .limit = "What is done for an asker that has gone is done in vain, and those behind it wait "
              "for it, until they go, too.",
     .cause =
         "Clients give up or close before they have an answer, often because it comes too late. "
         "Seen by: 10 asks a second or more that are cancelled, which are half of all asks or "
         "more.",
     .remedy =
         "Find what makes answers late, and refuse early what would come too late: a deadline "
         "for asks, and short queues."},
    {.name = "dead-letters",
     .title = "Messages that nobody handles",
     .keys = "",
     .harm = DOMI_HARM_LOSS,
     .judge = judge_dead_letters,
     .limit = "A message to nobody costs its way, and its sender does not learn of it if it was a "
              "notice.",
     .cause = "Senders keep the address of an actor that has ended, or send a type for which its "
              "behaviour has no row. Seen by: 10 messages a second or more.",
     .remedy = "Watch the receiver, or find it by its name each time; subscribe to letters to see "
               "which messages these are."},
    {.name = "mail-waits",
     .title = "Messages that wait for long",
     .keys = "",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_waits_in_mailboxes,
     .limit =
         "Each message waits for those in front of it, and for the other actors of its thread.",
     .cause =
         "A behaviour gets more messages than its actors can handle, or its actors wait for "
         "answers and let nobody else in meanwhile (domus_barrier()). Seen by: a wait of 100 ms "
         "or more on average, of 3 samples or more; threads that all sleep for half of their time, "
         "and actors that hardly work, speak for the latter.",
     .remedy =
         "Make each message cheaper, spread the work over more actors or threads, or let less "
         "in at a time; or let in others while one waits."},
    {.name = NULL}};
