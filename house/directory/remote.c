/* The table of remote addresses: finds them by name, makes them, ends them, and uses them again. */
#include "house/directory/remote.h"

#include "base/memory.h"
#include "house/message/remote.h"

#include <errno.h>
#include <string.h>

#define ADDRESSES_DEFAULT 262144u
#define ADDRESSES_MIN     256u
#define ADDRESSES_MAX     16777216u
#define NODES_DEFAULT     1024u
#define NODES_MAX         65536u
/* a free remote address is used again only while there are more free ones than this */
#define REUSE_MIN 128u
#define LOOKS                                                                                      \
    4096u /* addresses that one call of domi_remote_list_idle_addresses() looks at in turn */
#define IDLE_LOOKS 2u /* an address counts as idle after so many looks without a use */

static_assert(ADDRESSES_MAX - 1 == DOMI_REMOTE_INDEX_MAX, "an index has 24 bits");

void domi_remotes_init(domi_remotes *remotes)
{
    *remotes = (domi_remotes){.max = 0};
    domi_spinlock_init(&remotes->lock);
}

static void free_tables_of_remote_addresses(domi_remotes *remotes)
{
    domi_memory_free(remotes->buckets);
    domi_memory_free(remotes->blocks);
    domi_memory_free(remotes->nodes);
    domi_memory_free(
        /* relaxed: no thread runs any more */
        atomic_load_explicit(&remotes->gateways, memory_order_relaxed));
}

void domi_remotes_fini(domi_remotes *remotes)
{
    for (uint32_t i = 0; i < remotes->made; i += DOMI_REMOTES_BLOCK)
        domi_memory_free(remotes->blocks[i / DOMI_REMOTES_BLOCK]);
    free_tables_of_remote_addresses(remotes);
    *remotes = (domi_remotes){.max = 0};
}

/* --- open ------------------------------------------------------------------------------------- */

static int read_and_check_limits_of_remotes(const domus_remote_options *options,
                                            domi_remotes *remotes)
{
    uint32_t max = options != NULL ? options->addresses_max : 0;
    uint32_t nodes_max = options != NULL ? options->nodes_max : 0;

    remotes->max = max != 0 ? max : ADDRESSES_DEFAULT;
    remotes->nodes_max = nodes_max != 0 ? nodes_max : NODES_DEFAULT;
    return remotes->max < ADDRESSES_MIN || remotes->max > ADDRESSES_MAX ||
                   remotes->nodes_max > NODES_MAX
               ? -EINVAL
               : 0;
}

/* Make the tables of remote addresses in a copy, so that a failure leaves the original as it
 * was. */
static int make_tables_of_remote_addresses(const domus_remote_options *options, uint32_t threads,
                                           domi_remotes *ret_made, domi_gateway **ret_gateways)
{
    domi_remotes made = {.threads = threads};
    int error = read_and_check_limits_of_remotes(options, &made);

    if (error != 0)
        return error;
    uint32_t buckets = ADDRESSES_MIN;
    while (buckets < made.max)
        buckets *= 2;
    made.buckets_mask = buckets - 1;
    made.buckets = domi_memory_new(buckets * sizeof(domi_remote *));
    made.blocks = domi_memory_new((made.max / DOMI_REMOTES_BLOCK + 1) * sizeof(domi_remote *));
    made.nodes = domi_memory_new(made.nodes_max * sizeof(domi_remote_node));
    *ret_gateways = domi_memory_new(threads * sizeof(domi_gateway));
    *ret_made = made;
    if (made.buckets != NULL && made.blocks != NULL && made.nodes != NULL && *ret_gateways != NULL)
        return 0;
    domi_memory_free(*ret_gateways);
    free_tables_of_remote_addresses(&made);
    return -ENOMEM;
}

