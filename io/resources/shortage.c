/* Begins and ends spells of shortage (shortage.h). */
#include "io/resources/shortage.h"

#define SECOND_NS UINT64_C(1000000000) /* number of nanoseconds in a second */
/* first quiet time of a spell, which is over after this time without another refusal */
#define QUIET_MIN_NS SECOND_NS
/* longest quiet time of a spell; it doubles with spells that follow soon */
#define QUIET_MAX_NS (64 * SECOND_NS)
/* time after the end of a spell within which the next one counts as following soon */
#define CALM_NS (64 * SECOND_NS)

bool domi_shortage_record(domi_shortage *shortage, uint64_t now_ns)
{
    bool begins = shortage->begun_ns == 0;

    if (begins) {
        bool is_again = shortage->ended_ns != 0 && now_ns - shortage->ended_ns < CALM_NS;
        shortage->begun_ns = now_ns;
        shortage->times = 0;
        if (!is_again)
            shortage->quiet_ns = QUIET_MIN_NS;
        else if (shortage->quiet_ns < QUIET_MAX_NS)
            shortage->quiet_ns *= 2;
    }
    shortage->last_ns = now_ns;
    shortage->times++;
    return begins;
}

bool domi_shortage_end_quiet_spell(domi_shortage *shortage, uint64_t now_ns,
                                   uint64_t *ret_lasted_ns)
{
    if (shortage->begun_ns == 0 || now_ns - shortage->last_ns < shortage->quiet_ns)
        return false;
    *ret_lasted_ns = shortage->last_ns - shortage->begun_ns;
    shortage->begun_ns = 0;
    shortage->ended_ns = now_ns;
    return true;
}
