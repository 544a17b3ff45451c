/* Stores the values of a text, in their order, in the members of a struct.
 *
 * The parse (parse.h) calls a function here for each thing that it has found. The top frame tells
 * where a value is stored. A value that is not stored, because its field is unknown or is kept as
 * text, is skipped: only its depth is counted until it ends. */
#include "protocols/json/reader.h"

#include <errno.h>
#include <string.h>

/* Returns whether a decoded text has a lone low surrogate, which RapidJSON writes as three bytes.
 * The text was checked before and had no such bytes, so only an escape can have made them. */
static bool has_lone_low_surrogate(const char *text, uint32_t size)
{
    const char *end = text + size;

    for (const char *at = text; (at = memchr(at, 0xed, (size_t)(end - at))) != NULL; at++) {
        if (end - at >= 3 && (unsigned char)at[1] >= 0xa0)
            return true;
    }
    return false;
}

/* Refuse a decoded text that has a lone low surrogate. Only texts that may have such an escape are
 * searched: the decoded bytes were written just now, and reading them would wait for the write. */
static bool refuse_text_with_lone_low_surrogate(domi_json_reader *reader, const char *text,
                                                uint32_t size)
{
    if (!has_lone_low_surrogate(text, size))
        return true;
    return domi_json_refuse_text(reader, domi_json_offset_of_text(reader, text) - 1, -EBADMSG,
                                 "one half of a surrogate pair");
}

/* --- ends of values --------------------------------------------------------------------------- */

/* Record in the top frame that a value which belongs to it has ended. */
static inline void record_end_of_value_in_top_frame(domi_json_reader *reader)
{
    domi_json_frame *frame = reader->top;

    if (frame->table == NULL) {
        frame->next++;
        return;
    }
    if (frame->field != NULL && frame->field->has) {
        bool has = true;
        memcpy(frame->at + frame->field->has_offset, &has, sizeof has);
    }
    frame->field = NULL;
}

/* End the value that is being skipped, whose last byte is before `end`, and store its text if it is
 * to be kept. */
static bool end_skipped_value(domi_json_reader *reader, size_t end)
{
    reader->skips = false;
    if (reader->raw != NULL) {
        domus_json_raw *raw = reader->raw;
        reader->raw = NULL;
        if (!domi_json_store_value_as_raw_text(reader, reader->top->field, raw, reader->raw_from,
                                               end - reader->raw_from))
            return false;
    }
    record_end_of_value_in_top_frame(reader);
    return true;
}

/* Returns the offset behind the text of JSON whose first quote is at `from`. */
static size_t find_offset_behind_text(const domi_json_reader *reader, size_t from)
{
    size_t at = from + 1;

    while (reader->text[at] != '"')
        at += reader->text[at] == '\\' ? 2 : 1;
    return at + 1;
}

/* --- places of values ------------------------------------------------------------------------- */

/* Enlarge the memory of an array that the struct points to, if it has no room for another
 * element. */
static bool enlarge_array_if_full(domi_json_reader *reader, domi_json_frame *frame, size_t offset)
{
    const domus_json_field *field = frame->field;
    uint32_t room = frame->room == 0 ? 4 : 2 * frame->room;
    void *made;

    if (room > field->count_max)
        room = field->count_max;
    if (!domi_json_take_memory_of_struct(reader, offset, (uint64_t)room * field->size, &made))
        return false;
    if (frame->next != 0)
        memcpy(made, frame->at, (size_t)frame->next * field->size);
    frame->at = made;
    frame->room = room;
    return true;
}

/* Find the place in the struct for the next element of an array, and zero it. Returns NULL if the
 * element is refused. */
static char *find_place_of_next_element(domi_json_reader *reader, domi_json_frame *frame,
                                        size_t offset)
{
    const domus_json_field *field = frame->field;

    if (frame->next >= field->count_max) {
        (void)domi_json_refuse_text(reader, offset, -EMSGSIZE, "more than %u elements",
                                    field->count_max);
        return NULL;
    }
    if (frame->next == frame->room && !enlarge_array_if_full(reader, frame, offset))
        return NULL;
    char *at = frame->at + (size_t)frame->next * field->size;
    memset(at, 0, field->size);
    return at;
}

/* Find the place in the struct for a value that is no array. Returns NULL if the value is refused.
 * `ret_field` gets the row of its field. */
