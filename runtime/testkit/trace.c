/* The trace of a test kit. Its lines hold neither pointers nor real time, so that two runs with one
 * seed can be compared byte for byte. Lines are kept as numbers in a ring, and written as text when
 * the user asks for them. */
#include "runtime/testkit/parts.h"

#include "base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* size in bytes of the text of a whole trace */
#define TEXT_BYTES ((DOMUS_TESTKIT_TRACE_MAX + 1) * (size_t)DOMI_TRACE_LINE_BYTES)
/* size in bytes of all lines in the trace's ring */
#define LINES_BYTES (DOMUS_TESTKIT_TRACE_MAX * sizeof(domi_trace_line))
#define NS_PER_S    UINT64_C(1000000000)

static const struct {
    const char *name; /* name of the counter in the trace, as in the profile's table */
    size_t offset;    /* offset of the trace's counter in domi_counters */
} counts[DOMI_TRACE_COUNTS] = {
    {"runs", offsetof(domi_counters, runs)},
    {"replies", offsetof(domi_counters, handled[DOMI_REPLY])},
    {"exceptions", offsetof(domi_counters, handled[DOMI_EXCEPTION])},
    {"asks", offsetof(domi_counters, handled[DOMI_ASK])},
    {"notices", offsetof(domi_counters, handled[DOMI_NOTICE])},
    {"events", offsetof(domi_counters, handled[DOMI_EVENT])},
    {"timers fired", offsetof(domi_counters, timers_fired)},
    {"spawns", offsetof(domi_counters, spawns)},
    {"stops", offsetof(domi_counters, stops)},
    {"failures", offsetof(domi_counters, failures)},
    {"restarts", offsetof(domi_counters, restarts)},
    {"escalations", offsetof(domi_counters, escalations)},
    {"passivations", offsetof(domi_counters, passivations)},
    {"cancels", offsetof(domi_counters, cancels)},
    {"circles of asks", offsetof(domi_counters, circles)},
    {"asks expired", offsetof(domi_counters, asks_expired)},
    {"late replies", offsetof(domi_counters, late_replies)},
    {"dead letters", offsetof(domi_counters, dead_letters)},
    {"refusals", offsetof(domi_counters, refusals)},
};

/* Map the memory for the trace's lines and its text. Pages that no line reaches take no memory. */
int domi_trace_init(domi_trace *trace)
{
    trace->lines = domi_memory_map_pages(LINES_BYTES);
    trace->text = domi_memory_map_pages(TEXT_BYTES);
    return trace->lines != NULL && trace->text != NULL ? 0 : -ENOMEM;
}

void domi_trace_fini(domi_trace *trace)
{
    domi_memory_unmap_pages(trace->lines, LINES_BYTES);
    domi_memory_unmap_pages(trace->text, TEXT_BYTES);
    domi_memory_free(trace->who);
}

static domi_trace_line *add_empty_line_to_trace(domus_testkit *kit)
{
    domi_trace_line *line = &kit->trace.lines[kit->trace.count++ % DOMUS_TESTKIT_TRACE_MAX];

    line->step = kit->steps;
    line->now_ns = domi_clock_now(&kit->system->clock);
    return line;
}

static uint64_t read_counter_of_row(const domi_counters *counters, uint32_t i)
{
    return domi_counter_read((const domi_counter *)((const char *)counters + counts[i].offset));
}

static void record_actors_of_queue(domi_trace *trace, const domi_fifo *fifo)
{
    for (const domi_house *house = fifo->head; house != NULL; house = house->next) {
        uint32_t number = domi_who_find_or_give_number_of_actor(&trace->who, house);

        if (trace->actor_count < DOMI_TRACE_ACTORS)
            trace->actors[trace->actor_count] =
                (domi_trace_actor){.behaviour = house->behaviour, .number = number};
        trace->actor_count++;
    }
}

void domi_trace_record_ready_actors(domus_testkit *kit, uint32_t index)
{
    const domi_queue *queue = &kit->system->threads[index].manager.schedule.ready[DOMUS_STATE];

    record_actors_of_queue(&kit->trace, &queue->high);
    record_actors_of_queue(&kit->trace, &queue->normal);
}

/* Add a line to the trace for a step of a thread or a runner, if it has counted anything. `before`
 * holds its counters after its last step, and is updated. */
static void add_line_of_step_or_turn(domus_testkit *kit, const domi_counters *counters,
                                     uint64_t *before, uint32_t number, const char *pool,
                                     const char *what)
{
    domi_trace *trace = &kit->trace;
    uint64_t now[DOMI_TRACE_COUNTS];
    uint64_t any = 0;

    for (uint32_t i = 0; i < DOMI_TRACE_COUNTS; i++) {
        now[i] = read_counter_of_row(counters, i);
        any |= now[i] ^ before[i];
    }
    if (any != 0) {
        domi_trace_line *line = add_empty_line_to_trace(kit);

        line->what = what;
        line->of_probe = line->of_net = false;
        line->pool = pool;
        line->number = number;
        line->actor_count = trace->actor_count;
        memcpy(line->actors, trace->actors, sizeof line->actors);
        for (uint32_t i = 0; i < DOMI_TRACE_COUNTS; i++) {
            line->counts[i] = (uint32_t)(now[i] - before[i]);
            before[i] = now[i];
        }
    }
    trace->actor_count = 0;
}

