/* The storm: its seeds and counts, and the society of actors in which it happens. */
#include "tests/runtime/storm.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The counts and checks of the storm, and the crowd of addresses (tests/runtime/storm.h). */

#define MEMORY_BYTES 48u
#define LARGEST      3000u
#define TICKETS_MAX  (1u << 20)
#define ALIVE        'a'
#define DEAD         'd'

_Atomic uint64_t domt_storm_did[DOMT_DEEDS];
_Atomic int64_t domt_storm_budget;

static _Atomic uint64_t made, released, freed;
static char first_wrong[160];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void domt_storm_record_wrong(const char *what)
{
    pthread_mutex_lock(&mutex);
    if (first_wrong[0] == '\0')
        snprintf(first_wrong, sizeof first_wrong, "%s", what);
    pthread_mutex_unlock(&mutex);
}

/* --- payloads --------------------------------------------------------------------------------- */

void domt_storm_check_payload(const void *payload)
{
    const domt_load *load = payload;
    if (load->memory == NULL || load->memory[0] != ALIVE)
        domt_storm_record_wrong("a payload was looked at that is gone");
}

static void check_and_free_memory_of_payload(const domt_load *load)
{
    domt_storm_check_payload(load);
    if (load->memory != NULL)
        memset(load->memory, DEAD, MEMORY_BYTES);
    free(load->memory);
}

static void release_payload(void *payload)
{
    const domt_load *load = payload;
    if (load->memory == NULL) /* the payload of a new message was never filled */
        return;
    check_and_free_memory_of_payload(load);
    atomic_fetch_add(&released, 1);
}

const domus_type domt_storm_note = {"note", sizeof(domt_load), release_payload};
const domus_type domt_storm_letter = {"letter", 600, release_payload};
const domus_type domt_storm_question = {"question", sizeof(domt_load), release_payload};
const domus_type domt_storm_essay = {"essay", LARGEST, release_payload};
const domus_type domt_storm_answer = {"answer", sizeof(domt_load), release_payload};
const domus_type domt_storm_volume = {"volume", 2000, release_payload};
const domus_type domt_storm_alarm = {"alarm", sizeof(domt_load), release_payload};
const domus_type domt_storm_news = {"news", 100, release_payload};
const domus_type domt_storm_unknown = {"unknown", sizeof(domt_load), release_payload};

void *domt_storm_new_payload(uint64_t depth)
{
    static _Thread_local union {
        domt_load load;
        char bytes[LARGEST];
    } payload;

    payload.load = (domt_load){malloc(MEMORY_BYTES), depth};
    memset(payload.load.memory, ALIVE, MEMORY_BYTES);
    atomic_fetch_add(&made, 1);
    return &payload;
}

void domt_storm_free_payload(domt_load load)
{
    check_and_free_memory_of_payload(&load);
    atomic_fetch_add(&freed, 1);
}

int domt_storm_free_if_failed(int result, const void *payload)
{
    if (result < 0)
        domt_storm_free_payload(*(const domt_load *)payload);
    return result;
}

/* --- asks ------------------------------------------------------------------------------------- */

enum { NONE, ASKED, ANSWERED, ABANDONED, UNDONE };

static _Atomic uint8_t tickets[TICKETS_MAX];
static _Atomic uint32_t tickets_count;

uint32_t domt_ticket_open_for_ask(void)
{
    uint32_t ticket = atomic_fetch_add(&tickets_count, 1) + 1;
    if (ticket >= TICKETS_MAX)
        return 0;
    atomic_store(&tickets[ticket], ASKED);
    return ticket;
}

static void end_open_ticket(uint32_t ticket, uint8_t as)
{
    if (atomic_exchange(&tickets[ticket], as) != ASKED)
        domt_storm_record_wrong("an ask was answered twice, or after its conversation had ended");
}

void domt_ticket_close_as_answered(uint32_t ticket)
{
    end_open_ticket(ticket, ANSWERED);
}

void domt_ticket_close_as_abandoned(uint32_t ticket)
{
    domt_storm_count_deed(DOMT_DID_ABANDON, true);
    end_open_ticket(ticket, ABANDONED);
}

void domt_ticket_close_as_not_asked(uint32_t ticket)
{
    end_open_ticket(ticket, UNDONE);
}

