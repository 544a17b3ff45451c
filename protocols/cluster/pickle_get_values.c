/* Reads values of a pickled message that are more than a number, both for tables and for a user's
 * functions. Each size is compared with its bound before memory is allocated. */
#include "protocols/cluster/pickle_token.h"

#include <stdlib.h>
#include <sys/socket.h>

int domi_pickle_charge_memory_of_message(domus_pickle_reader *reader, uint64_t bytes)
{
    if (bytes > reader->memory_left)
        return domi_pickle_fault_record(
            &reader->fault, -EMSGSIZE,
            "needs %llu bytes of memory, and the message may take %u more",
            (unsigned long long)bytes, reader->memory_left);
    reader->memory_left -= (uint32_t)bytes;
    return 0;
}

static int record_fault_of_no_memory(domus_pickle_reader *reader)
{
    return domi_pickle_fault_record(&reader->fault, -ENOMEM, "no memory");
}

/* Read a text of at most `most` bytes. A zero byte within the text is refused, because texts in
 * memory end with a zero. */
static int read_text_without_zeros(domus_pickle_reader *reader, uint64_t most)
{
    const domi_pickle_token *token = &reader->token;
    int error = domi_pickle_token_read_next(reader);

    if (error != 0)
        return error;
    if (token->value != DOMUS_PICKLE_CHARS)
        return domi_pickle_token_refuse_kind(reader, "a text");
    if (token->size > most)
        return domi_pickle_fault_record(&reader->fault, -EMSGSIZE, "has %u bytes, more than %llu",
                                        token->size, (unsigned long long)most);
    if (memchr(token->body, '\0', token->size) != NULL)
        return domi_pickle_fault_record(&reader->fault, -EBADMSG, "has a zero in it");
    return 0;
}

int domi_pickle_get_text_into_array(domus_pickle_reader *reader, char *buffer, size_t size)
{
    const domi_pickle_token *token = &reader->token;
    int error = read_text_without_zeros(reader, size - 1);

    if (error != 0)
        return error;
    memcpy(buffer, token->body, token->size);
    buffer[token->size] = '\0';
    return 0;
}

int domi_pickle_copy_text(domus_pickle_reader *reader, const void *bytes, size_t size,
                          char **ret_text)
{
    int error = domi_pickle_charge_memory_of_message(reader, (uint64_t)size + 1);

    if (error != 0)
        return error;
    char *text = malloc(size + 1);
    if (text == NULL)
        return record_fault_of_no_memory(reader);
    memcpy(text, bytes, size);
    text[size] = '\0';
    *ret_text = text;
    return 0;
}

int domi_pickle_get_owned_text(domus_pickle_reader *reader, uint32_t most, char **ret_text)
{
    const domi_pickle_token *token = &reader->token;
    int error = read_text_without_zeros(reader, most);

    return error != 0 ? error : domi_pickle_copy_text(reader, token->body, token->size, ret_text);
}

/* Make a slice that shares the page of the message with the reader. This may move the bytes to
 * another page, if they lie where they were received; the reader then continues in the new page. */
static int share_page_as_slice(domus_pickle_reader *reader, domus_slice *ret_slice)
{
    const domi_pickle_token *token = &reader->token;
    domus_slice part = reader->bytes;

    part.offset += (uint32_t)(token->body - reader->data);
    part.size = token->size;
    if (domus_slice_keep(part, ret_slice) != 0)
        return record_fault_of_no_memory(reader);
    const unsigned char *data = (const unsigned char *)domus_slice_data(reader->bytes);
    reader->at = data + (reader->at - reader->data);
    reader->end = data + (reader->end - reader->data);
    reader->data = data;
    return 0;
}

int domi_pickle_get_slice(domus_pickle_reader *reader, uint32_t most, domus_slice *ret_slice)
{
    uint32_t share_min = reader->context->share_min;
    const domi_pickle_token *token = &reader->token;
    int error = domi_pickle_token_read_next(reader);

    if (error != 0)
        return error;
    if (token->value != DOMUS_PICKLE_BYTES && token->value != DOMUS_PICKLE_CHARS)
        return domi_pickle_token_refuse_kind(reader, "bytes");
    if (token->size > most)
        return domi_pickle_fault_record(&reader->fault, -EMSGSIZE, "has %u bytes, more than %u",
                                        token->size, most);
    if (token->size >= (share_min != 0 ? share_min : DOMUS_PICKLE_SHARE_PRESET))
        return share_page_as_slice(reader, ret_slice);
    error = domi_pickle_charge_memory_of_message(reader, token->size);
    if (error != 0)
        return error;
    if (domus_slice_copy(token->body, token->size, ret_slice) != 0)
        return record_fault_of_no_memory(reader);
    return 0;
}

