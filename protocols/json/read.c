/* Reads a text into a struct. The parse changes its text, so it gets a copy, and copying also
 * checks the bytes, which the parse does not. A copy of up to STACK_ROOM bytes lies on the
 * stack. */
#include "protocols/json/reader.h"
#include "protocols/json/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STACK_ROOM 4096u

/* Returns whether a text has an escape of a zero byte, or of a low surrogate, which may have no
 * high one before it. */
static bool has_escape_of_zero_or_surrogate(const char *text, size_t size)
{
    const char *end = text + size;

    for (const char *at = text; (at = memchr(at, '\\', (size_t)(end - at))) != NULL;) {
        if (end - at >= 6 && at[1] == 'u' &&
            (((at[2] | 0x20) == 'd' && (at[3] | 0x20) >= 'c' && (at[3] | 0x20) <= 'f') ||
             memcmp(at + 2, "0000", 4) == 0))
            return true;
        at += end - at >= 2 ? 2 : 1;
    }
    return false;
}

/* Refuse the text for the byte at an offset, at which domi_json_copy_valid_text() has stopped. */
static void refuse_text_at_byte(domi_json_reader *reader, size_t offset)
{
    unsigned char byte = (unsigned char)reader->text[offset];

    if (byte < 0x20)
        (void)domi_json_refuse_text(reader, offset, -EBADMSG, "the control character 0x%02x", byte);
    else
        (void)domi_json_refuse_text(reader, offset, -EBADMSG, "the byte 0x%02x is no UTF-8", byte);
}

/* A text with a wrong byte is parsed up to that byte: an error before it is reported first, and the
 * frames tell in which field the byte is. */
int domi_json_parse_text_in_given_copy(domi_json_reader *reader, const char *text, size_t size,
                                       char *copy)
{
    size_t offset = 0;

    reader->text = text;
    reader->size = size;
    reader->copy = copy;
    reader->whole = (domus_json_field){.kind = DOMUS_JSON_KIND_OBJECT, .table = reader->table};
    reader->whole.size = reader->table != NULL ? reader->table->size : 0;
    reader->whole.shape = DOMUS_JSON_COUNTED;
    reader->whole.count_max = 1;
    reader->top = reader->frames;
    *reader->top = (domi_json_frame){.field = &reader->whole, .at = reader->value, .room = 1};
    reader->skips = reader->table == NULL;
    reader->skipped = 0;
    reader->raw = NULL;
    reader->fault.error = 0;
    size_t good = domi_json_copy_valid_text(copy, text, size);
    memset(copy + good, 0, DOMI_JSON_PADDING);
    reader->has_odd_escape = has_escape_of_zero_or_surrogate(text, good);
    const char *words = domi_json_parse(reader, copy, good, &offset);
    if (reader->fault.error == 0 && good != size && (words == NULL || offset >= good))
        refuse_text_at_byte(reader, good);
    else if (words != NULL)
        (void)domi_json_refuse_text(reader, offset, -EBADMSG, "%s", words);
    if (reader->fault.error != 0)
        domus_json_release(&reader->arena.memory);
    return reader->fault.error;
}

/* --- the bounds ------------------------------------------------------------------------------- */

/* Return an error to the user that has no line and column. */
static int fail_without_line_and_column(domus_json_error *ret_error, int error, const char *words)
{
    if (ret_error != NULL) {
        *ret_error = (domus_json_error){.error = error};
        memcpy(ret_error->words, words, strlen(words) + 1);
    }
    return error;
}

int domi_json_parse_text_in_own_copy(domi_json_reader *reader, const char *bytes, size_t size)
{
    char room[STACK_ROOM];
    char *copy = room;

    reader->top = reader->frames;
    reader->fault.error = 0;
    if (size > sizeof room - DOMI_JSON_PADDING) {
        copy = malloc(size + DOMI_JSON_PADDING);
        if (copy == NULL) {
            (void)domi_json_refuse_text(reader, 0, -ENOMEM, "no memory");
            return -ENOMEM;
        }
    }
    int error = domi_json_parse_text_in_given_copy(reader, bytes, size, copy);
    if (copy != room)
        free(copy);
    return error;
}

/* Read a text within the limits of `options`. The caller has set the reader's table and value. */
static int read_text_within_limits(domi_json_reader *reader, const domus_json_options *options,
                                   const char *bytes, size_t size, domus_json_error *ret_error)
{
    domus_json_options bounds = {0};

    if (options != NULL)
        bounds = *options;
    if (bounds.bytes_max > DOMUS_JSON_BYTES_MAX || bounds.depth_max > DOMUS_JSON_DEPTH_MAX)
        return fail_without_line_and_column(ret_error, -EINVAL,
                                            "the options are out of their range");
    if (size > (bounds.bytes_max != 0 ? bounds.bytes_max : DOMUS_JSON_BYTES_PRESET))
        return fail_without_line_and_column(ret_error, -EFBIG, "the text is too large");
    reader->depth_max = bounds.depth_max != 0 ? bounds.depth_max : DOMUS_JSON_DEPTH_MAX;
    reader->arena.left = bounds.memory_max != 0 ? bounds.memory_max : DOMUS_JSON_MEMORY_PRESET;
    int error = domi_json_parse_text_in_own_copy(reader, bytes, size);
    if (error != 0) {
        (void)domi_json_fault_fill_in_error(&reader->fault, ret_error);
        domi_json_fault_add_line_and_column(ret_error, bytes, reader->fault.offset);
    }
    return error;
}

/* Set up a reader for a table and a struct. Its stack of frames is not zeroed, because a frame is
 * written when it is opened. */
static void set_up_reader_of_struct(domi_json_reader *reader, const domus_json_table *table,
                                    void *value)
{
    reader->table = table;
    reader->value = value;
    reader->arena.memory.blocks = NULL;
}

int domus_json_read(const domus_json_table *table, const domus_json_options *options,
                    const void *bytes, size_t size, void *ret_value, domus_json_memory *ret_memory,
                    domus_json_error *ret_error)
{
    domi_json_reader reader;

    set_up_reader_of_struct(&reader, table, ret_value);
    reader.may_own = ret_memory != NULL;
    int error = read_text_within_limits(&reader, options, bytes, size, ret_error);
    if (error == 0 && ret_memory != NULL)
        *ret_memory = reader.arena.memory;
    return error;
}

int domus_json_read_slice(const domus_json_table *table, const domus_json_options *options,
                          domus_slice bytes, void *ret_value, domus_json_memory *ret_memory,
                          domus_json_error *ret_error)
{
    return domus_json_read(table, options, domus_slice_data(bytes), bytes.size, ret_value,
                           ret_memory, ret_error);
}

int domus_json_check(const domus_json_options *options, const void *bytes, size_t size,
                     domus_json_error *ret_error)
{
    domi_json_reader reader;

    set_up_reader_of_struct(&reader, NULL, NULL);
    reader.may_own = false;
    return read_text_within_limits(&reader, options, bytes, size, ret_error);
}
