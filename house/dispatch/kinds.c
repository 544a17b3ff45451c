/* Fills the two tables by which lower storeys call higher ones (message/kind.h, message/doors.h).
 *
 * This storey knows all objects, so it fills the tables. A function of this file only gives a
 * kind's own function the type that its slot in the table needs. tests/house/house_test.c reports
 * an entry that was forgotten. */
#include "base/check.h"
#include "house/conversation/asks.h"
#include "house/conversation/stack.h"
#include "house/conversation/timer.h"
#include "house/directory/grain.h"
#include "house/directory/group.h"
#include "house/directory/name.h"
#include "house/directory/remote.h"
#include "house/directory/router.h"
#include "house/family/family.h"
#include "house/family/life.h"
#include "house/family/memory_watch.h"
#include "house/family/passivation.h"
#include "house/family/watch.h"
#include "house/message/doors.h"
#include "house/message/kind.h"
#include "house/message/letters.h"
#include "house/message/remote.h"
#include "house/message/types.h"

/* --- slots that a kind never uses, or in which it has nothing to do --------------------------- */

static _Noreturn void fail_check_of_unused_slot(const char *what)
{
    domi_check_failed(what, __FILE__, __LINE__, __func__);
}

/* Fail a check, because a node of this kind never comes to the house itself. */
static void fail_because_kind_never_arrives(domi_manager *manager, domi_house *house,
                                            domi_node *node)
{
    (void)manager, (void)house, (void)node;
    fail_check_of_unused_slot("a node of this kind never comes to the house itself");
}

static bool fail_because_kind_has_no_event_to_begin(domi_manager *manager, domi_house *house,
                                                    domi_node *node)
{
    (void)manager, (void)house, (void)node;
    fail_check_of_unused_slot("a node of this kind never lies in an event mailbox");
}

static void fail_because_kind_has_no_event_to_end(domi_manager *manager, domi_house *house,
                                                  domi_node *node)
{
    (void)fail_because_kind_has_no_event_to_begin(manager, house, node);
}

static void fail_because_kind_is_never_dropped(domi_manager *manager, domi_node *node)
{
    (void)manager, (void)node;
    fail_check_of_unused_slot("a node of this kind is never dropped by the table");
}

static void fail_because_kind_leaves_no_note(domi_manager *home, domi_node *node)
{
    (void)home, (void)node;
    fail_check_of_unused_slot("a node of this kind is never noted");
}

static void fail_because_kind_is_never_attached(domi_manager *manager, domi_node *node)
{
    (void)manager, (void)node;
    fail_check_of_unused_slot("an object of this kind is never attached to a house");
}

/* Do nothing at the end of an event of a kind whose events leave no work. */
static void end_event_without_work(domi_manager *manager, domi_house *house, domi_node *node)
{
    (void)manager, (void)house, (void)node;
}

static void leave_attached_object_uncancelled(domi_manager *manager, domi_node *node)
{
    (void)manager, (void)node;
}

/* --- timers ----------------------------------------------------------------------------------- */

static domi_timer *get_timer_of_node(domi_node *node)
{
    return (domi_timer *)(void *)node;
}

/* True if the timer is the one that measures the idle time of its actor, and was not cancelled. */
static bool is_idle_timer(const domi_timer *timer)
{
    return timer->event.type == &domi_idle_type && !timer->cancelled;
}

static bool begin_event_of_timer(domi_manager *manager, domi_house *house, domi_node *node)
{
    const domi_timer *timer = get_timer_of_node(node);

    (void)manager;
    if (is_idle_timer(timer)) {
        house->family->idle_looked = true;
        return false;
    }
    return !timer->cancelled;
}

static void end_event_of_timer(domi_manager *manager, domi_house *house, domi_node *node)
{
    bool was_idle_timer = is_idle_timer(get_timer_of_node(node));

    domi_timer_free_or_rearm_after_event(manager, get_timer_of_node(node));
    if (was_idle_timer)
        domi_house_check_idle_time(manager, house);
}

static void carry_out_note_of_timer(domi_manager *home, domi_node *node)
{
    domi_timer_carry_out_note_of_thief(home, get_timer_of_node(node));
}

static void cancel_attached_timer(domi_manager *manager, domi_node *node)
{
    domi_timer_cancel(manager, get_timer_of_node(node));
}

/* --- promises --------------------------------------------------------------------------------- */

static void carry_out_note_of_promise(domi_manager *home, domi_node *node)
{
    domi_promise_carry_out_note_of_thief(home, (domi_promise *)(void *)node);
}

/* --- watches on memory ------------------------------------------------------------------------ */

static domi_memory_watch *get_memory_watch_of_node(domi_node *node)
{
    return (domi_memory_watch *)(void *)node;
}

static bool begin_event_of_memory_watch(domi_manager *manager, domi_house *house, domi_node *node)
{
    (void)house;
    return domi_memory_watch_read_levels_for_event(manager, get_memory_watch_of_node(node));
}

