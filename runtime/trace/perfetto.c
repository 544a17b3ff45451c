/* Writes the packets of a trace in Perfetto's format, whose fields are listed by their names and
 * numbers. */
#include "runtime/trace/perfetto.h"

#include "runtime/trace/nesting.h"
#include "runtime/trace/protobuf.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

enum trace_field {
    TRACE_PACKET = 1,
};

enum packet_field {
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE_ID = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED_DATA = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_DEFAULTS = 59,
    PACKET_TRACK_DESCRIPTOR = 60,
};

enum sequence_flag {
    /* flag of a packet: the state that earlier packets of this sequence have set is void */
    FLAG_STATE_CLEARED = 1,
    FLAG_NEEDS_STATE = 2,
};

enum snapshot_field {
    SNAPSHOT_CLOCKS = 1,
    SNAPSHOT_PRIMARY_CLOCK = 2, /* number of the field that says which clock the trace uses */
};

enum clock_field {
    CLOCK_ID = 1,
    CLOCK_TIMESTAMP = 2,
};

#define MONOTONIC 3u /* number of the clock CLOCK_MONOTONIC in Perfetto's format */

enum defaults_field {
    DEFAULTS_TRACK_EVENT = 11,
    DEFAULTS_CLOCK_ID = 58,
};

enum track_field {
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT_UUID = 5,
};

enum process_field {
    PROCESS_PID = 1,
    PROCESS_NAME = 6,
};

enum thread_field {
    THREAD_PID = 1,
    THREAD_TID = 2,
    THREAD_NAME = 5,
};

enum event_field {
    EVENT_CATEGORY_IIDS = 3,
    EVENT_ANNOTATIONS = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK_UUID = 11,
    EVENT_NAME = 23,
    EVENT_FLOW_IDS = 47,
    EVENT_TERMINATING_FLOW_IDS = 48,
};

enum event_type {
    TYPE_BEGIN = 1,
    TYPE_END = 2,
    TYPE_INSTANT = 3,
};

enum annotation_field {
    ANNOTATION_UINT = 3,
    ANNOTATION_NAME = 10,
};

enum interned_field {
    INTERNED_CATEGORIES = 1,
    INTERNED_NAMES = 2,
};

enum entry_field {
    ENTRY_IID = 1,
    ENTRY_NAME = 2,
};

/* ---- Packets --------------------------------------------------------------------------------- */

#define PACKET_MAX       1024u /* most bytes of one packet */
#define PROCESS_NAME_MAX 256u  /* most bytes of the name of the process */
/* number of the sequence of those packets that belong to no thread */
#define SEQUENCE_OF_GLOBAL 1u

static_assert(PACKET_MAX <= DOMI_PERFETTO_BYTES, "a packet fits into the empty buffer");
static_assert(DOMI_LABEL_BYTES + 256 < PACKET_MAX, "an event with a text is a packet");

static void flush_gathered_bytes(domi_perfetto *perfetto)
{
    if (perfetto->error == 0 && perfetto->used > 0)
        perfetto->error = perfetto->write(perfetto->context, perfetto->bytes, perfetto->used);
    perfetto->used = 0;
}

/* Begin a packet of the present sequence in `packet`. Returns its mark, by which
 * end_packet_and_gather_it() ends it. */
static size_t begin_packet_of_sequence(domi_perfetto *perfetto, domi_protobuf *packet)
{
    if (sizeof perfetto->bytes - perfetto->used < PACKET_MAX)
        flush_gathered_bytes(perfetto);
    *packet = (domi_protobuf){
        .bytes = perfetto->bytes, .size = perfetto->used + PACKET_MAX, .used = perfetto->used};

    size_t mark = domi_protobuf_begin_message(packet, TRACE_PACKET);
    domi_protobuf_add_number(packet, PACKET_SEQUENCE_ID, perfetto->sequence);
    return mark;
}

static void end_packet_and_gather_it(domi_perfetto *perfetto, domi_protobuf *packet, size_t mark)
{
    domi_protobuf_end_message(packet, mark);
    perfetto->used = packet->used;
}

static void add_name_of_process_or_thread(domi_protobuf *to, uint32_t field, const char *name)
{
    domi_protobuf_add_text(to, field, name, strnlen(name, PROCESS_NAME_MAX));
}

/* ---- Tracks ---------------------------------------------------------------------------------- */

/* Returns the number of the process's track. Tracks of several processes may be put together, so it
 * holds the number of the process. */
static uint64_t uuid_of_process_track(const domi_perfetto *perfetto)
{
    return ((uint64_t)(uint32_t)perfetto->pid << 20) + 1;
}

static uint64_t uuid_of_thread_track(const domi_perfetto *perfetto, const domi_recorder *recorder)
{
    return uuid_of_process_track(perfetto) + 1 + recorder->number;
}