/* --- the run ---------------------------------------------------------------------------------- */

static uint32_t count_used_tickets(void)
{
    uint32_t count = atomic_load(&tickets_count) + 1;
    return count < TICKETS_MAX ? count : TICKETS_MAX;
}

void domt_storm_begin(int64_t budget)
{
    for (uint32_t i = 0; i < count_used_tickets(); i++)
        atomic_store(&tickets[i], NONE);
    atomic_store(&tickets_count, 0);
    atomic_store(&made, 0);
    atomic_store(&released, 0);
    atomic_store(&freed, 0);
    atomic_store(&domt_storm_budget, budget);
    first_wrong[0] = '\0';
    for (uint32_t i = 0; i < DOMT_STORM_CROWD; i++)
        domt_storm_crowd_set(i, (domus_address){NULL, 0});
}

const char *domt_storm_end(bool killed)
{
    static char text[200];
    uint64_t open = 0;

    for (uint32_t i = 0; i < count_used_tickets(); i++)
        open += atomic_load(&tickets[i]) == ASKED;
    if (first_wrong[0] != '\0')
        return first_wrong;
    if (atomic_load(&made) == atomic_load(&released) + atomic_load(&freed) && (open == 0 || killed))
        return "";
    snprintf(text, sizeof text,
             "%" PRIu64 " payloads were made, %" PRIu64 " released by the library and %" PRIu64
             " freed by actors; %" PRIu64 " asks were never answered",
             atomic_load(&made), atomic_load(&released), atomic_load(&freed), open);
    return text;
}

/* --- the crowd -------------------------------------------------------------------------------- */

static domus_address crowd[DOMT_STORM_CROWD];

void domt_storm_crowd_set(uint32_t place, domus_address address)
{
    pthread_mutex_lock(&mutex);
    crowd[place % DOMT_STORM_CROWD] = address;
    pthread_mutex_unlock(&mutex);
}

domus_address domt_storm_crowd_at(uint32_t place)
{
    pthread_mutex_lock(&mutex);
    domus_address address = crowd[place % DOMT_STORM_CROWD];
    pthread_mutex_unlock(&mutex);
    return address;
}

/* --- storm society ---------------------------------------------------------------------------- */

/* The random actions of an actor of the storm that are not about messages: timers, children,
 * names, watches, ends and conversations. */

#define MS DOMT_STORM_MS

void domt_use_timers_at_random(domt_step *step)
{
    domus_timer *timer = &step->self->timers[domt_draw_below(step, 3)];
    uint64_t dice = domt_draw_below(step, 6);
    uint64_t time_ns = domt_random_time_ns(step);

    if (dice < 2) {
        domt_storm_count_deed_if_done(DOMT_DID_TIMER_CANCEL,
                                      domus_timer_cancel(step->stack, *timer));
        return;
    }
    const void *load = domt_payload_to_send(step);
    if (dice < 4)
        domt_storm_count_deed_if_done(
            DOMT_DID_AFTER,
            domt_storm_free_if_failed(
                domus_after(step->stack, time_ns, &domt_storm_alarm, load, timer), load));
    else if (dice == 4)
        domt_storm_count_deed_if_done(
            DOMT_DID_PERIODIC,
            domt_storm_free_if_failed(
                domus_every(step->stack, MS + time_ns, &domt_storm_alarm, load, timer), load));
    else
        domt_storm_count_deed_if_done(
            DOMT_DID_PERIODIC,
            domt_storm_free_if_failed(
                domus_repeat(step->stack, MS + time_ns, &domt_storm_alarm, load, timer), load));
}

