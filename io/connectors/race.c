/* The race: attempts at the addresses of one connect begin one after the other, and the first one
 * that connects wins. An attempt that fails lets the next one begin at once; the others are closed
 * when one has won. While a Unix listener has no room, its attempt is tried again after a pause
 * that doubles from 1 ms to 64 ms. */
#include "io/connectors/connect.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/message/mailbox.h"
#include "io/resources/socket.h"

#include <errno.h>

#define PAUSE_FIRST_NS UINT64_C(1000000)
#define PAUSE_LAST_NS  UINT64_C(64000000)

static void set_timer_of_connect(domi_connect *connect, uint64_t after_ns)
{
    domi_io *io = connect->io;

    domi_wheel_disarm_node(&io->wheel, &connect->timer.node);
    domi_wheel_arm_node(&io->wheel, &connect->timer.node, io->manager->now_ns + after_ns);
}

static void give_attempts_up(domi_connect *connect)
{
    for (uint32_t i = 0; i < connect->begun; i++)
        domi_attempt_give_up(&connect->attempts[i]);
}

/* End the race of attempts: resume the conversation that waits for it, unless its time is over
 * already. The conversation gives the connect up, which closes the attempts that are left. */
static void end_race_of_attempts(domi_connect *connect)
{
    connect->has_ended = true;
    domi_wheel_disarm_node(&connect->io->wheel, &connect->timer.node);
    if (connect->house != NULL && connect->promise->state == DOMI_PROMISE_WAITING)
        domi_promise_fail(connect->io->manager, connect->promise, 0);
}

static void win_race_with_attempt(domi_connect *connect, domi_attempt *attempt)
{
    connect->fd = attempt->fd;
    attempt->fd = -1;
    end_race_of_attempts(connect);
}

/* Handle the result of an attempt. Returns true if the next attempt may begin at once. */
static bool handle_outcome_of_attempt(domi_connect *connect, domi_attempt *attempt, int result)
{
    switch (result) {
    case 0:
        win_race_with_attempt(connect, attempt);
        return false;
    case -EINPROGRESS:
        return false;
    case -EAGAIN:
        if (attempt->waits) {
            set_timer_of_connect(connect, connect->pause_ns);
            if (connect->pause_ns < PAUSE_LAST_NS)
                connect->pause_ns *= 2;
            return false;
        }
        break;
    default:
        break;
    }
    /* The error of the first address is kept, because the name stands for that address above
     * all. */
    if (connect->error == 0 || attempt == &connect->attempts[0])
        connect->error = result;
    return true;
}

/* Begin attempts of the connect until one attempt is under way. If no attempt is left, and none is
 * under way, the race is lost. */
static void begin_next_attempt(domi_connect *connect)
{
    while (!connect->has_ended && connect->begun < connect->count) {
        domi_attempt *attempt = &connect->attempts[connect->begun++];
        if (!handle_outcome_of_attempt(connect, attempt, domi_attempt_begin_connect(attempt))) {
            if (!connect->has_ended && connect->begun < connect->count)
                set_timer_of_connect(connect, connect->io->config->connect.attempt_delay_ns);
            return;
        }
    }
    if (!connect->has_ended && connect->polls == 0)
        end_race_of_attempts(connect);
}

/* --- names ------------------------------------------------------------------------------------ */

/* Begin the attempts at the addresses that the look-up of the name has found. */
static int begin_attempts_at_found_addresses(domi_connect *connect)
{
    domi_lookup *lookup = &connect->lookup;
    uint32_t max = connect->io->config->connect.attempts_max;
    uint32_t count = lookup->count < max ? lookup->count : max;

    if (lookup->error != 0)
        return lookup->error;
    domi_attempt *attempts = domi_memory_new(count * sizeof *attempts);
    if (attempts == NULL)
        return -ENOMEM;
    domi_name_alternate_address_families(lookup->found, lookup->count);
    for (uint32_t i = 0; i < count; i++) {
        attempts[i] = (domi_attempt){.of = connect, .to = lookup->found[i], .fd = -1};
        attempts[i].to.port = connect->port;
    }
    connect->attempts = attempts;
    connect->count = count;
    begin_next_attempt(connect);
    return 0;
}

void domi_connect_handle_resolved_name(domi_connect *connect)
{
    int result = connect->has_ended ? 0 : begin_attempts_at_found_addresses(connect);

    if (result == 0)
        return;
    connect->error = result;
    end_race_of_attempts(connect);
}

