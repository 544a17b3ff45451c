/* The watchdog of the conservation stress: when nothing moves any more, it tells what every thread
 * has, in whose words a lost wake-up, a kept loan or a forgotten arrival stands; see the header.
 *
 * The threads are stuck, so what they have may be read as it is. */
#include "tests/runtime/conserve.h"

#include "house/dispatch/loan.h"
#include "house/family/slots.h"
#include "house/message/mailbox.h"
#include "runtime/loop/work.h"
#include "runtime/system/system.h"

#include <inttypes.h>
#include <stdio.h>

#define STUCK_NS   (UINT64_C(1000) * DOMT_MS * (DOMT_SANITIZED ? 60 : 10))
#define HOUSES_MAX 24u /* described of each thread */

void domt_watchdog_init(domt_watchdog *dog, const domus_system *system, const char *name)
{
    *dog = (domt_watchdog){.system = system, .name = name, .since_ns = domt_now_ns()};
}

bool domt_all_sleep(const domus_system *system)
{
    for (uint32_t i = 0; i < system->count; i++) {
        /* acquire: pairs with the exchange by which a thread falls asleep. All that it has counted
         * is seen. */
        if (!domi_park_is_at_rest(
                atomic_load_explicit(&system->threads[i].manager.park, memory_order_acquire)))
            return false;
    }
    return true;
}

/* A house that has mail or is not where it rests. */
static void report_house(void *house_, void *left_)
{
    const domi_house *house = house_;
    uint32_t *left = left_;
    uint64_t life = domi_house_life(house);
    uint32_t inbox = domi_mailbox_depth(house);
    bool empty = house->tails[DOMI_REPLY] == NULL && house->tails[DOMI_EXCEPTION] == NULL &&
                 house->tails[DOMI_ASK] == NULL && house->tails[DOMI_NOTICE] == NULL &&
                 house->tails[DOMI_EVENT] == NULL;
    bool rests = (life & DOMI_LIFE_CLOSED) != 0 || house->state == DOMI_WAITING;

    if (*left == 0 || (empty && rests && inbox == 0 && domi_house_count_parked(house) == 0 &&
                       (life & DOMI_LIFE_STOP) == 0 && !domi_house_is_exposed(house)))
        return;
    --*left;
    fprintf(
        stderr,
        "    %s %p/%u: %s, slot %#x, marks %#x, life bits %#x, mail %u, inbox %u, lists %d%d%d%d%d,"
        " asks %u, stacks %u\n",
        (life & DOMI_LIFE_CLOSED) == 0 && house->behaviour != NULL ? house->behaviour->name
                                                                   : "(free)",
        (const void *)house, DOMI_LIFE_LEASE(life), domi_state_name((domi_state)house->state),
        domi_house_slot(house), house->marks, (uint32_t)life, house->mail, inbox,
        house->tails[DOMI_REPLY] != NULL, house->tails[DOMI_EXCEPTION] != NULL,
        house->tails[DOMI_ASK] != NULL, house->tails[DOMI_NOTICE] != NULL,
        house->tails[DOMI_EVENT] != NULL, house->asks, domi_house_count_parked(house));
}

static void report_thread(domi_thread *thread)
{
    static const char *const parks[] = {
        [DOMI_PARK_RUNNING] = "running",   [DOMI_PARK_SPINNING] = "spinning",
        [DOMI_PARK_LOOKING] = "looking",   [DOMI_PARK_SLEEPING] = "sleeping",
        [DOMI_PARK_HELD] = "held",         [DOMI_PARK_WANTED] = "wanted",
        [DOMI_PARK_NOTIFIED] = "notified", [DOMI_PARK_DOZING] = "dozing"};
    domi_manager *manager = &thread->manager;
    const domi_stealing *stealing = &thread->stealing;
    const domus_behaviour *running = manager->activity.running;
    uint64_t due_ns = domi_thread_due_ns(thread);
    uint32_t park = manager->park;
    uint32_t left = HOUSES_MAX;

    fprintf(stderr,
            "thread %u: %s, runs %s; ready: state %u, channels %u; mounting %d, arrivals %p, "
            "returns %p, links kept back %u; houses %" PRIu64 ", timers %u, ",
            manager->index, park < sizeof parks / sizeof parks[0] ? parks[park] : "?",
            running != NULL ? running->name : "nobody", manager->schedule.ready[DOMUS_STATE].count,
            manager->schedule.ready[DOMUS_CHANNELS].count, manager->schedule.mounting.head != NULL,
            (void *)manager->mail.arrivals, (void *)manager->loans.returns,
            manager->mail.links.houses, manager->births.houses, manager->timing.timers);
    if (due_ns == UINT64_MAX)
        fprintf(stderr, "none due\n");
    else
        fprintf(stderr, "due in %" PRId64 " us\n",
                (int64_t)(due_ns - domi_clock_now(thread->clock)) / 1000);
    fprintf(stderr,
            "    lent %u, of these shown %u; thieves %u, lendable %u; after the houses of %d, "
            "patience %u, has borrowed %d; wanted %u, doing %u\n",
            manager->loans.lent, manager->loans.shared_count, manager->loans.thieves,
            manager->loans.lendable,
            stealing->victim == DOMI_NO_VICTIM ? -1 : (int)stealing->victim, stealing->patience,
            stealing->loan != NULL, thread->system->orders, thread->orders);
    domi_slots_walk(manager, report_house, &left);
}

void domt_watchdog_report(const domt_watchdog *dog, const domt_sums *sums, const char *waits_for)
{
    static char text[32768];

    (void)domus_system_profile_table(dog->system, text, sizeof text);
    fprintf(stderr, "\n%s: nothing has moved for %" PRIu64 " s, and this is waited for: %s\n%s",
            dog->name, (domt_now_ns() - dog->since_ns) / 1000 / DOMT_MS, waits_for, text);
    for (uint32_t i = 0; i < dog->system->count; i++)
        report_thread(&dog->system->threads[i]);
    fprintf(stderr, "outside: arrivals %p, park %u; waking %u (0: nobody)\n",
            (void *)dog->system->outside.mail.arrivals, dog->system->outside.park,
            dog->system->waking);
    domt_sums_print(sums);
}

void domt_watchdog_look(domt_watchdog *dog, const domt_sums *sums, const char *waits_for)
{
    uint64_t moved = domt_sums_moved(sums);

    if (moved != dog->moved) {
        dog->moved = moved;
        dog->since_ns = domt_now_ns();
    } else if (domt_now_ns() - dog->since_ns > STUCK_NS) {
        domt_watchdog_report(dog, sums, waits_for);
        abort();
    }
}
