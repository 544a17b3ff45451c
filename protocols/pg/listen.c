/* Notifications: one connection of the pool listens for all its subscribers. It is made for the
 * first subscriber and closed with the last. After it was lost, the new one listens to the same
 * channels, and all subscribers are told that notifications may be missing. */
#include "protocols/pg/pg.h"

#include <domus/router.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POOLS_MAX 256u /* pools of one database, on as many threads, at most */

static domi_pg_connection *ready_listener_of_pool(const domi_pg_pool *pool)
{
    domi_pg_connection *listener = pool->connections[DOMI_PG_LISTENER];

    return listener != NULL && listener->phase == DOMI_PG_READY ? listener : NULL;
}

static bool has_channel_any_subscriber(const domi_pg_pool *pool, const char *channel)
{
    for (const domi_pg_subscription *each = pool->subscriptions; each != NULL; each = each->next) {
        if (strcmp(each->channel, channel) == 0)
            return true;
    }
    return false;
}

/* Write the text of a LISTEN or UNLISTEN, with the name of the channel in quotes. */
static int write_command_about_channel(const char *verb, const char *channel, domus_slice *ret_text)
{
    char text[2 * DOMUS_PG_CHANNEL_SIZE + 16];
    size_t size = (size_t)snprintf(text, sizeof text, "%s \"", verb);

    for (const char *at = channel; *at != '\0'; at++) {
        if (*at == '"')
            text[size++] = '"';
        text[size++] = *at;
    }
    text[size++] = '"';
    text[size++] = '\0';
    return domus_slice_copy(text, size, ret_text);
}

/* Send a LISTEN or UNLISTEN for which no asker waits. Returns false if the connection is lost. */
static bool send_listen_command(domus_stack *stack, domi_pg_pool *pool,
                                domi_pg_connection *listener, const char *verb, const char *channel)
{
    domi_pg_query *aside = domi_pg_make_query_or_use_spare_one(pool, DOMI_PG_ASIDE);

    if (aside != NULL && write_command_about_channel(verb, channel, &aside->request.text) == 0)
        return domi_pg_send_query(stack, pool, listener, aside);
    if (aside != NULL)
        domi_pg_free_query(pool, aside);
    domi_pg_lose_connection(stack, pool, listener, "no memory for a command");
    return false;
}

/* --- the connection that listens -------------------------------------------------------------- */

void domi_pg_make_listener_if_wanted(domus_stack *stack, domi_pg_pool *pool)
{
    if (pool->connections[DOMI_PG_LISTENER] != NULL || pool->subscriptions == NULL)
        return;
    if (domus_now_ns(stack) < pool->listen_ns) {
        domi_pg_set_timer_of_pool_for_time(stack, pool, pool->listen_ns);
        return;
    }
    if (domi_pg_begin_connect_in_slot(stack, pool, DOMI_PG_LISTENER) != 0)
        domi_pg_set_timer_of_pool_for_time(
            stack, pool, domus_now_ns(stack) + pool->settings.options.backoff_min_ns);
}

void domi_pg_do_plan_next_listener_when_lost(domus_stack *stack, domi_pg_pool *pool)
{
    const domus_sql_options *options = &pool->settings.options;
    uint64_t time_ns = options->backoff_min_ns;

    for (uint32_t i = 0; i < pool->listener_failures && time_ns < options->backoff_max_ns; i++)
        time_ns *= 2;
    if (time_ns > options->backoff_max_ns)
        time_ns = options->backoff_max_ns;
    pool->listener_failures++;
    pool->listen_ns = domus_now_ns(stack) + time_ns;
    domi_pg_make_listener_if_wanted(stack, pool);
}

/* Send a notification to the actor of a subscription, or count it as lost if the mailbox refuses
 * it. */
static void send_notification_or_count_it_as_lost(domus_stack *stack, domi_pg_subscription *to,
                                                  domus_slice payload, int32_t pid, bool is_gap)
{
    domus_pg_notification notification = {.pid = pid, .lost = to->lost, .is_gap = is_gap};

    memcpy(notification.channel, to->channel, sizeof notification.channel);
    if (domus_slice_keep(payload, &notification.payload) == 0) {
        if (domus_notice(stack, to->to, &domus_pg_notification_type, &notification) == 0) {
            to->lost = 0;
            return;
        }
        domus_slice_free(notification.payload);
    }
    to->lost++;
}