int domi_remotes_allocate_tables(domi_remotes *remotes, const domus_remote_options *options,
                                 uint32_t threads)
{
    domi_gateway *gateways;
    domi_remotes made;

    /* acquire: pairs with the release store of `gateways` below. */
    if (atomic_load_explicit(&remotes->gateways, memory_order_acquire) != NULL)
        return 0;
    int error = make_tables_of_remote_addresses(options, threads, &made, &gateways);
    if (error != 0)
        return error;
    domi_spinlock_lock(&remotes->lock);
    bool is_first = remotes->max == 0;
    if (is_first) {
        remotes->max = made.max;
        remotes->nodes_max = made.nodes_max;
        remotes->buckets_mask = made.buckets_mask;
        remotes->buckets = made.buckets;
        remotes->blocks = made.blocks;
        remotes->nodes = made.nodes;
        remotes->threads = threads;
        /* release: a thread that sees the gateways sees what is constant beside them. */
        atomic_store_explicit(&remotes->gateways, gateways, memory_order_release);
    }
    domi_spinlock_unlock(&remotes->lock);
    if (!is_first) {
        domi_memory_free(gateways);
        free_tables_of_remote_addresses(&made);
    }
    return 0;
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* Returns the entry of the node with this number; a free entry for the number 0; NULL: there is
 * none. Under the lock. */
static domi_remote_node *find_node_by_number(const domi_remotes *remotes, uint64_t number)
{
    for (uint32_t i = 0; i < remotes->nodes_max; i++) {
        if (remotes->nodes[i].number == number)
            return &remotes->nodes[i];
    }
    return NULL;
}

static int get_error_of_remote_node(const domi_remote_node *node)
{
    return atomic_load_explicit((_Atomic int32_t *)(uintptr_t)&node->error, memory_order_relaxed);
}

int domi_remote_node_open(domi_remotes *remotes, uint64_t number, int error)
{
    int result = 0;

    if (number == DOMUS_REMOTE_HERE || error > 0 || error == -ESTALE)
        return -EINVAL;
    domi_spinlock_lock(&remotes->lock);
    domi_remote_node *node = find_node_by_number(remotes, 0);
    if (find_node_by_number(remotes, number) != NULL)
        result = -EALREADY;
    else if (node == NULL)
        result = -ENOSPC;
    if (result == 0) {
        node->number = number;
        node->faces = 0;
        /* Relaxed: a sender gets an address of the node only by way of the lock, and later than
         * this store. */
        atomic_store_explicit(&node->error, error, memory_order_relaxed);
    }
    domi_spinlock_unlock(&remotes->lock);
    return result;
}

/* Free the entry of a node that has ended and has no address any more. Under the lock. */
static void free_entry_of_ended_node_if_unused(domi_remote_node *node)
{
    if (node->faces == 0 && get_error_of_remote_node(node) == -ESTALE)
        node->number = 0;
}

int domi_remote_node_set_state(domi_remotes *remotes, uint64_t number, int error)
{
    if (number == DOMUS_REMOTE_HERE || error > 0)
        return -EINVAL;
    domi_spinlock_lock(&remotes->lock);
    domi_remote_node *node = find_node_by_number(remotes, number);
    if (node != NULL && get_error_of_remote_node(node) != -ESTALE) {
        /* Relaxed: senders may see the node's new state late. */
        atomic_store_explicit(&node->error, error, memory_order_relaxed);
        free_entry_of_ended_node_if_unused(node);
    }
    domi_spinlock_unlock(&remotes->lock);
    return node != NULL ? 0 : -ENOENT;
}

/* --- addresses -------------------------------------------------------------------------------- */

static bool are_names_equal(const domus_remote_name *one, const domus_remote_name *other)
{
    return one->node == other->node && one->number == other->number && one->lease == other->lease &&
           one->home == other->home;
}

static domi_remote **find_bucket_of_name(const domi_remotes *remotes, const domus_remote_name *name)
{
    uint64_t hash = (name->node ^ name->number) * UINT64_C(0xbf58476d1ce4e5b9);

    hash = (hash ^ hash >> 29 ^ name->lease ^ (uint64_t)name->home << 32) *
           UINT64_C(0x94d049bb133111eb);
    return &remotes->buckets[(hash ^ hash >> 31) & remotes->buckets_mask];
}

/* Find the remote address of a name in its bucket. Under the lock. */
static domi_remote *find_remote_in_bucket(const domi_remotes *remotes,
                                          const domus_remote_name *name)
{
    domi_remote *remote = *find_bucket_of_name(remotes, name);

    while (remote != NULL && !are_names_equal(&remote->name, name))
        remote = remote->next;
    return remote;
}

domi_remote *domi_remote_find_by_name(domi_remotes *remotes, const domus_remote_name *name)
{
    domi_spinlock_lock(&remotes->lock);
    domi_remote *remote = find_remote_in_bucket(remotes, name);
    domi_spinlock_unlock(&remotes->lock);
    return remote;
}

static void append_free_address(domi_remotes *remotes, domi_remote *remote)
{
    remote->next = NULL;
    if (remotes->free_last != NULL)
        remotes->free_last->next = remote;
    else
        remotes->free_first = remote;
    remotes->free_last = remote;
    remotes->free_count++;
}

/* Make a block of free remote addresses. Returns false without memory, or if there are as many as
 * allowed. Under the lock, which is held only shortly, and seldom. */
static bool make_block_of_free_addresses(domi_remotes *remotes)
{
    if (remotes->made + DOMI_REMOTES_BLOCK > remotes->max)
        return false;
    domi_remote *block = domi_memory_new_cache_lines(DOMI_REMOTES_BLOCK * sizeof *block);
    if (block == NULL)
        return false;
    remotes->blocks[remotes->made / DOMI_REMOTES_BLOCK] = block;
    for (uint32_t i = 0; i < DOMI_REMOTES_BLOCK; i++) {
        block[i].index = remotes->made + i;
        block[i].face.behaviour = &domi_remote_behaviour;
        /* The first lease of a remote address is 1, because 0 is nobody's. */
        atomic_store_explicit(&block[i].face.life, UINT64_C(1) << 32 | DOMI_LIFE_CLOSED,
                              memory_order_relaxed);
        append_free_address(remotes, &block[i]);
    }
    remotes->made += DOMI_REMOTES_BLOCK;
    return true;
}

/* Take the remote address that has been free for the longest time; make a block of new ones before
 * that, if few are free. Returns 0; -ENOMEM; -ENOSPC. Under the lock. */
static int take_address_that_was_free_longest(domi_remotes *remotes, domi_remote **ret_remote)
{
    if (remotes->free_count <= REUSE_MIN && !make_block_of_free_addresses(remotes)) {
        if (remotes->made + DOMI_REMOTES_BLOCK <= remotes->max)
            return -ENOMEM;
        if (remotes->free_count == 0)
            return -ENOSPC;
    }
    domi_remote *remote = remotes->free_first;
    remotes->free_first = remote->next;
    if (remotes->free_first == NULL)
        remotes->free_last = NULL;
    remotes->free_count--;
    *ret_remote = remote;
    return 0;
}

/* Make a remote address for a name that has none. Under the lock. */
static int make_remote_address_of_name(domi_remotes *remotes, domi_remote_node *node,
                                       const domus_remote_name *name, uint16_t owner,
                                       domi_remote **ret_remote)
{
    int error = take_address_that_was_free_longest(remotes, ret_remote);

    if (error != 0)
        return error;
    domi_remote *remote = *ret_remote;
    domi_remote **bucket = find_bucket_of_name(remotes, name);
    uint64_t life = atomic_load_explicit(&remote->face.life, memory_order_relaxed);
    remote->name = *name;
    node->faces++;
    remotes->count++;
    atomic_store_explicit(&remote->node, node, memory_order_relaxed);
    atomic_store_explicit(&remote->owner, owner, memory_order_relaxed);
    atomic_store_explicit(&remote->is_outlet, false, memory_order_relaxed);
    remote->next = *bucket;
    *bucket = remote;
    /* release: pairs with the acquire load in domi_remote_put_to_gateway(). */
    atomic_store_explicit(&remote->face.life, life & ~DOMI_LIFE_CLOSED, memory_order_release);
    return 0;
}

int domi_remote_find_or_make(domi_remotes *remotes, const domus_remote_name *name, uint16_t owner,
                             domus_address *ret_address)
{
    domi_remote *remote;
    int error = 0;

    domi_spinlock_lock(&remotes->lock);
    domi_remote_node *node = find_node_by_number(remotes, name->node);
    remote = node != NULL ? find_remote_in_bucket(remotes, name) : NULL;
    if (node == NULL)
        error = -ENOENT;
    else if (get_error_of_remote_node(node) == -ESTALE)
        error = -ESTALE;
    else if (remote == NULL)
        error = make_remote_address_of_name(remotes, node, name, owner, &remote);
    if (error == 0) {
        atomic_store_explicit(&remote->idle, 0, memory_order_relaxed);
        *ret_address = (domus_address){
            &remote->face,
            DOMI_LIFE_LEASE(atomic_load_explicit(&remote->face.life, memory_order_relaxed))};
    }
    domi_spinlock_unlock(&remotes->lock);
    return error;
}

domi_remote *domi_remote_at_index(domi_remotes *remotes, uint32_t index)
{
    domi_remote *remote = NULL;

    domi_spinlock_lock(&remotes->lock);
    if (index < remotes->made)
        remote = &remotes->blocks[index / DOMI_REMOTES_BLOCK][index % DOMI_REMOTES_BLOCK];
    domi_spinlock_unlock(&remotes->lock);
    return remote;
}

bool domi_remote_read_name(domi_remotes *remotes, const domi_remote *remote, uint32_t lease,
                           uint32_t mask, domus_remote_name *ret_name)
{
    domi_spinlock_lock(&remotes->lock);
    uint64_t life = atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)&remote->face.life,
                                         memory_order_relaxed);
    bool is_it = (life & DOMI_LIFE_CLOSED) == 0 && ((DOMI_LIFE_LEASE(life) ^ lease) & mask) == 0;
    if (is_it)
        *ret_name = remote->name;
    domi_spinlock_unlock(&remotes->lock);
    return is_it;
}

