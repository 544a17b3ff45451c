/* The table of the process's recorders, and how a reader copies one.
 *
 * A place of the table is free while its recorder is NULL. A thread that wants a place takes it by
 * a compare-exchange, and then publishes its owner; a thread that frees a place does both in
 * reverse order. So an owner that finds its own name at a place also finds a recorder of its own
 * there.
 *
 * A crash and a free may meet. 1. A free takes the recorder out of the table, and then looks at
 * `crashed`. 2. A handler sets `crashed`, and then looks at the table. Each of these accesses is
 * seq_cst, so either the free sees the crash, and leaves the memory as it is, or the handler does
 * not see the recorder. */
#include "runtime/trace/recorder.h"

#include "base/memory.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static struct entry {
    _Atomic(const void *) owner;
    /* recorder at this place of the table; NULL: the place is free */
    _Atomic(domi_recorder *) recorder;
} table[DOMI_RECORDERS_MAX];

static atomic_bool crashed;

/* ---- Life ------------------------------------------------------------------------------------ */

/* Enter a recorder of `owner` into the table of the process's recorders. Returns false if the table
 * is full. */
static bool enter_recorder_into_table_of_process(domi_recorder *recorder, const void *owner)
{
    for (uint32_t i = 0; i < DOMI_RECORDERS_MAX; i++) {
        domi_recorder *none = NULL;
        recorder->number = i;
        /* release: a signal handler that finds the recorder in the table finds it complete. */
        if (!atomic_compare_exchange_strong_explicit(&table[i].recorder, &none, recorder,
                                                     memory_order_release, memory_order_relaxed))
            continue;
        /* release: pairs with the load in domi_recorder_next_of_owner(), so an owner that finds its
         * name also finds the recorder. */
        atomic_store_explicit(&table[i].owner, owner, memory_order_release);
        return true;
    }
    return false;
}

int domi_recorder_new(const void *owner, const char *name, uint32_t places,
                      domi_recorder **ret_recorder)
{
    if (places < DOMI_RECORDER_PLACES_MIN || places > DOMI_RECORDER_PLACES_MAX ||
        (places & (places - 1)) != 0)
        return -EINVAL;

    size_t ring = places * sizeof(domi_recorder_place);
    size_t bytes = sizeof(domi_recorder) + 2 * ring;
    domi_recorder *recorder = domi_memory_map_pages(bytes);
    if (recorder == NULL)
        return -ENOMEM;
    recorder->bytes = bytes;
    recorder->mask = places - 1;
    recorder->places = (domi_recorder_place *)(recorder + 1);
    recorder->scratch = (domi_record *)(void *)(recorder->places + places);
    memcpy(recorder->name, name, strnlen(name, DOMI_RECORDER_NAME - 1));
    if (!enter_recorder_into_table_of_process(recorder, owner)) {
        domi_memory_unmap_pages(recorder, bytes);
        return -ENOSPC;
    }
    *ret_recorder = recorder;
    return 0;
}

void domi_recorder_free(domi_recorder *recorder)
{
    if (recorder == NULL)
        return;

    struct entry *entry = &table[recorder->number];
    /* relaxed: only the owner looks for its name, and the owner is this thread, which frees the
     * recorder */
    atomic_store_explicit(&entry->owner, NULL, memory_order_relaxed);
    /* seq_cst: a free and a crash may meet (see the top of this file). */
    atomic_store_explicit(&entry->recorder, NULL, memory_order_seq_cst);
    if (!atomic_load_explicit(&crashed, memory_order_seq_cst))
        domi_memory_unmap_pages(recorder, recorder->bytes);
}

void domi_recorder_set_writing_thread(domi_recorder *recorder)
{
    /* relaxed: the number is complete by itself */
    atomic_store_explicit(&recorder->tid, (int32_t)gettid(), memory_order_relaxed);
}

bool domi_recorders_begin_crash(void)
{
    /* seq_cst: a crash and domi_recorder_free() may meet (see the top of this file). */
    return !atomic_exchange_explicit(&crashed, true, memory_order_seq_cst);
}

domi_recorder *domi_recorders_add_for_crashed_thread(const char *name)
{
    static domi_recorder_place places[DOMI_RECORDER_PLACES_MIN];
    static domi_record scratch[DOMI_RECORDER_PLACES_MIN];
    static domi_recorder recorder;
    static atomic_bool is_there;

    /* relaxed: only one caller goes on, and that one publishes the recorder below */
    if (atomic_exchange_explicit(&is_there, true, memory_order_relaxed))
        return NULL;
    recorder.mask = DOMI_RECORDER_PLACES_MIN - 1;
    recorder.places = places;
    recorder.scratch = scratch;
    memcpy(recorder.name, name, strnlen(name, DOMI_RECORDER_NAME - 1));
    domi_recorder_set_writing_thread(&recorder);
    return enter_recorder_into_table_of_process(&recorder, NULL) ? &recorder : NULL;
}

