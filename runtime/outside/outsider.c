/* The verbs of domus/outsider.h, for a foreign thread that is an actor.
 *
 * The actor has one conversation that lasts as long as it does: a receive that takes nothing. So
 * asks and notices stay in their mailboxes, as the mark RECEIVING says, and only replies,
 * exceptions and events have runs. A receive of the thread takes messages out of the mailboxes
 * itself (domi_receive_find()); answers and events have lists of their own (seat.h). */
#include "runtime/outside/seat.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/conversation/answer.h"
#include "house/conversation/receive.h"
#include "house/conversation/take.h"
#include "house/conversation/turn.h"
#include "house/dispatch/phases.h"
#include "house/family/birth.h"
#include "house/family/watch.h"
#include "house/message/owned.h"
#include "house/message/pool.h"
#include "house/message/stop.h"
#include "runtime/outside/visit.h"

#include <errno.h>
#include <string.h>

const domus_type domus_outsider_failed_type = {.name = "failed", .size = sizeof(int)};

/* --- the behaviour ---------------------------------------------------------------------------- */

static const domus_type *const no_types[] = {NULL};
static const domus_pattern nothing = {.types = no_types};
static const domus_pattern anything = {.types = NULL};

static domus_outsider *seat_of(const domus_stack *stack)
{
    return (domus_outsider *)(void *)stack->manager;
}

/* The receive that takes nothing ends only with the actor. */
static int on_end(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)stack, (void)self, (void)answer;
    return 0;
}

static int on_mount(domus_stack *stack, void *self)
{
    (void)self;
    return domus_receive(stack, &nothing, on_end);
}

/* Returns the place that was paid for when this watch was made; NULL: there is none. */
static domi_outside_mail *find_spare(const domus_outsider *seat, const void *watch)
{
    domi_outside_mail *mail = seat->spares.first;

    while (mail != NULL && mail->watch.watch != watch)
        mail = mail->next;
    return mail;
}

/* An event has come: it waits until it is received. */
static int on_event(domus_stack *stack, void *self, const void *payload)
{
    domus_outsider *seat = seat_of(stack);
    const domus_type *type = stack->message->type;
    domi_outside_mail *mail = find_spare(seat, stack->message);
    bool owns = type->release != NULL;

    (void)self;
    if (owns && domus_take(stack) != 0)
        return -EOPNOTSUPP;
    if (mail != NULL) {
        domi_outside_mail_remove(&seat->spares, mail);
    } else {
        mail = domi_memory_new(sizeof *mail + type->size);
        if (mail == NULL) {
            if (owns)
                type->release((void *)(uintptr_t)payload);
            return -ENOMEM;
        }
    }
    if (type->size != 0)
        memcpy(mail->payload, payload, type->size);
    mail->owned = owns;
    mail->message = (domus_outside_message){
        .kind = DOMUS_OUTSIDE_EVENT,
        .type = type,
        .payload = mail->payload,
    };
    domi_outside_mail_add(&seat->events, mail);
    return 0;
}

const domus_behaviour domi_outsider_behaviour = {
    .name = "outsider",
    .kind = DOMUS_STATE,
    .state_size = sizeof(void *),
    .on_mount = on_mount,
    /* a link needs a row of its own for its event */
    .on = (const domus_on[]){{&domus_down_type, on_event, 0}, {NULL, on_event, 0}},
};

/* --- entering --------------------------------------------------------------------------------- */

/* Enter the seat. Returns 0; -ECHILD; -EPERM; -EDEADLK; -ESHUTDOWN. On failure nothing is locked,
 * and leave() must not be called. */
static int enter(domus_outsider *seat, domi_visit *ret_visit)
{
    domus_system *system = seat->detached.system;

    if (domi_system_is_forked(system))
        return -ECHILD;
    /* Relaxed: only the thread that sits here can find its own mark. */
    if (atomic_load_explicit(&seat->owner, memory_order_relaxed) != &domi_here)
        return -EPERM;
    if (seat->acting)
        return -EDEADLK;
    const domus_allocator *before = domi_memory_set_allocator(system->hooks.allocator);
    domi_meter *counted_before = domi_memory_set_meter(&system->pressure.meter);
    *ret_visit = (domi_visit){before, counted_before};
    if (domi_seat_lock(seat))
        return 0;
    (void)domi_memory_set_meter(counted_before);
    (void)domi_memory_set_allocator(before);
    return -ESHUTDOWN;
}

