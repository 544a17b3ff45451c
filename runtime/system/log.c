/* This file writes log lines, and limits how many each thread writes in a second.
 *
 * The limit of a thread is one word: its upper half holds a second, its lower half how many lines
 * were wanted in that second. So one compare-exchange is enough, and no thread waits. */
#include "runtime/system/logs.h"

#include "house/dispatch/describe.h"
#include "house/message/types.h"
#include "io/resources/spells.h"

#include <domus/log.h>
#include <domus/text.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000) /* nanoseconds in a second */

/* True if the thread may write one more log line in this second. Then `ret_dropped` gets how many
 * lines were dropped since the last one that was written. */
static bool may_thread_log_one_more_line(domi_log_bound *bound, uint32_t second,
                                         uint32_t *ret_dropped)
{
    /* Relaxed: the word is complete by itself, and no other data depends on it. */
    uint64_t word = atomic_load_explicit(&bound->word, memory_order_relaxed);
    uint64_t next;

    do {
        bool same = (uint32_t)(word >> 32) == second;
        next = (uint64_t)second << 32 | (same ? (uint32_t)word + 1 : 1);
    } while (!atomic_compare_exchange_weak_explicit(&bound->word, &word, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    if ((uint32_t)next > DOMUS_LOG_LINES_PER_SECOND) {
        atomic_fetch_add_explicit(&bound->dropped, 1, memory_order_relaxed);
        return false;
    }
    uint32_t before = (uint32_t)word;
    bool is_first = (uint32_t)next == 1;
    *ret_dropped =
        is_first && before > DOMUS_LOG_LINES_PER_SECOND ? before - DOMUS_LOG_LINES_PER_SECOND : 0;
    return true;
}

void domi_log_line(domus_system *system, domus_log_level level, uint32_t thread, const char *format,
                   ...)
{
    domi_log_bound *bound =
        thread < system->count ? &system->threads[thread].log_bound : &system->log_bound;
    uint32_t dropped = 0;
    char raw[DOMUS_LOG_TEXT_MAX + 1];
    char text[DOMUS_LOG_TEXT_MAX + 1];
    va_list arguments;

    if (system->hooks.log == NULL || level > domus_system_log_level(system) ||
        !may_thread_log_one_more_line(bound, (uint32_t)(domi_clock_now(&system->clock) / SECOND_NS),
                                      &dropped))
        return;
    if (dropped != 0) {
        snprintf(text, sizeof text, "%" PRIu32 " lines of this thread were dropped", dropped);
        system->hooks.log(system->hooks.log_context, DOMUS_LOG_WARNING, thread, text);
    }
    va_start(arguments, format);
    (void)vsnprintf(raw, sizeof raw, format, arguments);
    va_end(arguments);
    /* The text may hold names, paths and symbols from programs and files. It is escaped, so that
     * each call writes one line and no text moves a terminal's cursor. */
    (void)domus_text_escape(raw, strlen(raw), text, sizeof text);
    system->hooks.log(system->hooks.log_context, level, thread, text);
}

/* --- levels ----------------------------------------------------------------------------------- */

const char *domus_log_level_name(domus_log_level level)
{
    static const char *const names[] = {"error", "warning", "info"};

    return (size_t)level < sizeof names / sizeof names[0] ? names[level] : "";
}

int domus_system_set_log_level(domus_system *system, domus_log_level level)
{
    if ((unsigned)level > DOMUS_LOG_INFO)
        return -EINVAL;
    /* Relaxed: the level is complete by itself, and no other data depends on it. */
    atomic_store_explicit(&system->log_level, level, memory_order_relaxed);
    return 0;
}

domus_log_level domus_system_log_level(const domus_system *system)
{
    return (domus_log_level)atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&system->log_level,
                                                 memory_order_relaxed);
}

/* --- actors ----------------------------------------------------------------------------------- */

static uint32_t index_of_thread_for_log(const domi_manager *manager)
{
    const domus_system *system = manager->system;

    return manager->index < system->count ? manager->index : DOMUS_LOG_OUTSIDE;
}

#define WHOM_SIZE 64 /* size in bytes of an actor's address as text */

/* Print the address of an actor into `whom`, which is returned. */
static const char *write_address_of_actor(const domus_system *system, const domi_house *house,
                                          char *whom)
{
    domi_text text = {.at = whom, .size = WHOM_SIZE};

    domi_text_append_name_of_actor(&text, &system->config, domi_house_get_address(house));
    return whom;
}

/* Log that an actor has as many conversations as it may. That happens again and again, so a thread
 * logs only when such a time begins and when it is over. For a detached actor each one is logged,
 * because it has no io, whose timer would log the end. */
static void log_that_conversations_are_at_limit(domi_manager *manager, const domi_house *house)
{
    domus_system *system = manager->system;
    char whom[WHOM_SIZE];

    if (manager->io != NULL && !domi_spell_record_conversations_max(manager->io))
        return;
    domi_log_line(system, DOMUS_LOG_WARNING, index_of_thread_for_log(manager),
                  "actor %s %s has %" PRIu32 " conversations, the most that "
                  "scheduler.conversationsMax allows: its asks and notices wait",
                  domi_behaviour_name(house->behaviour),
                  write_address_of_actor(system, house, whom),
                  domi_house_count_parked_conversations(house));
}

void domi_log_what_happened_to_actor(domi_manager *manager, const domi_house *house,
                                     domi_happening what, int error)
{
    static const struct {
        domus_log_level level; /* level of the log line for this happening */
        const char *text;      /* start of the log line for this happening */
    } said[] = {
        [DOMI_HAS_FAILED] = {DOMUS_LOG_WARNING, "has failed"},
        [DOMI_IS_RESTARTED] = {DOMUS_LOG_WARNING, "is restarted"},
        [DOMI_ESCALATES] = {DOMUS_LOG_ERROR, "escalates the failure of a child"},
        [DOMI_IS_ENDED] = {DOMUS_LOG_ERROR, "is ended: no rule is for its failure"},
    };
    domus_system *system = manager->system;
    if (system->hooks.log == NULL)
        return;
    if (what == DOMI_IS_FULL) {
        log_that_conversations_are_at_limit(manager, house);
        return;
    }
    const char *where = (house->marks & DOMI_MARK_UNMOUNTED) != 0 ? ", and it was not mounted" : "";
    char whom[WHOM_SIZE];

    domi_log_line(system, said[what].level, index_of_thread_for_log(manager),
                  "actor %s %s %s: %s (%d)%s", domi_behaviour_name(house->behaviour),
                  write_address_of_actor(system, house, whom), said[what].text,
                  domus_error_name(error), error, where);
}

/* Remember a mistake that is about to be logged. Returns false if the same mistake was logged
 * before, or if too many mistakes were. */
static bool remember_mistake_unless_logged(domus_system *system, const domus_behaviour *behaviour,
                                           const domus_type *type, domi_mistake what)
{
    /* A mistake's behaviour and type are hashed to one number. If two mistakes have the same
     * number, one of them is not logged. */
    uint64_t number = ((uintptr_t)behaviour * UINT64_C(0x9e3779b97f4a7c15) ^
                       (uintptr_t)type * UINT64_C(0xc2b2ae3d27d4eb4f)) +
                      (uint64_t)what + 1;

    for (uint32_t i = 0; i < DOMI_MISTAKES_TOLD; i++) {
        /* Relaxed, all of them: the number is complete by itself, and no other data depends on
         * it. */
        uint64_t told = atomic_load_explicit(&system->mistakes_told[i], memory_order_relaxed);

        if (told == 0 &&
            atomic_compare_exchange_strong_explicit(&system->mistakes_told[i], &told, number,
                                                    memory_order_relaxed, memory_order_relaxed))
            return true;
        if (told == number)
            return false;
    }
    return false;
}

/* True if a behaviour has a row for another type that has the same name as `type`. */
static bool has_type_of_same_name(const domus_behaviour *behaviour, const domus_type *type)
{
    if (type->name == NULL)
        return false;
    for (const domus_on *on = behaviour->on; on != NULL && on->type != NULL; on++)
        if (on->type != type && strcmp(domi_type_name(on->type), domi_type_name(type)) == 0)
            return true;
    for (const domus_on_peer *on = behaviour->on_peer; on != NULL && on->type != NULL; on++)
        if (on->type != type && strcmp(domi_type_name(on->type), domi_type_name(type)) == 0)
            return true;
    return false;
}

#define DID_SIZE 256 /* size in bytes of the text that describes a mistake */

/* Write the text that describes a mistake of a user's function with a message of `type`. */
static void describe_mistake_of_user(char did[DID_SIZE], domi_mistake what,
                                     const domus_behaviour *behaviour, const domus_type *type,
                                     int result)
{
    const char *name = domi_type_name(type);

    if (what == DOMI_WAIT_NOT_RETURNED)
        snprintf(did, DID_SIZE,
                 "a function that handles %.40s let its conversation wait and returned %d, not "
                 "DOMUS_PARKED, so the answer is thrown away",
                 name, result);
    else if (what == DOMI_WAIT_REPLACED)
        snprintf(did, DID_SIZE,
                 "a function that handles %.40s let its conversation wait twice in a turn, so the "
                 "function that it named first is never called",
                 name);
    else if (what == DOMI_NEEDS_RING)
        snprintf(did, DID_SIZE,
                 "a function that handles %.40s asked for channels, a file or a connect, which no "
                 "actor of a pool can have (-EOPNOTSUPP): let an actor of a thread do it",
                 name);
    else if (what == DOMI_TYPE_UNKNOWN && has_type_of_same_name(behaviour, type))
        snprintf(did, DID_SIZE,
                 "it got a message of a type %.40s that is not the one in its rows: types are "
                 "compared by their addresses, and a static one in a header is another one in each "
                 "file",
                 name);
    else if (what == DOMI_TYPE_UNKNOWN)
        snprintf(did, DID_SIZE,
                 "it got a message of the type %.40s, for which its behaviour has no row "
                 "(-EOPNOTSUPP)",
                 name);
    else if (what == DOMI_ASK_UNANSWERED)
        snprintf(did, DID_SIZE,
                 "a function that handles the ask %.40s has ended without an answer: its asker "
                 "gets -ENOMSG",
                 name);
    else if (what == DOMI_ANSWER_UNWRITTEN)
        snprintf(did, DID_SIZE, "its answer %.40s could not be encoded by its pipeline (%.32s)%s",
                 name, domus_error_name(result),
                 result == -EOPNOTSUPP ? ": look at the types that its last stage knows" : "");
    else
        snprintf(did, DID_SIZE,
                 "a function that handles %.40s returned %d, which is neither 0 nor DOMUS_PARKED "
                 "nor a negative errno and counts as 0",
                 name, result);
}

void domi_log_mistake_of_user(domi_manager *manager, const domi_house *house, domi_mistake what,
                              const domus_type *type, int result)
{
    const domus_behaviour *behaviour = domi_house_get_behaviour(house);
    domus_system *system = manager->system;
    char whom[WHOM_SIZE];
    char did[DID_SIZE];

    if (system->hooks.log == NULL || !remember_mistake_unless_logged(system, behaviour, type, what))
        return;
    describe_mistake_of_user(did, what, behaviour, type, result);
    domi_log_line(system, DOMUS_LOG_WARNING, index_of_thread_for_log(manager),
                  "actor %s %s: %s (this is told once)", domi_behaviour_name(behaviour),
                  write_address_of_actor(system, house, whom), did);
}

void domi_log_text_for_manager(domi_manager *manager, domus_log_level level, const char *text)
{
    domi_log_line(manager->system, level, index_of_thread_for_log(manager), "%s", text);
}