domi_recorder *domi_recorder_next_of_owner(const void *owner, uint32_t *index)
{
    while (*index < DOMI_RECORDERS_MAX) {
        struct entry *entry = &table[(*index)++];
        /* acquire: pairs with the release store in enter_recorder_into_table_of_process(), so the
         * recorder is seen with its owner. */
        if (owner != NULL && atomic_load_explicit(&entry->owner, memory_order_acquire) != owner)
            continue;
        /* seq_cst: a crash and domi_recorder_free() may meet (see the top of this file). */
        domi_recorder *recorder = atomic_load_explicit(&entry->recorder, memory_order_seq_cst);
        if (recorder != NULL)
            return recorder;
    }
    return NULL;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static void copy_record_of_place(const domi_recorder_place *place, domi_record *to)
{
    /* the pointer is cast, because an atomic load of C17 takes no pointer to const */
    domi_recorder_place *from = (domi_recorder_place *)(uintptr_t)place;

    /* acquire: each load pairs with the owner's release store of the same word (recorder.h). */
    to->begin_ns = atomic_load_explicit(&from->begin_ns, memory_order_acquire);
    to->kind_length = atomic_load_explicit(&from->kind_length, memory_order_acquire);
    to->name = atomic_load_explicit(&from->name, memory_order_acquire);
    to->value = atomic_load_explicit(&from->value, memory_order_acquire);
}

static uint64_t read_head_of_recorder(const domi_recorder *recorder, memory_order order)
{
    return atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)&recorder->head, order);
}

/* Returns whether a record is of a known kind. Only memory that a crash has destroyed holds other
 * kinds. */
static bool is_kind_of_record_known(const domi_record *record)
{
    domi_record_kind kind = domi_record_kind_of(record);

    return kind > DOMI_RECORD_NONE && kind < DOMI_RECORD_KINDS;
}

uint64_t domi_recorder_end_of_newest_record(const domi_recorder *recorder)
{
    /* acquire, then acquire loads of the words, then relaxed, as in domi_recorder_copy_records() */
    uint64_t head = read_head_of_recorder(recorder, memory_order_acquire);
    domi_record last;

    if (head == 0)
        return 0;
    copy_record_of_place(&recorder->places[(head - 1) & recorder->mask], &last);
    return read_head_of_recorder(recorder, memory_order_relaxed) == head ? domi_record_end_ns(&last)
                                                                         : 0;
}

uint32_t domi_recorder_copy_records(const domi_recorder *recorder, uint64_t since_ns,
                                    domi_record *to)
{
    uint64_t places = recorder->mask + 1;
    /* acquire: pairs with the owner's release store of `head`, so all records before `end` are
     * complete. */
    uint64_t end = read_head_of_recorder(recorder, memory_order_acquire);
    uint64_t first = end > places ? end - places : 0;
    uint32_t count = 0;

    for (uint64_t i = first; i < end; i++)
        copy_record_of_place(&recorder->places[i & recorder->mask], &to[i - first]);
    /* relaxed: this load is not older than those of the words, which were acquire. The place of
     * `now` may be half written. */
    uint64_t now = read_head_of_recorder(recorder, memory_order_relaxed);
    uint64_t whole = now >= places ? now - places + 1 : 0;
    for (uint64_t i = whole > first ? whole : first; i < end; i++) {
        const domi_record *record = &to[i - first];
        if (is_kind_of_record_known(record) && domi_record_end_ns(record) >= since_ns)
            to[count++] = *record;
    }
    return count;
}

/* Copy the run that is under way on the thread into `run`, unless `run` has one already. It began
 * after all that is recorded. */
static void copy_run_under_way(const domi_recorder *recorder, domi_record *run)
{
    uint64_t last_ns = domi_recorder_end_of_newest_record(recorder);
    /* acquire: pairs with the release in domi_spans_begin_recording(), so `runner` is set. */
    domi_find_run *find_run = atomic_load_explicit(
        &((domi_recorder *)(uintptr_t)recorder)->find_run, memory_order_acquire);

    if (domi_record_kind_of(run) != DOMI_RECORD_NONE || find_run == NULL)
        return;
    if (!find_run(recorder->runner, run)) {
        *run = (domi_record){0};
        return;
    }
    if (run->begin_ns < last_ns)
        run->begin_ns = last_ns;
    run->kind_length = domi_record_pack_kind_and_length(DOMI_RECORD_RUN, 0, 0);
}

void domi_recorder_copy_open_things(const domi_recorder *recorder,
                                    domi_record to[DOMI_RECORD_DEPTHS])
{
    for (uint32_t depth = 0; depth < DOMI_RECORD_DEPTHS; depth++) {
        domi_recorder_place *place = (domi_recorder_place *)(uintptr_t)&recorder->open[depth];
        /* acquire: pairs with the last store of domi_recorder_note_begin_of_thing(), so the other
         * words are seen. */
        uint64_t word = atomic_load_explicit(&place->kind_length, memory_order_acquire);
        copy_record_of_place(place, &to[depth]);
        /* relaxed: this load comes after acquire loads, as in domi_recorder_copy_records() */
        if (atomic_load_explicit(&place->kind_length, memory_order_relaxed) != word ||
            to[depth].kind_length != word || !is_kind_of_record_known(&to[depth]))
            to[depth] = (domi_record){0};
        to[depth].kind_length &= ~DOMI_RECORD_LENGTH_MAX;
    }
    copy_run_under_way(recorder, &to[domi_record_depth_of(DOMI_RECORD_RUN)]);
}