/* Read an extension of this type into the token; or nil, which counts as one of size 0. */
static int read_extension_or_nil(domus_pickle_reader *reader, int type, const char *wanted)
{
    domi_pickle_token *token = &reader->token;
    int error = domi_pickle_token_read_next(reader);

    if (error != 0)
        return error;
    if (token->value == DOMUS_PICKLE_NIL) {
        token->size = 0;
        return 0;
    }
    if (token->value != DOMUS_PICKLE_EXTENSION)
        return domi_pickle_token_refuse_kind(reader, wanted);
    if (token->ext != type)
        return domi_pickle_fault_record(&reader->fault, -EBADMSG, "is extension %d, not %s",
                                        token->ext, wanted);
    if (token->size == 0)
        return domi_pickle_fault_record(&reader->fault, -EBADMSG, "has no bytes");
    return 0;
}

int domi_pickle_get_address(domus_pickle_reader *reader, domus_address *ret_address)
{
    const domus_pickle_context *context = reader->context;
    domus_address address = {NULL, 0};
    const domi_pickle_token *token = &reader->token;
    int error = read_extension_or_nil(reader, DOMUS_PICKLE_EXT_ADDRESS, "the address of an actor");

    if (error != 0)
        return error;
    if (token->size > DOMUS_PICKLE_ADDRESS_MAX)
        return domi_pickle_fault_record(&reader->fault, -EMSGSIZE, "has %u bytes, more than %u",
                                        token->size, DOMUS_PICKLE_ADDRESS_MAX);
    if (token->size != 0) {
        if (context->read_address == NULL)
            return domi_pickle_fault_record(&reader->fault, -EOPNOTSUPP,
                                            "addresses cannot travel here");
        error = context->read_address(context->context, token->body, token->size, &address);
        if (error != 0)
            return domi_pickle_fault_record(&reader->fault, error < 0 ? error : -EBADMSG,
                                            "the address cannot be read");
    }
    *ret_address = address;
    return 0;
}

int domi_pickle_get_endpoint(domus_pickle_reader *reader, domus_endpoint *ret_endpoint)
{
    domus_endpoint endpoint = {0};
    const domi_pickle_token *token = &reader->token;
    int error = read_extension_or_nil(reader, DOMUS_PICKLE_EXT_ENDPOINT, "an endpoint");

    if (error != 0)
        return error;
    if (token->size != 0) {
        unsigned char family = token->body[0];
        uint32_t size = token->size - 1;
        if (family == 4 || family == 6) {
            size = family == 4 ? 4 : 16;
            if (token->size != 1 + size + 2)
                return domi_pickle_fault_record(&reader->fault, -EBADMSG, "is no endpoint");
            endpoint.port =
                (uint16_t)((unsigned)token->body[1 + size] << 8 | token->body[1 + size + 1]);
        }
        if ((family != 1 && family != 4 && family != 6) || size > sizeof endpoint.bytes)
            return domi_pickle_fault_record(&reader->fault, -EBADMSG, "is no endpoint");
        endpoint.family = family == 4 ? AF_INET : family == 6 ? AF_INET6 : AF_UNIX;
        endpoint.size = (uint16_t)size;
        memcpy(endpoint.bytes, token->body + 1, size);
    }
    *ret_endpoint = endpoint;
    return 0;
}

/* Greatest integer that is read as a double. Every integer up to 2^53 is exact as a double; larger
 * ones are refused, although some are exact, too. */
#define EXACT_MAX (INT64_C(1) << 53)

int domi_pickle_get_real(domus_pickle_reader *reader, double *ret_value)
{
    const domi_pickle_token *token = &reader->token;
    int error = domi_pickle_token_read_next(reader);

    if (error != 0)
        return error;
    switch (token->value) {
    case DOMUS_PICKLE_FLOAT:
    case DOMUS_PICKLE_DOUBLE:
        *ret_value = token->is.real;
        return 0;
    case DOMUS_PICKLE_UNSIGNED:
        if (token->is.number > (uint64_t)EXACT_MAX)
            break;
        *ret_value = (double)token->is.number;
        return 0;
    case DOMUS_PICKLE_NEGATIVE:
        if ((int64_t)token->is.number < -EXACT_MAX)
            break;
        *ret_value = (double)(int64_t)token->is.number;
        return 0;
    default:
        return domi_pickle_token_refuse_kind(reader, "a number");
    }
    return domi_pickle_fault_record(&reader->fault, -ERANGE,
                                    "is an integer that no double is sure to be");
}