/* Returns whether the ask that makes this subscription still waits for the listening connection.
 * Then the LISTEN of that ask is sent, so that the asker hears if the server refuses it. */
static bool does_ask_wait_for_subscription(const domi_pg_pool *pool,
                                           const domi_pg_subscription *subscription)
{
    const domi_pg_query *query = pool->listening.first;

    while (query != NULL && query->subscription != subscription->number)
        query = query->next;
    return query != NULL;
}

static bool has_pool_subscription_with_number(const domi_pg_pool *pool, uint64_t number)
{
    const domi_pg_subscription *each = pool->subscriptions;

    while (each != NULL && each->number != number)
        each = each->next;
    return each != NULL;
}

void domi_pg_do_send_listens_on_ready(domus_stack *stack, domi_pg_pool *pool,
                                      domi_pg_connection *connection)
{
    domi_pg_query *query;

    pool->tells_gap = pool->listener_was_ready;
    pool->listener_was_ready = true;
    for (domi_pg_subscription *each = pool->subscriptions; each != NULL; each = each->next) {
        if (!does_ask_wait_for_subscription(pool, each) &&
            !send_listen_command(stack, pool, connection, "LISTEN", each->channel))
            return;
    }
    while ((query = domi_pg_line_take_first(&pool->listening)) != NULL) {
        /* this ask's LISTEN was sent once, on a connection that was lost, and its subscription has
         * ended since */
        if (!has_pool_subscription_with_number(pool, query->subscription)) {
            domi_pg_fail_ask_of_query(stack, pool, query, -ECANCELED);
            domi_pg_free_query(pool, query);
            continue;
        }
        query->stage = DOMI_PG_WAITS;
        if (!domi_pg_send_query(stack, pool, connection, query))
            return;
    }
    /* all subscribers have left while the listening connection was being made */
    if (pool->subscriptions == NULL)
        domi_pg_close_listener(stack, pool);
}

/* The server listens to all channels now. The subscribers are told only now that notifications may
 * be missing, because from here on none is lost. If the server has refused a LISTEN that no asker
 * waits for, the connection is lost, and another one is tried later. */
static void tell_subscribers_of_gap_once_ready(domus_stack *stack, domi_pg_pool *pool,
                                               const domi_pg_connection *listener)
{
    const domus_slice nothing = {NULL, 0, 0};

    if (listener->line.count != 0)
        return;
    pool->listener_failures = 0;
    if (!pool->tells_gap)
        return;
    pool->tells_gap = false;
    for (domi_pg_subscription *each = pool->subscriptions; each != NULL; each = each->next)
        send_notification_or_count_it_as_lost(stack, each, nothing, 0, true);
}

bool domi_pg_send_notifications_on(domus_stack *stack, domi_pg_pool *pool,
                                   domi_pg_connection *connection)
{
    PGnotify *each;

    tell_subscribers_of_gap_once_ready(stack, pool, connection);
    while ((each = PQnotifies(connection->pg)) != NULL) {
        domus_slice payload = {NULL, 0, 0};
        connection->unasked = 0;
        bool is_there = domus_slice_copy(each->extra, strlen(each->extra), &payload) == 0;
        for (domi_pg_subscription *to = pool->subscriptions; to != NULL; to = to->next) {
            if (strcmp(to->channel, each->relname) != 0)
                continue;
            if (is_there)
                send_notification_or_count_it_as_lost(stack, to, payload, each->be_pid, false);
            else
                to->lost++;
        }
        domus_slice_free(payload);
        PQfreemem(each);
    }
    return pool->subscriptions != NULL || !domi_pg_close_listener(stack, pool);
}