static inline char *find_place_of_value(domi_json_reader *reader, size_t offset,
                                        const domus_json_field **ret_field)
{
    domi_json_frame *frame = reader->top;

    *ret_field = frame->field;
    if (frame->table == NULL)
        return find_place_of_next_element(reader, frame, offset);
    if (frame->field->shape != DOMUS_JSON_ONE) {
        (void)domi_json_refuse_kind_of_value(reader, frame->field, false, offset);
        return NULL;
    }
    return frame->at + frame->field->offset;
}

/* Begin to skip a value. When it ends, its text is stored in `raw`, unless that is NULL. */
static void begin_to_skip_value(domi_json_reader *reader, domus_json_raw *raw, size_t offset)
{
    reader->skips = true;
    reader->skipped = 0;
    reader->raw = raw;
    reader->raw_from = offset;
}

/* Begin to skip the current value, whose field keeps it as text. Returns false if the value is
 * refused. */
static bool begin_to_keep_value_as_text(domi_json_reader *reader, size_t offset)
{
    const domus_json_field *field;
    char *at = find_place_of_value(reader, offset, &field);

    if (at == NULL)
        return false;
    begin_to_skip_value(reader, (domus_json_raw *)(void *)at, offset);
    return true;
}

/* Returns whether the field of the current value keeps it as text. */
static inline bool is_value_kept_as_text(const domi_json_reader *reader)
{
    return !reader->skips && reader->top->field->kind == DOMUS_JSON_KIND_RAW;
}

/* --- values ----------------------------------------------------------------------------------- */

static inline uint64_t load_word_of_bytes(const char *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof word);
    return word;
}

/* Copy at most 16 bytes, without a call of memcpy(). */
static inline void copy_at_most_16_bytes(char *to, const char *from, uint32_t size)
{
    if (size >= 8) {
        uint64_t first = load_word_of_bytes(from), last = load_word_of_bytes(from + size - 8);
        memcpy(to, &first, sizeof first);
        memcpy(to + size - 8, &last, sizeof last);
    } else if (size >= 4) {
        uint32_t first, last;
        memcpy(&first, from, sizeof first);
        memcpy(&last, from + size - 4, sizeof last);
        memcpy(to, &first, sizeof first);
        memcpy(to + size - 4, &last, sizeof last);
    } else if (size != 0) {
        char middle = from[size / 2], last = from[size - 1];
        to[0] = from[0];
        to[size / 2] = middle;
        to[size - 1] = last;
    }
}

static __attribute__((noinline)) bool store_text_in_member(domi_json_reader *reader, char *text,
                                                           uint32_t size)
{
    const domus_json_field *field;
    size_t offset = domi_json_offset_of_text(reader, text) - 1;

    if (reader->has_odd_escape && !refuse_text_with_lone_low_surrogate(reader, text, size))
        return false;
    if (is_value_kept_as_text(reader) && !begin_to_keep_value_as_text(reader, offset))
        return false;
    if (reader->skips)
        return reader->skipped != 0 ||
               end_skipped_value(
                   reader, reader->raw != NULL ? find_offset_behind_text(reader, offset) : offset);
    char *at = find_place_of_value(reader, offset, &field);
    if (at == NULL || !domi_json_store_text(reader, field, at, text, size))
        return false;
    record_end_of_value_in_top_frame(reader);
    return true;
}

/* Most texts are short and belong to a struct. Their path through this function calls no other
 * function, so it saves no registers. */
bool domi_json_on_text_store_it_in_member(domi_json_reader *reader, char *text, uint32_t size)
{
    const domi_json_frame *frame = reader->top;
    const domus_json_field *field = frame->field;

    if (reader->has_odd_escape || reader->skips || frame->table == NULL || size > 16 ||
        field->kind != DOMUS_JSON_KIND_TEXT || field->shape != DOMUS_JSON_ONE ||
        size >= field->size)
        return store_text_in_member(reader, text, size);
    char *at = frame->at + field->offset;
    copy_at_most_16_bytes(at, text, size);
    at[size] = '\0';
    record_end_of_value_in_top_frame(reader);
    return true;
}

bool domi_json_on_number_store_it_in_member(domi_json_reader *reader, char *text, uint32_t size)
{
    const domus_json_field *field;
    size_t offset = domi_json_offset_of_text(reader, text);

    if (is_value_kept_as_text(reader) && !begin_to_keep_value_as_text(reader, offset))
        return false;
    if (reader->skips)
        return reader->skipped != 0 || end_skipped_value(reader, offset + size);
    char *at = find_place_of_value(reader, offset, &field);
    if (at == NULL || !domi_json_store_number(reader, field, at, text, size))
        return false;
    record_end_of_value_in_top_frame(reader);
    return true;
}

