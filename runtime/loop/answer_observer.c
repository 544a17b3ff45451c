/* This file measures how long requests of peers take until they are answered, one request after
 * the other; answer_observer.h says how. */
#include "runtime/loop/answer_observer.h"

#include "base/memory.h"
#include "io/pipelines/pipe.h"

#define AGE_NS UINT64_C(10000000000)
/* if it took N runs until a request was answered, no further request is followed for this times
 * N runs */
#define REST_SHARE 8u

static const domi_pipe *get_pipe_of_channels_actor(const domi_house *house)
{
    const domus_channel *channel;

    if (!domi_house_is_channel(house) || house->channels.owned == NULL)
        return NULL;
    channel = house->channels.owned;
    return channel->pipe;
}

uint32_t domi_answer_number_of_next_request(const domi_house *house)
{
    const domi_pipe *pipe = get_pipe_of_channels_actor(house);

    return pipe != NULL ? pipe->next : 0;
}

/* Returns the entry in which a pipeline's answers are counted. If all entries are in use, this
 * is the last one, which then stands for several pipelines. NULL: there is no memory. */
static domi_answered *find_or_add_entry_of_pipeline(domi_answer_observer *observer, uint32_t tally)
{
    for (uint32_t i = 0; i < DOMUS_PIPELINES_MAX; i++) {
        domi_answered *entry =
            /* relaxed: only this thread writes the pointers to entries */
            atomic_load_explicit(&observer->each[i], memory_order_relaxed);
        if (entry == NULL) {
            entry = domi_memory_new(sizeof *entry);
            if (entry == NULL)
                return NULL;
            entry->tally = i + 1 == DOMUS_PIPELINES_MAX ? 0 : tally;
            /* release: a thread that reads the pointer to this entry sees the zeros in its
             * histogram. */
            atomic_store_explicit(&observer->each[i], entry, memory_order_release);
            return entry;
        }
        if (entry->tally == tally || i + 1 == DOMUS_PIPELINES_MAX)
            return entry;
    }
    return NULL;
}

static void add_answer_time_to_histogram(domi_answer_observer *observer, uint32_t tally,
                                         uint64_t time_ns)
{
    domi_answered *entry = find_or_add_entry_of_pipeline(observer, tally);

    if (entry != NULL)
        domi_histogram_add_time(&entry->times, time_ns);
}

/* Look at the followed request after a run of its actor: if it is answered completely, add to
 * the histogram how long that took, and follow it no more. */
static void measure_followed_request_if_answered(domi_answer_observer *observer,
                                                 const domi_pipe *pipe, uint64_t runs,
                                                 uint64_t end_ns, bool is_short)
{
    if (pipe == NULL) {
        observer->house = NULL; /* the followed request's connection is closed */
        return;
    }
    if ((int32_t)(pipe->first - observer->number) <= 0)
        return;
    add_answer_time_to_histogram(observer, observer->tally, end_ns - observer->since_ns);
    observer->house = NULL;
    if (is_short)
        observer->rest_runs = runs + REST_SHARE * (runs - observer->noted_runs);
}

/* Follow the request no more if its actor has ended unseen, or if it is too old, as one is whose
 * answer is a stream that goes on for long. */
static void stop_following_lost_request(domi_answer_observer *observer, uint64_t now_ns)
{
    if (observer->house == NULL)
        return;
    uint64_t life = domi_house_life_word(observer->house);
    if (DOMI_LIFE_LEASE(life) != observer->lease || (life & DOMI_LIFE_CLOSED) != 0 ||
        now_ns - observer->since_ns > AGE_NS)
        observer->house = NULL;
}

void domi_answer_measure_after_run(domi_answer_observer *observer, domi_manager *manager,
                                   const domi_house *house, uint32_t lease, uint32_t next,
                                   uint64_t begin_ns, uint64_t end_ns, bool may_begin,
                                   bool is_short)
{
    uint64_t life = domi_house_life_word(house);
    uint64_t runs = domi_counter_read(&manager->counters.runs);
    bool lives = DOMI_LIFE_LEASE(life) == lease && (life & DOMI_LIFE_CLOSED) == 0;
    const domi_pipe *pipe = lives ? get_pipe_of_channels_actor(house) : NULL;

    if (may_begin)
        stop_following_lost_request(observer, end_ns);
    if (observer->house == house && observer->lease == lease)
        measure_followed_request_if_answered(observer, pipe, runs, end_ns, is_short);
    if (!may_begin || observer->house != NULL || pipe == NULL || pipe->next == next ||
        runs < observer->rest_runs)
        return;
    observer->tally = house->tally;
    observer->number = pipe->next - 1;
    observer->since_ns = begin_ns;
    observer->noted_runs = runs;
    observer->lease = lease;
    observer->house = house;
    /* The new request may have been answered in the same run, so it is looked at once more. */
    measure_followed_request_if_answered(observer, pipe, runs, end_ns, is_short);
}

void domi_answer_observer_fini(domi_answer_observer *observer)
{
    for (uint32_t i = 0; i < DOMUS_PIPELINES_MAX; i++)
        domi_memory_free(atomic_load_explicit(&observer->each[i], memory_order_relaxed));
}
