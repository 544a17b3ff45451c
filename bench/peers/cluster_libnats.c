/* The contender of `bench cluster` that uses libnats, the C client of NATS (Debian's libnats-dev).
 *
 * Row `ask` without a style: the requester has an inbox and one subscription of its own, whose
 * callback handles an answer and publishes the next ask. With the style `threads` it has
 * CLUSTER_UNDER_WAY threads, each of which asks by natsConnection_Request(). The responder has one
 * subscription with a callback.
 *
 * A publication waits in the library's buffer for a thread that flushes it with others. With the
 * style `asap` the calling thread writes each publication at once (natsOptions_SetSendAsap()). */
#include "bench/support/cluster_side.h"

#include <nats/nats.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RESPONDER  "dm.libnats.r"
#define TIMEOUT_MS 60000

static struct cluster_side side;
static natsConnection *connection;
static natsInbox *inbox;
static struct cluster_asks asks;
/* what the responder has counted; only its callback uses this */
static struct cluster_words counts;
static atomic_bool wrong;
static sem_t done; /* posted by a callback when the row is done, or when a mark was answered */

static void require_success(natsStatus status, const char *what)
{
    if (status == NATS_OK)
        return;
    fprintf(stderr, "cluster_libnats: %s: %s\n", what, natsStatus_GetText(status));
    exit(1);
}

static bool read_words_of_payload(natsMsg *message, struct cluster_words *ret_words)
{
    if (natsMsg_GetDataLength(message) != (int)sizeof *ret_words)
        return false;
    memcpy(ret_words, natsMsg_GetData(message), sizeof *ret_words);
    return true;
}

static void send_ask_with_number(uint64_t number)
{
    struct cluster_words words = {number, 0};

    require_success(
        natsConnection_PublishRequest(connection, RESPONDER, inbox, &words, sizeof words),
        "an ask");
}

/* ---- The responder ------------------------------------------------------------------------ */

static void handle_message_at_responder(natsConnection *nc, natsSubscription *subscription,
                                        natsMsg *message, void *closure)
{
    (void)nc;
    (void)subscription;
    (void)closure;
    const char *reply = natsMsg_GetReply(message);
    struct cluster_words words;
    uint64_t number;

    if (reply == NULL) {
        memcpy(&number, natsMsg_GetData(message), sizeof number);
        counts = cluster_side_counts_with_notice(counts, number);
    } else if (read_words_of_payload(message, &words)) {
        words = side.notices ? counts : cluster_side_right_answer_to_ask(words);
        require_success(natsConnection_Publish(connection, reply, &words, sizeof words),
                        "an answer");
    }
    natsMsg_Destroy(message);
}

/* ---- The requester ------------------------------------------------------------------------ */

static void handle_answer(natsConnection *nc, natsSubscription *subscription, natsMsg *message,
                          void *closure)
{
    (void)nc;
    (void)subscription;
    (void)closure;
    struct cluster_words words;

    if (!read_words_of_payload(message, &words) ||
        !cluster_asks_check_and_count_answer(&asks, words)) {
        wrong = true;
        sem_post(&done);
    } else if (asks.answered == side.count) {
        sem_post(&done);
    } else if (words.first + CLUSTER_UNDER_WAY < side.count) {
        send_ask_with_number(words.first + CLUSTER_UNDER_WAY);
    }
    natsMsg_Destroy(message);
}

/* number of notices that were sent before the last mark that was answered; only
 * handle_answer_to_mark() uses it */
static uint64_t marked;

static void handle_answer_to_mark(natsConnection *nc, natsSubscription *subscription,
                                  natsMsg *message, void *closure)
{
    (void)nc;
    (void)subscription;
    (void)closure;
    struct cluster_words words;

    marked += CLUSTER_NOTICES_A_MARK;
    marked = marked < side.count ? marked : side.count;
    if (!read_words_of_payload(message, &words) ||
        !cluster_side_is_mark_answer_right(words, marked))
        wrong = true;
    natsMsg_Destroy(message);
    sem_post(&done);
}

static const char *run_row_of_asks(void)
{
    for (uint64_t i = 0; i < CLUSTER_UNDER_WAY && i < side.count; i++)
        send_ask_with_number(i);
    sem_wait(&done);
    return wrong ? "an answer" : NULL;
}

