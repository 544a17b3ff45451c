/* This file makes dumps; domus/dump.h is the manual.
 *
 * An actor on each thread, the inspector, is asked from outside and describes the houses of its
 * home into a sheet. A sheet counts its holders: a stuck thread keeps its sheet, and writes into
 * it even when no dump waits for that any more. Inspectors are spawned with the first dump. */
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

/* The payload of an ask to an inspector: which actors of its thread to describe, and where to write
 * the text. */
typedef struct sheet {
    /* number of the sheet's holders, at first the asker and the inspector; the last one frees the
     * sheet */
    _Atomic uint32_t holders;
    bool only_one;       /* whether the inspector describes only the actor `one` */
    domus_address one;   /* address of the actor to describe, if `only_one` */
    domi_dump_page page; /* page of the actors to describe (dump_page.h), if not `only_one` */
    int result;     /* 0, or the negative errno for which the inspector has described nothing */
    domi_text text; /* text that the inspector has written so far; its bytes lie in `room` */
    char room[];    /* memory for the bytes of the sheet's text */
} sheet;

static void release_hold_on_sheet(sheet *done)
{
    /* acq_rel: each holder's reads and writes of the sheet come before the last holder frees it. */
    if (atomic_fetch_sub_explicit(&done->holders, 1, memory_order_acq_rel) == 1)
        domi_memory_free(done);
}

static void release_sheet_of_payload(void *payload)
{
    release_hold_on_sheet(*(sheet **)payload);
}

static const domus_type describe_type = {
    .name = "describe", .size = sizeof(sheet *), .release = release_sheet_of_payload};
static const domus_type described_type = {.name = "described"};

/* --- an inspector ----------------------------------------------------------------------------- */

typedef struct walk {
    domi_manager *manager; /* manager whose houses the walk describes */
    sheet *sheet;          /* sheet into which the walk's houses are described */
    bool channels; /* true: the walk describes channels only; false: all other actors only */
} walk;

static int on_ask_describe_houses_of_thread(domus_stack *stack, void *self, const void *payload);

static const domus_behaviour inspector = {
    .name = "inspector",
    .on =
        (const domus_on[]){{&describe_type, on_ask_describe_houses_of_thread, 0}, {NULL, NULL, 0}},
};

static bool describe_house_only_if_it_fits_whole(const domi_manager *manager,
                                                 const domi_house *house, domi_text *text)
{
    size_t before = text->length;

    domi_house_describe(manager, house, text);
    return domi_text_cut_back_unless_whole(text, before);
}

/* True if the house is that of a channel. The behaviour's kind is looked at first, because another
 * thread may run the house of a state actor meanwhile, and its further fields must not be read
 * then. */
static bool is_house_of_channel(const domi_house *house)
{
    return domi_house_get_behaviour(house)->kind == DOMUS_CHANNELS && domi_house_is_channel(house);
}

/* Describe the house of a living actor into the walk's sheet, if the actor is wanted and the sheet
 * has room. */
static void describe_house_if_wanted(void *house_, void *context)
{
    const domi_house *house = house_;
    walk *now = context;

    if (!domi_slots_does_actor_live_in_house(house) ||
        domi_house_get_behaviour(house) == &inspector ||
        is_house_of_channel(house) != now->channels)
        return;
    if (domi_dump_count_house_in_page(&now->sheet->page, house))
        domi_dump_record_if_house_was_described(
            &now->sheet->page,
            describe_house_only_if_it_fits_whole(now->manager, house, &now->sheet->text));
}

/* Describe all actors of the inspector's thread. Channels come last, because very many of them
 * would leave no room for the others. */
static void describe_all_actors(domi_manager *manager, sheet *asked)
{
    domi_slots_visit_while_others_spawn(manager, describe_house_if_wanted,
                                        &(walk){manager, asked, false});
    domi_slots_visit_while_others_spawn(manager, describe_house_if_wanted,
                                        &(walk){manager, asked, true});
}

