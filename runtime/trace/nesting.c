/* Finds for a record the record that lies around it at some depth: it is the next record that lies
 * no deeper than that. If it lies at just that depth, and did not begin later, it is the record
 * around; else there is none. Such a search goes on from where the last one at its depth has
 * stopped, so each depth passes each record once.
 *
 * The things that are still open come behind all records. Their copy was made first, so one of them
 * may have ended meanwhile, and be a record, too. Then it is left out: its record has ended, or, if
 * that was not copied, it began before the last step. */
#include "runtime/trace/nesting.h"

#include <stdbool.h>

#define NOBODY UINT32_MAX /* value of `begun` for a depth at which nothing is open */
/* value of `begun` for a depth at which an element of `open` has begun */
#define OPEN (UINT32_MAX - 1)

struct walk {
    const domi_record *records;
    uint32_t count;
    const domi_record *open;
    domi_nesting_visit *visit;
    void *context;
    uint64_t last_ns; /* time of the walk's last step */
    /* for each depth: index of the record that has begun there, NOBODY or OPEN */
    uint32_t begun[DOMI_RECORD_DEPTHS];
    /* for each depth: index at which the last search has stopped */
    uint32_t next[DOMI_RECORD_DEPTHS];
    /* for each depth: whether the element of `open` has ended meanwhile */
    bool is_past[DOMI_RECORD_DEPTHS];
};

static void visit_step_in_order(struct walk *walk, domi_nesting_step step, uint64_t at_ns,
                                const domi_record *record)
{
    if (at_ns < walk->last_ns)
        at_ns = walk->last_ns;
    walk->last_ns = at_ns;
    walk->visit(walk->context, step, at_ns, record);
}

static uint32_t get_record_depth(const domi_record *record)
{
    return domi_record_depth_of(domi_record_kind_of(record));
}

/* Returns the index of the next record behind `index` that lies at `depth` or further out; `count`
 * if there is none. */
static uint32_t find_next_record(struct walk *walk, uint32_t index, uint32_t depth)
{
    uint32_t next = walk->next[depth];

    if (next <= index)
        next = index + 1;
    while (next < walk->count && get_record_depth(&walk->records[next]) > depth)
        next++;
    walk->next[depth] = next;
    return next;
}

static bool may_thing_under_way_begin(const struct walk *walk, uint32_t depth, uint64_t until_ns)
{
    const domi_record *open = &walk->open[depth];

    return domi_record_kind_of(open) != DOMI_RECORD_NONE && !walk->is_past[depth] &&
           open->begin_ns >= walk->last_ns && open->begin_ns <= until_ns;
}

static void begin_thing_under_way(struct walk *walk, uint32_t depth)
{
    walk->begun[depth] = OPEN;
    visit_step_in_order(walk, DOMI_NESTING_BEGIN, walk->open[depth].begin_ns, &walk->open[depth]);
}

/* Returns the depth just behind the innermost thing around `depth` that has begun. */
static uint32_t find_depth_behind_innermost_begun(const struct walk *walk, uint32_t depth)
{
    while (depth > 0 && walk->begun[depth - 1] == NOBODY)
        depth--;
    return depth;
}

/* Begin all things that lie around record `index` and have not begun yet. */
static void begin_things_around_record(struct walk *walk, uint32_t index)
{
    const domi_record *record = &walk->records[index];
    uint32_t depth = find_depth_behind_innermost_begun(walk, get_record_depth(record));

    for (; depth < get_record_depth(record); depth++) {
        uint32_t next = find_next_record(walk, index, depth);
        const domi_record *outer = &walk->records[next];
        if (next == walk->count) {
            if (may_thing_under_way_begin(walk, depth, record->begin_ns))
                begin_thing_under_way(walk, depth);
        } else if (get_record_depth(outer) == depth && outer->begin_ns <= record->begin_ns) {
            walk->begun[depth] = next;
            visit_step_in_order(walk, DOMI_NESTING_BEGIN, outer->begin_ns, outer);
        }
    }
}

static void visit_steps_of_record(struct walk *walk, uint32_t index)
{
    const domi_record *record = &walk->records[index];
    uint32_t depth = get_record_depth(record);

    begin_things_around_record(walk, index);
    if (depth == DOMI_RECORD_DEPTHS - 1) {
        visit_step_in_order(walk, DOMI_NESTING_INSTANT, record->begin_ns, record);
        return;
    }
    if (walk->begun[depth] != index)
        visit_step_in_order(walk, DOMI_NESTING_BEGIN, record->begin_ns, record);
    walk->begun[depth] = NOBODY;
    if (domi_record_kind_of(record) == domi_record_kind_of(&walk->open[depth]) &&
        record->begin_ns == walk->open[depth].begin_ns)
        walk->is_past[depth] = true;
    visit_step_in_order(walk, DOMI_NESTING_END, domi_record_end_ns(record), record);
}

void domi_nesting_walk_over_records(const domi_record *records, uint32_t count,
                                    const domi_record open[DOMI_RECORD_DEPTHS],
                                    domi_nesting_visit *visit, void *context)
{
    struct walk walk = {
        .records = records, .count = count, .open = open, .visit = visit, .context = context};

    for (uint32_t depth = 0; depth < DOMI_RECORD_DEPTHS; depth++)
        walk.begun[depth] = NOBODY;
    for (uint32_t i = 0; i < count; i++)
        visit_steps_of_record(&walk, i);
    for (uint32_t depth = 0; depth < DOMI_RECORD_DEPTHS; depth++) {
        if (walk.begun[depth] == NOBODY && may_thing_under_way_begin(&walk, depth, UINT64_MAX))
            begin_thing_under_way(&walk, depth);
    }
}
