/* This file measures how long answers take, for one request after the other; answer_observer.h says
 * how. */
#include "runtime/loop/answer_observer.h"

#include "base/memory.h"
#include "io/pipelines/pipe.h"

#define AGE_NS UINT64_C(10000000000)
/* after the measurement of an answer that took N runs, no request is followed for this times N
 * runs */
#define REST_SHARE 8u

static const domi_pipe *get_pipe(const domi_house *house)
{
    const domus_channel *channel;

    if (!domi_house_is_channel(house) || house->channels.owned == NULL)
        return NULL;
    channel = house->channels.owned;
    return channel->pipe;
}

uint32_t domi_answer_get_next_request(const domi_house *house)
{
    const domi_pipe *pipe = get_pipe(house);

    return pipe != NULL ? pipe->next : 0;
}

/* Returns the entry of a pipeline; if all entries are in use, the last one, which then stands for
 * several pipelines; NULL: there is no memory. */
static domi_answered *find_entry_of_pipeline(domi_answer_observer *observer, uint32_t tally)
{
    for (uint32_t i = 0; i < DOMUS_PIPELINES_MAX; i++) {
        domi_answered *entry =
            /* relaxed: only this thread writes the field */
            atomic_load_explicit(&observer->each[i], memory_order_relaxed);
        if (entry == NULL) {
            entry = domi_memory_new(sizeof *entry);
            if (entry == NULL)
                return NULL;
            entry->tally = i + 1 == DOMUS_PIPELINES_MAX ? 0 : tally;
            /* release: a reader of the entry sees zeros in its histogram. */
            atomic_store_explicit(&observer->each[i], entry, memory_order_release);
            return entry;
        }
        if (entry->tally == tally || i + 1 == DOMUS_PIPELINES_MAX)
            return entry;
    }
    return NULL;
}

static void add_answer_time(domi_answer_observer *observer, uint32_t tally, uint64_t time_ns)
{
    domi_answered *entry = find_entry_of_pipeline(observer, tally);

    if (entry != NULL)
        domi_histogram_add(&entry->times, time_ns);
}

/* Handle a run of the house whose request is followed: note the time if the answer is complete. */
static void look_at_request(domi_answer_observer *observer, const domi_pipe *pipe, uint64_t runs,
                            uint64_t end_ns, bool is_short)
{
    if (pipe == NULL) {
        observer->house = NULL; /* the connection is closed */
        return;
    }
    if ((int32_t)(pipe->first - observer->number) <= 0)
        return;
    add_answer_time(observer, observer->tally, end_ns - observer->since_ns);
    observer->house = NULL;
    if (is_short)
        observer->rest_runs = runs + REST_SHARE * (runs - observer->noted_runs);
}

/* Stop following a request whose actor has ended unseen, or whose answer is a stream that goes on
 * for long. */
static void drop_lost_request(domi_answer_observer *observer, uint64_t now_ns)
{
    if (observer->house == NULL)
        return;
    uint64_t life = domi_house_life(observer->house);
    if (DOMI_LIFE_LEASE(life) != observer->lease || (life & DOMI_LIFE_CLOSED) != 0 ||
        now_ns - observer->since_ns > AGE_NS)
        observer->house = NULL;
}

void domi_answer_end_run(domi_answer_observer *observer, domi_manager *manager,
                         const domi_house *house, uint32_t lease, uint32_t next, uint64_t begin_ns,
                         uint64_t end_ns, bool may_begin, bool is_short)
{
    uint64_t life = domi_house_life(house);
    uint64_t runs = domi_counter_read(&manager->counters.runs);
    bool lives = DOMI_LIFE_LEASE(life) == lease && (life & DOMI_LIFE_CLOSED) == 0;
    const domi_pipe *pipe = lives ? get_pipe(house) : NULL;

    if (may_begin)
        drop_lost_request(observer, end_ns);
    if (observer->house == house && observer->lease == lease)
        look_at_request(observer, pipe, runs, end_ns, is_short);
    if (!may_begin || observer->house != NULL || pipe == NULL || pipe->next == next ||
        runs < observer->rest_runs)
        return;
    observer->tally = house->tally;
    observer->number = pipe->next - 1;
    observer->since_ns = begin_ns;
    observer->noted_runs = runs;
    observer->lease = lease;
    observer->house = house;
    /* The request may have been answered in the same run. */
    look_at_request(observer, pipe, runs, end_ns, is_short);
}

void domi_answer_observer_fini(domi_answer_observer *observer)
{
    for (uint32_t i = 0; i < DOMUS_PIPELINES_MAX; i++)
        domi_memory_free(atomic_load_explicit(&observer->each[i], memory_order_relaxed));
}