static void leave_unlocked(const domi_visit *visit)
{
    (void)domi_memory_set_meter(visit->counted_before);
    (void)domi_memory_set_allocator(visit->before);
}

static void leave(domus_outsider *seat, const domi_visit *visit)
{
    domi_pool_flush_returns(&seat->detached.manager);
    domi_seat_unlock(seat);
    leave_unlocked(visit);
}

/* As enter(), for a verb that an actor which was stopped does not have any more. */
static int enter_alive(domus_outsider *seat, domi_visit *ret_visit)
{
    int result = enter(seat, ret_visit);

    if (result != 0 || !domi_seat_is_over(seat))
        return result;
    result = domi_seat_has_to_stop(seat) ? -ESHUTDOWN : -ESTALE;
    leave(seat, ret_visit);
    return result;
}

/* As enter_alive(), for a verb that sends. While memory is short it returns -EBUSY, as for all
 * foreign threads. */
static int enter_to_send(domus_outsider *seat, domi_visit *ret_visit)
{
    domi_pressure *pressure = &seat->detached.system->pressure;
    int result = enter_alive(seat, ret_visit);

    if (result != 0)
        return result;
    if (atomic_load_explicit(&pressure->own_level, memory_order_relaxed) == DOMUS_MEMORY_NORMAL) {
        seat->detached.manager.now_ns = domi_clock_now(&seat->detached.system->clock);
        return 0;
    }
    atomic_fetch_add_explicit(&pressure->outside_refused, 1, memory_order_relaxed);
    leave(seat, ret_visit);
    return -EBUSY;
}

/* Make a stack in the caller's frame, for a verb that does not wait. It has the message that was
 * received last; end_verb() takes that back. */
static void begin_verb(domus_outsider *seat, domus_stack *stack)
{
    domi_stack_begin(stack, &seat->detached.manager, seat->address.house);
    stack->received = seat->received;
    stack->answered = seat->answered;
}

static void end_verb(domus_outsider *seat, domus_stack *stack)
{
    seat->received = stack->received;
    seat->answered = stack->answered;
    stack->received = NULL;
}

/* What was received last is done with. Inside. */
static void end_shown(domus_outsider *seat)
{
    domi_manager *manager = &seat->detached.manager;
    domi_envelope *received = seat->received;
    domi_outside_mail *shown = seat->shown;

    seat->received = NULL;
    seat->shown = NULL;
    seat->answered = false;
    if (received != NULL && received->node.kind == DOMI_ASK)
        domi_ask_fail(manager, received, -ENOMSG);
    else if (received != NULL)
        domi_envelope_end(manager, received);
    if (shown != NULL)
        domi_outside_mail_free(manager, shown);
}

/* --- attaching and detaching ------------------------------------------------------------------ */

/* Returns 0 if the calling thread may attach. */
static int check_may_attach(domus_system *system, const domus_outsider_options *options)
{
    domi_visit visit;

    if (options != NULL && options->mailbox_max > UINT16_MAX)
        return -EINVAL;
    if (system->simulator != NULL)
        return -EOPNOTSUPP; /* while the caller waits, nobody takes a step */
    if (domi_thread_manager != NULL && domi_thread_manager->system == system)
        return -EDEADLK;
    int result = domi_outside_enter(system, DOMI_LAST_TO_SPAWN, &visit);
    if (result == 0)
        domi_outside_leave(system, &visit);
    return result;
}

/* Make the actor. Inside. */
static int make_actor(domus_outsider *seat, const domus_outsider_options *options)
{
    domi_manager *manager = &seat->detached.manager;
    const domus_spawn_options spawn = {
        .mailbox_max = options != NULL ? options->mailbox_max : 0,
        .name = options != NULL ? options->name : NULL,
    };
    void *context = options != NULL ? options->context : NULL;

    int result = domi_house_spawn_child(manager, NULL, manager, &domi_outsider_behaviour, &context,
                                        &spawn, &seat->address);
    if (result != 0)
        return result;
    /* The slot may have late mail, behind which the actor is mounted. */
    const domi_house *house = seat->address.house;
    do
        domi_seat_serve(seat, NULL);
    while (!domi_seat_is_over(seat) &&
           (house->state == DOMI_CREATED || house->state == DOMI_MOUNTING));
    return (house->marks & DOMI_MARK_RECEIVING) != 0 ? 0 : -ENOMEM;
}