static void write_packet_of_clock(domi_perfetto *perfetto, uint64_t now_ns)
{
    domi_protobuf packet;
    size_t whole = begin_packet_of_sequence(perfetto, &packet);
    size_t snapshot = domi_protobuf_begin_message(&packet, PACKET_CLOCK_SNAPSHOT);
    size_t clock = domi_protobuf_begin_message(&packet, SNAPSHOT_CLOCKS);

    domi_protobuf_add_number(&packet, CLOCK_ID, MONOTONIC);
    domi_protobuf_add_number(&packet, CLOCK_TIMESTAMP, now_ns);
    domi_protobuf_end_message(&packet, clock);
    domi_protobuf_add_number(&packet, SNAPSHOT_PRIMARY_CLOCK, MONOTONIC);
    domi_protobuf_end_message(&packet, snapshot);
    end_packet_and_gather_it(perfetto, &packet, whole);
}

static void write_track_of_process(domi_perfetto *perfetto, const char *name)
{
    domi_protobuf packet;
    size_t whole = begin_packet_of_sequence(perfetto, &packet);
    size_t track = domi_protobuf_begin_message(&packet, PACKET_TRACK_DESCRIPTOR);

    domi_protobuf_add_number(&packet, TRACK_UUID, uuid_of_process_track(perfetto));
    size_t process = domi_protobuf_begin_message(&packet, TRACK_PROCESS);
    domi_protobuf_add_number(&packet, PROCESS_PID, (uint64_t)perfetto->pid);
    if (name != NULL)
        add_name_of_process_or_thread(&packet, PROCESS_NAME, name);
    domi_protobuf_end_message(&packet, process);
    domi_protobuf_end_message(&packet, track);
    end_packet_and_gather_it(perfetto, &packet, whole);
}

static void add_defaults_of_sequence(domi_protobuf *packet, uint64_t track_uuid)
{
    size_t defaults = domi_protobuf_begin_message(packet, PACKET_DEFAULTS);
    size_t event = domi_protobuf_begin_message(packet, DEFAULTS_TRACK_EVENT);

    domi_protobuf_add_number(packet, EVENT_TRACK_UUID, track_uuid);
    domi_protobuf_end_message(packet, event);
    domi_protobuf_add_number(packet, DEFAULTS_CLOCK_ID, MONOTONIC);
    domi_protobuf_end_message(packet, defaults);
}

static void add_interned_name_with_number(domi_protobuf *packet, uint32_t field, uint64_t iid,
                                          const char *name)
{
    size_t entry = domi_protobuf_begin_message(packet, field);

    domi_protobuf_add_number(packet, ENTRY_IID, iid);
    domi_protobuf_add_text(packet, ENTRY_NAME, name, strlen(name));
    domi_protobuf_end_message(packet, entry);
}

/* Add the categories of events to a packet: the number of a category is the kind of its records. */
static void add_categories_of_events(domi_protobuf *packet)
{
    size_t interned = domi_protobuf_begin_message(packet, PACKET_INTERNED_DATA);

    for (domi_record_kind kind = DOMI_RECORD_NONE + 1; kind < DOMI_RECORD_KINDS; kind++)
        add_interned_name_with_number(packet, INTERNED_CATEGORIES, kind,
                                      domi_label_category_of_kind(kind));
    domi_protobuf_end_message(packet, interned);
}

/* Write the track of a thread. If the number that the kernel has for the thread is not known, the
 * track has only a name. */
