/* Carries ends and failures of children to their parents, and decisions of parents to their
 * children. */
#include "house/family/family.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/conversation/stack.h"
#include "house/message/mailbox.h"
#include "house/message/stop.h"

#include <errno.h>

/* most restarts of its children within a period, if a parent has set no number */
#define INTENSITY_DEFAULT 3u
/* length of the period in which restarts are counted, if a parent has set none: 5 s */
#define PERIOD_DEFAULT_NS UINT64_C(5000000000)

void domi_family_free(domi_house *house)
{
    domi_family *family = house->family;

    if (family == NULL)
        return;
    domi_children_free_list(family->children);
    if (family->initial != NULL)
        domi_memory_free(family->initial);
    if (family->order != NULL)
        domi_memory_free(family->order);
    domi_memory_free(family);
    house->family = NULL;
}

/* --- children -------------------------------------------------------------------------------- */

int domi_family_add_child(domi_house *parent, domi_house *child)
{
    domi_family *family = domi_family_get_or_make(parent);

    if (family == NULL || domi_children_add(&family->children, child) != 0)
        return -ENOMEM;
    domi_house_set_parent(child, parent);
    return 0;
}

void domi_family_remove_child(domi_house *child)
{
    domi_children_remove(child->parent->family->children, child);
    domi_house_set_parent(child, NULL);
}

void domi_family_stop_children(domi_manager *manager, domi_house *house)
{
    uint32_t count = domi_house_count_children(house);
    bool is_hasty = (house->marks & DOMI_MARK_RESTART) != 0 ||
                    (domi_house_life_word(house) & DOMI_LIFE_HASTE) != 0;

    if (count == 0)
        return;
    house->family->is_hasty = is_hasty;
    for (uint32_t i = 0; i < count; i++) {
        domus_address child =
            domi_house_get_address(domi_children_get_at_place(house->family->children, i));
        (void)(is_hasty ? domi_house_ask_to_stop_hastily(manager, child)
                        : domi_house_ask_to_stop(manager, child));
    }
}

void domi_family_stop_children_hastily(domi_manager *manager, domi_house *house)
{
    if ((domi_house_life_word(house) & DOMI_LIFE_HASTE) != 0 &&
        domi_house_count_children(house) != 0 && !house->family->is_hasty)
        domi_family_stop_children(manager, house);
}

/* True if this thread runs the house: it lives here and is not exposed. */
static bool does_thread_run_house(const domi_manager *manager, const domi_house *house)
{
    return house->home == manager && !domi_house_is_exposed(house);
}

/* Put the node of a child to its parent, with a report. The parent lives until its last child has
 * left, so its address is valid here. */
static void put_node_of_child_to_parent(domi_manager *manager, domi_house *child, uint16_t word)
{
    domus_address parent = domi_house_get_address(child->parent);

    child->node.owner = word;
    child->node.slab = DOMI_SLAB_HOUSE;
    int error = domi_mailbox_put(manager, parent, &child->node, DOMI_EVENT);
    DOMI_CHECK(error == 0 || manager->ending.has_stopped);
}

bool domi_family_remove_ended_child(domi_manager *manager, domi_house *child)
{
    domi_house *parent = child->parent;

    if (parent == NULL || manager->ending.has_stopped)
        return true;
    if (!does_thread_run_house(manager, parent)) {
        put_node_of_child_to_parent(manager, child, DOMI_CHILD_GONE);
        return false;
    }
    domi_family_remove_child(child);
    if ((parent->marks & (DOMI_MARK_STOPPING | DOMI_MARK_RESTART)) != 0)
        /* a parent that ends or restarts waits for the end of its last child */
        domi_house_let_act_on_change(manager, parent);
    return true;
}

/* --- failures -------------------------------------------------------------------------------- */

/* Decide on the failure of a house for which no parent has rules: end the actor if the failure is
 * fatal or the actor `ends_on_failure`, else let it go on. */