int domus_outside_attach(domus_system *system, const domus_outsider_options *options,
                         domus_outsider **ret_outsider)
{
    int result = check_may_attach(system, options);
    domus_outsider *seat;

    if (result != 0)
        return result;
    const domi_visit visit = {domi_memory_set_allocator(system->hooks.allocator),
                              domi_memory_set_meter(&system->pressure.meter)};
    result = domi_seat_take(system, &seat);
    if (result != 0) {
        leave_unlocked(&visit);
        return result;
    }
    result = make_actor(seat, options);
    if (result == 0)
        *ret_outsider = seat;
    else
        domi_seat_leave(seat);
    leave(seat, &visit);
    return result;
}

int domus_outside_detach(domus_outsider *outsider)
{
    domi_visit visit;

    if (outsider == NULL)
        return 0;
    int result = enter(outsider, &visit);
    if (result == -ESHUTDOWN) {
        /* the seat is closed; domi_seats_release() ends what was received last */
        atomic_store_explicit(&outsider->owner, NULL, memory_order_relaxed);
        return 0;
    }
    if (result != 0)
        return result;
    end_shown(outsider);
    domi_seat_leave(outsider);
    leave(outsider, &visit);
    return 0;
}

domus_address domus_outsider_address(const domus_outsider *outsider)
{
    return outsider->address;
}

/* --- sending ---------------------------------------------------------------------------------- */

int domus_outsider_notice(domus_outsider *outsider, domus_address to, const domus_type *type,
                          const void *payload)
{
    domi_visit visit;
    domus_stack stack;
    int result = enter_to_send(outsider, &visit);

    if (result != 0)
        return result;
    begin_verb(outsider, &stack);
    result = domus_notice(&stack, to, type, payload);
    end_verb(outsider, &stack);
    leave(outsider, &visit);
    return result;
}

static void release(const domus_type *type, const void *payload)
{
    if (type->release != NULL)
        type->release((void *)(uintptr_t)payload);
}

static uint64_t bounded_timeout(uint64_t timeout_ns)
{
    if (timeout_ns == 0)
        return DOMUS_OUTSIDE_ASK_NS;
    return timeout_ns < DOMUS_OUTSIDE_ASK_MAX_NS ? timeout_ns : DOMUS_OUTSIDE_ASK_MAX_NS;
}

/* Enter to ask. If this fails, what the payload owns is released. */
static int enter_to_ask(domus_outsider *seat, const domus_type *type, const void *payload,
                        domi_visit *ret_visit)
{
    int result = type->size > DOMUS_PAYLOAD_MAX ? -EMSGSIZE : enter_to_send(seat, ret_visit);

    if (result == -ESTALE)
        result = -ECANCELED;
    if (result != 0)
        release(type, payload);
    return result;
}

/* Begin a conversation that asks and is resumed with the answer; its frame holds `pointer`.
 * `alone` raises a barrier until then: who works on this ask and asks this actor gets -EDEADLK.
 * Returns 0; a negative errno, and then the payload is released. */
static int begin_ask(domus_outsider *seat, domus_address to, const domus_type *type,
                     const void *payload, uint64_t timeout_ns, void *pointer, bool alone,
                     domus_resumed *then)
{
    domus_stack *stack =
        domi_stack_new(&seat->detached.manager, seat->address.house, sizeof pointer);
    int result = -ENOMEM;

    if (stack != NULL) {
        memcpy(domus_frame(stack), &pointer, sizeof pointer);
        if (alone)
            (void)domus_barrier(stack);
        result = domus_ask_within(stack, to, type, payload, bounded_timeout(timeout_ns), then);
    }
    if (result != DOMUS_PARKED)
        release(type, payload);
    if (stack != NULL)
        domi_stack_park_or_end(stack, result == DOMUS_PARKED ? result : 0);
    return result == DOMUS_PARKED ? 0 : result;
}

/* An ask for which the thread waits; on its stack. */
typedef struct waiting {
    domus_outside_reply *reply; /* the caller's */
    int result;
    bool done;
} waiting;