static void look_up_addresses_of_name(domi_connect *connect)
{
    domi_manager *manager = connect->io->manager;

    connect->count = 0;
    connect->lookup.asker = domi_house_get_address(connect->house);
    int result = manager->hooks.resolve != NULL
                     ? manager->hooks.resolve(manager, &connect->lookup, connect->name)
                     : -EOPNOTSUPP;
    if (result == -EINPROGRESS)
        return;
    connect->lookup.error = result;
    domi_connect_handle_resolved_name(connect);
}

/* --- the start -------------------------------------------------------------------------------- */

void domi_connect_begin_race(domi_connect *connect, domi_io *io, domi_promise *promise)
{
    connect->io = io;
    connect->promise = promise;
    connect->pause_ns = PAUSE_FIRST_NS;
    connect->timer.kind = DOMI_TIMER_CONNECT;
    domi_wheel_node_init(&connect->timer.node);
    connect->next = io->connects;
    connect->place = &io->connects;
    if (connect->next != NULL)
        connect->next->place = &connect->next;
    io->connects = connect;
    io->connecting++;
    if (connect->name[0] == '\0')
        begin_next_attempt(connect);
    else
        look_up_addresses_of_name(connect);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void free_connect(domi_connect *connect)
{
    domi_house *stopping = connect->stopping;

    if (stopping != NULL) {
        stopping->channels.owned = NULL;
        domi_house_let_act_on_change(stopping->home, stopping);
    }
    if (connect->place != NULL) {
        *connect->place = connect->next;
        if (connect->next != NULL)
            connect->next->place = connect->place;
    }
    if (connect->attempts != &connect->only)
        domi_memory_free(connect->attempts);
    domi_memory_free(connect->lookup.found);
    domi_settings_remove_user(connect->settings);
    domi_memory_free(connect);
}

bool domi_connect_give_up(domi_connect *connect)
{
    domi_io *io = connect->io;

    connect->house = NULL;
    /* without an io the connect has not begun; a socket that was adopted is in no ring yet */
    if (io == NULL) {
        if (connect->fd >= 0)
            domi_socket_close(connect->home, connect->fd);
        free_connect(connect);
        return false;
    }
    io->connecting--;
    if (connect->name[0] != '\0' && io->manager->hooks.unresolve != NULL)
        io->manager->hooks.unresolve(io->manager, &connect->lookup);
    domi_wheel_disarm_node(&io->wheel, &connect->timer.node);
    give_attempts_up(connect);
    if (connect->fd >= 0)
        domi_socket_close_used_in_ring(io, connect->fd);
    connect->fd = -1;
    if (connect->polls != 0)
        return true;
    free_connect(connect);
    return false;
}

/* --- what comes ------------------------------------------------------------------------------- */

void domi_connect_handle_poll_of_attempt(domi_io *io, domi_attempt *attempt, int result)
{
    domi_connect *connect = attempt->of;

    DOMI_CHECK(connect->io == io);
    /* if another attempt has won, `peer` and `local` belong to its socket */
    if (connect->has_ended)
        attempt->is_dropped = true;
    result = domi_attempt_handle_poll_result(attempt, result);
    if (connect->house == NULL) {
        if (connect->polls == 0)
            free_connect(connect);
    } else if (!connect->has_ended && handle_outcome_of_attempt(connect, attempt, result)) {
        begin_next_attempt(connect);
    }
}

void domi_connect_begin_attempt_at_timer(domi_connect *connect)
{
    domi_attempt *last = &connect->attempts[connect->begun - 1];

    if (!last->waits || handle_outcome_of_attempt(connect, last, domi_attempt_try_connect(last)))
        begin_next_attempt(connect);
}

void domi_connects_end_on_failed_ring(domi_io *io)
{
    domi_connect *next;

    for (domi_connect *connect = io->connects; connect != NULL; connect = next) {
        next = connect->next;
        for (uint32_t i = 0; i < connect->begun; i++) {
            domi_attempt *attempt = &connect->attempts[i];
            if (attempt->is_polled)
                (void)domi_attempt_handle_poll_result(attempt, io->failed);
        }
        if (connect->house == NULL) {
            free_connect(connect);
        } else if (!connect->has_ended) {
            connect->error = io->failed;
            end_race_of_attempts(connect);
        }
    }
}

void domi_connects_free_given_up(domi_io *io)
{
    domi_connect *next;

    for (domi_connect *connect = io->connects; connect != NULL; connect = next) {
        next = connect->next;
        if (connect->house != NULL)
            continue;
        for (uint32_t i = 0; i < connect->begun; i++) {
            if (connect->attempts[i].is_polled)
                (void)domi_attempt_handle_poll_result(&connect->attempts[i], -ECANCELED);
        }
        free_connect(connect);
    }
}
