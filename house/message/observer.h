/* The functions that measure the runs of a manager. Runtime brings them, because it alone reads the
 * clock (runtime/loop/run_observer.h). The owner of the manager calls them. */
#ifndef DOMI_HOUSE_MESSAGE_OBSERVER_H
#define DOMI_HOUSE_MESSAGE_OBSERVER_H

#include <stdint.h>

struct domi_house;
struct domi_manager;

/* Run a house, as domi_house_run_and_settle() does. Returns the number of handled messages. */
typedef uint32_t domi_run_house(struct domi_manager *manager, struct domi_house *house);

typedef struct domi_observer {
    /* Returns the function that runs the next houses, up to the next look between runs or the end
     * of the phase. It is domi_house_run_and_settle() if none of these runs is measured, so that
     * such runs cost nothing more. */
    domi_run_house *(*choose)(struct domi_manager *manager);
    /* Record that the arrivals from other threads were sorted; `newest` is the state actor that was
     * the newest ready one before. */
    void (*note_arrivals)(struct domi_manager *manager, const struct domi_house *newest);
    /* Record that a house of this manager is back from the thief with the index `thief`, which has
     * run it. NULL: nobody measures this. */
    void (*note_loan)(struct domi_manager *manager, const struct domi_house *house, uint32_t thief);
    /* Forget what was measured of a house that was exposed and is back: it may have run on another
     * thread. */
    void (*forget)(struct domi_manager *manager, const struct domi_house *house);
} domi_observer;

#endif