static int on_reply(domus_stack *stack, void *self, const domus_answer *answer)
{
    waiting *ask = *(waiting **)domus_frame(stack);
    domus_outside_reply *reply = ask->reply;

    (void)self;
    ask->done = true;
    ask->result = answer->error;
    if (answer->error != 0 || reply == NULL)
        return 0;
    reply->type = answer->type;
    reply->length = answer->type->size;
    if (reply->length > reply->size) {
        ask->result = -EMSGSIZE;
        return 0;
    }
    if (reply->length != 0)
        memcpy(reply->buffer, answer->payload, reply->length);
    ask->result = domus_take(stack);
    return 0;
}

/* Wait for the answer. Returns false if the seat was closed meanwhile; nothing is locked then. */
static bool wait_for_reply(domus_outsider *seat, waiting *ask)
{
    for (;;) {
        domi_seat_serve(seat, NULL);
        if (ask->done || domi_seat_is_over(seat))
            return true;
        if (!domi_seat_sleep(seat, UINT64_MAX))
            return false;
    }
}

int domus_outsider_ask(domus_outsider *outsider, domus_address to, const domus_type *type,
                       const void *payload, uint64_t timeout_ns, domus_outside_reply *reply)
{
    waiting ask = {.reply = reply, .result = -ECANCELED};
    domi_visit visit;
    int result = enter_to_ask(outsider, type, payload, &visit);

    if (result != 0)
        return result;
    result = begin_ask(outsider, to, type, payload, timeout_ns, &ask, true, on_reply);
    if (result == 0 && !wait_for_reply(outsider, &ask)) {
        leave_unlocked(&visit);
        return -ESHUTDOWN;
    }
    if (result == 0)
        result = ask.result;
    if (result == -ECANCELED && domi_seat_has_to_stop(outsider))
        result = -ESHUTDOWN;
    leave(outsider, &visit);
    return result;
}

/* The answer to an ask of domus_outsider_ask_add(). It takes the envelope with it, so it needs no
 * memory. */
static int on_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    domus_outsider *seat = seat_of(stack);
    domi_outside_mail *mail = *(domi_outside_mail **)domus_frame(stack);
    domus_outside_message *message = &mail->message;

    (void)self;
    if (answer->error == 0) {
        mail->envelope = stack->message;
        message->type = answer->type;
        message->payload = answer->payload;
        message->sender = domus_sender(stack);
        domi_stack_let_message_go(stack, mail->envelope);
    } else {
        mail->error = answer->error;
        message->type = &domus_outsider_failed_type;
        message->payload = &mail->error;
    }
    domi_outside_mail_remove(&seat->asked, mail);
    seat->asked_count--;
    domi_outside_mail_add(&seat->answers, mail);
    return 0;
}

int domus_outsider_ask_add(domus_outsider *outsider, domus_address to, const domus_type *type,
                           const void *payload, uint64_t timeout_ns, uint64_t tag)
{
    domi_visit visit;
    domi_outside_mail *mail = NULL;
    int result = enter_to_ask(outsider, type, payload, &visit);

    if (result != 0)
        return result;
    if (outsider->asked_count >= outsider->detached.manager.limits.conversations_max)
        result = -ENOBUFS;
    else if ((mail = domi_memory_new(sizeof *mail)) == NULL)
        result = -ENOMEM;
    if (result != 0) {
        release(type, payload);
    } else {
        mail->message.kind = DOMUS_OUTSIDE_ANSWER;
        mail->message.tag = tag;
        result = begin_ask(outsider, to, type, payload, timeout_ns, mail, false, on_answer);
    }
    if (result == 0) {
        domi_outside_mail_add(&outsider->asked, mail);
        outsider->asked_count++;
    } else {
        domi_memory_free(mail);
    }
    leave(outsider, &visit);
    return result;
}

/* --- receiving -------------------------------------------------------------------------------- */

static bool takes(const domus_outsider *seat, const domus_pattern *pattern,
                  const domi_outside_mail *mail)
{
    const domus_type *const *type = pattern->types;

    while (type != NULL && *type != NULL && *type != mail->message.type)
        type++;
    if (type != NULL && *type == NULL)
        return false;
    return pattern->matches == NULL || pattern->matches(seat->address.house->self, NULL,
                                                        mail->message.type, mail->message.payload);
}

