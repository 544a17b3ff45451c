/* Notifications: one connection of the pool listens for all its subscribers. It is made with the
 * first of them, and closed with the last. After it was lost its channels are listened to again,
 * and all subscribers hear that notifications may be missing. */
#include "protocols/pg/pg.h"

#include <domus/router.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POOLS_MAX 256u /* pools of a database, one on each thread */

static domi_pg_connection *listener_of(const domi_pg_pool *pool)
{
    domi_pg_connection *listener = pool->connections[DOMI_PG_LISTENER];

    return listener != NULL && listener->phase == DOMI_PG_READY ? listener : NULL;
}

static bool has_subscriber(const domi_pg_pool *pool, const char *channel)
{
    for (const domi_pg_subscription *each = pool->subscriptions; each != NULL; each = each->next) {
        if (strcmp(each->channel, channel) == 0)
            return true;
    }
    return false;
}

/* Write a command about a channel, whose name is quoted. */
static int write_command(const char *verb, const char *channel, domus_slice *ret_text)
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

/* Send a command of the pool itself. False: the connection is lost. */
static bool send_listen_command(domus_stack *stack, domi_pg_pool *pool,
                                domi_pg_connection *listener, const char *verb, const char *channel)
{
    domi_pg_query *aside = domi_pg_query_new(pool, DOMI_PG_ASIDE);

    if (aside != NULL && write_command(verb, channel, &aside->request.text) == 0)
        return domi_pg_run(stack, pool, listener, aside);
    if (aside != NULL)
        domi_pg_query_free(pool, aside);
    domi_pg_lose(stack, pool, listener, "no memory for a command");
    return false;
}

/* --- the connection --------------------------------------------------------------------------- */

void domi_pg_listener_look(domus_stack *stack, domi_pg_pool *pool)
{
    if (pool->connections[DOMI_PG_LISTENER] != NULL || pool->subscriptions == NULL)
        return;
    if (domus_now_ns(stack) < pool->listen_ns) {
        domi_pg_look_at(stack, pool, pool->listen_ns);
        return;
    }
    if (domi_pg_connect(stack, pool, DOMI_PG_LISTENER) != 0)
        domi_pg_look_at(stack, pool, domus_now_ns(stack) + pool->settings.options.backoff_min_ns);
}

void domi_pg_do_listener_lost(domus_stack *stack, domi_pg_pool *pool)
{
    const domus_sql_options *options = &pool->settings.options;
    uint64_t time_ns = options->backoff_min_ns;

    for (uint32_t i = 0; i < pool->listener_failures && time_ns < options->backoff_max_ns; i++)
        time_ns *= 2;
    if (time_ns > options->backoff_max_ns)
        time_ns = options->backoff_max_ns;
    pool->listener_failures++;
    pool->listen_ns = domus_now_ns(stack) + time_ns;
    domi_pg_listener_look(stack, pool);
}

/* Send a notification to a subscriber, or count it as lost to it. */
static void tell_subscriber(domus_stack *stack, domi_pg_subscription *to, domus_slice payload,
                            int32_t pid, bool is_gap)
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

/* Returns whether the ask that has made the subscription waits for the listener. It is sent itself,
 * so that it hears of a refusal. */
static bool is_awaited(const domi_pg_pool *pool, const domi_pg_subscription *subscription)
{
    const domi_pg_query *query = pool->listening.first;

    while (query != NULL && query->subscription != subscription->number)
        query = query->next;
    return query != NULL;
}

static bool has_subscription(const domi_pg_pool *pool, uint64_t number)
{
    const domi_pg_subscription *each = pool->subscriptions;

    while (each != NULL && each->number != number)
        each = each->next;
    return each != NULL;
}

