/* Settles those houses after a run that have marks, or from which another thread or actor wants
 * something. */
#include "house/dispatch/settle.h"

#include "base/check.h"
#include "house/directory/router.h"
#include "house/dispatch/invariants.h"
#include "house/family/family.h"
#include "house/family/life.h"
#include "house/family/watch.h"
#include "house/message/mailbox.h"

/* Marks of a house that few houses have, and for which settle_house_after_run() has more to do. */
#define DOMI_MARKS_SPECIAL                                                                         \
    (DOMI_MARK_RESTART | DOMI_MARK_PASSIVATES | DOMI_MARK_ROUTEE | DOMI_MARK_GONE)

static void settle_house_with_special_marks(domi_manager *manager, domi_house *house,
                                            uint32_t handled)
{
    if ((house->marks & DOMI_MARK_PASSIVATES) != 0) {
        bool only_looked = house->family->idle_looked && handled <= 1;
        house->family->idle_looked = false;
        if (!only_looked)
            house->family->last_ns = manager->now_ns;
    }
    if ((house->marks & DOMI_MARK_RESTART) != 0)
        domi_house_try_to_end_restart(manager, house);
    if ((house->marks & DOMI_MARK_ROUTEE) != 0)
        domi_router_record_load_of_routee(house);
    if (domi_house_has_outlived_channel(house))
        domi_house_stop_after_run(house);
}

/* End the run of a house: it becomes READY, at the tail of its queue, or WAITING, or free. Without
 * `may_end` an actor that has to end or restart becomes READY, and the end of its next run does
 * that: a stand-in may not do it, because it runs code of users and may use io. */
DOMI_INLINE void settle_house_after_run(domi_manager *manager, domi_house *house, uint32_t handled,
                                        bool may_end)
{
    uint64_t life = domi_house_life_word(house);

    if (!may_end && domi_house_must_check_stop_or_restart(house, life)) {
        domi_house_make_ready(manager, house);
        return;
    }
    if ((house->marks & DOMI_MARKS_SPECIAL) != 0) {
        settle_house_with_special_marks(manager, house, handled);
        /* If a stand-in misses a stop at this load, the node of that stop arrives later and makes
         * the house READY. */
        if (may_end)
            life = domi_house_life_word(house);
    }
    if ((life & (DOMI_LIFE_STOP | DOMI_LIFE_FULL)) != 0) {
        if ((life & (DOMI_LIFE_STOP | DOMI_LIFE_FULL)) == DOMI_LIFE_FULL)
            domi_watch_tell_of_room_if_there_is(manager, house);
        if ((life & DOMI_LIFE_STOP) != 0 && (house->marks & DOMI_MARK_STOPPING) == 0)
            domi_house_begin_stop(manager, house);
        if ((house->marks & DOMI_MARK_STOPPING) != 0 && domi_house_try_to_end_stop(manager, house))
            return;
    }
    if (domi_house_is_runnable(house))
        domi_house_make_ready(manager, house);
    else
        domi_house_change_state(house, DOMI_WAITING);
    DOMI_CHECK_SLOW(domi_house_is_sound(manager, house));
}

void domi_house_settle_after_run(domi_manager *home, domi_house *house, uint32_t handled)
{
    settle_house_after_run(home, house, handled, true);
}

void domi_house_settle_as_stand_in(domi_manager *home, domi_house *house, uint32_t handled)
{
    settle_house_after_run(home, house, handled, false);
}
