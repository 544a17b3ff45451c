/* Puts messages to grains: a put finds the life of a key or makes one, and the end of a life makes
 * the next one for the mail that it left. grain.h has the states and why nothing is lost.
 *
 * No code of a user runs under a lock of a kind: `make` runs while the grain is MAKING, and mail
 * that cannot be handled is taken out under the lock and dropped after it. Links into arrivals are
 * gathered under the lock, so no thread is woken there. */
#include "house/directory/grain.h"

#include "base/check.h"
#include "house/conversation/dead.h"
#include "house/family/family.h"
#include "house/family/life.h"
#include "house/message/arrivals.h"
#include "house/message/mailbox.h"
#include "house/message/order.h"
#include "house/message/owned.h"
#include "house/message/pooled.h"
#include "house/message/types.h"

#include <errno.h>
#include <string.h>

/* The house to which the name of a grain leads while its first life is made. Nothing is ever put to
 * this house: it has no home, and a put reads the state of the grain first. */
static domi_house nobody;

static const domus_address nobody_yet = {&nobody, 0};

static void lock_stripe_of_kind(domi_manager *manager, domi_grain_kind *kind, uint32_t stripe)
{
    domi_links_begin_batch(manager);
    domi_spinlock_lock(&kind->stripes[stripe].lock);
}

static void unlock_stripe_of_kind(domi_manager *manager, domi_grain_kind *kind, uint32_t stripe)
{
    domi_spinlock_unlock(&kind->stripes[stripe].lock);
    domi_links_end_batch(manager);
}

/* --- parts ---------------------------------------------------------------------------------- */

/* FNV-1a of the kind's name and the key, with a last step that spreads the upper bits. The hash has
 * no secret, because each node has to find the same part. */
static uint64_t hash_text_by_fnv(uint64_t hash, const char *text, uint32_t *ret_length)
{
    uint32_t length = 0;

    while (text[length] > ' ' && text[length] <= '~' && length <= DOMI_NAME_MAX)
        hash = (hash ^ (unsigned char)text[length++]) * UINT64_C(0x100000001b3);
    *ret_length = length;
    return hash * UINT64_C(0x100000001b3);
}

int domi_grain_part_of_key(const domi_grain_kind *kind, const char *key)
{
    uint32_t length;
    uint64_t hash = hash_text_by_fnv(UINT64_C(0xcbf29ce484222325), kind->name, &length);

    hash = hash_text_by_fnv(hash, key, &length);
    if (length == 0 || length > DOMI_NAME_MAX || key[length] != '\0')
        return -EINVAL;
    return (int)((hash ^ hash >> 32) % DOMUS_REMOTE_PARTS);
}

static domi_grain_parts *get_parts_of_grain(const domi_grain *grain)
{
    /* acquire: pairs with the release store in domus_remote_grains_place(). */
    return atomic_load_explicit(&grain->kind->parts, memory_order_acquire);
}

/* Record in a new grain, if its kind is spread over nodes, its part and the fence of that part.
 * Returns 0; -EHOSTDOWN if this system does not have the part. */
static int record_part_of_new_grain(domi_grain *grain)
{
    domi_grain_parts *parts = get_parts_of_grain(grain);

    if (parts == NULL)
        return 0;
    grain->part = (uint16_t)domi_grain_part_of_key(grain->kind, grain->key);
    /* The grain is counted before the fence is read: a thread that removes the fence and then
     * counts no grain knows that no grain of this part is being made. seq_cst for that, as in
     * domus_remote_part_set(). */
    atomic_fetch_add_explicit(&parts->living[grain->part], 1, memory_order_seq_cst);
    grain->fence = atomic_load_explicit(&parts->fences[grain->part], memory_order_seq_cst);
    if (grain->fence != 0)
        return 0;
    atomic_fetch_sub_explicit(&parts->living[grain->part], 1, memory_order_release);
    return -EHOSTDOWN;
}

/* True if this system has lost the grain's part since the life was made. */
static bool has_system_lost_part(const domi_grain *grain)
{
    return grain->fence != 0 &&
           atomic_load_explicit(&get_parts_of_grain(grain)->fences[grain->part],
                                memory_order_relaxed) != grain->fence;
}

