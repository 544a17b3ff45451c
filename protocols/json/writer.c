/* The writer of single values as JSON: it checks which value or key may come next, and adds the
 * commas. */
#include <domus/json_writer.h>

#include "protocols/json/append.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static_assert(DOMUS_JSON_DEPTH_MAX <= 32, "a writer has 32 bits for what is open");

static int keep_first_error(domus_json_writer *writer, int error)
{
    if (writer->error == 0)
        writer->error = error;
    return writer->error;
}

static uint32_t bit_of_innermost_value(const domus_json_writer *writer)
{
    return UINT32_C(1) << (writer->depth - 1);
}

/* Append the comma that stands before the next element or key, unless it is the first one. */
static void put_comma_if_not_first(domus_json_writer *writer)
{
    if ((writer->filled & bit_of_innermost_value(writer)) != 0)
        (void)domus_append(writer->to, ",", 1);
    writer->filled |= bit_of_innermost_value(writer);
}

/* Check whether a value may come now, and append the comma that stands before it. */
static int check_value_may_come_and_put_comma(domus_json_writer *writer)
{
    if (writer->error != 0)
        return writer->error;
    if (writer->depth == 0) {
        if (writer->is_done)
            return keep_first_error(writer, -EINVAL);
        return 0;
    }
    if ((writer->arrays & bit_of_innermost_value(writer)) != 0) {
        put_comma_if_not_first(writer);
        return 0;
    }
    if (!writer->has_key)
        return keep_first_error(writer, -EINVAL);
    writer->has_key = false;
    return 0;
}

/* Note that a value has ended, whose writing has returned `error`. Returns the first error of the
 * writer. */
static int end_value_of_writer(domus_json_writer *writer, int error)
{
    if (writer->depth == 0)
        writer->is_done = true;
    return keep_first_error(writer, error != 0 ? error : writer->to->error);
}

/* --- objects and arrays ----------------------------------------------------------------------- */

static int begin_object_or_array(domus_json_writer *writer, bool is_array)
{
    int error = check_value_may_come_and_put_comma(writer);

    if (error != 0)
        return error;
    if (writer->depth == DOMUS_JSON_DEPTH_MAX)
        return keep_first_error(writer, -EINVAL);
    writer->depth++;
    writer->filled &= ~bit_of_innermost_value(writer);
    writer->arrays = is_array ? writer->arrays | bit_of_innermost_value(writer)
                              : writer->arrays & ~bit_of_innermost_value(writer);
    return keep_first_error(writer, domus_append(writer->to, is_array ? "[" : "{", 1));
}

int domus_json_put_object(domus_json_writer *writer)
{
    return begin_object_or_array(writer, false);
}

int domus_json_put_array(domus_json_writer *writer)
{
    return begin_object_or_array(writer, true);
}

int domus_json_put_end(domus_json_writer *writer)
{
    if (writer->error != 0)
        return writer->error;
    if (writer->depth == 0 || writer->has_key)
        return keep_first_error(writer, -EINVAL);
    bool is_array = (writer->arrays & bit_of_innermost_value(writer)) != 0;
    writer->depth--;
    return end_value_of_writer(writer, domus_append(writer->to, is_array ? "]" : "}", 1));
}

int domus_json_put_key(domus_json_writer *writer, const char *name)
{
    if (writer->error != 0)
        return writer->error;
    if (writer->depth == 0 || (writer->arrays & bit_of_innermost_value(writer)) != 0 ||
        writer->has_key)
        return keep_first_error(writer, -EINVAL);
    put_comma_if_not_first(writer);
    int error = domi_json_append_text(writer->to, name, strlen(name), writer->replaces);
    if (error != 0)
        return keep_first_error(writer, error);
    writer->has_key = true;
    return keep_first_error(writer, domus_append(writer->to, ":", 1));
}

int domus_json_finish(domus_json_writer *writer)
{
    if (writer->error == 0 && (writer->depth != 0 || !writer->is_done))
        writer->error = -EINVAL;
    return writer->error;
}

/* --- values ----------------------------------------------------------------------------------- */

static int append_word_as_value(domus_json_writer *writer, const char *word)
{
    int error = check_value_may_come_and_put_comma(writer);

    return error != 0 ? error
                      : end_value_of_writer(writer, domus_append(writer->to, word, strlen(word)));
}

int domus_json_put_null(domus_json_writer *writer)
{
    return append_word_as_value(writer, "null");
}

int domus_json_put_bool(domus_json_writer *writer, bool value)
{
    return append_word_as_value(writer, value ? "true" : "false");
}

int domus_json_put_int(domus_json_writer *writer, int64_t value)
{
    int error = check_value_may_come_and_put_comma(writer);

    return error != 0 ? error
                      : end_value_of_writer(writer, domi_json_append_signed(writer->to, value));
}

int domus_json_put_uint(domus_json_writer *writer, uint64_t value)
{
    int error = check_value_may_come_and_put_comma(writer);

    return error != 0 ? error
                      : end_value_of_writer(writer, domi_json_append_unsigned(writer->to, value));
}

int domus_json_put_real(domus_json_writer *writer, double value)
{
    int error = check_value_may_come_and_put_comma(writer);

    return error != 0 ? error
                      : end_value_of_writer(writer, domi_json_append_real(writer->to, value));
}

int domus_json_put_text(domus_json_writer *writer, const char *text)
{
    return text != NULL ? domus_json_put_bytes(writer, text, strlen(text))
                        : domus_json_put_null(writer);
}

int domus_json_put_bytes(domus_json_writer *writer, const void *bytes, size_t size)
{
    int error = check_value_may_come_and_put_comma(writer);

    if (error != 0)
        return error;
    return end_value_of_writer(writer,
                               domi_json_append_text(writer->to, bytes, size, writer->replaces));
}

int domus_json_put_raw(domus_json_writer *writer, const void *bytes, size_t size)
{
    domus_json_options options = {.bytes_max = DOMUS_JSON_BYTES_MAX};
    int error = check_value_may_come_and_put_comma(writer);

    if (error != 0)
        return error;
    error = domus_json_check(&options, bytes, size, NULL);
    if (error != 0)
        return keep_first_error(writer, error == -ENOMEM ? -ENOMEM : -EINVAL);
    return end_value_of_writer(writer, domus_append(writer->to, bytes, size));
}

int domus_json_put_struct(domus_json_writer *writer, const domus_json_table *table,
                          const void *value, domus_json_error *ret_error)
{
    int error = check_value_may_come_and_put_comma(writer);

    if (error != 0) {
        if (ret_error != NULL)
            *ret_error = (domus_json_error){.error = error, .words = "it may not stand here"};
        return error;
    }
    return end_value_of_writer(writer, domus_json_write(table, value, writer->to, ret_error));
}