static void decide_on_failure_without_parent(domi_manager *manager, domi_house *house, bool fatal)
{
    if (!fatal && !(house->family != NULL && house->family->ends_on_failure)) {
        house->reason = 0;
        return;
    }
    domi_counter_add(&manager->counters.escalations, 1);
    domi_manager_log_event_of_actor(manager, house, DOMI_IS_ENDED, house->reason);
    (void)domi_house_ask_to_stop(manager, domi_house_get_address(house));
}

void domi_family_report_failure_or_decide(domi_manager *manager, domi_house *house, int error,
                                          bool fatal)
{
    domi_house *parent = house->parent;

    if (house->behaviour->kind == DOMUS_CHANNELS &&
        manager->io_hooks.channel_failed(manager, house, error))
        return; /* a failure that a peer may cause is not reported to the owner of the channel */
    domi_counter_add(&manager->counters.failures, 1);
    domi_counter_add(&manager->tallies[house->tally].failures, 1);
    if ((house->marks & DOMI_MARK_STOPPING) != 0)
        return; /* a failure of an actor that is stopping needs no decision: it ends in any case */
    if ((house->marks & DOMI_MARK_SUSPENDED) != 0) {
        /* The parent is deciding on an earlier failure of the actor, and its decision holds for
         * this failure, too. If this failure is fatal, the actor must not simply resume. */
        if (fatal)
            house->marks |= DOMI_MARK_FATAL;
        return;
    }
    house->reason = (int16_t)(error > INT16_MIN ? error : INT16_MIN);
    domi_manager_log_event_of_actor(manager, house, DOMI_HAS_FAILED, error);
    if (parent == NULL || domi_house_get_behaviour(parent)->supervision == NULL) {
        decide_on_failure_without_parent(manager, house, fatal);
        return;
    }
    house->marks |= DOMI_MARK_SUSPENDED;
    if (fatal)
        house->marks |= DOMI_MARK_FATAL;
    /* acquire: pairs with home's release of the node. If the node is in use, it carries a stop, or
     * a decision that the parent has made for all its children. Then that decides, and the parent
     * is not told of this failure. */
    uint64_t life = atomic_fetch_or_explicit(&house->life, DOMI_LIFE_NODE, memory_order_acquire);
    if ((life & DOMI_LIFE_NODE) != 0)
        return;
    put_node_of_child_to_parent(manager, house, (uint16_t)-house->reason);
}

static domus_directive choose_directive_for_failed_child(const domus_supervision *supervision,
                                                         const domi_house *child, int error)
{
    for (uint32_t i = 0; i < supervision->rules_count; i++) {
        const domus_rule *rule = &supervision->rules[i];
        if ((rule->behaviour == NULL || rule->behaviour == domi_house_get_behaviour(child)) &&
            (rule->error == 0 || rule->error == error))
            return rule->directive;
    }
    return supervision->otherwise;
}

/* Count one more restart of a child. Returns false if there were too many in the period. */
static bool count_restart_of_child(domi_manager *manager, const domus_supervision *supervision,
                                   domi_family *family)
{
    uint64_t period_ns = supervision->period_ns != 0 ? supervision->period_ns : PERIOD_DEFAULT_NS;
    uint32_t most = supervision->intensity != 0 ? supervision->intensity : INTENSITY_DEFAULT;

    /* The period may have begun on another thread, whose clock was read later than this
     * thread's. */
    bool over = manager->now_ns > family->window_start_ns &&
                manager->now_ns - family->window_start_ns > period_ns;

    if (family->restarts == 0 || over) {
        family->window_start_ns = manager->now_ns;
        family->restarts = 0;
    }
    return ++family->restarts <= most;
}

void domi_family_send_directive(domi_manager *manager, domi_house *child, domus_directive directive)
{
    child->node.owner = (uint16_t)directive;
    child->node.kind = DOMI_DIRECTIVE;
    child->node.lease = domi_house_get_address(child).lease;
    int error = domi_mailbox_put_slow(manager, child, &child->node);
    DOMI_CHECK(error == 0 || manager->ending.has_stopped);
}

