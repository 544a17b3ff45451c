/* Makes managers, and ends them with their actors. The parts of a manager belong to many storeys
 * (pool, slots, wheels, limits), and this storey knows them all. */
#include "house/dispatch/manage.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/dispatch/dispatch.h"
#include "house/dispatch/incoming.h"
#include "house/dispatch/later.h"
#include "house/dispatch/loan.h"
#include "house/dispatch/phases.h"
#include "house/family/life.h"
#include "house/family/slots.h"
#include "house/message/pool.h"

#include <errno.h>

static const _Atomic uint32_t never_short = DOMUS_MEMORY_NORMAL;

/* --- a manager without io -------------------------------------------------------------------- */

static uint32_t fail_run_channels_without_io(domi_manager *manager, domi_house *house,
                                             uint32_t budget)
{
    (void)manager, (void)house, (void)budget;
    DOMI_NEVER("channels of a manager without io");
}

static void fail_end_conversation_without_io(domi_manager *manager, domi_house *house)
{
    (void)manager, (void)house;
    DOMI_NEVER("a conversation that a channel counts, without io");
}

static void fail_open_channel_without_io(domi_manager *manager, domi_house *house)
{
    (void)manager, (void)house;
    DOMI_NEVER("a channel that opens, without io");
}

static void fail_wait_for_flush_without_io(domi_manager *manager, struct domi_promise *promise)
{
    (void)manager, (void)promise;
    DOMI_NEVER("a wait for bytes to leave, without io");
}

static bool fail_no_channel_without_io(domi_manager *manager, domi_house *house, int error)
{
    (void)manager, (void)house, (void)error;
    return false;
}

static bool take_no_event_without_io(domi_manager *manager, domi_house *house,
                                     domi_envelope *message)
{
    (void)manager, (void)house, (void)message;
    return false;
}

static void fail_watch_descriptor_without_io(domi_manager *manager, domi_node *node)
{
    (void)manager, (void)node;
    DOMI_NEVER("a watch on a descriptor, without io");
}

static void fail_answer_request_without_io(domi_manager *manager, domi_house *house,
                                           domi_envelope *ask, const domus_type *type,
                                           const void *payload)
{
    (void)manager, (void)house, (void)ask, (void)type, (void)payload;
    DOMI_NEVER("a request of a peer, without io");
}

static void fail_failing_request_without_io(domi_manager *manager, domi_house *house,
                                            domi_envelope *ask, int error)
{
    (void)manager, (void)house, (void)ask, (void)error;
    DOMI_NEVER("a request of a peer, without io");
}

static void fail_answer_peer_without_io(domi_manager *manager, domi_house *house, uint32_t number,
                                        int error, domi_envelope *answer)
{
    (void)manager, (void)house, (void)number, (void)error, (void)answer;
    DOMI_NEVER("a request of a peer, without io");
}

static int release_no_message_without_io(domi_manager *manager, domi_house *house,
                                         domi_envelope *message, bool leaves)
{
    (void)manager, (void)house, (void)message, (void)leaves;
    return 0;
}

static bool send_no_mail_without_io(domi_manager *manager, domi_house *house,
                                    domi_envelope *message)
{
    (void)manager, (void)house, (void)message;
    return false;
}

static bool have_no_unsent_asks_without_io(domi_house *house, uint32_t index, domi_node ***ret_list,
                                           uint32_t **ret_count)
{
    (void)house, (void)index, (void)ret_list, (void)ret_count;
    return false;
}

static void return_no_mail_without_io(domi_manager *manager, domi_house *house)
{
    (void)manager, (void)house;
}

static uint32_t stop_no_channel_without_io(domi_manager *manager, domi_house *house)
{
    (void)manager, (void)house;
    return 0;
}

const domi_io_hooks domi_hooks_without_io = {
    .run_channels = fail_run_channels_without_io,
    .open_channel = fail_open_channel_without_io,
    .conversation_ended = fail_end_conversation_without_io,
    .flush_left = fail_wait_for_flush_without_io,
    .answer_request = fail_answer_request_without_io,
    .fail_request = fail_failing_request_without_io,
    .answer_peer = fail_answer_peer_without_io,
    .release_message = release_no_message_without_io,
    .send_mail = send_no_mail_without_io,
    .unsent_asks = have_no_unsent_asks_without_io,
    .return_mail = return_no_mail_without_io,
    .channel_failed = fail_no_channel_without_io,
    .take_event = take_no_event_without_io,
    .descriptor_handled = fail_watch_descriptor_without_io,
    .descriptor_cancel = fail_watch_descriptor_without_io,
    .descriptor_noted = fail_watch_descriptor_without_io,
    .stop_channels = stop_no_channel_without_io,
};

/* --- the beginning --------------------------------------------------------------------------- */

static void free_tables_of_manager(domi_manager *manager)
{
    domi_memory_free((void *)atomic_load_explicit(&manager->cancelled, memory_order_relaxed));
    domi_memory_free(manager->pool.chains);
    domi_memory_free(manager->births.slots_of);
    domi_memory_free(manager->mail.links.by_home);
}