void domi_remote_end_address(domi_remotes *remotes, domi_remote *remote)
{
    domi_spinlock_lock(&remotes->lock);
    domi_remote **link = find_bucket_of_name(remotes, &remote->name);
    while (*link != remote)
        link = &(*link)->next;
    *link = remote->next;
    domi_remote_node *node = atomic_load_explicit(&remote->node, memory_order_relaxed);
    uint32_t lease =
        DOMI_LIFE_LEASE(atomic_load_explicit(&remote->face.life, memory_order_relaxed)) + 1;
    /* Relaxed: a put that does not see the end of the address yet counts as a put before it. */
    atomic_store_explicit(&remote->face.life, (uint64_t)lease << 32 | DOMI_LIFE_CLOSED,
                          memory_order_relaxed);
    node->faces--;
    remotes->count--;
    free_entry_of_ended_node_if_unused(node);
    if (lease != 0) /* a lease of 0 means that the leases of this address are used up (M10) */
        append_free_address(remotes, remote);
    domi_spinlock_unlock(&remotes->lock);
}

/* --- idle addresses --------------------------------------------------------------------------- */

/* Look at one remote address for domi_remote_list_idle_addresses(). Returns whether to list it as
 * idle. Under the lock. */
static bool may_list_address_as_idle(domi_remote *remote, const domi_remote_node *node,
                                     uint16_t owner)
{
    uint64_t life = atomic_load_explicit(&remote->face.life, memory_order_relaxed);

    if ((life & DOMI_LIFE_CLOSED) != 0 ||
        atomic_load_explicit(&remote->node, memory_order_relaxed) != node ||
        atomic_load_explicit(&remote->owner, memory_order_relaxed) != owner)
        return false;
    if (get_error_of_remote_node(node) == -ESTALE)
        return true;
    uint8_t idle = atomic_load_explicit(&remote->idle, memory_order_relaxed);
    if (idle < IDLE_LOOKS)
        atomic_store_explicit(&remote->idle, (uint8_t)(idle + 1), memory_order_relaxed);
    return idle == IDLE_LOOKS && remote->face.attached == NULL;
}

uint32_t domi_remote_list_idle_addresses(domi_remotes *remotes, uint64_t number, uint16_t owner,
                                         uint32_t *cursor, domus_remote_name *ret_names,
                                         uint32_t room)
{
    uint32_t found = 0, looks = 0;

    domi_spinlock_lock(&remotes->lock);
    const domi_remote_node *node = find_node_by_number(remotes, number);
    while (node != NULL && *cursor < remotes->made && looks < LOOKS && found < room) {
        domi_remote *remote =
            &remotes->blocks[*cursor / DOMI_REMOTES_BLOCK][*cursor % DOMI_REMOTES_BLOCK];
        if (may_list_address_as_idle(remote, node, owner))
            ret_names[found++] = remote->name;
        (*cursor)++;
        looks++;
    }
    if (node == NULL || *cursor >= remotes->made)
        *cursor = 0;
    domi_spinlock_unlock(&remotes->lock);
    return found;
}
