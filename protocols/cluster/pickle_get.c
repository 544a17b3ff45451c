/* The functions by which a user's pickling function reads values. Each counts its value as an
 * element of the array or map whose head was read before. */
#include "protocols/cluster/pickle_token.h"

#include <stdarg.h>
#include <stdio.h>

/* Count a value of the message to which `count` others belong as elements. Returns 0 if it may be
 * read. */
static int count_value_and_open_its_elements(domus_pickle_reader *reader, uint64_t count)
{
    switch (domi_nest_count_value_or_open_array(&reader->nest, count)) {
    case 0:
        return 0;
    case -EMSGSIZE:
        return domi_pickle_fault_record(&reader->fault, -EMSGSIZE,
                                        "has arrays in arrays deeper than %u",
                                        DOMUS_PICKLE_DEPTH_MAX);
    default:
        return domi_pickle_fault_record(&reader->fault, -EBADMSG,
                                        "its function reads more values than are there");
    }
}

/* Count a value of the message to which no others belong. Returns 0 if it may be read. */
static int count_value_without_elements(domus_pickle_reader *reader)
{
    return reader->fault.error != 0 ? reader->fault.error
                                    : count_value_and_open_its_elements(reader, 0);
}

domus_pickle_value domus_pickle_peek(const domus_pickle_reader *reader)
{
    domus_pickle_reader ahead;

    if (reader->fault.error != 0)
        return DOMUS_PICKLE_NOTHING;
    ahead.at = reader->at;
    ahead.end = reader->end;
    ahead.fault.error = 0;
    return domi_pickle_token_read_next(&ahead) == 0 ? ahead.token.value : DOMUS_PICKLE_NOTHING;
}

int domus_pickle_skip(domus_pickle_reader *reader)
{
    int error = count_value_without_elements(reader);

    return error != 0 ? error : domi_pickle_skip_value(reader);
}

int domus_pickle_get_bool(domus_pickle_reader *reader, bool *ret_value)
{
    const domi_pickle_token *token = &reader->token;
    int error = count_value_without_elements(reader);

    if (error == 0)
        error = domi_pickle_token_read_next(reader);
    if (error != 0)
        return error;
    if (token->value != DOMUS_PICKLE_TRUE_OR_FALSE)
        return domi_pickle_token_refuse_kind(reader, "a boolean");
    *ret_value = token->is.number != 0;
    return 0;
}

/* Read an integer of either sign into the reader's token. */
static int read_integer_of_either_sign(domus_pickle_reader *reader)
{
    const domi_pickle_token *token = &reader->token;
    int error = count_value_without_elements(reader);

    if (error == 0)
        error = domi_pickle_token_read_next(reader);
    if (error != 0)
        return error;
    if (token->value != DOMUS_PICKLE_UNSIGNED && token->value != DOMUS_PICKLE_NEGATIVE)
        return domi_pickle_token_refuse_kind(reader, "an integer");
    return 0;
}

int domus_pickle_get_int(domus_pickle_reader *reader, int64_t low, int64_t high, int64_t *ret_value)
{
    const domi_pickle_token *token = &reader->token;
    int error = read_integer_of_either_sign(reader);

    if (error != 0)
        return error;
    int64_t value = (int64_t)token->is.number;
    if (token->value == DOMUS_PICKLE_UNSIGNED && token->is.number > (uint64_t)INT64_MAX)
        return domi_pickle_fault_record(&reader->fault, -ERANGE, "%llu is not in %lld..%lld",
                                        (unsigned long long)token->is.number, (long long)low,
                                        (long long)high);
    if (value < low || value > high)
        return domi_pickle_fault_record(&reader->fault, -ERANGE, "%lld is not in %lld..%lld",
                                        (long long)value, (long long)low, (long long)high);
    *ret_value = value;
    return 0;
}

int domus_pickle_get_uint(domus_pickle_reader *reader, uint64_t low, uint64_t high,
                          uint64_t *ret_value)
{
    const domi_pickle_token *token = &reader->token;
    int error = read_integer_of_either_sign(reader);

    if (error != 0)
        return error;
    if (token->value == DOMUS_PICKLE_NEGATIVE)
        return domi_pickle_fault_record(&reader->fault, -ERANGE, "%lld is negative",
                                        (long long)token->is.number);
    if (token->is.number < low || token->is.number > high)
        return domi_pickle_fault_record(&reader->fault, -ERANGE, "%llu is not in %llu..%llu",
                                        (unsigned long long)token->is.number,
                                        (unsigned long long)low, (unsigned long long)high);
    *ret_value = token->is.number;
    return 0;
}

