/* The feed: a state machine over the bytes between values. The end of a value is found by scan.h,
 * and the whole value is then read as any text, from the piece in which it lies or, if it comes in
 * several pieces, from `held`. */
#include <domus/json_feed.h>

#include "protocols/json/reader.h"
#include "protocols/json/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes for the name of the array in the text, where each byte may be written as an escape. */
#define KEY_ROOM (6u * DOMUS_JSON_NAME_MAX + 2u + DOMI_JSON_PADDING)

typedef enum domi_json_phase {
    BEGIN,
    FIRST_KEY,
    NEXT_KEY,
    COLON,
    MEMBER,
    AFTER_MEMBER,
    FIRST_ELEMENT,
    NEXT_ELEMENT,
    AFTER_ELEMENT,
    END,
} domi_json_phase;

struct domus_json_feed {
    domus_json_feed_options options;
    domi_json_phase phase;
    int error;
    uint64_t count; /* number of elements of the array that were read so far */

    const char *piece; /* the current piece of the text; `at` of its bytes were read */
    size_t size;
    size_t at;
    uint64_t left; /* bytes of further pieces that the limit of the whole text allows */
    bool is_over;  /* more bytes came than the limit of the text allows, and were ignored */
    /* line, column and offset of the byte at `at`; the other members are unused */
    domus_json_error place;

    bool in_value;  /* a value is being read that has begun at `place`, maybe in an earlier piece */
    bool is_array;  /* the last key that was read is the name of the wanted array */
    bool had_array; /* the array was found before, so it may not come again */
    domi_json_scan scan;
    char *held; /* bytes of the key, member or element that is being read, from earlier pieces */
    size_t held_size;
    size_t held_room;
};

int domus_json_feed_new(const domus_json_feed_options *options, domus_json_feed **ret_feed)
{
    size_t name = options->member != NULL ? strlen(options->member) : 1;

    if (options->table == NULL || options->element_max > DOMUS_JSON_BYTES_MAX || name == 0 ||
        name > DOMUS_JSON_NAME_MAX)
        return -EINVAL;
    domus_json_feed *feed = calloc(1, sizeof *feed);
    if (feed == NULL)
        return -ENOMEM;
    feed->options = *options;
    if (feed->options.element_max == 0)
        feed->options.element_max = DOMUS_JSON_ELEMENT_PRESET;
    if (feed->options.memory_max == 0)
        feed->options.memory_max = DOMUS_JSON_MEMORY_PRESET;
    feed->left = options->bytes_max != 0 ? options->bytes_max : UINT64_MAX;
    feed->place.line = 1;
    feed->place.column = 1;
    *ret_feed = feed;
    return 0;
}

void domus_json_feed_free(domus_json_feed *feed)
{
    if (feed == NULL)
        return;
    free(feed->held);
    free(feed);
}

uint64_t domus_json_feed_count(const domus_json_feed *feed)
{
    return feed->count;
}

int domus_json_feed_put(domus_json_feed *feed, const void *bytes, size_t size)
{
    if (feed->error != 0)
        return feed->error;
    if (feed->at != feed->size)
        return -EBUSY;
    feed->is_over = size > feed->left;
    feed->piece = bytes;
    feed->size = feed->is_over ? (size_t)feed->left : size;
    feed->at = 0;
    feed->left -= feed->size;
    return 0;
}

/* --- errors ----------------------------------------------------------------------------------- */

/* Report a fault that is `offset` bytes of `text` behind the feed's place. With `is_within` the
 * fault is in an element of the array, and its path begins with the array's name and the index. */
static int report_fault_with_place_in_feed(domus_json_feed *feed, domi_json_fault *fault,
                                           const char *text, bool is_within,
                                           domus_json_error *ret_error)
{
    domus_json_error place = feed->place;

    if (is_within)
        domi_json_fault_put_index_before(fault, feed->count);
    if (is_within && feed->options.member != NULL)
        domi_json_fault_put_name_before(fault, feed->options.member);
    feed->error = fault->error;
    if (ret_error == NULL)
        return feed->error;
    (void)domi_json_fault_fill_in_error(fault, ret_error);
    ret_error->line = place.line;
    ret_error->column = place.column;
    ret_error->offset = place.offset;
    domi_json_fault_add_line_and_column(ret_error, text, fault->offset);
    return feed->error;
}