void domi_pg_do_listener_ready(domus_stack *stack, domi_pg_pool *pool,
                               domi_pg_connection *connection)
{
    domi_pg_query *query;

    pool->tells_gap = pool->listener_was_ready;
    pool->listener_was_ready = true;
    for (domi_pg_subscription *each = pool->subscriptions; each != NULL; each = each->next) {
        if (!is_awaited(pool, each) &&
            !send_listen_command(stack, pool, connection, "LISTEN", each->channel))
            return;
    }
    while ((query = domi_pg_line_take(&pool->listening)) != NULL) {
        /* it was sent before, to a connection that is lost, and its subscription has ended */
        if (!has_subscription(pool, query->subscription)) {
            domi_pg_fail(stack, pool, query, -ECANCELED);
            domi_pg_query_free(pool, query);
            continue;
        }
        query->stage = DOMI_PG_WAITS;
        if (!domi_pg_run(stack, pool, connection, query))
            return;
    }
    if (pool->subscriptions == NULL) /* all have gone meanwhile */
        domi_pg_close_listener(stack, pool);
}

/* The server listens to all channels: tell of a gap only now, so that nothing is lost behind it. If
 * it has refused a LISTEN of the pool itself, the connection is lost, and tried again later. */
static void tell_gap(domus_stack *stack, domi_pg_pool *pool, const domi_pg_connection *listener)
{
    const domus_slice nothing = {NULL, 0, 0};

    if (listener->line.count != 0)
        return;
    pool->listener_failures = 0;
    if (!pool->tells_gap)
        return;
    pool->tells_gap = false;
    for (domi_pg_subscription *each = pool->subscriptions; each != NULL; each = each->next)
        tell_subscriber(stack, each, nothing, 0, true);
}

