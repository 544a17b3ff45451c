/* POST /profile?level=WORD of the observation port: lets the program measure more or less from now
 * on. */
#include "protocols/observe/pages.h"

#include "protocols/observe/answer.h"
#include "protocols/observe/observe.h"

#include <domus/http_query.h>

#include <string.h>

#define WORD_SIZE 16

/* The word of each profile level, and the line by which a viewer is told that the level was set. */
static const struct word {
    const char *name, *line;
} words[] = {[DOMUS_PROFILE_OFF] = {"off", "off\n"},
             [DOMUS_PROFILE_COUNTERS] = {"counters", "counters\n"},
             [DOMUS_PROFILE_HISTOGRAMS] = {"histograms", "histograms\n"},
             [DOMUS_PROFILE_SPANS] = {"spans", "spans\n"}};
#define WORDS (sizeof words / sizeof words[0])

const char *domi_observe_word_of_level(domus_profile_level level)
{
    return (size_t)level < WORDS ? words[level].name : "off";
}

static void set_profile_level(domus_profile_level level)
{
    (void)domus_system_set_profile_level(domi_observed.observed, level);
}

void domi_observe_raise_level_for_trace(void)
{
    domi_observed.level_before = domus_system_profile_level(domi_observed.observed);
    domi_observed.is_raised = true;
    set_profile_level(DOMUS_PROFILE_SPANS);
}

void domi_observe_restore_level(void)
{
    if (domi_observed.is_raised &&
        domus_system_profile_level(domi_observed.observed) == DOMUS_PROFILE_SPANS)
        set_profile_level(domi_observed.level_before);
    domi_observed.is_raised = false;
}

int domi_observe_serve_level_change(domus_stack *stack, void *self, const void *payload)
{
    char word[WORD_SIZE];

    (void)self;
    if (!domi_observe_may_request_change(payload))
        return domi_observe_answer_with_line(stack, 403,
                                             "a page of another site may not change anything\n");
    int64_t size = domus_http_query_value(domus_http_query(payload), "level", word, sizeof word);
    for (size_t i = 0; size > 0 && i < WORDS; i++) {
        if (strlen(words[i].name) != (size_t)size || memcmp(words[i].name, word, (size_t)size) != 0)
            continue;
        if (domi_observed.is_raised)
            domi_observed.level_before = (domus_profile_level)i;
        else
            set_profile_level((domus_profile_level)i);
        return domi_observe_answer_with_line(stack, 200, words[i].line);
    }
    return domi_observe_answer_with_line(stack, 400,
                                         "level is off, counters, histograms or spans\n");
}