void domi_trace_record_step(domus_testkit *kit, uint32_t index, const char *phase)
{
    add_line_of_step_or_turn(kit, &kit->system->threads[index].manager.counters,
                             kit->threads[index].counts, index, NULL, phase);
}

void domi_trace_record_turn(domus_testkit *kit, uint32_t index)
{
    const domus_runner *runner = kit->runners[index].runner;

    add_line_of_step_or_turn(kit, &runner->manager.counters, kit->runners[index].counts,
                             runner->number, runner->pool->settings->name, "turn");
}

void domi_trace_record_probe(domus_testkit *kit, uint32_t number, const char *kind,
                             const domus_type *type, int error)
{
    domi_trace_line *line = add_empty_line_to_trace(kit);

    line->what = kind;
    line->of_probe = true;
    line->of_net = false;
    line->number = number;
    line->type = type;
    line->error = error;
}

void domi_trace_record_network(void *kit, const domi_net_note *note)
{
    domi_trace_line *line = add_empty_line_to_trace(kit);

    line->what = note->what;
    line->of_probe = false;
    line->of_net = true;
    line->of_datagram = note->is_datagram;
    line->number = (uint32_t)note->number;
    line->side = note->side;
    line->amount = note->amount;
}

/* --- writing the trace as text --------------------------------------------------------------- */

typedef struct writer {
    char *text;    /* text that is written, NUL-terminated */
    size_t length; /* number of bytes of the text so far */
    size_t size;   /* size of the text's memory in bytes */
} writer;

/* Append to the text of a trace. Text that does not fit is cut; TEXT_BYTES suffices unless names of
 * types have hundreds of bytes. */
__attribute__((format(printf, 2, 3))) static void append_text_of_trace(writer *out,
                                                                       const char *format, ...)
{
    size_t room = out->size - out->length;
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(out->text + out->length, room, format, arguments);
    va_end(arguments);
    if (length > 0)
        out->length += (size_t)length < room ? (size_t)length : room - 1;
}

/* Returns the name of a type, or "(no name)" if it is NULL. */
static const char *name_or_no_name(const char *name)
{
    return name != NULL ? name : "(no name)";
}

static void append_actors_of_line(writer *out, const domi_trace_line *line)
{
    for (uint32_t i = 0; i < line->actor_count && i < DOMI_TRACE_ACTORS; i++) {
        const domi_trace_actor *actor = &line->actors[i];

        append_text_of_trace(out, "%s%s", i == 0 ? " of " : ", ",
                             name_or_no_name(actor->behaviour->name));
        if (actor->number != DOMI_WHO_UNKNOWN)
            append_text_of_trace(out, "#%u", actor->number);
    }
    if (line->actor_count > DOMI_TRACE_ACTORS)
        append_text_of_trace(out, ", %u more", line->actor_count - DOMI_TRACE_ACTORS);
}

/* Write the line of a connection's or a datagram's event as text. The sign `>` stands for an event
 * that reaches the side which has accepted the connection. */
static void write_line_of_network_event(writer *out, const domi_trace_line *line)
{
    if (line->of_datagram)
        append_text_of_trace(out, " datagram %u %s", line->number, line->what);
    else
        append_text_of_trace(out, " connection %u %s %s", line->number, line->side == 1 ? ">" : "<",
                             line->what);
    if (line->amount != 0)
        append_text_of_trace(out, " %" PRIu64, line->amount);
    append_text_of_trace(out, "\n");
}

static void append_line_as_text(writer *out, const domi_trace_line *line)
{
    const char *mark = ": ";

    append_text_of_trace(out, "%" PRIu64 " %" PRIu64 ".%09" PRIu64, line->step,
                         line->now_ns / NS_PER_S, line->now_ns % NS_PER_S);
    if (line->of_net) {
        write_line_of_network_event(out, line);
        return;
    }
    if (line->of_probe) {
        append_text_of_trace(out, " probe %u receives the %s", line->number, line->what);
        if (line->type != NULL)
            append_text_of_trace(out, " %s\n", name_or_no_name(line->type->name));
        else
            append_text_of_trace(out, " %d\n", line->error);
        return;
    }
    if (line->pool != NULL)
        append_text_of_trace(out, " pool %s runner %u %s", line->pool, line->number, line->what);
    else
        append_text_of_trace(out, " thread %u %s", line->number, line->what);
    append_actors_of_line(out, line);
    for (uint32_t i = 0; i < DOMI_TRACE_COUNTS; i++) {
        if (line->counts[i] == 0)
            continue;
        append_text_of_trace(out, "%s%s %u", mark, counts[i].name, line->counts[i]);
        mark = ", ";
    }
    append_text_of_trace(out, "\n");
}

const char *domus_testkit_trace(domus_testkit *kit)
{
    const domi_trace *trace = &kit->trace;
    writer out = {.text = trace->text, .size = TEXT_BYTES};
    uint64_t first =
        trace->count > DOMUS_TESTKIT_TRACE_MAX ? trace->count - DOMUS_TESTKIT_TRACE_MAX : 0;

    out.text[0] = '\0';
    if (first != 0)
        append_text_of_trace(&out, "%" PRIu64 " lines before are gone\n", first);
    for (uint64_t i = first; i < trace->count; i++)
        append_line_as_text(&out, &trace->lines[i % DOMUS_TESTKIT_TRACE_MAX]);
    return out.text;
}