bool domi_pg_listener_take(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection)
{
    PGnotify *each;

    tell_gap(stack, pool, connection);
    while ((each = PQnotifies(connection->pg)) != NULL) {
        domus_slice payload = {NULL, 0, 0};
        connection->unasked = 0;
        bool is_there = domus_slice_copy(each->extra, strlen(each->extra), &payload) == 0;
        for (domi_pg_subscription *to = pool->subscriptions; to != NULL; to = to->next) {
            if (strcmp(to->channel, each->relname) != 0)
                continue;
            if (is_there)
                tell_subscriber(stack, to, payload, each->be_pid, false);
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
    domi_pg_connection *listener = listener_of(pool);

    if (listener == NULL || listener->line.count != 0)
        return false; /* the answer that comes is followed by the next look */
    pool->listener_was_ready = pool->tells_gap = false;
    domi_pg_unwatch(stack, pool, listener);
    domi_pg_connection_free(pool, listener);
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

int domi_pg_on_listen(domus_stack *stack, void *self, const void *payload)
{
    const domus_pg_channel *channel = payload;
    domus_address to = domus_sender(stack);
    domi_pg_pool *pool = self;
    domus_slice text = {NULL, 0, 0};
    domi_pg_query *query = NULL;
    domus_pg_channel named = *channel;

    if (to.house == NULL || memchr(named.name, '\0', sizeof named.name) == NULL)
        return -EINVAL;
    int error = write_command("LISTEN", named.name, &text);
    if (error == 0)
        error = domi_pg_query_keep(stack, pool, DOMI_PG_LISTEN, NULL, &query);
    if (error != 0) {
        domus_slice_free(text);
        return error;
    }
    query->request.text = text;
    error = add_subscription(stack, pool, to, named.name, &query->subscription);
    if (error != 0) {
        domi_pg_fail(stack, pool, query, error);
        domi_pg_query_free(pool, query);
        return 0;
    }
    domi_pg_connection *listener = listener_of(pool);
    if (listener != NULL)
        (void)domi_pg_run(stack, pool, listener, query);
    else {
        query->until_ns = domus_now_ns(stack) + pool->settings.options.wait_ns;
        domi_pg_line_add(&pool->listening, query);
        domi_pg_look_at(stack, pool, query->until_ns);
        domi_pg_listener_look(stack, pool);
    }
    return 0;
}

/* Take the subscription at a place of the list from it. */
static domi_pg_subscription *unlink_subscription(domus_stack *stack, domi_pg_pool *pool,
                                                 domi_pg_subscription **place)
{
    domi_pg_subscription *ended = *place;

    *place = ended->next;
    pool->subscriptions_count--;
    (void)domus_unwatch(stack, ended->watch);
    return ended;
}

/* Fail the ask that has made a subscription, if it waits for the listener. */
static void cancel_ask(domus_stack *stack, domi_pg_pool *pool, uint64_t number)
{
    domi_pg_line left = {NULL, NULL, 0, 0};
    domi_pg_query *query;

    while ((query = domi_pg_line_take(&pool->listening)) != NULL) {
        if (query->subscription == number) {
            domi_pg_fail(stack, pool, query, -ECANCELED);
            domi_pg_query_free(pool, query);
        } else
            domi_pg_line_add(&left, query);
    }
    pool->listening = left;
}

/* End the subscription at a place of the list. The server is told when nobody is left to the
 * channel; with the last of all the connection is closed. */
static void end_subscription(domus_stack *stack, domi_pg_pool *pool, domi_pg_subscription **place)
{
    domi_pg_subscription *ended = unlink_subscription(stack, pool, place);
    domi_pg_connection *listener = listener_of(pool);

    cancel_ask(stack, pool, ended->number);
    if (pool->subscriptions == NULL)
        (void)domi_pg_close_listener(stack, pool);
    else if (listener != NULL && !has_subscriber(pool, ended->channel))
        (void)send_listen_command(stack, pool, listener, "UNLISTEN", ended->channel);
    free(ended);
}

/* End those subscriptions of an actor that are to a channel; NULL: all. */
static void end_subscriptions(domus_stack *stack, domi_pg_pool *pool, domus_address who,
                              const char *channel)
{
    domi_pg_subscription **place = &pool->subscriptions;

    while (*place != NULL) {
        if (domus_address_equals((*place)->to, who) &&
            (channel == NULL || strcmp((*place)->channel, channel) == 0))
            end_subscription(stack, pool, place);
        else
            place = &(*place)->next;
    }
}

void domi_pg_refuse_subscription(domus_stack *stack, domi_pg_pool *pool, const domi_pg_query *query)
{
    domi_pg_subscription **place = &pool->subscriptions;

    while (*place != NULL && (*place)->number != query->subscription)
        place = &(*place)->next;
    if (*place != NULL) /* its actor has not ended it meanwhile */
        free(unlink_subscription(stack, pool, place));
}

/* Another pool has the subscriptions, if the actor has made them while it was lent to the thread of
 * that one. */
typedef struct leaving {
    domus_address who;
    domus_pg_channel channel;
} leaving;

const domus_type domi_pg_leave_type = {.name = "pg leave", .size = sizeof(leaving)};

int domi_pg_on_leave(domus_stack *stack, void *self, const void *payload)
{
    static const domus_sql_result done;
    const leaving *left = payload;

    end_subscriptions(stack, self, left->who, left->channel.name);
    return domus_reply(stack, &domus_sql_result_type, &done);
}

/* All pools have answered. */
static int has_left(domus_stack *stack, void *self, const domus_answer *answer)
{
    static const domus_sql_result done;

    (void)self;
    for (; answer != NULL; answer = answer->next) {
        if (answer->error != 0 && answer->error != -ESTALE) /* a pool that is gone has none */
            return answer->error;
    }
    return domus_reply(stack, &domus_sql_result_type, &done);
}

int domi_pg_on_unlisten(domus_stack *stack, void *self, const void *payload)
{
    domi_pg_pool *pool = self;
    leaving left = {.who = domus_sender(stack), .channel = *(const domus_pg_channel *)payload};
    domus_address pools[POOLS_MAX];

    if (memchr(left.channel.name, '\0', sizeof left.channel.name) == NULL)
        return -EINVAL;
    end_subscriptions(stack, pool, left.who, left.channel.name);
    uint32_t count = domus_routees(stack, left.channel.at, pools, POOLS_MAX);
    for (uint32_t i = 0; i < count && i < POOLS_MAX; i++) {
        if (domus_address_equals(pools[i], pool->self))
            continue;
        int error = domus_ask_add(stack, pools[i], &domi_pg_leave_type, &left, 0, i);
        if (error != 0)
            return error;
    }
    return domus_wait_all(stack, has_left);
}

void domi_pg_forget_subscriber(domus_stack *stack, domi_pg_pool *pool, domus_address who)
{
    end_subscriptions(stack, pool, who, NULL);
}

void domi_pg_subscriptions_free(domi_pg_pool *pool)
{
    while (pool->subscriptions != NULL) {
        domi_pg_subscription *each = pool->subscriptions;
        pool->subscriptions = each->next;
        free(each);
    }
}