/* Reserve the child's node, in order to send the child a directive. Returns false if the node is in
 * use, or if the child was asked to stop: its home then frees the slot, and relies on the node
 * being free. */
static bool reserve_node_of_child(domi_house *child)
{
    uint64_t life = domi_house_life_word(child);

    do {
        if ((life & (DOMI_LIFE_CLOSED | DOMI_LIFE_STOP | DOMI_LIFE_NODE)) != 0)
            return false;
        /* acquire: pairs with home's release of the node, as in
         * domi_family_report_failure_or_decide(). */
    } while (!atomic_compare_exchange_weak_explicit(&child->life, &life, life | DOMI_LIFE_NODE,
                                                    memory_order_acquire, memory_order_relaxed));
    return true;
}

/* Send the directive for a failed child to all its siblings. A stop reaches all of them. A restart
 * skips a child whose node is in use: that child either has failed, too, and gets a directive of
 * its own, or is not mounted yet and needs no restart. */
static void send_directive_to_siblings(domi_manager *manager, const domi_children *children,
                                       const domi_house *failed, domus_directive directive)
{
    for (uint32_t i = 0; i < domi_children_count(children); i++) {
        domi_house *child = domi_children_get_at_place(children, i);
        if (child == failed)
            continue;
        if (directive == DOMUS_STOP)
            (void)domi_house_ask_to_stop(manager, domi_house_get_address(child));
        else if (reserve_node_of_child(child))
            domi_family_send_directive(manager, child, directive);
    }
}

static void decide_on_failed_child_and_direct_it(domi_manager *manager, domi_house *parent,
                                                 domi_house *child, int error)
{
    const domus_supervision *supervision = parent->behaviour->supervision;
    domus_directive directive = DOMUS_STOP;

    /* A child that fails while its parent stops or restarts is stopped, as all children of such a
     * parent are. */
    if (supervision != NULL && (parent->marks & (DOMI_MARK_STOPPING | DOMI_MARK_RESTART)) == 0)
        directive = choose_directive_for_failed_child(supervision, child, error);
    if (directive == DOMUS_RESTART && !count_restart_of_child(manager, supervision, parent->family))
        directive = DOMUS_ESCALATE;
    if (directive == DOMUS_ESCALATE) {
        domi_counter_add(&manager->counters.escalations, 1);
        domi_manager_log_event_of_actor(manager, parent, DOMI_ESCALATES, error);
        domi_family_report_failure_or_decide(manager, parent, error, true);
        directive = DOMUS_STOP;
    }
    if (supervision != NULL && supervision->all_for_one && directive != DOMUS_RESUME)
        send_directive_to_siblings(manager, parent->family->children, child, directive);
    domi_family_send_directive(manager, child, directive);
}

void domi_family_handle_event_of_child(domi_manager *manager, domi_house *parent, domi_node *node)
{
    domi_house *child = domi_node_get_house(node);

    if (node->owner != DOMI_CHILD_GONE) {
        decide_on_failed_child_and_direct_it(manager, parent, child, -(int)node->owner);
        return;
    }
    domi_family_remove_child(child);
    domi_mailbox_put_node_to_free_slot(manager, child);
}

void domi_family_drop_node_of_child(domi_manager *manager, domi_node *node)
{
    /* The nodes of children are dropped only when the system ends, and then slots are not used
     * again. */
    DOMI_CHECK(manager->ending.has_stopped && node->slab == DOMI_SLAB_HOUSE);
}

int domus_escalate(domus_stack *stack, int error)
{
    domi_house *house = domi_stack_get_house(stack);

    if (error >= 0)
        return -EINVAL;
    if ((house->marks & DOMI_MARK_SUSPENDED) != 0)
        return -EALREADY;
    domi_family_report_failure_or_decide(stack->manager, house, error, true);
    return 0;
}
