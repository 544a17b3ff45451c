/* This file counts, records and logs the losses of a system; losses.h says what losses are. */
#include "runtime/system/losses.h"

#include "house/conversation/stack.h"
#include "house/family/family.h"
#include "house/family/slots.h"
#include "house/message/pooled.h"
#include "house/message/types.h"
#include "runtime/system/logs.h"

#include <domus/text.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void domi_system_report_failed_ring(domus_system *system, uint32_t thread, int error)
{
    char text[sizeof system->failed_text];

    snprintf(text, sizeof text, "the ring of thread %u has failed: %s: %s (%s)", thread,
             strcmp(system->backend_name, "epoll") == 0 ? "epoll" : "io_uring_enter",
             strerrordesc_np(-error), domus_error_name(error));
    pthread_mutex_lock(&system->mutex);
    bool is_first = system->failed == 0;
    if (is_first) {
        system->failed = error;
        memcpy(system->failed_text, text, sizeof text);
    }
    system->asked_to_stop = true;
    pthread_cond_broadcast(&system->changed);
    pthread_mutex_unlock(&system->mutex);
    domi_log_line(system, DOMUS_LOG_ERROR, thread, "%s", text);
    if (is_first && system->hooks.failed != NULL)
        system->hooks.failed(system->hooks.failed_context, error);
}

/* --- actors that are left -------------------------------------------------------------------- */

static void append_text_to_losses(domus_system *system, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void append_text_to_losses(domus_system *system, const char *format, ...)
{
    size_t used = strlen(system->left);
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(system->left + used, sizeof system->left - used, format, arguments);
    va_end(arguments);
}

typedef struct leftover {
    domus_system *system;        /* system that stops and records the losses */
    const domi_manager *manager; /* manager whose actors are looked at for losses */
} leftover;

/* Append to the text of losses where an actor is: the name of the pool, or the number of the
 * thread, whose manager is `manager`. */
static void append_place_of_actor_to_losses(domus_system *system, const domi_manager *manager)
{
    if (manager->pooled != NULL)
        append_text_to_losses(system, "pool %.63s", manager->pooled->name);
    else
        append_text_to_losses(system, "thread %u", manager->index);
}

/* most lines about actors that did not stop; further actors are only counted */
#define LEFT_LINES_MAX 16u

static void record_actor_that_is_left(void *house_, void *context)
{
    const domi_house *house = house_;
    leftover *left = context;

    if ((domi_house_life_word(house) & DOMI_LIFE_CLOSED) != 0 || house->state == DOMI_CREATED ||
        left->system->left_count++ >= LEFT_LINES_MAX)
        return;
    uint32_t children = domi_house_count_children(house);
    append_place_of_actor_to_losses(left->system, left->manager);
    append_text_to_losses(
        left->system, ": %s (%s): %u conversations, %u children%s\n",
        domi_behaviour_name(house->behaviour), domi_house_name_of_state(house->state),
        domi_house_count_parked_conversations(house), children,
        house->behaviour->kind == DOMUS_CHANNELS && house->channels.owned != NULL ? ", open" : "");
}

void domi_system_record_left_actors(domus_system *system, domi_manager *manager)
{
    leftover left = {system, manager};

    if (domi_counter_read(&manager->births.houses) == 0)
        return;
    pthread_mutex_lock(&system->mutex);
    domi_slots_visit_all(manager, record_actor_that_is_left, &left);
    pthread_mutex_unlock(&system->mutex);
}

void domi_system_record_running_actor(domus_system *system, const domi_manager *manager)
{
    const domus_behaviour *running = domi_manager_running_behaviour(manager);

    if (running == NULL)
        return;
    system->left_count++;
    append_place_of_actor_to_losses(system, manager);
    append_text_to_losses(system, ": a handler of %s has not returned\n",
                          domi_behaviour_name(running));
}

const char *domus_system_left(const domus_system *system)
{
    return system->left;
}

void domi_system_log_left_actors(domus_system *system)
{
    const char *line = system->left + system->left_logged;

    while (*line != '\0') {
        size_t length = strcspn(line, "\n");

        domi_log_line(system, DOMUS_LOG_ERROR, DOMUS_LOG_OUTSIDE, "not stopped in time: %.*s",
                      (int)length, line);
        line += length + (line[length] == '\n');
    }
    system->left_logged = (uint32_t)(line - system->left);
}

/* --- channels that were cut ------------------------------------------------------------------- */

domi_cut domi_system_count_cut_channels(const domus_system *system)
{
    domi_cut sum = {0};

    for (uint32_t i = 0; i < system->count; i++) {
        const domi_io *io = &system->threads[i].io;
        sum.channels +=
            domi_counter_read(&io->counters.channels_cut) + domi_counter_read(&io->turned_away);
        sum.bytes +=
            domi_counter_read(&io->counters.cut_bytes) + domi_counter_read(&io->turned_away_bytes);
    }
    return sum;
}

uint64_t domi_system_count_accepted_connections(const domus_system *system)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < system->count; i++)
        sum +=
            atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&system->threads[i].io.connections,
                                 memory_order_acquire);
    return sum;
}

uint64_t domi_system_count_made_connections(const domus_system *system)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < system->count; i++)
        sum += atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&system->threads[i].io.outbound,
                                    memory_order_acquire);
    return sum;
}

/* The connections of a thread that a handler holds up are counted, but not the bytes that they owe:
 * only the thread itself could read its channels. */
void domi_system_log_connections_held_up(domus_system *system)
{
    uint64_t held = domi_system_count_accepted_connections(system);

    if (held != 0)
        domi_log_line(system, DOMUS_LOG_WARNING, DOMUS_LOG_OUTSIDE,
                      "%" PRIu64 " connections are held by threads whose handlers have not "
                      "returned: what they are owed is lost if the process ends",
                      held);
}

/* Each call logs only the channels that were cut since the last call, because a stop that timed out
 * has already logged the earlier ones. */
int domi_system_log_cut_channels(domus_system *system)
{
    domi_cut cut = domi_system_count_cut_channels(system);
    uint64_t channels = cut.channels - system->cut_before.channels;
    domi_cut fresh = {cut.channels - system->cut_logged.channels,
                      cut.bytes - system->cut_logged.bytes};

    if (fresh.channels != 0)
        domi_log_line(system, DOMUS_LOG_WARNING, DOMUS_LOG_OUTSIDE,
                      "%" PRIu64 " channels had not drained and were cut, and with them %" PRIu64
                      " bytes that were not answered or not delivered",
                      fresh.channels, fresh.bytes);
    system->cut_logged = cut;
    return channels < INT32_MAX ? (int)channels : INT32_MAX;
}