static void end_event_of_memory_watch(domi_manager *manager, domi_house *house, domi_node *node)
{
    (void)house;
    domi_memory_watch_end_event(manager, get_memory_watch_of_node(node));
}

static void drop_node_of_memory_watch(domi_manager *manager, domi_node *node)
{
    domi_memory_watch_drop_node(manager, get_memory_watch_of_node(node));
}

static void cancel_attached_memory_watch(domi_manager *manager, domi_node *node)
{
    domi_memory_watch_cancel(manager, get_memory_watch_of_node(node));
}

/* --- watches on descriptors, which belong to io ----------------------------------------------- */

/* Begin the event of a watch on a descriptor. Returns false if the event has an error: then its
 * watch was taken back, so the event is not handled. */
static bool begin_event_of_descriptor_watch(domi_manager *manager, domi_house *house,
                                            domi_node *node)
{
    (void)manager, (void)house;
    return ((const domi_envelope *)(const void *)node)->error == 0;
}

static void end_event_of_descriptor_watch(domi_manager *manager, domi_house *house, domi_node *node)
{
    (void)house;
    manager->io_hooks.descriptor_handled(manager, node);
}

static void drop_node_of_descriptor_watch(domi_manager *manager, domi_node *node)
{
    manager->io_hooks.descriptor_handled(manager, node);
}

static void carry_out_note_of_descriptor_watch(domi_manager *home, domi_node *node)
{
    home->io_hooks.descriptor_noted(home, node);
}

static void cancel_attached_descriptor_watch(domi_manager *manager, domi_node *node)
{
    manager->io_hooks.descriptor_cancel(manager, node);
}

/* --- houses ----------------------------------------------------------------------------------- */

/* Handle the event of a child's node here, so that no row of the parent's behaviour gets it. */
static bool handle_event_of_child_without_row(domi_manager *manager, domi_house *house,
                                              domi_node *node)
{
    domi_family_handle_event_of_child(manager, house, node);
    return false;
}

/* --- the tables ------------------------------------------------------------------------------- */

/* The row of messages in the table of kinds. Its functions only fail checks, because messages are
 * handled and dropped by direct calls. */
#define ROW_OF_MESSAGE                                                                             \
    {                                                                                              \
        .handle_arrival = fail_because_kind_never_arrives,                                         \
        .begin_event = fail_because_kind_has_no_event_to_begin,                                    \
        .end_event = fail_because_kind_has_no_event_to_end,                                        \
        .drop = fail_because_kind_is_never_dropped,                                                \
        .carry_out_note = fail_because_kind_leaves_no_note,                                        \
        .cancel = fail_because_kind_is_never_attached,                                             \
    }

#define ROW_OF_STACK                                                                               \
    {                                                                                              \
        .handle_arrival = fail_because_kind_never_arrives,                                         \
        .begin_event = fail_because_kind_has_no_event_to_begin,                                    \
        .end_event = fail_because_kind_has_no_event_to_end,                                        \
        .drop = domi_stack_drop_exception_node,                                                    \
        .carry_out_note = fail_because_kind_leaves_no_note,                                        \
        .cancel = fail_because_kind_is_never_attached,                                             \
    }

#define ROW_OF_PROMISE                                                                             \
    {                                                                                              \
        .handle_arrival = fail_because_kind_never_arrives,                                         \
        .begin_event = fail_because_kind_has_no_event_to_begin,                                    \
        .end_event = fail_because_kind_has_no_event_to_end,                                        \
        .drop = domi_stack_drop_exception_node, .carry_out_note = carry_out_note_of_promise,       \
        .cancel = fail_because_kind_is_never_attached,                                             \
    }

