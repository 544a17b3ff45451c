/* Decodes traces in the format of Perfetto, which is protobuf. A field is a number, 8 bytes, or
 * bytes with a length, and messages are read field by field. The sequence of a thread begins with a
 * packet that discards the state of earlier packets. */
#include "tests/runtime/traced.h"

#include "tests/support/suite.h"
#include "tests/support/tree.h"

#include <stdio.h>
#include <string.h>

#define TEXTS_MAX  1024
#define DEPTHS_MAX 64

struct field {
    uint32_t number;
    uint64_t value;       /* value of the field, if it is a number or 8 bytes */
    const uint8_t *bytes; /* bytes of the field; NULL: the field is a number */
    size_t length;
};

struct reader {
    const uint8_t *at;
    const uint8_t *end;
};

static uint64_t read_varint(struct reader *reader)
{
    uint64_t value = 0;

    for (uint32_t shift = 0;; shift += 7) {
        ck_assert_uint_lt(shift, 64);
        ck_assert(reader->at < reader->end);
        value |= (uint64_t)(*reader->at & 0x7F) << shift;
        if ((*reader->at++ & 0x80) == 0)
            return value;
    }
}

/* Read the next field of a message. Returns false at the end of the message. */
static bool read_next_field(struct reader *reader, struct field *field)
{
    if (reader->at == reader->end)
        return false;
    uint64_t tag = read_varint(reader);
    *field = (struct field){.number = (uint32_t)(tag >> 3)};
    switch (tag & 7) {
    case 0:
        field->value = read_varint(reader);
        break;
    case 1:
        ck_assert_int_ge(reader->end - reader->at, 8);
        /* the field is little-endian, as is the machine of the test */
        memcpy(&field->value, reader->at, 8);
        reader->at += 8;
        break;
    case 2:
        field->length = (size_t)read_varint(reader);
        ck_assert_uint_le(field->length, (size_t)(reader->end - reader->at));
        field->bytes = reader->at;
        reader->at += field->length;
        break;
    default:
        ck_abort_msg("wire type %u", (unsigned)(tag & 7));
    }
    return true;
}

static struct reader reader_of_field(const struct field *field)
{
    ck_assert_ptr_nonnull(field->bytes);
    return (struct reader){field->bytes, field->bytes + field->length};
}

/* Find the first field with this number in a message. Returns false if there is none. */
static bool find_field_of_message(const struct field *message, uint32_t number, struct field *field)
{
    struct reader reader = reader_of_field(message);
    while (read_next_field(&reader, field)) {
        if (field->number == number)
            return true;
    }
    return false;
}

static uint64_t number_of_field(const struct field *message, uint32_t number)
{
    struct field field;
    ck_assert_msg(find_field_of_message(message, number, &field), "no field %u", number);
    return field.value;
}

static void copy_text_of_field(char to[DOMT_TRACED_TEXT], const struct field *field)
{
    ck_assert_ptr_nonnull(field->bytes);
    ck_assert_uint_lt(field->length, DOMT_TRACED_TEXT);
    memcpy(to, field->bytes, field->length);
    to[field->length] = '\0';
}

/* ---- A sequence ------------------------------------------------------------------------------ */

static struct sequence {
    uint64_t number;
    uint64_t track;
    char thread[DOMT_TRACED_TEXT];
    char categories[TEXTS_MAX][DOMT_TRACED_TEXT];
    char texts[TEXTS_MAX][DOMT_TRACED_TEXT];
    domt_traced_event begun[DEPTHS_MAX];
    uint32_t depth;
    uint64_t last_ns;
} now;

static void read_interned_texts(const struct field *packet)
{
    struct field interned, entry, name;

    if (!find_field_of_message(packet, 12, &interned))
        return;
    struct reader reader = reader_of_field(&interned);
    while (read_next_field(&reader, &entry)) {
        uint64_t iid = number_of_field(&entry, 1);
        ck_assert(entry.number == 1 || entry.number == 2);
        ck_assert_uint_lt(iid, TEXTS_MAX);
        char *to = entry.number == 1 ? now.categories[iid] : now.texts[iid];
        /* the number of a text must not have been given to another text */
        ck_assert_str_eq(to, "");
        ck_assert(find_field_of_message(&entry, 2, &name));
        copy_text_of_field(to, &name);
    }
}