/* Report what is wrong at the feed's current place. `name` is the member that is wrong; NULL if the
 * fault belongs to no member. */
static __attribute__((format(printf, 5, 6), cold)) int
refuse_at_current_place(domus_json_feed *feed, const char *name, domus_json_error *ret_error,
                        int error, const char *format, ...)
{
    domi_json_fault fault = {.error = 0};
    va_list list;

    va_start(list, format);
    domi_json_fault_record(&fault, error, format, list);
    va_end(list);
    if (name != NULL)
        domi_json_fault_put_name_before(&fault, name);
    return report_fault_with_place_in_feed(feed, &fault, "", false, ret_error);
}

/* Returns whether the current value is an element of the array, so that the path of an error has
 * its index. */
static bool is_value_element_of_array(const domus_json_feed *feed)
{
    return feed->phase == FIRST_ELEMENT || feed->phase == NEXT_ELEMENT;
}

static int refuse_value_of_feed(domus_json_feed *feed, domus_json_error *ret_error, int error,
                                const char *words)
{
    domi_json_fault fault = {.error = error, .from = DOMUS_JSON_PATH_MAX};

    memcpy(fault.words, words, strlen(words) + 1);
    return report_fault_with_place_in_feed(feed, &fault, "", is_value_element_of_array(feed),
                                           ret_error);
}

/* --- values ----------------------------------------------------------------------------------- */

static void advance_line_and_column(domus_json_feed *feed, const char *bytes, size_t size)
{
    domi_json_fault_add_line_and_column(&feed->place, bytes, size);
}

/* Keep the bytes of the current piece that belong to the current value, until the rest of the value
 * comes. */
static int append_bytes_to_kept_value(domus_json_feed *feed, const char *bytes, size_t size,
                                      domus_json_error *ret_error)
{
    size_t wanted = feed->held_size + size;

    if (wanted > feed->options.element_max)
        return refuse_value_of_feed(feed, ret_error, -EMSGSIZE, "longer than an element may be");
    if (wanted > feed->held_room) {
        size_t room = 2 * feed->held_room > wanted ? 2 * feed->held_room : 2 * wanted;
        if (room > feed->options.element_max)
            room = feed->options.element_max;
        char *held = realloc(feed->held, room);
        if (held == NULL)
            return refuse_value_of_feed(feed, ret_error, -ENOMEM, "no memory");
        feed->held = held;
        feed->held_room = room;
    }
    memcpy(feed->held + feed->held_size, bytes, size);
    feed->held_size = wanted;
    return 0;
}

/* The bytes of a whole value, in the current piece or in `held`. */
typedef struct domi_json_found {
    /* the first byte of the value; NULL: it is not whole, and more pieces are needed */
    const char *bytes;
    size_t size;
} domi_json_found;

static int find_or_gather_bytes_of_value(domus_json_feed *feed, domi_json_found *ret_found,
                                         domus_json_error *ret_error)
{
    const char *from = feed->piece + feed->at;
    bool has_ended;
    size_t size =
        domi_json_scan_piece_of_value(&feed->scan, from, feed->size - feed->at, &has_ended);

    feed->at += size;
    *ret_found = (domi_json_found){NULL, 0};
    if (has_ended && feed->held_size == 0) {
        if (size > feed->options.element_max)
            return refuse_value_of_feed(feed, ret_error, -EMSGSIZE,
                                        "longer than an element may be");
        *ret_found = (domi_json_found){from, size};
        return 0;
    }
    int error = append_bytes_to_kept_value(feed, from, size, ret_error);
    if (error == 0 && has_ended)
        *ret_found = (domi_json_found){feed->held, feed->held_size};
    return error;
}

static void begin_value_at_current_byte(domus_json_feed *feed)
{
    feed->in_value = true;
    feed->scan = (domi_json_scan){0};
    feed->held_size = 0;
}

static void end_value_and_advance_place(domus_json_feed *feed, domi_json_found found,
                                        domi_json_phase next)
{
    advance_line_and_column(feed, found.bytes, found.size);
    feed->in_value = false;
    feed->phase = next;
}