static void set_options_of_manager(domi_manager *manager, const domi_manager_options *options)
{
    manager->index = options->index;
    manager->count = options->count;
    manager->threads = options->threads != 0 ? options->threads : options->count - 1;
    manager->managers = options->managers;
    manager->config = options->config;
    manager->now_ns = options->now_ns;
    if (options->hooks != NULL)
        manager->hooks = *options->hooks;
    manager->thread = options->thread;
    manager->system = options->system;
    manager->io_hooks = options->io_hooks != NULL ? *options->io_hooks : domi_hooks_without_io;
    manager->io = options->io;
    manager->asker = options->asker;
    manager->memory.pressure = options->pressure != NULL ? options->pressure : &never_short;
    manager->directory.names = options->names;
    manager->directory.letters = options->letters;
    manager->directory.groups = options->groups;
    manager->directory.routers = options->routers;
    manager->directory.remotes = options->remotes;
    manager->directory.grains = options->grains;
    manager->directory.processes = options->processes;
    manager->directory.behaviours = options->behaviours;
}

static void set_limits_of_actors(domi_manager *manager, const domus_config *config)
{
    manager->limits.mailbox_max = config->scheduler.mailbox_max;
    domi_manager_open_or_close_home_lane(manager);
    domi_manager_set_messages_per_run(manager, config->scheduler.messages_per_run_max);
    manager->limits.conversations_max = config->scheduler.conversations_max;
    manager->schedule.ready[DOMUS_STATE].normal_every = config->scheduler.normal_every;
    manager->schedule.ready[DOMUS_CHANNELS].normal_every = config->scheduler.normal_every;
}

void domi_manager_set_config(domi_manager *manager, const domus_config *config)
{
    manager->taken = *config;
    manager->config = &manager->taken;
    set_limits_of_actors(manager, config);
}

int domi_manager_init(domi_manager *manager, const domi_manager_options *options)
{
    uint32_t count = options->count;

    DOMI_CHECK(count <= DOMI_MANAGERS_MAX && options->index < count);
    domi_manager_become_owner(manager);
    set_options_of_manager(manager, options);
    set_limits_of_actors(manager, options->config);
    manager->pool.chains = domi_memory_new(count * sizeof(domi_chain));
    manager->births.slots_of = domi_memory_new(count * sizeof(domi_slot_cache));
    manager->mail.links.by_home = domi_memory_new(count * sizeof(domi_link_chain));
    if (manager->pool.chains == NULL || manager->births.slots_of == NULL ||
        manager->mail.links.by_home == NULL) {
        free_tables_of_manager(manager);
        return -ENOMEM;
    }
    if (domi_belts_init(manager) != 0) {
        free_tables_of_manager(manager);
        return -ENOMEM;
    }
    domi_pool_init(manager);
    domi_slots_init(manager);
    domi_spinlock_init(&manager->loans.shared_lock);
    domi_spinlock_init(&manager->memory.watches.lock);
    domi_wheel_init(&manager->timing.wheel, options->now_ns);
    domi_wheel_init(&manager->timing.deadlines, options->now_ns);
    /* each manager places the first actor that it spreads over threads on another thread */
    manager->births.next_home = options->index;
    return 0;
}

int domi_manager_spawn_asker_for_outside(domi_manager *manager, const domus_behaviour *behaviour,
                                         domus_address *ret_address)
{
    int result = domi_house_spawn_without_parent(manager, manager, behaviour, NULL, ret_address);

    if (result != 0)
        return result;
    (void)domi_manager_mount_actors(manager);
    manager->asker = ret_address->house;
    return 0;
}

/* --- the end --------------------------------------------------------------------------------- */

void domi_manager_fini(domi_manager *manager)
{
    domi_belts_fini(manager);
    domi_slots_fini(manager);
    domi_pool_fini(manager);
    free_tables_of_manager(manager);
}

static void end_actor_with_system(void *house, void *manager)
{
    domi_house_end_with_system(manager, house);
}

void domi_manager_end_actors(domi_manager *manager)
{
    DOMI_CHECK(domi_manager_is_owned_by_caller(manager));
    manager->ending.has_stopped = true;
    domi_loans_take_all_back_at_end(manager);
    (void)domi_manager_take_arrivals(manager);
    (void)domi_belts_take_all_messages(manager);
    domi_slots_visit_all(manager, end_actor_with_system, manager);
    domi_laters_free_events(manager);
    manager->schedule.ready[DOMUS_STATE] = manager->schedule.ready[DOMUS_CHANNELS] =
        (domi_queue){0};
    manager->schedule.mounting = (domi_fifo){NULL, NULL};
}

static void stop_actor_without_parent(void *house_, void *manager)
{
    domi_house *house = house_;
    uint64_t life = domi_house_life_word(house);

    if ((life & DOMI_LIFE_CLOSED) == 0 && house->parent == NULL)
        (void)domi_house_ask_to_stop(manager, domi_house_get_address(house));
}

void domi_manager_stop_actors(domi_manager *manager)
{
    DOMI_CHECK(domi_manager_is_owned_by_caller(manager));
    (void)domi_manager_take_arrivals(manager);
    domi_slots_visit_all(manager, stop_actor_without_parent, manager);
}