bool domi_pg_close_listener(domus_stack *stack, domi_pg_pool *pool)
{
    domi_pg_connection *listener = ready_listener_of_pool(pool);

    if (listener == NULL || listener->line.count != 0)
        return false; /* the server still owes an answer; when it has come, this is tried again */
    pool->listener_was_ready = pool->tells_gap = false;
    domi_pg_unwatch_socket(stack, pool, listener);
    domi_pg_close_and_free_connection(pool, listener);
    return true;
}

/* --- subscriptions ---------------------------------------------------------------------------- */

static int add_subscription(domus_stack *stack, domi_pg_pool *pool, domus_address to,
                            const char *channel, uint64_t *ret_number)
{
    if (pool->subscriptions_count >= DOMUS_PG_SUBSCRIPTIONS_MAX)
        return -ENOBUFS;
    domi_pg_subscription *subscription = calloc(1, sizeof *subscription);
    if (subscription == NULL)
        return -ENOMEM;
    int error = domus_watch_actor(stack, to, &subscription->watch);
    if (error != 0) {
        free(subscription);
        return error;
    }
    subscription->to = to;
    subscription->number = *ret_number = ++pool->serial;
    memcpy(subscription->channel, channel, sizeof subscription->channel);
    subscription->next = pool->subscriptions;
    pool->subscriptions = subscription;
    pool->subscriptions_count++;
    return 0;
}

int domi_pg_add_subscription_and_listen(domus_stack *stack, void *self, const void *payload)
{
    const domus_pg_channel *channel = payload;
    domus_address to = domus_sender(stack);
    domi_pg_pool *pool = self;
    domus_slice text = {NULL, 0, 0};
    domi_pg_query *query = NULL;
    domus_pg_channel named = *channel;

    if (to.house == NULL || memchr(named.name, '\0', sizeof named.name) == NULL)
        return -EINVAL;
    int error = write_command_about_channel("LISTEN", named.name, &text);
    if (error == 0)
        error = domi_pg_query_new_with_kept_ask(stack, pool, DOMI_PG_LISTEN, NULL, &query);
    if (error != 0) {
        domus_slice_free(text);
        return error;
    }
    query->request.text = text;
    error = add_subscription(stack, pool, to, named.name, &query->subscription);
    if (error != 0) {
        domi_pg_fail_ask_of_query(stack, pool, query, error);
        domi_pg_free_query(pool, query);
        return 0;
    }
    domi_pg_connection *listener = ready_listener_of_pool(pool);
    if (listener != NULL)
        (void)domi_pg_send_query(stack, pool, listener, query);
    else {
        query->until_ns = domus_now_ns(stack) + pool->settings.options.wait_ns;
        domi_pg_line_add_last(&pool->listening, query);
        domi_pg_set_timer_of_pool_for_time(stack, pool, query->until_ns);
        domi_pg_make_listener_if_wanted(stack, pool);
    }
    return 0;
}

/* Remove the subscription to which `place` points from the pool's list, and end the watch of its
 * actor. */
static domi_pg_subscription *unlink_subscription(domus_stack *stack, domi_pg_pool *pool,
                                                 domi_pg_subscription **place)
{
    domi_pg_subscription *ended = *place;

    *place = ended->next;
    pool->subscriptions_count--;
    (void)domus_unwatch(stack, ended->watch);
    return ended;
}

/* Fail the ask that makes a subscription, if it still waits for the listening connection. */
static void cancel_ask_of_subscription(domus_stack *stack, domi_pg_pool *pool, uint64_t number)
{
    domi_pg_line left = {NULL, NULL, 0, 0};
    domi_pg_query *query;

    while ((query = domi_pg_line_take_first(&pool->listening)) != NULL) {
        if (query->subscription == number) {
            domi_pg_fail_ask_of_query(stack, pool, query, -ECANCELED);
            domi_pg_free_query(pool, query);
        } else
            domi_pg_line_add_last(&left, query);
    }
    pool->listening = left;
}

/* End the subscription to which `place` points. If it is the last one to its channel, the server is
 * told; if it is the last one of all, the listening connection is closed. */