static void set_up_reader_for_value(const domus_json_feed *feed, domi_json_reader *reader,
                                    const domus_json_table *table, void *value)
{
    reader->table = table;
    reader->value = value;
    reader->depth_max = DOMUS_JSON_DEPTH_MAX;
    reader->arena = (domi_json_arena){.left = feed->options.memory_max};
    reader->may_own = false;
}

/* Read a key. A key with a zero byte in it is never the array's name, because the zero would end
 * the decoded key early. */
static int read_key_and_compare_with_array_name(domus_json_feed *feed, domi_json_found found,
                                                domus_json_error *ret_error)
{
    domi_json_reader reader;
    char copy[KEY_ROOM];
    bool fits = found.size <= sizeof copy - DOMI_JSON_PADDING;

    set_up_reader_for_value(feed, &reader, NULL, NULL);
    int error = fits ? domi_json_parse_text_in_given_copy(&reader, found.bytes, found.size, copy)
                     : domi_json_parse_text_in_own_copy(&reader, found.bytes, found.size);
    if (error != 0)
        return report_fault_with_place_in_feed(feed, &reader.fault, found.bytes, false, ret_error);
    feed->is_array = fits && strcmp(copy + 1, feed->options.member) == 0 &&
                     memmem(found.bytes, found.size, "\\u0000", 6) == NULL;
    if (feed->is_array && feed->had_array)
        return refuse_at_current_place(feed, feed->options.member, ret_error, -EPROTO,
                                       "is there twice");
    feed->had_array = feed->had_array || feed->is_array;
    end_value_and_advance_place(feed, found, COLON);
    return 0;
}

static int skip_value_of_member(domus_json_feed *feed, domi_json_found found,
                                domus_json_error *ret_error)
{
    domi_json_reader reader;

    set_up_reader_for_value(feed, &reader, NULL, NULL);
    if (domi_json_parse_text_in_own_copy(&reader, found.bytes, found.size) != 0)
        return report_fault_with_place_in_feed(feed, &reader.fault, found.bytes, false, ret_error);
    end_value_and_advance_place(feed, found, AFTER_MEMBER);
    return 0;
}

static int read_element_of_array(domus_json_feed *feed, domi_json_found found, void *ret_value,
                                 domus_json_memory *ret_memory, domus_json_error *ret_error)
{
    domi_json_reader reader;

    set_up_reader_for_value(feed, &reader, feed->options.table, ret_value);
    reader.may_own = ret_memory != NULL;
    if (domi_json_parse_text_in_own_copy(&reader, found.bytes, found.size) != 0)
        return report_fault_with_place_in_feed(feed, &reader.fault, found.bytes, true, ret_error);
    end_value_and_advance_place(feed, found, AFTER_ELEMENT);
    feed->count++;
    if (ret_memory != NULL)
        *ret_memory = reader.arena.memory;
    return 1;
}

/* --- bytes between values --------------------------------------------------------------------- */

static int refuse_current_byte(domus_json_feed *feed, domus_json_error *ret_error)
{
    static const char *const words[] = {
        [FIRST_KEY] = "a name in quotes is missing",
        [NEXT_KEY] = "a name in quotes is missing",
        [COLON] = "':' is missing",
        [MEMBER] = "not a value",
        [AFTER_MEMBER] = "',' or '}' is missing",
        [NEXT_ELEMENT] = "not a value",
        [FIRST_ELEMENT] = "not a value",
        [AFTER_ELEMENT] = "',' or ']' is missing",
        [END] = "there is more behind the value",
    };

    return refuse_value_of_feed(feed, ret_error, -EBADMSG, words[feed->phase]);
}

static int begin_element_of_array(domus_json_feed *feed, char byte, domus_json_error *ret_error)
{
    if (byte == ',' || byte == ']' || byte == '}' || byte == ':')
        return refuse_current_byte(feed, ret_error);
    if (feed->options.elements_max != 0 && feed->count == feed->options.elements_max)
        return refuse_value_of_feed(feed, ret_error, -EMSGSIZE, "more elements than there may be");
    begin_value_at_current_byte(feed);
    return 0;
}

/* Use the current byte of the piece, and change to the phase `next`. */
static int skip_byte_and_change_phase(domus_json_feed *feed, domi_json_phase next)
{
    advance_line_and_column(feed, feed->piece + feed->at++, 1);
    feed->phase = next;
    return 0;
}