/* --- mail that is held ---------------------------------------------------------------------- */

/* Append the circular list `more` of held mail to `tail`. */
static void append_list_of_held_mail(domi_node **tail, domi_node *more)
{
    if (more == NULL)
        return;
    if (*tail != NULL) {
        domi_node *first = (*tail)->next;
        (*tail)->next = more->next;
        more->next = first;
    }
    *tail = more;
}

/* Mark a message that goes to another life of its grain than it was put to. If it is an ask, the
 * actor that holds it tells the asker, so that a cancel finds the ask there (asks.h). */
static void mark_ask_passed_on(domi_node *node)
{
    if (node->kind == DOMI_ASK)
        domi_envelope_get_return_of_ask((domi_envelope *)(void *)node)->until |= DOMI_PASSED_ON;
}

/* Hold a message for the next life of a grain. Mail that a life has given back counts, too:
 * otherwise a grain whose lives end before they have handled anything would hold mail without end.
 * Returns 0; -ENOBUFS; -EBUSY. Under the lock. */
static int hold_message_for_next_life(domi_manager *manager, domi_grain *grain, domi_node *node)
{
    uint32_t own = grain->kind->table.options.mailbox_max;

    if (manager->memory.busy) {
        domi_counter_add(&manager->counters.busy, 1);
        return -EBUSY;
    }
    if (grain->held >= (own != 0 ? own : manager->limits.mailbox_max)) {
        domi_counter_add(&manager->counters.refusals, 1);
        return -ENOBUFS;
    }
    mark_ask_passed_on(node);
    /* The held message is in no mailbox yet, and owns what its payload owns. */
    node->lease = DOMI_LEASE_OWNED;
    domi_list_append_node(&grain->waiting, node);
    grain->held++;
    return 0;
}

/* Put the held mail of a grain to its new life. If this life stops already, the rest is held for
 * the next life; mail that it has taken comes back and stands before the rest. Under the lock. */
static void deliver_held_mail(domi_manager *manager, domi_grain *grain)
{
    domi_node *all = grain->returned;

    append_list_of_held_mail(&all, grain->waiting);
    grain->returned = grain->waiting = NULL;
    while (all != NULL) {
        domi_node *node = domi_list_take_first_node(&all);
        if (domi_mailbox_put_despite_bound(manager, grain->address, node, node->kind) != 0) {
            domi_list_append_node(&grain->waiting, node);
            append_list_of_held_mail(&grain->waiting, all);
            return;
        }
    }
    grain->held = 0;
}

/* --- lives ---------------------------------------------------------------------------------- */

/* Returns the home on which a new life of a grain of this kind is made. `near` is the home of the
 * actor whose message needs the life. */
static domi_manager *choose_home_of_grain_life(domi_manager *manager, domi_manager *near,
                                               const domus_spawn_options *options)
{
    if (options->pool != NULL)
        return domi_pooled_part_of_pool(options->pool)->home;
    if (options->placement == DOMUS_ON_THREAD)
        return manager->managers[options->thread];
    if (options->placement == DOMUS_NEAR &&
        (near->index < manager->threads || near->pooled != NULL))
        return near;
    return manager->managers[manager->births.next_home++ % manager->threads];
}

static int fill_state_of_life(domi_grain *grain, void *self)
{
    const domus_grain_kind *table = &grain->kind->table;
    int error = table->make != NULL ? table->make(table->context, grain->key, self) : 0;

    return error < 0 ? error : 0;
}

static int spawn_life_of_grain(domi_manager *manager, domi_manager *near, domi_grain *grain,
                               domus_address *ret_address)
{
    const domus_grain_kind *table = &grain->kind->table;
    const domi_birth birth = {
        .grain = grain, .fill = fill_state_of_life, .ends_on_failure = table->ends_on_failure};

    return domi_house_spawn_for_directory(
        manager, NULL, choose_home_of_grain_life(manager, near, &table->options), table->behaviour,
        NULL, &table->options, &birth, ret_address);
}

