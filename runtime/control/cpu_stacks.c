/* Makes stacks of functions from the samples of a CPU profile.
 *
 * Each address is looked up once: the addresses of all samples are sorted, and each different
 * one is a *place* with the name and the begin of its function. Then a stack is cut: the
 * functions up to the loop are left out, and if the entry of the behaviour is on the stack, so
 * are the library's functions before that entry. */
#include "runtime/control/cpu_stacks.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/dispatch/dispatch.h"
#include "house/dispatch/pooled_turn.h"
#include "house/message/types.h"
#include "runtime/loop/steps.h"
#include "runtime/os/symbols.h"
#include "runtime/pools/runners.h"

#include <domus/pipeline.h>

#include <errno.h>
#include <stdlib.h>

/* A place: an address in the program's code, with its function. */
typedef struct place {
    uintptr_t at;
    uintptr_t begin; /* start address of the place's function; 0: not known */
    uint32_t name;   /* number of the function's name in the flame (flame.h) */
} place;

typedef struct places {
    place *all; /* array of places, sorted by their addresses */
    size_t count;
} places;

/* A sample: the stack of one thread, as it was when the timer fired. */
typedef struct sample {
    uint64_t head;
    /* behaviour of the actor that the thread ran when it was sampled; NULL: it ran none */
    const domus_behaviour *running;
    const uint64_t *frames; /* sample's frames as addresses of code, the innermost first */
    uint32_t depth;         /* number of frames in the sample */
} sample;

/* Read the sample that begins at index `*at` of the buffer, and move `*at` behind it. Returns false
 * if no sample is left. */
static bool read_next_sample(const domi_samples *samples, uint64_t *at, sample *ret_sample)
{
    if (*at + DOMI_SAMPLE_WORDS > samples->capacity || samples->words[*at] == 0)
        return false;
    const uint64_t *words = samples->words + *at;
    *ret_sample = (sample){
        .head = words[0],
        .running = (const domus_behaviour *)(uintptr_t)words[1],
        .frames = words + DOMI_SAMPLE_WORDS,
        .depth = domi_sample_depth(words[0]),
    };
    *at += DOMI_SAMPLE_WORDS + ret_sample->depth;
    return true;
}

/* --- places ----------------------------------------------------------------------------------- */

/* Returns an address inside the instruction at which a frame stands. All frames but the innermost
 * are return addresses, and a return address may be the first byte behind a function that does not
 * return, so it is taken minus 1. */
static uintptr_t get_address_inside_instruction_of_frame(const sample *from, uint32_t frame)
{
    return (uintptr_t)from->frames[frame] - (frame != 0);
}

static int compare_addresses_of_places(const void *left_, const void *right_)
{
    const place *left = left_;
    const place *right = right_;

    return left->at < right->at ? -1 : left->at > right->at;
}

static size_t count_frames_of_all_samples(const domi_samples *samples)
{
    size_t count = 0;
    sample one;

    for (uint64_t at = 0; read_next_sample(samples, &at, &one);)
        count += one.depth;
    return count;
}

/* Find the name of each place's function, and give the names numbers in the flame. Returns 0;
 * -ENOMEM. */
static int find_names_of_places(places *made, domi_flame *flame)
{
    char name[DOMUS_CPU_PROFILE_NAME_MAX + 1];
    domi_symbols *symbols = domi_symbols_new();
    int result = symbols != NULL ? 0 : -ENOMEM;

    for (size_t i = 0; i < made->count && result == 0; i++) {
        place *one = &made->all[i];
        one->begin = domi_symbols_find_name(symbols, one->at, name, sizeof name);
        result = domi_flame_find_or_add_name(flame, name, &one->name);
    }
    domi_symbols_free(symbols);
    return result;
}

/* Collect the different addresses of all samples as places, with their names. Returns 0; -ENOMEM.
 * The caller frees `ret_places->all`. */
static int find_places_of_samples(const domi_samples *samples, domi_flame *flame,
                                  places *ret_places)
{
    size_t count = count_frames_of_all_samples(samples);
    place *all = domi_memory_new_bytes((count + 1) * sizeof *all);
    size_t kept = 0;
    sample one;

    ret_places->all = all;
    if (all == NULL)
        return -ENOMEM;
    count = 0;
    for (uint64_t at = 0; read_next_sample(samples, &at, &one);) {
        for (uint32_t i = 0; i < one.depth; i++)
            all[count++] = (place){.at = get_address_inside_instruction_of_frame(&one, i)};
    }
    qsort(all, count, sizeof *all, compare_addresses_of_places);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || all[kept - 1].at != all[i].at)
            all[kept++] = all[i];
    }
    ret_places->count = kept;
    return find_names_of_places(ret_places, flame);
}