static void begin_sequence_of_thread(domt_traced *traced, const struct field *packet)
{
    struct field defaults, event, track, thread, name;

    traced->unended += now.depth;
    memset(&now, 0, sizeof now);
    now.number = number_of_field(packet, 10);
    ck_assert(find_field_of_message(packet, 59, &defaults));
    ck_assert_uint_eq(number_of_field(&defaults, 58), 3); /* 3 is the number of CLOCK_MONOTONIC */
    ck_assert(find_field_of_message(&defaults, 11, &event));
    now.track = number_of_field(&event, 11);
    ck_assert(find_field_of_message(packet, 60, &track));
    ck_assert_uint_eq(number_of_field(&track, 1), now.track);
    if (find_field_of_message(&track, 4, &thread)) {
        ck_assert_uint_gt(number_of_field(&thread, 1), 0);
        ck_assert_uint_gt(number_of_field(&thread, 2), 0);
        ck_assert(find_field_of_message(&thread, 5, &name));
    } else {
        ck_assert(find_field_of_message(&track, 2, &name));
    }
    copy_text_of_field(now.thread, &name);
    traced->threads++;
    read_interned_texts(packet);
}

static void read_begin_of_event(domt_traced *traced, const struct field *event,
                                domt_traced_event *to)
{
    struct field field;

    if (find_field_of_message(event, 23, &field)) {
        copy_text_of_field(to->text, &field);
        traced->named++;
    } else {
        snprintf(to->text, sizeof to->text, "%s", now.texts[number_of_field(event, 10)]);
    }
    snprintf(to->category, sizeof to->category, "%s", now.categories[number_of_field(event, 3)]);
    ck_assert_str_ne(to->text, "");
    ck_assert_str_ne(to->category, "");
    to->is_last = find_field_of_message(event, 48, &field);
    if (to->is_last || find_field_of_message(event, 47, &field))
        to->flow = field.value;
}

static void read_event_packet(domt_traced *traced, const struct field *packet,
                              const struct field *event)
{
    static const char types[] = "?BEI";
    domt_traced_event read = {.at_ns = number_of_field(packet, 8)};
    uint64_t type = number_of_field(event, 9);

    ck_assert_uint_eq(number_of_field(packet, 10), now.number);
    ck_assert_uint_eq(number_of_field(packet, 13), 2);
    ck_assert_uint_ge(read.at_ns, now.last_ns);
    now.last_ns = read.at_ns;
    read_interned_texts(packet);
    ck_assert(type >= 1 && type <= 3);
    read.type = types[type];
    if (read.type == 'E') {
        ck_assert_uint_gt(now.depth, 0);
        domt_traced_event *begun = &now.begun[--now.depth];
        memcpy(read.text, begun->text, sizeof read.text);
        memcpy(read.category, begun->category, sizeof read.category);
    } else {
        read_begin_of_event(traced, event, &read);
    }
    memcpy(read.thread, now.thread, sizeof read.thread);
    read.depth = now.depth;
    if (read.type == 'B') {
        ck_assert_uint_lt(now.depth, DEPTHS_MAX);
        now.begun[now.depth++] = read;
    }
    if (traced->events < DOMT_TRACED_EVENTS)
        traced->event[traced->events] = read;
    traced->events++;
}

/* ---- A trace --------------------------------------------------------------------------------- */

static void read_global_packet(domt_traced *traced, const struct field *packet)
{
    struct field field, clock, process;

    if (find_field_of_message(packet, 6, &field)) {
        /* the snapshot of the clock; 3 is the number of CLOCK_MONOTONIC */
        ck_assert_uint_eq(number_of_field(&field, 2), 3);
        ck_assert(find_field_of_message(&field, 1, &clock));
        ck_assert_uint_eq(number_of_field(&clock, 1), 3);
        traced->clock_ns = number_of_field(&clock, 2);
        return;
    }
    ck_assert(find_field_of_message(packet, 60, &field));
    ck_assert(find_field_of_message(&field, 3, &process));
    ck_assert(find_field_of_message(&process, 6, &field));
    copy_text_of_field(traced->process, &field);
}