/* Under the lock, remove a grain without life. Returns its mail, to be dropped after the lock. */
static domi_node *remove_grain_without_life(domi_grain *grain)
{
    domi_node *left = grain->returned;

    append_list_of_held_mail(&left, grain->waiting);
    grain->returned = grain->waiting = NULL;
    grain->held = 0;
    /* The part's count goes down first, because another grain may get the name's slot at once. */
    if (grain->fence != 0)
        atomic_fetch_sub_explicit(&get_parts_of_grain(grain)->living[grain->part], 1,
                                  memory_order_release);
    int error = domi_names_remove_name(&grain->kind->names, grain->slot, nobody_yet);
    DOMI_CHECK(error == 0);
    return left;
}

/* Drop the mail of a grain that could not be made. `last`: its last life's house, or `nobody`. */
static void drop_mail_of_unmade_grain(domi_manager *manager, domi_house *last, domi_node *mail,
                                      int error)
{
    while (mail != NULL)
        domi_mailbox_end_unhandled_message(manager, last, domi_list_take_first_node(&mail), error);
}

/* The outcome of one attempt to make a life of a grain. */
typedef enum outcome {
    LIVES,
    AGAIN, /* the life has ended before it was recorded, and mail waits for the next one */
    OVER,  /* the life cannot be made, or has ended, and no mail waits */
} outcome;

/* Record the life at `address` of a grain that is MAKING, and put `first` (or NULL) and then the
 * held mail to it. With OVER `ret_error` gets the reason why the life could not be made. Under the
 * lock. */
static outcome put_held_mail_into_new_life(domi_manager *manager, domi_grain *grain,
                                           domus_address address, domi_node *first, int *ret_error)
{
    grain->address = address;
    if (first != NULL) {
        /* The message is in no mailbox yet, and owns what its payload owns (message/owned.h). */
        first->lease = DOMI_LEASE_OWNED;
        first->next = first;
        append_list_of_held_mail(&first, grain->waiting);
        grain->waiting = first;
    }
    if (grain->state == DOMI_GRAIN_ENDED) {
        grain->state = DOMI_GRAIN_MAKING;
        *ret_error = grain->reason;
        bool waits = grain->returned != NULL || grain->waiting != NULL;
        return grain->reason == 0 && waits ? AGAIN : OVER;
    }
    deliver_held_mail(manager, grain);
    grain->state = DOMI_GRAIN_LIVES;
    domi_names_redirect_name(&grain->kind->names, grain->slot, address);
    return LIVES;
}

/* Try once to make a life of a grain that is MAKING, for the message `first` (or NULL) and the held
 * mail. Returns 0 if the message was taken; a negative errno if no actor was spawned. With OVER the
 * grain is removed. */
static int try_once_to_make_life(domi_manager *manager, domi_manager *near, domi_grain *grain,
                                 domi_node *first, domus_address *ret_address, outcome *ret_what)
{
    domi_grain_kind *kind = grain->kind;
    uint32_t stripe = grain->stripe;
    domi_node *left = NULL;
    domus_address address = {&nobody, 0};
    int error = spawn_life_of_grain(manager, near, grain, &address);
    int why = error;
    outcome what = OVER;

    lock_stripe_of_kind(manager, kind, stripe);
    if (error == 0)
        what = put_held_mail_into_new_life(manager, grain, address, first, &why);
    if (what == OVER)
        left = remove_grain_without_life(grain);
    unlock_stripe_of_kind(manager, kind, stripe);
    drop_mail_of_unmade_grain(manager, address.house, left, why);
    *ret_address = address;
    *ret_what = what;
    return error;
}

/* Make a life of a grain that is MAKING. A life that ends at once is followed by the next one.
 * Parameters and results are those of try_once_to_make_life(). */
static int make_life_of_grain(domi_manager *manager, domi_manager *near, domi_grain *grain,
                              domi_node *first, domus_address *ret_address)
{
    outcome what;
    int error = try_once_to_make_life(manager, near, grain, first, ret_address, &what);

    while (what == AGAIN)
        (void)try_once_to_make_life(manager, near, grain, NULL, ret_address, &what);
    return error;
}

/* --- a put ---------------------------------------------------------------------------------- */

/* Begin a grain whose name was put. Returns 0; -EAGAIN at the limit of the kind; -EHOSTDOWN if this
 * system does not have its part. Under the lock. */