void domt_spawn_random_actor(domt_step *step)
{
    domt_doer state = {.seed = domi_random_next_bits(&step->self->dice)};
    domus_spawn_options options = {.placement = (domus_placement)domt_draw_below(step, 2)};
    const domus_behaviour *behaviour =
        domt_draw_below(step, 3) == 0 ? &domt_storm_boss : &domt_storm_wild;
    uint32_t place = (uint32_t)domt_draw_below(step, DOMT_STORM_CROWD);
    enum domt_deed deed = DOMT_DID_SPAWN;
    domus_address born = {NULL, 0};
    int result;

    switch (domt_draw_below(step, 8)) {
    case 0:
        deed = DOMT_DID_ROUTER;
        result = domus_spawn_many(step->stack, &domt_storm_calm, &state, 3, NULL, NULL, &born);
        break;
    case 1:
        deed = DOMT_DID_PASSIVE;
        options.passivate_after_ns = 4 * MS;
        result = domus_spawn_with(step->stack, &domt_storm_calm, &state, &options, &born);
        break;
    case 2:
    case 3:
        deed = DOMT_DID_PROCESS;
        result = domus_process_spawn(step->stack, &domt_storm_process, NULL, NULL, NULL, &options,
                                     &born);
        break;
    case 4:
        deed = DOMT_DID_DETACHED;
        options.detached = true;
        result = domus_spawn_with(step->stack, &domt_storm_hermit, &state, &options, &born);
        break;
    default:
        result = domus_spawn_with(step->stack, behaviour, &state, &options, &born);
        break;
    }
    domt_storm_count_deed_if_done(deed, result);
    if (result == 0)
        domt_storm_crowd_set(place, born);
}

void domt_use_names_or_watches_at_random(domt_step *step)
{
    char name[8];
    domus_address found;

    snprintf(name, sizeof name, "n%d", (int)domt_draw_below(step, 8));
    switch (domt_draw_below(step, 8)) {
    case 0:
        domt_storm_count_deed_if_done(DOMT_DID_NAME, domus_name_register(step->stack, name));
        break;
    case 1:
        (void)domus_name_release(step->stack);
        break;
    case 2:
        if (domus_name_find(step->stack, name, &found) == 0)
            domt_storm_crowd_set((uint32_t)domt_draw_below(step, DOMT_STORM_CROWD), found);
        break;
    case 3:
        domt_storm_count_deed_if_done(
            DOMT_DID_WATCH,
            domus_watch_actor(step->stack, domt_random_actor_of_crowd(step), &step->self->watch));
        break;
    case 4:
        domt_storm_count_deed_if_done(
            DOMT_DID_LINK,
            domus_link_actor(step->stack, domt_random_actor_of_crowd(step), &step->self->watch));
        break;
    case 5:
        domt_storm_count_deed_if_done(
            DOMT_DID_ROOM, domus_watch_room(step->stack, domt_random_actor_of_crowd(step), NULL));
        break;
    case 6:
        (void)domus_unwatch(step->stack, step->self->watch);
        break;
    default:
        domt_storm_count_deed_if_done(
            DOMT_DID_LETTERS,
            domus_letters_subscribe(step->stack,
                                    domt_draw_below(step, 2) != 0 ? DOMUS_LETTERS_DEAD : 0));
        break;
    }
}

void domt_end_random_actor(domt_step *step)
{
    switch (domt_draw_below(step, 6)) {
    case 0:
        domt_storm_count_deed_if_done(DOMT_DID_STOP,
                                      domus_stop(step->stack, domt_random_actor_of_crowd(step)));
        break;
    case 1:
        domt_storm_count_deed_if_done(
            DOMT_DID_STOP_AFTER,
            domus_stop_after_mail(step->stack, domt_random_actor_of_crowd(step)));
        break;
    case 2:
        domt_storm_count_deed_if_done(DOMT_DID_ESCALATE, domus_escalate(step->stack, -EIO));
        break;
    case 3:
        (void)domus_passivation_pause(step->stack);
        break;
    case 4:
        (void)domus_passivation_resume(step->stack);
        break;
    default:
        domt_storm_count_deed_if_done(
            DOMT_DID_BECOME,
            domus_become(step->stack, domt_draw_below(step, 2) == 0 ? &domt_storm_calm : NULL));
        break;
    }
}

void domt_use_conversations_at_random(domt_step *step)
{
    domus_conversation *one = &step->self->conversations[domt_draw_below(step, 2)];

    switch (domt_draw_below(step, 5)) {
    case 0:
        (void)domus_conversation_of(step->stack, one);
        break;
    case 1:
        domt_storm_count_deed_if_done(DOMT_DID_CANCEL, domus_cancel(step->stack, *one));
        break;
    case 2:
        domt_storm_count_deed_if_done(DOMT_DID_BARRIER, domus_barrier(step->stack));
        break;
    default:
        domus_unstash(step->stack);
        break;
    }
}