static void read_packet_of_trace(domt_traced *traced, const struct field *packet)
{
    struct field field;

    traced->packets++;
    if (number_of_field(packet, 10) == 1)
        read_global_packet(traced, packet);
    else if (find_field_of_message(packet, 11, &field))
        read_event_packet(traced, packet, &field);
    else
        begin_sequence_of_thread(traced, packet);
}

void domt_traced_decode(const uint8_t *bytes, size_t length, domt_traced *ret_traced)
{
    struct reader reader = {bytes, bytes + length};
    struct field packet;

    memset(ret_traced, 0, sizeof *ret_traced);
    memset(&now, 0, sizeof now);
    while (read_next_field(&reader, &packet)) {
        ck_assert_uint_eq(packet.number, 1);
        read_packet_of_trace(ret_traced, &packet);
    }
    ret_traced->unended += now.depth;
}

const domt_traced_event *domt_traced_find_event(const domt_traced *traced, char type,
                                                const char *text)
{
    for (uint32_t i = 0; i < traced->events && i < DOMT_TRACED_EVENTS; i++) {
        if (traced->event[i].type == type && strcmp(traced->event[i].text, text) == 0)
            return &traced->event[i];
    }
    return NULL;
}

const domt_traced_event *domt_traced_find_event_on_thread(const domt_traced *traced,
                                                          const char *thread, char type,
                                                          const char *text)
{
    for (uint32_t i = 0; i < traced->events && i < DOMT_TRACED_EVENTS; i++) {
        const domt_traced_event *event = &traced->event[i];
        if (event->type == type && strcmp(event->text, text) == 0 &&
            strcmp(event->thread, thread) == 0)
            return event;
    }
    return NULL;
}

const domt_traced_event *domt_traced_find_begin_around(const domt_traced *traced,
                                                       const char *thread, const char *outer,
                                                       const char *inner)
{
    for (uint32_t i = 0; i + 1 < traced->events && i + 1 < DOMT_TRACED_EVENTS; i++) {
        const domt_traced_event *event = &traced->event[i];
        if (event->type == 'B' && strcmp(event->text, outer) == 0 &&
            strcmp(event->thread, thread) == 0 && strcmp(event[1].text, inner) == 0)
            return event;
    }
    return NULL;
}

bool domt_traced_is_last_span_open(const domt_traced *traced, const char *thread, const char *text)
{
    bool open = false;

    for (uint32_t i = 0; i < traced->events && i < DOMT_TRACED_EVENTS; i++) {
        const domt_traced_event *event = &traced->event[i];
        if (strcmp(event->text, text) == 0 && strcmp(event->thread, thread) == 0)
            open = event->type == 'B';
    }
    return open;
}

/* ---- protobuf's decoder ---------------------------------------------------------------------- */

bool domt_protoc_is_installed(void)
{
    /* NOLINTNEXTLINE(cert-env33-c): a test may use the shell */
    if (system("command -v protoc >/dev/null") == 0)
        return true;
    printf("no protoc: it does not judge\n");
    return false;
}

const char *domt_protoc_decode_trace(const uint8_t *bytes, size_t length)
{
    static char text[4 << 20];
    char command[2 * PATH_MAX];
    domt_tree tree;

    domt_tree_make(&tree);
    snprintf(command, sizeof command, "%s/trace", tree.root);
    FILE *file = fopen(command, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
    snprintf(command, sizeof command,
             "timeout 30 protoc -I '%s/tests/runtime' --decode=Trace trace.proto <'%s/trace' | "
             "tr -s '\\n ' ' '",
             DOMT_SOURCE_DIR, tree.root);
    file = popen(command, "r"); /* NOLINT(cert-env33-c): a test may use the shell */
    ck_assert_ptr_nonnull(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    ck_assert_int_eq(pclose(file), 0);
    domt_tree_remove_copy(&tree);
    return text;
}