static int register_new_grain_of_kind(domi_grain_kind *kind, const char *key, uint32_t stripe,
                                      domi_grain **ret_grain)
{
    uint32_t slot;
    int error = domi_names_register_address(&kind->names, key, nobody_yet, &slot);

    if (error != 0)
        return error == -ENOSPC ? -EAGAIN : error;
    domi_grain *grain = &kind->grains[slot];
    *grain = (domi_grain){
        .kind = kind, .slot = slot, .stripe = (uint8_t)stripe, .state = DOMI_GRAIN_MAKING};
    memcpy(grain->key, key,
           strlen(key) + 1); /* domi_names_register_address() has checked the key's length */
    error = record_part_of_new_grain(grain);
    if (error != 0) {
        int removed = domi_names_remove_name(&kind->names, slot, nobody_yet);
        DOMI_CHECK(removed == 0);
        return error;
    }
    *ret_grain = grain;
    return 0;
}

/* Put a message to a grain that is in the table: to its life, or to the mail that is held for the
 * next one. Under the lock. */
static int put_message_to_life_or_hold_it(domi_manager *manager, domi_grain *grain, domi_node *node,
                                          domus_address *ret_address)
{
    *ret_address = grain->address;
    if (grain->state == DOMI_GRAIN_LIVES) {
        node->lease = grain->address.lease;
        int error = domi_mailbox_put_slow(manager, grain->address.house, node);
        if (error != -ESTALE)
            return error;
    }
    return hold_message_for_next_life(manager, grain, node);
}

/* Put a message that cannot take the home lane. `hit` is the result of the search for the name. */
__attribute__((noinline)) static int
put_message_to_grain_under_lock(domi_manager *manager, domi_manager *near, domi_grain_kind *kind,
                                const char *key, domi_node *node, domi_names_hit hit, int found,
                                domus_address *ret_address)
{
    uint32_t stripe = (uint32_t)(hit.hash % DOMI_GRAIN_STRIPES);
    domi_grain *grain = NULL;
    int error;

    lock_stripe_of_kind(manager, kind, stripe);
    if (found != 0 || !domi_names_is_hit_still_true(&kind->names, &hit))
        found = domi_names_find_hit_of_name(&kind->names, key, &hit);
    if (found == 0)
        error = put_message_to_life_or_hold_it(manager, &kind->grains[hit.slot], node, ret_address);
    else
        error = register_new_grain_of_kind(kind, key, stripe, &grain);
    unlock_stripe_of_kind(manager, kind, stripe);
    if (grain == NULL)
        return error;
    return make_life_of_grain(manager, near, grain, node, ret_address);
}

int domi_grain_put_in_this_system(domi_manager *manager, domi_manager *near, domi_grain_kind *kind,
                                  const char *key, domi_node *node, uint32_t mail,
                                  domus_address *ret_address)
{
    domi_names_hit hit;

    int found = domi_names_find_hit_of_name(&kind->names, key, &hit);
    if (DOMI_LIKELY(found == 0) &&
        domi_mailbox_put_by_home_lane(manager, hit.address, node, mail)) {
        *ret_address = hit.address;
        return 0;
    }
    if (found == -EINVAL)
        return found;
    node->kind = (uint8_t)mail;
    return put_message_to_grain_under_lock(manager, near, kind, key, node, hit, found, ret_address);
}

/* --- the end of a life ---------------------------------------------------------------------- */

static domi_grain *get_grain_of_house(const domi_house *house)
{
    return house->family != NULL ? house->family->grain : NULL;
}

/* True if a message is for this life of a grain only: the last notice of domus_stop_after_mail(),
 * and a publication to a member of a group. */
static bool is_message_for_this_life_only(const domi_node *node)
{
    return node->slab == DOMI_SLAB_SHARED ||
           ((const domi_envelope *)(const void *)node)->type == &domi_last_type;
}

/* Move the grain's mail from a list of its life's house to the list `to`; mail for this life alone
 * is dropped. Returns the number of moved messages. */