static void end_subscription_and_unlisten_if_last(domus_stack *stack, domi_pg_pool *pool,
                                                  domi_pg_subscription **place)
{
    domi_pg_subscription *ended = unlink_subscription(stack, pool, place);
    domi_pg_connection *listener = ready_listener_of_pool(pool);

    cancel_ask_of_subscription(stack, pool, ended->number);
    if (pool->subscriptions == NULL)
        (void)domi_pg_close_listener(stack, pool);
    else if (listener != NULL && !has_channel_any_subscriber(pool, ended->channel))
        (void)send_listen_command(stack, pool, listener, "UNLISTEN", ended->channel);
    free(ended);
}

/* End the subscriptions of an actor to one channel, or to all channels if `channel` is NULL. */
static void end_subscriptions_of_actor(domus_stack *stack, domi_pg_pool *pool, domus_address who,
                                       const char *channel)
{
    domi_pg_subscription **place = &pool->subscriptions;

    while (*place != NULL) {
        if (domus_address_equals((*place)->to, who) &&
            (channel == NULL || strcmp((*place)->channel, channel) == 0))
            end_subscription_and_unlisten_if_last(stack, pool, place);
        else
            place = &(*place)->next;
    }
}

void domi_pg_remove_refused_subscription(domus_stack *stack, domi_pg_pool *pool,
                                         const domi_pg_query *query)
{
    domi_pg_subscription **place = &pool->subscriptions;

    while (*place != NULL && (*place)->number != query->subscription)
        place = &(*place)->next;
    /* the subscription may have gone, because its actor has ended it; otherwise it is removed
     * here */
    if (*place != NULL)
        free(unlink_subscription(stack, pool, place));
}

/* A request to the other pools of the database to end subscriptions of an actor. Another pool has
 * them if the actor was lent to that pool's thread when it made them. */
typedef struct leaving {
    domus_address who;
    domus_pg_channel channel;
} leaving;

const domus_type domi_pg_leave_type = {.name = "pg leave", .size = sizeof(leaving)};

int domi_pg_end_subscriptions_of_asked_actor(domus_stack *stack, void *self, const void *payload)
{
    static const domus_sql_result done;
    const leaving *left = payload;

    end_subscriptions_of_actor(stack, self, left->who, left->channel.name);
    return domus_reply(stack, &domus_sql_result_type, &done);
}

/* Answer the asker of an unlisten when all pools of the database have answered. */
static int answer_unlisten_when_all_pools_have(domus_stack *stack, void *self,
                                               const domus_answer *answer)
{
    static const domus_sql_result done;

    (void)self;
    for (; answer != NULL; answer = answer->next) {
        /* -ESTALE: a pool that has ended has no subscriptions any more */
        if (answer->error != 0 && answer->error != -ESTALE)
            return answer->error;
    }
    return domus_reply(stack, &domus_sql_result_type, &done);
}

int domi_pg_end_subscriptions_at_all_pools(domus_stack *stack, void *self, const void *payload)
{
    domi_pg_pool *pool = self;
    leaving left = {.who = domus_sender(stack), .channel = *(const domus_pg_channel *)payload};
    domus_address pools[POOLS_MAX];

    if (memchr(left.channel.name, '\0', sizeof left.channel.name) == NULL)
        return -EINVAL;
    end_subscriptions_of_actor(stack, pool, left.who, left.channel.name);
    uint32_t count = domus_routees(stack, left.channel.at, pools, POOLS_MAX);
    for (uint32_t i = 0; i < count && i < POOLS_MAX; i++) {
        if (domus_address_equals(pools[i], pool->self))
            continue;
        int error = domus_ask_add(stack, pools[i], &domi_pg_leave_type, &left, 0, i);
        if (error != 0)
            return error;
    }
    return domus_wait_all(stack, answer_unlisten_when_all_pools_have);
}

void domi_pg_end_subscriptions_of_ended(domus_stack *stack, domi_pg_pool *pool, domus_address who)
{
    end_subscriptions_of_actor(stack, pool, who, NULL);
}

void domi_pg_free_all_subscriptions(domi_pg_pool *pool)
{
    while (pool->subscriptions != NULL) {
        domi_pg_subscription *each = pool->subscriptions;
        pool->subscriptions = each->next;
        free(each);
    }
}