/* Receive the first of these that the pattern takes. False: none. */
static bool receive_listed(domus_outsider *seat, domi_outside_mails *list,
                           const domus_pattern *pattern, domus_outside_message *ret_message)
{
    domi_outside_mail *mail = list->first;

    while (mail != NULL && !takes(seat, pattern, mail))
        mail = mail->next;
    if (mail == NULL)
        return false;
    domi_outside_mail_remove(list, mail);
    seat->shown = mail;
    *ret_message = mail->message;
    return true;
}

/* Receive the first ask, or else the first notice, that the pattern takes. False: none. */
static bool receive_mail(domus_outsider *seat, const domus_pattern *pattern, domi_node *seen[2],
                         domus_outside_message *ret_message)
{
    domi_manager *manager = &seat->detached.manager;
    domi_house *house = seat->address.house;
    domi_envelope *envelope = domi_receive_find(manager, house, pattern, NULL, seen);

    /* What was taken, or has expired, makes room in the mailbox. */
    if ((domi_house_life(house) & (DOMI_LIFE_STOP | DOMI_LIFE_FULL)) == DOMI_LIFE_FULL)
        domi_watch_fire_room(manager, house);
    if (envelope == NULL)
        return false;
    bool named = envelope->sender != NULL && envelope->sender != manager->asker;
    *ret_message = (domus_outside_message){
        .kind = envelope->node.kind == DOMI_ASK ? DOMUS_OUTSIDE_ASK : DOMUS_OUTSIDE_NOTICE,
        .type = envelope->type,
        .payload = domi_envelope_payload(envelope),
        .sender = named ? (domus_address){envelope->sender, envelope->sender_lease}
                        : (domus_address){NULL, 0},
    };
    seat->received = envelope;
    return true;
}

/* Returns 0 if the actor goes on; -ESHUTDOWN; -ECANCELED. */
static int check_goes_on(domus_outsider *seat)
{
    if (domi_seat_has_to_stop(seat))
        return -ESHUTDOWN;
    if (domi_seat_is_over(seat) || domi_house_is_asked_to_stop(seat->address.house) ||
        domi_receive_stop_if_last(&seat->detached.manager, seat->address.house))
        return -ECANCELED;
    return 0;
}

/* Receive, inside. With -ESHUTDOWN and `*ret_closed` the seat was closed, and nothing is locked. */
static int receive(domus_outsider *seat, const domus_pattern *pattern, uint64_t within_ns,
                   domus_outside_message *ret_message, bool *ret_closed)
{
    domi_node *seen[2] = {NULL, NULL};

    end_shown(seat);
    domi_seat_serve(seat, seen);
    uint64_t until_ns = seat->detached.manager.now_ns + within_ns;
    if (until_ns < within_ns)
        until_ns = UINT64_MAX;
    for (;;) {
        int result = check_goes_on(seat);
        if (result != 0) {
            domi_seat_finish(seat);
            return result;
        }
        if (receive_listed(seat, &seat->answers, pattern, ret_message) ||
            receive_mail(seat, pattern, seen, ret_message) ||
            receive_listed(seat, &seat->events, pattern, ret_message))
            return 0;
        if (seat->detached.manager.now_ns >= until_ns)
            return -ETIMEDOUT;
        if (!domi_seat_sleep(seat, until_ns)) {
            *ret_closed = true;
            return -ESHUTDOWN;
        }
        domi_seat_serve(seat, seen);
    }
}

int domus_outside_receive(domus_outsider *outsider, const domus_pattern *pattern,
                          uint64_t within_ns, domus_outside_message *ret_message)
{
    domi_visit visit;
    bool closed = false;
    int result = enter(outsider, &visit);

    if (result != 0)
        return result;
    result =
        receive(outsider, pattern != NULL ? pattern : &anything, within_ns, ret_message, &closed);
    if (closed)
        leave_unlocked(&visit);
    else
        leave(outsider, &visit);
    return result;
}

/* --- what was received last ------------------------------------------------------------------- */

int domus_outsider_reply(domus_outsider *outsider, const domus_type *type, const void *payload)
{
    domi_visit visit;
    domus_stack stack;
    int result = enter(outsider, &visit);

    if (result != 0)
        return result;
    begin_verb(outsider, &stack);
    result = domus_reply(&stack, type, payload);
    end_verb(outsider, &stack);
    leave(outsider, &visit);
    return result;
}