static int on_ask_describe_houses_of_thread(domus_stack *stack, void *self, const void *payload)
{
    sheet *asked = *(sheet *const *)payload;
    domi_manager *manager = stack->manager;
    domi_house *one = asked->one.house;

    (void)self;
    if (!asked->only_one)
        describe_all_actors(manager, asked);
    else if (!domi_slots_does_actor_live_in_house(one) ||
             domi_house_get_address(one).lease != asked->one.lease)
        asked->result = -ESTALE;
    else if (!describe_house_only_if_it_fits_whole(manager, one, &asked->text))
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
        /* inspectors are spawned only while the system runs: a stop would wait for them */
        result = system->stage != DOMI_STAGE_RUNNING
                     ? -ESHUTDOWN
                     : domi_house_spawn_child(&system->outside, NULL, &system->threads[i].manager,
                                              &inspector, NULL, &pinned, &system->inspectors[i]);
    }
    return result;
}

static sheet *make_sheet_for_inspector(size_t size, const domus_address *one,
                                       const domus_dump_filter *filter)
{
    sheet *made = domi_memory_new(sizeof *made + size);

    if (made == NULL)
        return NULL;
    /* the first two holders of the sheet: the caller, and the ask to the inspector */
    atomic_store_explicit(&made->holders, 2, memory_order_relaxed);
    made->text = (domi_text){.at = made->room, .size = size};
    made->only_one = one != NULL;
    domi_dump_page_init(&made->page, filter);
    if (one != NULL)
        made->one = *one;
    return made;
}

/* A part of a dump: that of one thread. */
typedef struct part {
    sheet *sheet;       /* sheet that the inspector of the part's thread gets */
    int result;         /* 0, or the negative errno for which the part's thread has not answered */
    domi_asking asking; /* the ask to the part's inspector, while it is under way */
} part;

/* Ask the inspector of one thread for its part of the dump. If `one->result` is 0 then,
 * wait_for_part_of_dump_of_thread() has to follow, which waits for the answer and sets the final
 * result. */
static void ask_thread_for_its_part_of_dump(domus_system *system, part *one, uint32_t thread,
                                            size_t size, const domus_address *address,
                                            const domus_dump_filter *filter)
{
    one->sheet = make_sheet_for_inspector(size, address, filter);
    one->result =
        one->sheet == NULL
            ? -ENOMEM
            : domi_asking_begin_ask_to_actor(system, &one->asking, system->inspectors[thread],
                                             &describe_type, &one->sheet, DOMUS_DUMP_WAIT_NS, NULL);
}

static void wait_for_part_of_dump_of_thread(domus_system *system, part *one)
{
    if (one->result == 0)
        one->result = domi_asking_wait_for_answer(system, &one->asking);
}

/* --- the text --------------------------------------------------------------------------------- */

static void add_part_of_thread_to_dump(domus_system *system, domi_text *text, uint32_t thread,
                                       const part *one)
{
    domi_manager *manager = &system->threads[thread].manager;
    const domus_behaviour *running = domi_manager_running_behaviour(manager);

    domi_text_append_formatted(text, "thread %" PRIu32 ": ", thread);
    if (one->result == 0) {
        domi_text_append_formatted(text, "%" PRIu32 " actors\n%s", one->sheet->page.houses,
                                   one->sheet->text.at);
        if (one->sheet->page.left_out != 0)
            domi_text_append_formatted(text, "%" PRIu32 " actors were left out\n",
                                       one->sheet->page.left_out);
    } else if (one->result == -ETIMEDOUT) {
        domi_text_append_formatted(text, "stuck: no answer within %u ms, in a handler of %.64s\n",
                                   (unsigned)(DOMUS_DUMP_WAIT_NS / 1000000),
                                   domi_behaviour_name(running));
    } else {
        domi_text_append_formatted(text, "no answer: %s\n", strerrorname_np(-one->result));
    }
}

/* Add how many detached actors and outsiders are busy. They may be anywhere in their own code, so a
 * dump only counts them. */
