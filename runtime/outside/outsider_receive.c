/* Outsiders receive messages, and reply to, fail or take the message that they have received
 * last. */
#include "runtime/outside/outsider.h"

#include "house/conversation/receive.h"
#include "house/conversation/take.h"
#include "house/family/watch.h"

#include <errno.h>

static const domus_pattern anything = {.types = NULL};

/* --- receiving messages ----------------------------------------------------------------------- */

static bool does_pattern_accept_message(const domus_outsider *seat, const domus_pattern *pattern,
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

/* Receive the oldest answer or event of a list that the pattern accepts. Returns false if there
 * is none. */
static bool receive_answer_or_event_of_list(domus_outsider *seat, domi_outside_mails *list,
                                            const domus_pattern *pattern,
                                            domus_outside_message *ret_message)
{
    domi_outside_mail *mail = list->first;

    while (mail != NULL && !does_pattern_accept_message(seat, pattern, mail))
        mail = mail->next;
    if (mail == NULL)
        return false;
    domi_outside_mail_remove_from_list(list, mail);
    seat->shown = mail;
    *ret_message = mail->message;
    return true;
}

static bool receive_answer_of_seat(domus_outsider *seat, const domus_pattern *pattern,
                                   domus_outside_message *ret_message)
{
    if (!receive_answer_or_event_of_list(seat, &seat->answers, pattern, ret_message))
        return false;
    seat->asked_count--;
    return true;
}

static bool receive_event_of_seat(domus_outsider *seat, const domus_pattern *pattern,
                                  domus_outside_message *ret_message)
{
    if (!receive_answer_or_event_of_list(seat, &seat->events, pattern, ret_message))
        return false;
    seat->events_count -= seat->shown->counted;
    return true;
}

/* Receive the first ask that the pattern accepts, or else the first such notice. Returns false
 * if there is none. */
static bool receive_ask_or_notice_of_seat(domus_outsider *seat, const domus_pattern *pattern,
                                          domi_node *seen[2], domus_outside_message *ret_message)
{
    domi_manager *manager = &seat->detached.manager;
    domi_house *house = seat->address.house;
    domi_envelope *envelope =
        domi_receive_take_matching_message(manager, house, pattern, NULL, seen);

    /* Tell senders that wait for room in the mailbox, because a message was received or has
     * expired. */
    if ((domi_house_life_word(house) & (DOMI_LIFE_STOP | DOMI_LIFE_FULL)) == DOMI_LIFE_FULL)
        domi_watch_tell_of_room_if_there_is(manager, house);
    if (envelope == NULL)
        return false;
    bool named = envelope->sender != NULL && envelope->sender != manager->asker;
    *ret_message = (domus_outside_message){
        .kind = envelope->node.kind == DOMI_ASK ? DOMUS_OUTSIDE_ASK : DOMUS_OUTSIDE_NOTICE,
        .type = envelope->type,
        .payload = domi_envelope_get_payload(envelope),
        .sender = named ? (domus_address){envelope->sender, envelope->sender_lease}
                        : (domus_address){NULL, 0},
    };
    seat->received = envelope;
    return true;
}

/* Check whether the outsider may go on receiving. Returns 0; -ESHUTDOWN if the system stops;
 * -ECANCELED if the outsider's actor has to stop. */
static int check_may_receive(domus_outsider *seat)
{
    if (domi_seat_must_actor_stop(seat))
        return -ESHUTDOWN;
    if (domi_seat_has_actor_ended(seat) || domi_house_is_asked_to_stop(seat->address.house) ||
        domi_receive_stop_if_last_notice_is_next(&seat->detached.manager, seat->address.house))
        return -ECANCELED;
    return 0;
}

/* Wait for a message and receive it, in a locked seat. If the seat was closed meanwhile, this
 * returns -ESHUTDOWN with `*ret_closed` true, and nothing is locked. */
static int receive_in_locked_seat(domus_outsider *seat, const domus_pattern *pattern,
                                  uint64_t within_ns, domus_outside_message *ret_message,
                                  bool *ret_closed)
{
    domi_node *seen[2] = {NULL, NULL};

    domi_outsider_end_received_message(seat);
    domi_seat_serve_once(seat, seen);
    uint64_t until_ns = seat->detached.manager.now_ns + within_ns;
    if (until_ns < within_ns)
        until_ns = UINT64_MAX;
    for (;;) {
        int result = check_may_receive(seat);
        if (result != 0) {
            domi_seat_serve_until_idle(seat);
            return result;
        }
        if (receive_answer_of_seat(seat, pattern, ret_message) ||
            receive_ask_or_notice_of_seat(seat, pattern, seen, ret_message) ||
            receive_event_of_seat(seat, pattern, ret_message))
            return 0;
        if (seat->detached.manager.now_ns >= until_ns)
            return -ETIMEDOUT;
        if (!domi_seat_sleep(seat, until_ns)) {
            *ret_closed = true;
            return -ESHUTDOWN;
        }
        domi_seat_serve_once(seat, seen);
    }
}

int domus_outside_receive(domus_outsider *outsider, const domus_pattern *pattern,
                          uint64_t within_ns, domus_outside_message *ret_message)
{
    domi_visit visit;
    bool closed = false;
    int result = domi_outsider_enter_seat(outsider, &visit);

    if (result != 0)
        return result;
    result = receive_in_locked_seat(outsider, pattern != NULL ? pattern : &anything, within_ns,
                                    ret_message, &closed);
    if (closed)
        domi_outsider_leave_unlocked_seat(&visit);
    else
        domi_outsider_leave_seat(outsider, &visit);
    return result;
}

/* --- the message that was received last ------------------------------------------------------- */

int domus_outsider_reply(domus_outsider *outsider, const domus_type *type, const void *payload)
{
    domi_visit visit;
    domus_stack stack;
    int result = domi_outsider_enter_seat(outsider, &visit);

    if (result != 0)
        return result;
    domi_outsider_begin_stack_of_verb(outsider, &stack);
    result = domus_reply(&stack, type, payload);
    domi_outsider_end_stack_of_verb(outsider, &stack);
    domi_outsider_leave_seat(outsider, &visit);
    return result;
}

int domus_outsider_fail(domus_outsider *outsider, int error)
{
    domi_visit visit;
    domus_stack stack;
    int result = domi_outsider_enter_seat(outsider, &visit);

    if (result != 0)
        return result;
    domi_outsider_begin_stack_of_verb(outsider, &stack);
    result = domus_fail(&stack, error);
    domi_outsider_end_stack_of_verb(outsider, &stack);
    domi_outsider_leave_seat(outsider, &visit);
    return result;
}

/* Give the caller what the answer or event owns that was received last. Returns 0; -EINVAL for a
 * failed ask; -EALREADY if it was taken before. */
static int take_payload_of_last_message(domi_outside_mail *shown)
{
    if (shown->envelope != NULL)
        return domi_envelope_take_payload(shown->envelope);
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
    int result = domi_outsider_enter_seat(outsider, &visit);

    if (result != 0)
        return result;
    if (outsider->received != NULL)
        result = domi_envelope_take_payload(outsider->received);
    else
        result = outsider->shown != NULL ? take_payload_of_last_message(outsider->shown) : -EINVAL;
    domi_outsider_leave_seat(outsider, &visit);
    return result;
}
