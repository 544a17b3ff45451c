/* This file writes log lines, and bounds their number.
 *
 * The bound of a thread is one word: its upper half holds a second, its lower half how many lines
 * were wanted in that second. So one compare-exchange suffices, and nobody waits. */
#include "runtime/system/log.h"

#include "house/dispatch/describe.h"

#include <domus/text.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000) /* nanoseconds of a second */

/* True if one more line may pass. In that case `ret_dropped` is how many lines did not pass since
 * the last line that did. */
static bool passes_level(domi_log_bound *bound, uint32_t second, uint32_t *ret_dropped)
{
    /* Relaxed: the word is complete by itself and guards no other data. */
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

    if (system->hooks.log == NULL ||
        !passes_level(bound, (uint32_t)(domi_clock_now(&system->clock) / SECOND_NS), &dropped))
        return;
    if (dropped != 0) {
        snprintf(text, sizeof text, "%" PRIu32 " lines of this thread were dropped", dropped);
        system->hooks.log(system->hooks.log_context, DOMUS_LOG_WARNING, thread, text);
    }
    va_start(arguments, format);
    (void)vsnprintf(raw, sizeof raw, format, arguments);
    va_end(arguments);
    /* Names, paths and symbols come from programs and files. Escaped, each call gives one line, and
     * no text moves a terminal's cursor. */
    (void)domus_text_escape(raw, strlen(raw), text, sizeof text);
    system->hooks.log(system->hooks.log_context, level, thread, text);
}

void domi_log_happening(domi_manager *manager, const domi_house *house, domi_happening what,
                        int error)
{
    static const struct {
        domus_log_level level; /* the level of the line */
        const char *text;      /* what the line begins with */
    } said[] = {
        [DOMI_HAS_FAILED] = {DOMUS_LOG_WARNING, "has failed"},
        [DOMI_IS_RESTARTED] = {DOMUS_LOG_WARNING, "is restarted"},
        [DOMI_ESCALATES] = {DOMUS_LOG_ERROR, "escalates the failure of a child"},
        [DOMI_IS_ENDED] = {DOMUS_LOG_ERROR, "is ended: no rule is for its failure"},
    };
    domus_system *system = manager->system;
    if (system->hooks.log == NULL)
        return;
    const char *name = house->behaviour->name != NULL ? house->behaviour->name : "?";
    const char *why = strerrorname_np(-error);
    char whom[64];
    domi_text text = {.at = whom, .size = sizeof whom};

    domi_text_add_actor(&text, &system->config, domi_house_address(house));
    domi_log_line(system, said[what].level,
                  manager->index < system->count ? manager->index : DOMUS_LOG_OUTSIDE,
                  "actor %s %s %s: %s (%d)", name, whom, said[what].text, why != NULL ? why : "?",
                  error);
}

void domi_log_text(domi_manager *manager, domus_log_level level, const char *text)
{
    domi_log_line(manager->system, level, manager->index, "%s", text);
}
