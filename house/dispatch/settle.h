/* The end of a run: home settles the house, which becomes READY, at the tail of its queue, or
 * WAITING, or free. Most houses have no mark and no bit of their life word that matters then, and
 * the end of domi_house_run_and_settle() settles them; settle.c settles all others, and those that
 * were lent. */
#ifndef DOMI_HOUSE_DISPATCH_SETTLE_H
#define DOMI_HOUSE_DISPATCH_SETTLE_H

#include "house/message/manager.h"

/* The marks of a house for which settle.c settles it; DOMI_LIFE_SETTLED has the bits of its life
 * word for which settle.c does so. */
#define DOMI_MARKS_SETTLED                                                                         \
    (DOMI_MARKS_HOLD | DOMI_MARK_CHANNELS | DOMI_MARK_STOPPING | DOMI_MARK_PASSIVATES |            \
     DOMI_MARK_ROUTEE | DOMI_MARK_GONE)
#define DOMI_LIFE_SETTLED (DOMI_LIFE_STOP | DOMI_LIFE_FULL)

/* Settle a house of any kind after its run, also one that was lent. `handled` is what
 * domi_house_run_lent() has returned. Home. */
void domi_house_settle_after_run(domi_manager *home, domi_house *house, uint32_t handled);

/* Settle a house as a stand-in that holds home: an actor that has to end or to restart becomes
 * READY, so that its own thread does that later. */
void domi_house_settle_as_stand_in(domi_manager *home, domi_house *house, uint32_t handled);

#endif
