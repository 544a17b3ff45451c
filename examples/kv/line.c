/* The line that CLIENT LIST prints of a connection, with all fields of Redis 7.0. Fields whose
 * value is not known here are 0. */
#include "desk.h"
#include "pubsub.h"
#include "transaction.h"

#include <inttypes.h>
#include <stdio.h>

#define NS_OF_S UINT64_C(1000000000)

/* Print the name of the last command that a session has sent, with its subcommand. */
static void print_last_command(const struct kv_session *session, char text[2 * KV_NAME_MAX + 2])
{
    const struct kv_command *row = session->seat.row;
    const char *word = session->seat.word;
    bool has_word = row != NULL && word != NULL && word[0] != '\0' &&
                    (row->serve == kv_serve_client || row->serve == kv_serve_config ||
                     row->serve == kv_serve_command);

    snprintf(text, 2 * KV_NAME_MAX + 2, "%s%s%s", row != NULL ? row->name : "NULL",
             has_word ? "|" : "", has_word ? word : "");
}

static void print_client_flags(const struct kv_session *session, char flags[5])
{
    size_t size = 0;

    if (session->seat.is_ending)
        flags[size++] = 'A';
    if (session->subscriber != NULL)
        flags[size++] = 'P';
    if (session->transaction != NULL)
        flags[size++] = 'x';
    if (session->waiting_shard != KV_NO_SHARD)
        flags[size++] = 'b';
    if (size == 0)
        flags[size++] = 'N';
    flags[size] = '\0';
}

static uint64_t count_subscriptions(const struct kv_session *session, enum kv_named kind)
{
    return session->subscriber != NULL ? session->subscriber->names[kind].count : 0;
}

void kv_write_client_line(const domus_stack *stack, const struct kv_session *session,
                          domus_appender *appender)
{
    const struct kv_transaction *transaction = session->transaction;
    domus_channel_counters counts = {.active_ns = session->seat.begun_ns};
    uint64_t now_ns = domus_now_ns(stack);
    char command[2 * KV_NAME_MAX + 2], flags[5];

    if (session->seat.channel != NULL)
        domus_channel_counts(session->seat.channel, &counts);
    uint64_t idle_ns = now_ns > counts.active_ns ? now_ns - counts.active_ns : 0;
    print_last_command(session, command);
    print_client_flags(session, flags);
    (void)domus_append_text(
        appender,
        "id=%" PRIu64 " addr=%s laddr=%s fd=0 name=%s age=%" PRIu64 " idle=%" PRIu64
        " flags=%s db=0 sub=%" PRIu64 " psub=%" PRIu64 " ssub=0 multi=%" PRIi64
        " qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=%" PRIu64 " rbs=0 rbp=0 obl=0 oll=0 omem=%" PRIu64
        " tot-mem=%" PRIu64 " events=r cmd=%s user=default redir=-1 resp=%u\n",
        session->id, session->seat.peer, session->seat.local, session->name,
        (now_ns - session->seat.begun_ns) / NS_OF_S, idle_ns / NS_OF_S, flags,
        count_subscriptions(session, KV_CHANNEL), count_subscriptions(session, KV_PATTERN),
        transaction != NULL ? (int64_t)transaction->count : -1,
        transaction != NULL ? transaction->bytes : 0, counts.queued_bytes,
        sizeof *session + counts.queued_bytes, command, session->version);
}