static int use_byte_between_elements_by_phase(domus_json_feed *feed, char byte,
                                              domus_json_error *ret_error)
{
    bool has_member = feed->options.member != NULL;

    switch (feed->phase) {
    case BEGIN:
        if (byte != (has_member ? '{' : '['))
            return refuse_at_current_place(feed, NULL, ret_error, -EPROTO,
                                           has_member ? "not an object" : "not an array");
        return skip_byte_and_change_phase(feed, has_member ? FIRST_KEY : FIRST_ELEMENT);
    case FIRST_KEY:
    case NEXT_KEY:
        if (byte == '}' && feed->phase == FIRST_KEY)
            return skip_byte_and_change_phase(feed, END);
        if (byte != '"')
            return refuse_current_byte(feed, ret_error);
        begin_value_at_current_byte(feed);
        return 0;
    case COLON:
        return byte == ':' ? skip_byte_and_change_phase(feed, MEMBER)
                           : refuse_current_byte(feed, ret_error);
    case MEMBER:
        if (feed->is_array && byte != '[')
            return refuse_at_current_place(feed, feed->options.member, ret_error, -EPROTO,
                                           "not an array");
        if (feed->is_array)
            return skip_byte_and_change_phase(feed, FIRST_ELEMENT);
        if (byte == ',' || byte == '}' || byte == ']' || byte == ':')
            return refuse_current_byte(feed, ret_error);
        begin_value_at_current_byte(feed);
        return 0;
    case FIRST_ELEMENT:
        if (byte == ']')
            return skip_byte_and_change_phase(feed, has_member ? AFTER_MEMBER : END);
        return begin_element_of_array(feed, byte, ret_error);
    case NEXT_ELEMENT:
        return begin_element_of_array(feed, byte, ret_error);
    case AFTER_MEMBER:
        if (byte == ',' || byte == '}')
            return skip_byte_and_change_phase(feed, byte == ',' ? NEXT_KEY : END);
        return refuse_current_byte(feed, ret_error);
    case AFTER_ELEMENT:
        if (byte == ',')
            return skip_byte_and_change_phase(feed, NEXT_ELEMENT);
        if (byte == ']')
            return skip_byte_and_change_phase(feed, has_member ? AFTER_MEMBER : END);
        return refuse_current_byte(feed, ret_error);
    case END:
        return refuse_current_byte(feed, ret_error);
    }
    return -EINVAL;
}

/* Skip blanks and line ends in the piece. Returns whether the piece has another byte. */
static bool skip_spaces(domus_json_feed *feed)
{
    size_t from = feed->at;

    while (feed->at != feed->size && domi_json_is_space(feed->piece[feed->at]))
        feed->at++;
    if (feed->at != from)
        advance_line_and_column(feed, feed->piece + from, feed->at - from);
    return feed->at != feed->size;
}

int domus_json_feed_next(domus_json_feed *feed, void *ret_value, domus_json_memory *ret_memory,
                         domus_json_error *ret_error)
{
    domi_json_found found;
    int error = feed->error;

    while (error == 0 && (feed->in_value ? feed->at != feed->size : skip_spaces(feed))) {
        if (!feed->in_value) {
            error = use_byte_between_elements_by_phase(feed, feed->piece[feed->at], ret_error);
            continue;
        }
        error = find_or_gather_bytes_of_value(feed, &found, ret_error);
        if (error != 0 || found.bytes == NULL)
            continue;
        if (is_value_element_of_array(feed))
            return read_element_of_array(feed, found, ret_value, ret_memory, ret_error);
        error = feed->phase == MEMBER
                    ? skip_value_of_member(feed, found, ret_error)
                    : read_key_and_compare_with_array_name(feed, found, ret_error);
    }
    if (error == 0 && feed->is_over)
        return refuse_value_of_feed(feed, ret_error, -EFBIG, "the text is too large");
    return error;
}

int domus_json_feed_end(domus_json_feed *feed, domus_json_error *ret_error)
{
    if (feed->error != 0)
        return feed->error;
    if (feed->at != feed->size)
        return -EBUSY;
    if (feed->phase != END)
        return refuse_value_of_feed(feed, ret_error, -EBADMSG, "the text is cut off");
    if (feed->options.member != NULL && !feed->had_array)
        return refuse_at_current_place(feed, feed->options.member, ret_error, -EPROTO,
                                       "is missing");
    return 0;
}