const domi_kind domi_kinds[DOMI_SLAB_KINDS] = {
    [DOMI_SLAB_64] = ROW_OF_MESSAGE,
    [DOMI_SLAB_128] = ROW_OF_MESSAGE,
    [DOMI_SLAB_256] = ROW_OF_MESSAGE,
    [DOMI_SLAB_512] = ROW_OF_MESSAGE,
    [DOMI_SLAB_1088] = ROW_OF_MESSAGE,
    [DOMI_SLAB_HEAP] = ROW_OF_MESSAGE,
    [DOMI_SLAB_SHARED] = ROW_OF_MESSAGE,
    [DOMI_SLAB_STACK_SMALL] = ROW_OF_STACK,
    [DOMI_SLAB_STACK_MEDIUM] = ROW_OF_STACK,
    [DOMI_SLAB_STACK_LARGE] = ROW_OF_STACK,
    [DOMI_SLAB_PROMISE] = ROW_OF_PROMISE,
    [DOMI_SLAB_STACK_PROMISE] = ROW_OF_PROMISE,
    [DOMI_SLAB_TIMER] =
        {
            .handle_arrival = fail_because_kind_never_arrives,
            .begin_event = begin_event_of_timer,
            .end_event = end_event_of_timer,
            .drop = domi_timer_free_with_dropped_event,
            .carry_out_note = carry_out_note_of_timer,
            .cancel = cancel_attached_timer,
        },
    [DOMI_SLAB_WATCH] =
        {
            .handle_arrival = domi_watch_attach_or_detach_by_node,
            .begin_event = domi_watch_prepare_event_to_handle,
            .end_event = domi_watch_drop_reference_after_event,
            .drop = domi_watch_drop_unhandled_node,
            .carry_out_note = fail_because_kind_leaves_no_note,
            /* an attached watch belongs to its watcher, which is another actor, so it stays */
            .cancel = leave_attached_object_uncancelled,
        },
    [DOMI_SLAB_UNWATCH] =
        {
            .handle_arrival = domi_watch_attach_or_detach_by_node,
            .begin_event = fail_because_kind_has_no_event_to_begin,
            .end_event = fail_because_kind_has_no_event_to_end,
            .drop = domi_watch_drop_unhandled_node,
            .carry_out_note = fail_because_kind_leaves_no_note,
            .cancel = fail_because_kind_is_never_attached,
        },
    [DOMI_SLAB_DESCRIPTOR] =
        {
            .handle_arrival = fail_because_kind_never_arrives,
            .begin_event = begin_event_of_descriptor_watch,
            .end_event = end_event_of_descriptor_watch,
            .drop = drop_node_of_descriptor_watch,
            .carry_out_note = carry_out_note_of_descriptor_watch,
            .cancel = cancel_attached_descriptor_watch,
        },
    [DOMI_SLAB_MEMORY_WATCH] =
        {
            .handle_arrival = fail_because_kind_never_arrives,
            .begin_event = begin_event_of_memory_watch,
            .end_event = end_event_of_memory_watch,
            .drop = drop_node_of_memory_watch,
            .carry_out_note = fail_because_kind_leaves_no_note,
            .cancel = cancel_attached_memory_watch,
        },
    [DOMI_SLAB_MEMBER] =
        {
            .handle_arrival = domi_group_let_member_join_or_leave,
            .begin_event = fail_because_kind_has_no_event_to_begin,
            .end_event = fail_because_kind_has_no_event_to_end,
            .drop = domi_group_drop_late_node_of_member,
            .carry_out_note = fail_because_kind_leaves_no_note,
            .cancel = fail_because_kind_is_never_attached,
        },
    [DOMI_SLAB_HOUSE] =
        {
            .handle_arrival = domi_house_handle_own_node,
            .begin_event = handle_event_of_child_without_row,
            .end_event = end_event_without_work,
            .drop = domi_family_drop_node_of_child,
            .carry_out_note = fail_because_kind_leaves_no_note,
            .cancel = fail_because_kind_is_never_attached,
        },
};

/* --- doors ------------------------------------------------------------------------------------ */

/* Handle the failure of a house. If on_mount of a grain's life fails after it has waited, the life
 * counts as not made. */
static void handle_failure_of_actor(domi_manager *manager, domi_house *house, int error,
                                    const domus_type *begun_by)
{
    bool is_unmade =
        begun_by == &domi_mount_type && house->family != NULL && house->family->grain != NULL;

    if (is_unmade)
        house->family->is_unmade = true;
    domi_family_report_failure_or_decide(manager, house, error, is_unmade);
}

/* Remove an actor that ends from the names, the groups and its routers. If it was a life of a
 * grain, the next life may begin here: nothing of the old one runs any more. */
static void remove_actor_from_directory(domi_manager *manager, domi_house *house)
{
    domi_name_give_back_of_actor(manager, house);
    domi_group_remove_house_from_groups(manager, house);
    domi_router_stop_all_of_actor(manager, house);
    domi_grain_remove_or_make_next_life(manager, house);
    domi_remote_forget_gateway_if_it_ends(manager, house);
}

static int put_to_router_or_remote_actor(domi_manager *manager, domi_house *face, domi_node *node)
{
    return domi_house_is_remote(face) ? domi_remote_put_to_gateway(manager, face, node)
                                      : domi_router_put_to_one_or_all_routees(manager, face, node);
}

static int stop_router_or_remote_actor(domi_manager *manager, domus_address address)
{
    return domi_house_is_remote(address.house) ? domi_remote_stop_actor(manager, address)
                                               : domi_router_stop(manager, address);
}

static bool read_name_of_remote_actor(domi_manager *manager, domus_address address,
                                      domus_remote_name *ret_name)
{
    return domi_remote_read_name(manager->directory.remotes, domi_remote_of_face(address.house),
                                 address.lease, UINT32_MAX, ret_name);
}

const struct domi_doors domi_doors = {
    .put_to_face = put_to_router_or_remote_actor,
    .tell_refused = domi_letters_report_refusal,
    .hold_ask = domi_circle_fail_ask_if_in_circle,
    .stop_face = stop_router_or_remote_actor,
    .read_remote_name = read_name_of_remote_actor,
    .handle_failure = handle_failure_of_actor,
    .return_mail = domi_grain_take_mail_of_ending_life,
    .put_name = domi_name_register_for_actor,
    .stop_routers = domi_router_stop_all_of_actor,
    .leave_directory = remove_actor_from_directory,
};
