/* This file makes dumps; domus/dump.h is the manual.
 *
 * An actor on each thread, the inspector, is asked from outside and describes the houses of its
 * home into a sheet. A sheet has a count of holders: a thread that is stuck keeps its own, and
 * writes into it when no dump waits for it any more. Inspectors are spawned with the first dump. */
#include "runtime/control/dump_page.h"
#include "runtime/control/dump_pools.h"
#include "runtime/outside/detached.h"
#include "runtime/outside/outside_ask.h"
#include "runtime/outside/visit.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/conversation/stack.h"
#include "house/dispatch/describe.h"
#include "house/family/life.h"
#include "house/family/slots.h"
#include "house/message/types.h"

#include <domus/dump.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The payload of an ask to an inspector: what to describe, and where to write it. */
typedef struct sheet {
    /* number of holders, the asker and the inspector; the last one frees the sheet */
    _Atomic uint32_t holders;
    bool only_one;       /* whether to describe the actor `one` only */
    domus_address one;   /* actor to describe, if `only_one` */
    domi_dump_page page; /* actors to describe, if not `only_one` */
    int result;          /* 0, or the negative errno with which nothing was described */
    domi_text text;      /* text written so far; its bytes lie in `room` */
    char room[];         /* memory of the text */
} sheet;

static void release_sheet(sheet *done)
{
    /* acq_rel: the other holder has written and read all it wants before the sheet is freed. */
    if (atomic_fetch_sub_explicit(&done->holders, 1, memory_order_acq_rel) == 1)
        domi_memory_free(done);
}

static void release_payload(void *payload)
{
    release_sheet(*(sheet **)payload);
}

static const domus_type describe_type = {
    .name = "describe", .size = sizeof(sheet *), .release = release_payload};
static const domus_type described_type = {.name = "described"};

/* --- an inspector ----------------------------------------------------------------------------- */

typedef struct walk {
    domi_manager *manager; /* manager whose houses are described */
    sheet *sheet;          /* sheet on which they are described */
    bool channels;         /* whether this walk describes channels, or otherwise all other actors */
} walk;

static int inspect_thread(domus_stack *stack, void *self, const void *payload);

static const domus_behaviour inspector = {
    .name = "inspector",
    .on = (const domus_on[]){{&describe_type, inspect_thread, 0}, {NULL, NULL, 0}},
};

static bool describe_house(const domi_manager *manager, const domi_house *house, domi_text *text)
{
    size_t before = text->length;

    domi_house_describe(manager, house, text);
    return domi_text_keep_whole(text, before);
}

/* True if the house is that of a channel. Its kind is looked at first, because another thread may
 * run a house of another kind. */
static bool is_channel(const domi_house *house)
{
    return domi_house_behaviour(house)->kind == DOMUS_CHANNELS && domi_house_is_channel(house);
}

/* Describe one house, if there is room. */
static void visit_house(void *house_, void *context)
{
    const domi_house *house = house_;
    walk *now = context;

    if (!domi_slots_is_alive(house) || domi_house_behaviour(house) == &inspector ||
        is_channel(house) != now->channels)
        return;
    if (domi_dump_count_house(&now->sheet->page, house))
        domi_dump_record_result(&now->sheet->page,
                                describe_house(now->manager, house, &now->sheet->text));
}

/* Describe all actors of the thread. Channels come last, because very many of them would leave no
 * room for the others. */
static void describe_all_actors(domi_manager *manager, sheet *asked)
{
    domi_slots_walk_shared(manager, visit_house, &(walk){manager, asked, false});
    domi_slots_walk_shared(manager, visit_house, &(walk){manager, asked, true});
}

static int inspect_thread(domus_stack *stack, void *self, const void *payload)
{
    sheet *asked = *(sheet *const *)payload;
    domi_manager *manager = stack->manager;
    domi_house *one = asked->one.house;

    (void)self;
    if (!asked->only_one)
        describe_all_actors(manager, asked);
    else if (!domi_slots_is_alive(one) || domi_house_address(one).lease != asked->one.lease)
        asked->result = -ESTALE;
    else if (!describe_house(manager, one, &asked->text))
        asked->result = -EMSGSIZE;
    return domus_reply(stack, &described_type, NULL);
}

/* --- asking them ------------------------------------------------------------------------------ */

