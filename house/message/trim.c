/* Begins passes (trim.h) when they are due, and takes their steps. */
#include "house/message/trim.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/message/pool.h"

#define MS_NS UINT64_C(1000000) /* number of nanoseconds in a millisecond */
/* first wait between two passes over the slabs; the wait doubles from pass to pass */
#define FIRST_WAIT_NS (1000 * MS_NS)
#define LAST_WAIT_NS  (60000 * MS_NS) /* longest wait between two passes over the slabs */
/* wait between two passes over the slabs while memory is short */
#define SHORT_WAIT_NS (100 * MS_NS)

static uint64_t count_mapped_bytes_of_slabs(const domi_manager *manager)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < DOMI_SLABS; i++)
        bytes += manager->pool.slabs[i].mapped_bytes;
    return bytes;
}

/* True if memory is short for this thread. The level alone is not enough: it leaves out the bytes
 * that the last pass found free, and these may have been taken since. So the memory that is really
 * used is tested, too. */
static bool is_memory_short(const domi_manager *manager)
{
    return manager->memory.pressure_seen != DOMUS_MEMORY_NORMAL || domi_memory_is_tight() ||
           manager->memory.at_max;
}

/* Returns the wait, in nanoseconds, that follows `wait` when waits between passes grow longer. */
static uint64_t get_longer_wait_between_passes(uint64_t wait_ns)
{
    return wait_ns < LAST_WAIT_NS / 2 ? 2 * wait_ns : LAST_WAIT_NS;
}

/* Put the next pass over the slabs off if they have grown since the last check, because then they
 * use all they have. Let it begin sooner if memory is short. */
static void postpone_trim_pass_if_slabs_grew(domi_manager *manager, uint64_t now_ns)
{
    domi_trim *trim = &manager->memory.trim;
    uint64_t mapped = count_mapped_bytes_of_slabs(manager);

    if (mapped != trim->mapped) {
        /* If the last pass gave memory back, the slabs need it again: wait longer the next time. */
        trim->wait_ns =
            trim->gained ? get_longer_wait_between_passes(trim->wait_ns) : FIRST_WAIT_NS;
        trim->gained = false;
        trim->mapped = mapped;
        trim->next_ns = now_ns + trim->wait_ns;
    }
    if (!is_memory_short(manager))
        return;
    trim->short_ns = now_ns + LAST_WAIT_NS;
    if (trim->next_ns > now_ns + SHORT_WAIT_NS)
        trim->next_ns = now_ns + SHORT_WAIT_NS;
}

/* Publish the sum of the slabs' spare bytes. The sum is computed anew after each step, because a
 * slab that runs dry subtracts its own bytes at once (pool.c). */
static void publish_spare_bytes_of_slabs(domi_manager *manager)
{
    uint64_t spare = 0;

    for (uint32_t i = 0; i < DOMI_SLABS; i++)
        spare += manager->pool.slabs[i].spare_bytes;
    /* Relaxed: the threads that measure memory may see the sum of spare bytes late. */
    atomic_store_explicit(&manager->memory.spare_bytes, spare, memory_order_relaxed);
}

/* End the pass over all slabs, and choose the time of the next one. */
static void end_pass_over_slabs(domi_manager *manager, uint64_t now_ns)
{
    domi_trim *trim = &manager->memory.trim;

    trim->under_way = trim->begun = false;
    /* cleared here; the next message that memory.threadMax refuses sets it again */
    manager->memory.at_max = false;
    /* the bytes count anew: a slab whose trim did not begin may have other spare bytes than
     * before */
    publish_spare_bytes_of_slabs(manager);
    trim->mapped = count_mapped_bytes_of_slabs(manager);
    if (now_ns < trim->short_ns)
        trim->wait_ns = FIRST_WAIT_NS;
    else if (!trim->gained)
        trim->wait_ns = get_longer_wait_between_passes(trim->wait_ns);
    trim->next_ns = now_ns + (is_memory_short(manager) ? SHORT_WAIT_NS : trim->wait_ns);
}