bool domi_json_on_bool_store_it_in_member(domi_json_reader *reader, bool value, size_t offset)
{
    const domus_json_field *field;

    if (is_value_kept_as_text(reader) && !begin_to_keep_value_as_text(reader, offset))
        return false;
    if (reader->skips)
        return reader->skipped != 0 || end_skipped_value(reader, offset + (value ? 4 : 5));
    char *at = find_place_of_value(reader, offset, &field);
    if (at == NULL)
        return false;
    if (field->kind != DOMUS_JSON_KIND_BOOL)
        return domi_json_refuse_kind_of_value(reader, field, true, offset);
    memcpy(at, &value, sizeof value);
    record_end_of_value_in_top_frame(reader);
    return true;
}

/* A null for a field that may be absent or null leaves the field as if it were absent. */
bool domi_json_on_null_leave_member_absent(domi_json_reader *reader, size_t offset)
{
    const domus_json_field *field;

    if (!reader->skips && reader->top->table != NULL) {
        field = reader->top->field;
        if (field->has || field->nullable) {
            reader->top->field = NULL;
            return true;
        }
    }
    if (is_value_kept_as_text(reader) && !begin_to_keep_value_as_text(reader, offset))
        return false;
    if (reader->skips)
        return reader->skipped != 0 || end_skipped_value(reader, offset + 4);
    if (find_place_of_value(reader, offset, &field) == NULL)
        return false;
    return domi_json_refuse_kind_of_value(reader, field, true, offset);
}

/* --- objects and arrays ----------------------------------------------------------------------- */

/* Returns whether a key of at most 16 bytes is the name of a row. The answer is false also for a
 * key that is not compared. The key is read from the given text, and not from the copy, where the
 * zero behind the key was written just now and a load over it would wait. A name has no backslash,
 * so a key with the same bytes has no escape. */
static inline bool is_key_name_of_row(const domi_json_reader *reader, const domus_json_field *field,
                                      const char *key, uint32_t size)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    size_t offset = domi_json_offset_of_text(reader, key);
    const char *text = reader->text + offset;

    if (field->name_size != size)
        return false;
    if (size - 1 < 8 && reader->size - offset >= 8)
        return (load_word_of_bytes(text) ^ load_word_of_bytes(field->name)) << (64 - 8 * size) == 0;
    return size - 1 < 16 && reader->size - offset >= 16 &&
           ((load_word_of_bytes(text) ^ load_word_of_bytes(field->name)) |
            (load_word_of_bytes(text + size - 8) ^ load_word_of_bytes(field->name + size - 8))) ==
               0;
#else
    return false;
#endif
}

/* Find the row of a table that has this name; the expected row is tried first. Returns NULL if
 * there is none. */
static const domus_json_field *find_row_by_name(const domus_json_table *table, uint32_t expected,
                                                const char *key, uint32_t size)
{
    for (uint32_t i = 0; i < table->count; i++) {
        uint32_t row = expected + i < table->count ? expected + i : expected + i - table->count;
        if (table->fields[row].name_size == size && memcmp(table->fields[row].name, key, size) == 0)
            return &table->fields[row];
    }
    return NULL;
}

static __attribute__((noinline, cold)) bool refuse_unknown_key(domi_json_reader *reader,
                                                               const char *name, uint32_t size)
{
    char shown[DOMI_JSON_SHOWN_MAX + 4];

    return domi_json_refuse_text(reader, domi_json_offset_of_text(reader, name) - 1, -EPROTO,
                                 "\"%s\" is no field of it",
                                 domi_json_copy_shown_part(name, size, shown));
}

/* Record in an object's frame that the value of this row comes next. Returns false if the object
 * has had the key before. */
static inline bool expect_value_of_row_or_refuse_twice(domi_json_reader *reader,
                                                       domi_json_frame *frame, uint32_t row,
                                                       const domus_json_field *field,
                                                       const char *key)
{
    frame->field = field;
    if ((frame->seen >> row & 1) != 0)
        return domi_json_refuse_text(reader, domi_json_offset_of_text(reader, key) - 1, -EPROTO,
                                     "is there twice");
    frame->seen |= UINT64_C(1) << row;
    frame->next = row + 1;
    return true;
}

/* Find the row of a key that is long, or is not the expected one, and record that its value comes
 * next. */