static uint32_t move_mail_of_life_to_list(domi_manager *manager, domi_house *house,
                                          domi_node **from, domi_node **to)
{
    uint32_t count = 0;

    while (*from != NULL) {
        domi_node *node = domi_list_take_first_node(from);
        if (is_message_for_this_life_only(node)) {
            domi_mailbox_end_unhandled_message(manager, house, node, -ESTALE);
            continue;
        }
        mark_ask_passed_on(node);
        domi_list_append_node(to, node);
        count++;
    }
    return count;
}

/* Move the mail of a life that the actor's order has sorted (order.h), as
 * move_mail_of_life_to_list() does. The next life sorts this mail again. */
static uint32_t move_sorted_mail_of_life(domi_manager *manager, domi_house *house, domi_node **mail)
{
    domi_strand *strand;
    uint32_t count = 0;

    if (house->family->order == NULL)
        return 0;
    for (uint32_t i = 0; (strand = domi_order_get_strand(house, i)) != NULL; i++) {
        count += move_mail_of_life_to_list(manager, house, &strand->tail, mail);
        strand->count = 0;
    }
    domi_order_correct_strands_after_walk(house);
    house->family->order->at_last = false;
    return count;
}

void domi_grain_take_mail_of_ending_life(domi_manager *manager, domi_house *house)
{
    domi_grain *grain = get_grain_of_house(house);
    domi_node *mail = NULL;

    uint32_t count = move_mail_of_life_to_list(manager, house, &house->family->stash[0], &mail);
    count += move_mail_of_life_to_list(manager, house, &house->family->stash[1], &mail);
    count += move_sorted_mail_of_life(manager, house, &mail);
    count += move_mail_of_life_to_list(manager, house, &house->tails[DOMI_ASK], &mail);
    count += move_mail_of_life_to_list(manager, house, &house->tails[DOMI_NOTICE], &mail);
    /* The kind's lock is taken also if no mail was moved: a sender that holds it may have read the
     * life word before the stop. Once this thread has the lock, that sender's message is in the
     * inbox, which the end of the stop then finds. Senders that come later see the stop. */
    lock_stripe_of_kind(manager, grain->kind, grain->stripe);
    append_list_of_held_mail(&grain->returned, mail);
    grain->held += count;
    unlock_stripe_of_kind(manager, grain->kind, grain->stripe);
}

/* True if a life of a grain ends without a call of its on_stop, because it was not mounted. */
static bool is_life_unmounted(const domi_house *house)
{
    return (house->marks & DOMI_MARK_UNMOUNTED) != 0 || house->state == DOMI_MOUNTING;
}

/* Returns the reason why a life was not made: the error of its on_mount; 0: the life was made, or
 * stopped before. */
static int get_reason_why_life_was_not_made(const domi_house *house)
{
    return house->family->is_unmade || is_life_unmounted(house) ? house->reason : 0;
}

void domi_grain_remove_or_make_next_life(domi_manager *manager, domi_house *house)
{
    domi_grain *grain = get_grain_of_house(house);
    domi_node *left = NULL;

    if (grain == NULL)
        return;
    domi_grain_kind *kind = grain->kind;
    uint32_t stripe = grain->stripe;
    const domus_grain_kind *table = &kind->table;
    int error = get_reason_why_life_was_not_made(house);
    bool again = false;
    domus_address next;
    house->family->grain = NULL;
    if (error == 0 && has_system_lost_part(grain))
        error = -EHOSTDOWN;
    if (table->unmake != NULL && is_life_unmounted(house))
        table->unmake(table->context, grain->key, house->self);
    lock_stripe_of_kind(manager, kind, stripe);
    if (grain->state == DOMI_GRAIN_MAKING) {
        grain->state = DOMI_GRAIN_ENDED;
        grain->reason = (int16_t)error;
    } else {
        grain->state = DOMI_GRAIN_MAKING;
        domi_names_redirect_name(&kind->names, grain->slot, nobody_yet);
        again = error == 0 && (grain->returned != NULL || grain->waiting != NULL);
        if (!again)
            left = remove_grain_without_life(grain);
    }
    unlock_stripe_of_kind(manager, kind, stripe);
    if (again)
        (void)make_life_of_grain(manager, house->home, grain, NULL, &next);
    drop_mail_of_unmade_grain(manager, house, left, error);
}