static int spawn_inspectors(domus_system *system)
{
    const domus_spawn_options pinned = {.pinned = true};
    int result = 0;

    if (system->inspectors == NULL)
        system->inspectors = domi_memory_new(system->count * sizeof *system->inspectors);
    if (system->inspectors == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < system->count && result == 0; i++) {
        if (system->inspectors[i].house != NULL)
            continue;
        /* No inspector is spawned once a stop has begun. */
        result = system->stage != DOMI_STAGE_RUNNING
                     ? -ESHUTDOWN
                     : domi_house_spawn_child(&system->outside, NULL, &system->threads[i].manager,
                                              &inspector, NULL, &pinned, &system->inspectors[i]);
    }
    return result;
}

static sheet *make_sheet(size_t size, const domus_address *one, const domus_dump_filter *filter)
{
    sheet *made = domi_memory_new(sizeof *made + size);

    if (made == NULL)
        return NULL;
    /* one holder is the caller, one the ask */
    atomic_store_explicit(&made->holders, 2, memory_order_relaxed);
    made->text = (domi_text){.at = made->room, .size = size};
    made->only_one = one != NULL;
    domi_dump_page_init(&made->page, filter);
    if (one != NULL)
        made->one = *one;
    return made;
}

/* The part that one thread has in a dump. */
typedef struct part {
    sheet *sheet;       /* sheet that the inspector of the thread gets */
    int result;         /* 0, or the negative errno with which the thread has not answered */
    domi_asking asking; /* ask to the inspector that is under way */
} part;

/* Ask one inspector for its thread's part. If `one->result` is 0 then, end_dump() has to follow,
 * and sets the final result. */
static void begin_dump(domus_system *system, part *one, uint32_t thread, size_t size,
                       const domus_address *address, const domus_dump_filter *filter)
{
    one->sheet = make_sheet(size, address, filter);
    one->result = one->sheet == NULL
                      ? -ENOMEM
                      : domi_asking_begin(system, &one->asking, system->inspectors[thread],
                                          &describe_type, &one->sheet, DOMUS_DUMP_WAIT_NS, NULL);
}

static void end_dump(domus_system *system, part *one)
{
    if (one->result == 0)
        one->result = domi_asking_wait(system, &one->asking);
}

/* --- the text --------------------------------------------------------------------------------- */

static void add_part_of_thread(domus_system *system, domi_text *text, uint32_t thread,
                               const part *one)
{
    domi_manager *manager = &system->threads[thread].manager;
    const domus_behaviour *running = domi_manager_running(manager);

    domi_text_add(text, "thread %" PRIu32 ": ", thread);
    if (one->result == 0) {
        domi_text_add(text, "%" PRIu32 " actors\n%s", one->sheet->page.houses, one->sheet->text.at);
        if (one->sheet->page.left_out != 0)
            domi_text_add(text, "%" PRIu32 " actors were left out\n", one->sheet->page.left_out);
    } else if (one->result == -ETIMEDOUT) {
        domi_text_add(text, "stuck: no answer within %u ms, in a handler of %.64s\n",
                      (unsigned)(DOMUS_DUMP_WAIT_NS / 1000000), domi_behaviour_name(running));
    } else {
        domi_text_add(text, "no answer: %s\n", strerrorname_np(-one->result));
    }
}

/* Detached actors, and outsiders, may be anywhere in their own code, so they are only counted. */
static void add_detached(domus_system *system, domi_text *text)
{
    uint32_t busy[2] = {0, 0}; /* detached actors, and outsiders, are counted */

    pthread_mutex_lock(&system->mutex);
    for (uint32_t i = 0; i < system->detached_count; i++)
        busy[system->detached[i]->foreign] += system->detached[i]->busy;
    pthread_mutex_unlock(&system->mutex);
    if (busy[0] != 0)
        domi_text_add(text, "%" PRIu32 " detached actors are not described\n", busy[0]);
    if (busy[1] != 0)
        domi_text_add(text, "%" PRIu32 " outsiders are not described\n", busy[1]);
}

#define LINES_BYTES 256u /* the part of a thread's share that describes the thread itself */

static_assert(DOMUS_DUMP_BYTES_MIN > 2 * LINES_BYTES, "most of a text is about actors");

/* Ask all inspectors before waiting for the first one, so that all stuck threads together
 * cost one wait. */