static __attribute__((noinline)) bool find_row_of_key_and_expect_value(domi_json_reader *reader,
                                                                       char *text, uint32_t size)
{
    domi_json_frame *frame = reader->top;

    if (reader->has_odd_escape && !refuse_text_with_lone_low_surrogate(reader, text, size))
        return false;
    if (reader->skips)
        return true;
    const domus_json_table *table = frame->table;
    const domus_json_field *field = find_row_by_name(table, frame->next, text, size);
    if (field == NULL && !table->skips_unknown)
        return refuse_unknown_key(reader, text, size);
    if (field == NULL) {
        begin_to_skip_value(reader, NULL, 0);
        return true;
    }
    return expect_value_of_row_or_refuse_twice(reader, frame, (uint32_t)(field - table->fields),
                                               field, text);
}

/* Most keys are the expected ones. Their path through this function calls no other function, so it
 * saves no registers. */
bool domi_json_on_key_expect_value_of_row(domi_json_reader *reader, char *text, uint32_t size)
{
    domi_json_frame *frame = reader->top;

    if (!reader->has_odd_escape && !reader->skips) {
        uint32_t row = frame->next;
        const domus_json_field *field = &frame->table->fields[row];
        if (row != frame->table->count && is_key_name_of_row(reader, field, text, size))
            return expect_value_of_row_or_refuse_twice(reader, frame, row, field, text);
    }
    return find_row_of_key_and_expect_value(reader, text, size);
}

static void open_frame_and_preset_object(domi_json_reader *reader, const domus_json_table *table,
                                         char *at)
{
    if (table->preset != NULL)
        memcpy(at, table->preset, table->size);
    *++reader->top = (domi_json_frame){.table = table, .at = at};
}

static void open_frame_of_array(domi_json_reader *reader, const domus_json_field *field,
                                char *value)
{
    bool is_pointed = field->shape == DOMUS_JSON_POINTED;

    *++reader->top = (domi_json_frame){
        .field = field,
        .at = is_pointed ? NULL : value + field->offset,
        .room = is_pointed ? 0 : field->count_max,
    };
}

bool domi_json_on_open_of_object_or_array(domi_json_reader *reader, bool is_array, size_t offset)
{
    const domus_json_field *field;
    const domi_json_frame *frame = reader->top;

    if ((uint32_t)(frame - reader->frames) + reader->skipped >= reader->depth_max)
        return domi_json_refuse_text(reader, offset, -EMSGSIZE, "nested deeper than %u",
                                     reader->depth_max);
    if (!reader->skips && is_array && frame->table != NULL &&
        frame->field->shape != DOMUS_JSON_ONE) {
        open_frame_of_array(reader, frame->field, frame->at);
        return true;
    }
    if (is_value_kept_as_text(reader) && !begin_to_keep_value_as_text(reader, offset))
        return false;
    if (reader->skips) {
        reader->skipped++;
        return true;
    }
    char *at = find_place_of_value(reader, offset, &field);
    if (at == NULL)
        return false;
    if (is_array || field->kind != DOMUS_JSON_KIND_OBJECT)
        return domi_json_refuse_kind_of_value(reader, field, true, offset);
    open_frame_and_preset_object(reader, field->table, at);
    return true;
}

static bool close_frame_of_object(domi_json_reader *reader, domi_json_frame *frame, size_t offset)
{
    const domus_json_table *table = frame->table;
    uint64_t all = UINT64_MAX >> (64 - table->count);

    for (uint64_t missing = all & ~frame->seen; missing != 0; missing &= missing - 1) {
        const domus_json_field *field = &table->fields[__builtin_ctzll(missing)];
        if (field->required) {
            frame->field = field;
            return domi_json_refuse_text(reader, offset, -EPROTO, "is missing");
        }
    }
    reader->top--;
    return true;
}

/* Store the number of elements of an array that has ended, and the address of an array that the
 * struct points to, in the struct that the next outer frame fills. */
static void close_frame_of_array(domi_json_reader *reader, const domi_json_frame *frame)
{
    const domus_json_field *field = frame->field;
    char *value = (--reader->top)->at;

    domi_json_store_unsigned_of_size(value + field->count_offset, field->count_size, frame->next);
    if (field->shape == DOMUS_JSON_POINTED)
        memcpy(value + field->offset, &frame->at, sizeof frame->at);
}

bool domi_json_on_close_of_object_or_array(domi_json_reader *reader, size_t offset)
{
    if (reader->skips)
        return --reader->skipped != 0 || end_skipped_value(reader, offset + 1);
    domi_json_frame *frame = reader->top;
    if (frame->table != NULL) {
        if (!close_frame_of_object(reader, frame, offset))
            return false;
    } else {
        close_frame_of_array(reader, frame);
    }
    record_end_of_value_in_top_frame(reader);
    return true;
}