static const place *find_place_of_frame(const places *known, const sample *from, uint32_t frame)
{
    const place wanted = {.at = get_address_inside_instruction_of_frame(from, frame)};

    const place *found =
        bsearch(&wanted, known->all, known->count, sizeof wanted, compare_addresses_of_places);
    DOMI_CHECK(found != NULL);
    return found;
}

/* --- where a stack begins --------------------------------------------------------------------- */

/* True if one of the behaviour's own functions (as a handler) begins at the address `begin`. */
static bool is_entry_of_behaviour(const domus_behaviour *behaviour, uintptr_t begin)
{
    const domus_call *calls[] = {&behaviour->on_open, &behaviour->on_read, &behaviour->on_end,
                                 &behaviour->on_close};

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if ((uintptr_t)calls[i]->handle == begin)
            return true;
    }
    for (const domus_on *row = behaviour->on; row != NULL; row++) {
        if ((uintptr_t)row->handle == begin)
            return true;
        if (row->type == NULL)
            break;
    }
    for (const domus_on_peer *row = behaviour->on_peer; row != NULL; row++) {
        if ((uintptr_t)row->handle == begin)
            return true;
        if (row->type == NULL)
            break;
    }
    return (uintptr_t)behaviour->on_mount == begin || (uintptr_t)behaviour->on_stop == begin ||
           (uintptr_t)behaviour->on_restart == begin;
}

/* True if at the address `begin` one of the library's functions begins through which all functions
 * of users are called (the loop, a runner's step, a run of a house). */
static bool is_library_function_that_calls_users(uintptr_t begin)
{
    return begin == (uintptr_t)domi_thread_run_loop || begin == (uintptr_t)domi_runner_take_step ||
           begin == (uintptr_t)domi_house_run_and_settle ||
           begin == (uintptr_t)domi_house_run_lent ||
           begin == (uintptr_t)domi_pooled_run_turn_of_house;
}

/* Returns how many frames of a sample, counted from the innermost, the profile shows; the frames
 * further out are the library's loop. */
static uint32_t count_frames_shown_by_profile(const places *known, const sample *from,
                                              bool *ret_whole)
{
    uint32_t kept = from->depth;

    *ret_whole = (from->head & DOMI_SAMPLE_CUT) == 0;
    for (uint32_t i = from->depth; i-- > 0;) {
        uintptr_t begin = find_place_of_frame(known, from, i)->begin;
        if (begin == 0)
            continue;
        if (is_library_function_that_calls_users(begin)) {
            *ret_whole = true;
            kept = i;
        } else if (from->running != NULL && is_entry_of_behaviour(from->running, begin)) {
            *ret_whole = true;
            return i + 1;
        }
    }
    return kept;
}

static int find_name_of_stack_root(domi_flame *flame, const sample *from, uint32_t *ret_name)
{
    const char *root = (from->head & DOMI_SAMPLE_RUNNER) != 0 ? "(runner)" : "(loop)";

    if (from->running != NULL)
        root = domi_behaviour_name(from->running);
    return domi_flame_find_or_add_name(flame, root, ret_name);
}

static int add_sample_to_flame(const places *known, const sample *from, domi_flame *flame)
{
    uint32_t names[DOMI_FLAME_DEPTH_MAX];
    uint32_t depth = 1;
    bool is_whole;
    uint32_t kept = count_frames_shown_by_profile(known, from, &is_whole);
    int result = find_name_of_stack_root(flame, from, &names[0]);

    if (result == 0 && !is_whole)
        result = domi_flame_find_or_add_name(flame, "(cut)", &names[depth++]);
    while (result == 0 && kept-- > 0) {
        const place *one = find_place_of_frame(known, from, kept);
        /* Frames in a row whose functions have no name are shown as one frame if they are in the
         * same module. */
        if (one->begin != 0 || names[depth - 1] != one->name)
            names[depth++] = one->name;
    }
    return result == 0 ? domi_flame_add_stack(flame, names, depth, domi_sample_weight(from->head))
                       : result;
}

int domi_cpu_stacks_add_to_flame(const domi_samples *samples, domi_flame *flame)
{
    places known = {0};
    sample one;
    int result = find_places_of_samples(samples, flame, &known);

    for (uint64_t at = 0; result == 0 && read_next_sample(samples, &at, &one);)
        result = add_sample_to_flame(&known, &one, flame);
    domi_memory_free(known.all);
    domi_flame_sort_children(flame);
    return result;
}