int domus_outsider_fail(domus_outsider *outsider, int error)
{
    domi_visit visit;
    domus_stack stack;
    int result = enter(outsider, &visit);

    if (result != 0)
        return result;
    begin_verb(outsider, &stack);
    result = domus_fail(&stack, error);
    end_verb(outsider, &stack);
    leave(outsider, &visit);
    return result;
}

/* Take what an answer or an event owns. */
static int take_of_shown(domi_outside_mail *shown)
{
    if (shown->envelope != NULL)
        return domi_envelope_take(shown->envelope);
    if (shown->message.type == &domus_outsider_failed_type)
        return -EINVAL;
    if (shown->message.type->release != NULL && !shown->owned)
        return -EALREADY;
    shown->owned = false;
    return 0;
}

int domus_outsider_take(domus_outsider *outsider)
{
    domi_visit visit;
    int result = enter(outsider, &visit);

    if (result != 0)
        return result;
    if (outsider->received != NULL)
        result = domi_envelope_take(outsider->received);
    else
        result = outsider->shown != NULL ? take_of_shown(outsider->shown) : -EINVAL;
    leave(outsider, &visit);
    return result;
}

/* --- watching --------------------------------------------------------------------------------- */

/* Watch, with a place for the event. Inside. */
static int watch_inside(domus_outsider *seat, domus_address address, domus_watch *ret_watch)
{
    domi_outside_mail *spare = domi_memory_new(sizeof *spare + sizeof(domus_down));
    domus_stack stack;

    if (spare == NULL)
        return -ENOMEM;
    begin_verb(seat, &stack);
    int result = domus_watch_actor(&stack, address, &spare->watch);
    end_verb(seat, &stack);
    if (result != 0) {
        domi_memory_free(spare);
        return result;
    }
    domi_outside_mail_add(&seat->spares, spare);
    *ret_watch = spare->watch;
    return 0;
}

int domus_outsider_watch(domus_outsider *outsider, domus_address address, domus_watch *ret_watch)
{
    domi_visit visit;
    domus_watch watch;
    int result = enter_alive(outsider, &visit);

    if (result != 0)
        return result;
    result = watch_inside(outsider, address, &watch);
    if (result == 0 && ret_watch != NULL)
        *ret_watch = watch;
    leave(outsider, &visit);
    return result;
}

int domus_outsider_unwatch(domus_outsider *outsider, domus_watch watch)
{
    domi_visit visit;
    domus_stack stack;
    int result = enter_alive(outsider, &visit);

    if (result != 0)
        return result;
    begin_verb(outsider, &stack);
    result = domus_unwatch(&stack, watch);
    end_verb(outsider, &stack);
    domi_outside_mail *spare = result == 0 ? find_spare(outsider, watch.watch) : NULL;
    if (spare != NULL) {
        domi_outside_mail_remove(&outsider->spares, spare);
        domi_memory_free(spare);
    }
    leave(outsider, &visit);
    return result;
}

/* --- a turn ----------------------------------------------------------------------------------- */

DOMI_NO_CANARY int domus_outsider_act(domus_outsider *outsider,
                                      int (*function)(domus_stack *stack, void *argument),
                                      void *argument)
{
    domi_manager *manager = &outsider->detached.manager;
    domi_visit visit;
    domus_stack stack;
    int result = enter_alive(outsider, &visit);

    if (result == 0 && domi_house_is_asked_to_stop(outsider->address.house)) {
        leave(outsider, &visit);
        result = -ESTALE;
    }
    if (result != 0)
        return result;
    domi_house *house = outsider->address.house;
    manager->now_ns = domi_clock_now(&outsider->detached.system->clock);
    begin_verb(outsider, &stack);
    domi_run_begin(manager, house);
    domi_turn_begin(&stack, NULL);
    outsider->acting = true;
    result = function(&stack, argument);
    outsider->acting = false;
    end_verb(outsider, &stack);
    domi_turn_end(&stack, result);
    domi_run_end(manager);
    domi_seat_settle(outsider);
    leave(outsider, &visit);
    return result == DOMUS_PARKED ? 0 : result;
}