static void add_counts_of_detached_actors_to_dump(domus_system *system, domi_text *text)
{
    uint32_t busy[2] = {
        0, 0}; /* busy[0] counts the detached actors that are busy, busy[1] the outsiders */

    pthread_mutex_lock(&system->mutex);
    for (uint32_t i = 0; i < system->detached_count; i++)
        busy[system->detached[i]->foreign] += system->detached[i]->busy;
    pthread_mutex_unlock(&system->mutex);
    if (busy[0] != 0)
        domi_text_append_formatted(text, "%" PRIu32 " detached actors are not described\n",
                                   busy[0]);
    if (busy[1] != 0)
        domi_text_append_formatted(text, "%" PRIu32 " outsiders are not described\n", busy[1]);
}

/* bytes of a thread's share of the text that are kept for the lines about the thread itself */
#define LINES_BYTES 256u

static_assert(DOMUS_DUMP_BYTES_MIN > 2 * LINES_BYTES, "most of a text is about actors");

/* Write the parts of all threads into a dump. All inspectors are asked before the first one is
 * waited for, so that all stuck threads together cost one wait. */
static int write_dump_of_all_threads(domus_system *system, const domus_dump_filter *filter,
                                     part *parts, domi_text *text)
{
    size_t whole = text->size / (system->count + system->pool_count);
    size_t share = whole - LINES_BYTES;
    bool memory = true;

    for (uint32_t i = 0; i < system->count; i++)
        ask_thread_for_its_part_of_dump(system, &parts[i], i, share, NULL, filter);
    for (uint32_t i = 0; i < system->count; i++)
        wait_for_part_of_dump_of_thread(system, &parts[i]);
    for (uint32_t i = 0; i < system->count; i++) {
        add_part_of_thread_to_dump(system, text, i, &parts[i]);
        memory = memory && parts[i].result != -ENOMEM;
        if (parts[i].sheet != NULL)
            release_hold_on_sheet(parts[i].sheet);
    }
    domi_dump_describe_pools(system, filter, text, whole - LINES_BYTES);
    add_counts_of_detached_actors_to_dump(system, text);
    DOMI_CHECK(text->length < text->size);
    return memory ? 0 : -ENOMEM;
}

/* Enter the outside (visit.h), and make sure that each thread has an inspector. Returns 0, and then
 * the caller leaves the outside; -EDEADLK on a thread of the system; -EOPNOTSUPP in a simulation;
 * otherwise what the enter or the spawn returned. */
static int enter_outside_with_inspectors(domus_system *system, domi_visit *ret_visit)
{
    if (domi_thread_manager != NULL && domi_thread_manager->system == system)
        return -EDEADLK;
    if (system->simulator != NULL)
        /* in a simulation the inspector would never run, because its thread takes no step while
         * the caller waits */
        return -EOPNOTSUPP;
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
    int result = enter_outside_with_inspectors(system, &visit);
    if (result != 0)
        return result;
    part *parts = domi_memory_new(system->count * sizeof *parts);
    result = parts != NULL ? write_dump_of_all_threads(system, filter, parts, &text) : -ENOMEM;
    domi_memory_free(parts);
    domi_outside_leave(system, &visit);
    return result;
}

/* Returns the index of the manager that is the home of an actor; the number of threads for a router
 * or group, which has no home; UINT32_MAX if the address is of nobody, or of another system.
 * Reading the slot is safe, because it exists as long as the system. */
static uint32_t find_thread_index_of_actor(const domus_system *system, domus_address address)
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
    int result = enter_outside_with_inspectors(system, &visit);
    if (result != 0)
        return result;
    uint32_t home = find_thread_index_of_actor(system, address);
    if (home < system->count) {
        ask_thread_for_its_part_of_dump(system, &one, home, size, &address, NULL);
        wait_for_part_of_dump_of_thread(system, &one);
    } else if (home != UINT32_MAX && home != system->count && address.house->home->pooled != NULL) {
        domi_text text = {.at = at, .size = size};
        one.result = domi_dump_describe_pooled_actor(system, address, &text);
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
        release_hold_on_sheet(one.sheet);
    domi_outside_leave(system, &visit);
    return result;
}