static void write_track_of_thread(domi_perfetto *perfetto, const domi_recorder *recorder)
{
    /* relaxed: the number is complete by itself */
    int32_t tid =
        atomic_load_explicit((_Atomic int32_t *)(uintptr_t)&recorder->tid, memory_order_relaxed);
    domi_protobuf packet;
    size_t whole = begin_packet_of_sequence(perfetto, &packet);

    domi_protobuf_add_number(&packet, PACKET_SEQUENCE_FLAGS, FLAG_STATE_CLEARED);
    add_defaults_of_sequence(&packet, uuid_of_thread_track(perfetto, recorder));
    size_t track = domi_protobuf_begin_message(&packet, PACKET_TRACK_DESCRIPTOR);
    domi_protobuf_add_number(&packet, TRACK_UUID, uuid_of_thread_track(perfetto, recorder));
    domi_protobuf_add_number(&packet, TRACK_PARENT_UUID, uuid_of_process_track(perfetto));
    if (tid == 0) {
        add_name_of_process_or_thread(&packet, TRACK_NAME, recorder->name);
    } else {
        size_t thread = domi_protobuf_begin_message(&packet, TRACK_THREAD);
        domi_protobuf_add_number(&packet, THREAD_PID, (uint64_t)perfetto->pid);
        domi_protobuf_add_number(&packet, THREAD_TID, (uint64_t)tid);
        add_name_of_process_or_thread(&packet, THREAD_NAME, recorder->name);
        domi_protobuf_end_message(&packet, thread);
    }
    domi_protobuf_end_message(&packet, track);
    add_categories_of_events(&packet);
    end_packet_and_gather_it(perfetto, &packet, whole);
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void add_value_of_event(domi_protobuf *packet, const domi_record *record)
{
    const char *name = domi_label_unit_of_value(domi_record_kind_of(record));

    if (name == NULL)
        return;
    size_t annotation = domi_protobuf_begin_message(packet, EVENT_ANNOTATIONS);
    domi_protobuf_add_text(packet, ANNOTATION_NAME, name, strlen(name));
    domi_protobuf_add_number(packet, ANNOTATION_UINT, record->value);
    domi_protobuf_end_message(packet, annotation);
}

static void add_flow_of_event(domi_protobuf *packet, const domi_record *record)
{
    switch (domi_record_kind_of(record)) {
    case DOMI_RECORD_ASK_OUT:
    case DOMI_RECORD_ASK_IN:
    case DOMI_RECORD_ANSWER_OUT:
        domi_protobuf_add_fixed_number(packet, EVENT_FLOW_IDS, record->value);
        break;
    case DOMI_RECORD_ANSWER_IN:
        domi_protobuf_add_fixed_number(packet, EVENT_TERMINATING_FLOW_IDS, record->value);
        break;
    default:
        break;
    }
}

/* Add the text of an event to a packet by its number, or the text itself if it has no number.
 * Returns the number if this packet has to say the text with it, else 0. */
static uint32_t add_label_of_event(domi_perfetto *perfetto, domi_protobuf *packet,
                                   const domi_record *record)
{
    char text[DOMI_LABEL_BYTES];
    bool is_new = false;
    uint32_t number = domi_labels_find_or_give_number(&perfetto->labels, record, &is_new);

    if (number == 0)
        domi_protobuf_add_text(packet, EVENT_NAME, text, domi_label_write_text(record, text));
    else
        domi_protobuf_add_number(packet, EVENT_NAME_IID, number);
    return is_new ? number : 0;
}

static void add_label_text_to_interned_names(domi_protobuf *packet, uint32_t number,
                                             const domi_record *record)
{
    char text[DOMI_LABEL_BYTES];
    size_t interned = domi_protobuf_begin_message(packet, PACKET_INTERNED_DATA);

    (void)domi_label_write_text(record, text);
    add_interned_name_with_number(packet, INTERNED_NAMES, number, text);
    domi_protobuf_end_message(packet, interned);
}

/* Write an event for a step of a record: a begin, an end or an instant. It is called as a
 * domi_nesting_visit. */
static void write_event_of_step(void *perfetto_, domi_nesting_step step, uint64_t at_ns,
                                const domi_record *record)
{
    static const enum event_type types[] = {
        [DOMI_NESTING_BEGIN] = TYPE_BEGIN,
        [DOMI_NESTING_END] = TYPE_END,
        [DOMI_NESTING_INSTANT] = TYPE_INSTANT,
    };
    domi_perfetto *perfetto = perfetto_;
    domi_protobuf packet;
    uint32_t new_label = 0;
    size_t whole = begin_packet_of_sequence(perfetto, &packet);

    domi_protobuf_add_number(&packet, PACKET_SEQUENCE_FLAGS, FLAG_NEEDS_STATE);
    domi_protobuf_add_number(&packet, PACKET_TIMESTAMP, at_ns);
    size_t event = domi_protobuf_begin_message(&packet, PACKET_TRACK_EVENT);
    domi_protobuf_add_number(&packet, EVENT_TYPE, types[step]);
    if (step != DOMI_NESTING_END) {
        domi_protobuf_add_number(&packet, EVENT_CATEGORY_IIDS, domi_record_kind_of(record));
        new_label = add_label_of_event(perfetto, &packet, record);
        add_value_of_event(&packet, record);
        add_flow_of_event(&packet, record);
    }
    domi_protobuf_end_message(&packet, event);
    if (new_label != 0)
        add_label_text_to_interned_names(&packet, new_label, record);
    end_packet_and_gather_it(perfetto, &packet, whole);
}

/* ---- A trace --------------------------------------------------------------------------------- */

void domi_perfetto_begin_trace(domi_perfetto *perfetto,
                               int (*write)(void *context, const void *bytes, size_t length),
                               void *context, const char *process, uint64_t now_ns)
{
    perfetto->write = write;
    perfetto->context = context;
    perfetto->error = 0;
    perfetto->pid = getpid();
    perfetto->sequence = SEQUENCE_OF_GLOBAL;
    perfetto->used = 0;
    write_packet_of_clock(perfetto, now_ns);
    write_track_of_process(perfetto, process);
}

void domi_perfetto_write_thread(domi_perfetto *perfetto, const domi_recorder *recorder,
                                const domi_record *records, uint32_t count,
                                const domi_record open[DOMI_RECORD_DEPTHS])
{
    perfetto->sequence = SEQUENCE_OF_GLOBAL + 1 + recorder->number;
    domi_labels_forget_all(&perfetto->labels);
    write_track_of_thread(perfetto, recorder);
    domi_nesting_walk_over_records(records, count, open, write_event_of_step, perfetto);
}

int domi_perfetto_end_trace(domi_perfetto *perfetto)
{
    flush_gathered_bytes(perfetto);
    return perfetto->error;
}