int domus_pickle_get_double(domus_pickle_reader *reader, double *ret_value)
{
    int error = count_value_without_elements(reader);

    return error != 0 ? error : domi_pickle_get_real(reader, ret_value);
}

int domus_pickle_get_text(domus_pickle_reader *reader, char *buffer, size_t size)
{
    int error = count_value_without_elements(reader);

    if (error == 0 && size == 0)
        error = domi_pickle_fault_record(&reader->fault, -EMSGSIZE, "there is no room for a text");
    return error != 0 ? error : domi_pickle_get_text_into_array(reader, buffer, size);
}

int domus_pickle_get_owned_text(domus_pickle_reader *reader, uint32_t most, char **ret_text)
{
    int error = count_value_without_elements(reader);

    return error != 0 ? error : domi_pickle_get_owned_text(reader, most, ret_text);
}

int domus_pickle_get_slice(domus_pickle_reader *reader, uint32_t most, domus_slice *ret_slice)
{
    int error = count_value_without_elements(reader);

    return error != 0 ? error : domi_pickle_get_slice(reader, most, ret_slice);
}

int domus_pickle_get_address(domus_pickle_reader *reader, domus_address *ret_address)
{
    int error = count_value_without_elements(reader);

    return error != 0 ? error : domi_pickle_get_address(reader, ret_address);
}

int domus_pickle_get_endpoint(domus_pickle_reader *reader, domus_endpoint *ret_endpoint)
{
    int error = count_value_without_elements(reader);

    return error != 0 ? error : domi_pickle_get_endpoint(reader, ret_endpoint);
}

/* Read the head of an array or a map, each of whose elements consists of `each` values: 1, or 2 in
 * a map. */
static int get_head_of_array_or_map(domus_pickle_reader *reader, domus_pickle_value value,
                                    const char *wanted, uint32_t each, uint32_t most,
                                    uint32_t *ret_count)
{
    const domi_pickle_token *token = &reader->token;

    if (reader->fault.error != 0)
        return reader->fault.error;
    int error = domi_pickle_token_read_next(reader);
    if (error != 0)
        return error;
    if (token->value != value)
        return domi_pickle_token_refuse_kind(reader, wanted);
    if (token->size > most)
        return domi_pickle_fault_record(&reader->fault, -EMSGSIZE, "has %u elements, more than %u",
                                        token->size, most);
    error = count_value_and_open_its_elements(reader, each * (uint64_t)token->size);
    if (error != 0)
        return error;
    *ret_count = token->size;
    return 0;
}

int domus_pickle_get_array(domus_pickle_reader *reader, uint32_t most, uint32_t *ret_count)
{
    return get_head_of_array_or_map(reader, DOMUS_PICKLE_ARRAY_HEAD, "an array", 1, most,
                                    ret_count);
}

int domus_pickle_get_map(domus_pickle_reader *reader, uint32_t most, uint32_t *ret_count)
{
    return get_head_of_array_or_map(reader, DOMUS_PICKLE_MAP_HEAD, "a map", 2, most, ret_count);
}

int domus_pickle_get_struct(domus_pickle_reader *reader, const domus_pickle_table *table,
                            void *ret_value)
{
    int error = count_value_without_elements(reader);

    if (error != 0)
        return error;
    memset(ret_value, 0, table->size);
    error = domi_pickle_get_struct(reader, table, ret_value);
    if (error != 0) {
        domus_pickle_release(table, ret_value);
        memset(ret_value, 0, table->size);
    }
    return error;
}

int domus_pickle_take_memory(domus_pickle_reader *reader, size_t bytes)
{
    return reader->fault.error != 0 ? reader->fault.error
                                    : domi_pickle_charge_memory_of_message(reader, bytes);
}

int domus_pickle_blame(domus_pickle_reader *reader, int error, const char *name)
{
    if (error != 0 && reader->fault.error != 0)
        (void)domi_pickle_fault_put_field_name(&reader->fault, name);
    return error;
}

int domus_pickle_blame_element(domus_pickle_reader *reader, int error, uint32_t index)
{
    if (error != 0 && reader->fault.error != 0)
        (void)domi_pickle_fault_put_element_index(&reader->fault, index);
    return error;
}

int domus_pickle_reject(domus_pickle_reader *reader, int error, const char *format, ...)
{
    char text[DOMI_PICKLE_FAULT_WHAT];
    va_list list;

    va_start(list, format);
    if (vsnprintf(text, sizeof text, format, list) < 0)
        text[0] = '\0';
    va_end(list);
    return domi_pickle_fault_record(&reader->fault, error < 0 ? error : -EINVAL, "%s", text);
}