static int dump_all_threads(domus_system *system, const domus_dump_filter *filter, part *parts,
                            domi_text *text)
{
    size_t whole = text->size / (system->count + system->pool_count);
    size_t share = whole - LINES_BYTES;
    bool memory = true;

    for (uint32_t i = 0; i < system->count; i++)
        begin_dump(system, &parts[i], i, share, NULL, filter);
    for (uint32_t i = 0; i < system->count; i++)
        end_dump(system, &parts[i]);
    for (uint32_t i = 0; i < system->count; i++) {
        add_part_of_thread(system, text, i, &parts[i]);
        memory = memory && parts[i].result != -ENOMEM;
        if (parts[i].sheet != NULL)
            release_sheet(parts[i].sheet);
    }
    domi_dump_describe_pools(system, filter, text, whole - LINES_BYTES);
    add_detached(system, text);
    DOMI_CHECK(text->length < text->size);
    return memory ? 0 : -ENOMEM;
}

/* Enter the outside (visit.h), and make sure that each thread has an inspector. Returns 0, and then
 * the caller leaves the outside; -EDEADLK on a thread of the system; -EOPNOTSUPP in a simulation;
 * otherwise what the enter or the spawn returned. */
static int enter_with_inspectors(domus_system *system, domi_visit *ret_visit)
{
    if (domi_thread_manager != NULL && domi_thread_manager->system == system)
        return -EDEADLK;
    if (system->simulator != NULL)
        return -EOPNOTSUPP; /* in a simulation nobody would take a step while the caller waits */
    int result = domi_outside_enter(system, DOMI_LAST_TO_SEND, ret_visit);
    if (result != 0)
        return result;
    result = spawn_inspectors(system);
    if (result != 0)
        domi_outside_leave(system, ret_visit);
    return result;
}

int domus_dump(domus_system *system, char *at, size_t size)
{
    return domus_dump_some(system, NULL, at, size);
}

int domus_dump_some(domus_system *system, const domus_dump_filter *filter, char *at, size_t size)
{
    domi_text text = {.at = at, .size = size};
    domi_visit visit;

    if (size / (system->count + system->pool_count) < DOMUS_DUMP_BYTES_MIN)
        return -EINVAL;
    int result = enter_with_inspectors(system, &visit);
    if (result != 0)
        return result;
    part *parts = domi_memory_new(system->count * sizeof *parts);
    result = parts != NULL ? dump_all_threads(system, filter, parts, &text) : -ENOMEM;
    domi_memory_free(parts);
    domi_outside_leave(system, &visit);
    return result;
}

/* Returns the index of the manager on which an address lives; UINT32_MAX if it is not a manager of
 * this system. Reading the slot is safe, because it exists as long as the system. A router or group
 * lives on no thread; it counts as an actor that is not described. */
static uint32_t find_index_of_home(const domus_system *system, domus_address address)
{
    if (address.house == NULL)
        return UINT32_MAX;
    const domi_manager *home = address.house->home;
    if (home == NULL)
        return system->count;
    return home->system == system ? home->index : UINT32_MAX;
}

int domus_dump_actor(domus_system *system, domus_address address, char *at, size_t size)
{
    domi_visit visit;
    part one = {.sheet = NULL};

    if (size < DOMUS_DUMP_BYTES_MIN)
        return -EINVAL;
    int result = enter_with_inspectors(system, &visit);
    if (result != 0)
        return result;
    uint32_t home = find_index_of_home(system, address);
    if (home < system->count) {
        begin_dump(system, &one, home, size, &address, NULL);
        end_dump(system, &one);
    } else if (home != UINT32_MAX && home != system->count && address.house->home->pooled != NULL) {
        domi_text text = {.at = at, .size = size};
        one.result = domi_dump_describe_pooled(system, address, &text);
        domi_outside_leave(system, &visit);
        return one.result;
    } else {
        one.result = home == UINT32_MAX ? -ESTALE : -EOPNOTSUPP;
    }
    result = one.result;
    if (result == 0)
        result = one.sheet->result;
    if (result == 0)
        memcpy(at, one.sheet->text.at, one.sheet->text.length + 1);
    if (one.sheet != NULL)
        release_sheet(one.sheet);
    domi_outside_leave(system, &visit);
    return result;
}