static const char *run_row_of_notices(void)
{
    char notice[CLUSTER_NOTICE_BYTES] = {0};
    uint64_t marks = 0;
    uint64_t answered = 0;

    for (uint64_t number = 0; number < side.count && !wrong;) {
        memcpy(notice, &number, sizeof number);
        require_success(natsConnection_Publish(connection, RESPONDER, notice, sizeof notice),
                        "a notice");
        number++;
        if (number % CLUSTER_NOTICES_A_MARK != 0 && number != side.count)
            continue;
        send_ask_with_number(0);
        marks++;
        if (marks - answered == CLUSTER_MARKS_MAX) {
            sem_wait(&done);
            answered++;
        }
    }
    while (answered++ < marks && !wrong)
        sem_wait(&done);
    return wrong ? "a mark" : NULL;
}

/* Ask, one after the other, for all numbers that are `first` modulo CLUSTER_UNDER_WAY; run by a
 * thread of its own. */
static void *ask_one_after_the_other(void *first_)
{
    const uint64_t *first = first_;

    for (uint64_t number = *first; number < side.count; number += CLUSTER_UNDER_WAY) {
        struct cluster_words words = {number, 0};
        natsMsg *message = NULL;
        require_success(natsConnection_Request(&message, connection, RESPONDER, &words,
                                               sizeof words, TIMEOUT_MS),
                        "a request");
        struct cluster_words right = cluster_side_right_answer_to_ask(words);
        if (!read_words_of_payload(message, &words) || memcmp(&words, &right, sizeof right) != 0)
            wrong = true;
        natsMsg_Destroy(message);
    }
    return NULL;
}

static const char *run_row_of_asks_by_threads(void)
{
    pthread_t threads[CLUSTER_UNDER_WAY];
    uint64_t firsts[CLUSTER_UNDER_WAY];

    for (uint64_t i = 0; i < CLUSTER_UNDER_WAY; i++) {
        firsts[i] = i;
        if (pthread_create(&threads[i], NULL, ask_one_after_the_other, &firsts[i]) != 0)
            exit(1);
    }
    for (uint64_t i = 0; i < CLUSTER_UNDER_WAY; i++)
        pthread_join(threads[i], NULL);
    return wrong ? "an answer" : NULL;
}

static void open_connection(void)
{
    natsOptions *options = NULL;
    char url[64];

    snprintf(url, sizeof url, "nats://127.0.0.1:%u", side.port);
    require_success(natsOptions_Create(&options), "options");
    require_success(natsOptions_SetURL(options, url), "options");
    require_success(natsOptions_SetSendAsap(options, strcmp(side.style, "asap") == 0), "options");
    require_success(natsConnection_Connect(&connection, options), "connect");
    natsOptions_Destroy(options);
}

static void subscribe_to_subject(const char *subject, natsMsgHandler handler)
{
    natsSubscription *subscription = NULL;

    require_success(natsConnection_Subscribe(&subscription, connection, subject, handler, NULL),
                    "subscribe");
    require_success(natsSubscription_SetPendingLimits(subscription, -1, -1), "limits");
    require_success(natsConnection_Flush(connection), "flush");
}

int main(int argc, char **argv)
{
    natsMsg *message = NULL;
    struct cluster_words words = {0, 0};

    cluster_side_parse_or_exit(&side, argc, argv);
    sem_init(&done, 0, 0);
    open_connection();
    if (side.responds) {
        subscribe_to_subject(RESPONDER, handle_message_at_responder);
        cluster_side_print_ready();
        cluster_side_await_end_of_stdin();
        _exit(0); /* _exit() ends the process at once, because the library's threads still run */
    }
    require_success(natsInbox_Create(&inbox), "inbox");
    cluster_asks_init(&asks, side.count);
    subscribe_to_subject(inbox, side.notices ? handle_answer_to_mark : handle_answer);
    require_success(
        natsConnection_Request(&message, connection, RESPONDER, &words, sizeof words, TIMEOUT_MS),
        "the first request");
    natsMsg_Destroy(message);
    cluster_side_print_ready_and_await_go(&side);
    if (side.notices)
        cluster_side_print_result(&side, run_row_of_notices());
    else if (strcmp(side.style, "threads") == 0)
        cluster_side_print_result(&side, run_row_of_asks_by_threads());
    else
        cluster_side_print_result(&side, run_row_of_asks());
    _exit(0);
}