/* Begin a pass over all slabs. Returns false if no slab has anything to give back. */
static bool begin_pass_over_slabs(domi_manager *manager)
{
    uint64_t bytes = 0;

    /* A slab keeps one chunk in any case, so a slab with a single chunk gives nothing back. */
    for (uint32_t i = 0; i < DOMI_SLABS; i++) {
        const domi_slab *slab = &manager->pool.slabs[i];
        bytes += slab->mapped_bytes > slab->chunk_bytes ? slab->mapped_bytes : 0;
    }
    if (bytes == 0)
        return false;
    manager->memory.trim.under_way = true;
    manager->memory.trim.begun = manager->memory.trim.gained = false;
    manager->memory.trim.slab = 0;
    return true;
}

/* Number of free objects that stay in the slab's list while it is trimmed. Without them the next
 * message would find the slab dry and stop the trim, even if that message is then refused. With a
 * message every now and then no trim would come to its end. Objects that were freed last lie in few
 * chunks, so they keep few chunks from being given back, and other chunks in the next pass. */
#define KEPT 64

static bool begin_trim_of_slab(domi_slab *slab)
{
    void *first = slab->free;
    void *last = first;

    for (int left = KEPT - 1; left != 0 && last != NULL; left--)
        last = *(void **)last;
    if (last == NULL || *(void **)last == NULL) {
        /* the objects that the last trim counted as spare are in use again */
        slab->spare_bytes = 0;
        return false;
    }
    slab->free = *(void **)last;
    bool begun = domi_slab_trim_begin(slab);
    /* `slab->free` is NULL if the trim has begun: then the kept objects are the whole list */
    *(void **)last = slab->free;
    slab->free = first;
    return begun;
}

/* Take one step of the trim of `slab`. Returns false if the trim of this slab has ended. */
static bool take_trim_step_of_slab(domi_manager *manager, domi_slab *slab, uint32_t objects)
{
    domi_trim *trim = &manager->memory.trim;

    if (trim->begun && slab->trim == NULL)
        return false; /* the slab ran dry since the last step, which stopped its trim */
    if (!trim->begun && !begin_trim_of_slab(slab))
        return false;
    trim->begun = true;
    uint64_t before = slab->mapped_bytes;
    bool more = !domi_slab_trim_step(slab, objects);
    publish_spare_bytes_of_slabs(manager);
    if (slab->mapped_bytes != before) {
        trim->gained = true;
        domi_counter_add(&manager->counters.trimmed_bytes, before - slab->mapped_bytes);
    }
    return more;
}

/* Take one step of the pass over the slabs, and begin a pass if it is time. Returns true if a step
 * was due. */
static bool take_step_of_pass_if_due(domi_manager *manager, uint64_t now_ns, uint32_t objects)
{
    domi_trim *trim = &manager->memory.trim;

    if (!trim->under_way) {
        postpone_trim_pass_if_slabs_grew(manager, now_ns);
        if (now_ns < trim->next_ns || !begin_pass_over_slabs(manager))
            return false;
    }
    if (!trim->begun && domi_pool_sort_returned_objects(manager))
        return true;
    if (take_trim_step_of_slab(manager, &manager->pool.slabs[trim->slab], objects))
        return true;
    trim->begun = false;
    if (++trim->slab == DOMI_SLABS)
        end_pass_over_slabs(manager, now_ns);
    return true;
}

bool domi_trim_is_sound(const domi_manager *manager)
{
    const domi_trim *trim = &manager->memory.trim;
    uint64_t told = domi_counter_read(&manager->memory.spare_bytes);
    uint64_t spare = 0;

    DOMI_CHECK(trim->under_way || !trim->begun);
    DOMI_CHECK(!trim->under_way || trim->slab < DOMI_SLABS);
    DOMI_CHECK(trim->wait_ns <= LAST_WAIT_NS);
    for (uint32_t i = 0; i < DOMI_SLABS; i++) {
        const domi_slab *slab = &manager->pool.slabs[i];
        DOMI_CHECK(slab->trim == NULL || (trim->begun && i == trim->slab));
        spare += slab->spare_bytes;
    }
    /* A pass that finds nothing to trim in a slab sets the slab's spare bytes to 0, and publishes
     * that with the next step of a trim, or at the end of the pass. */
    DOMI_CHECK(trim->under_way ? spare <= told : spare == told);
    return true;
}

bool domi_pool_take_trim_step(domi_manager *manager, uint64_t now_ns, uint32_t objects)
{
    DOMI_CHECK_SLOW(domi_trim_is_sound(manager));
    bool was_due = take_step_of_pass_if_due(manager, now_ns, objects);
    DOMI_CHECK_SLOW(domi_trim_is_sound(manager));
    return was_due;
}
