/* Answers to commands of kv, and the reading of arguments that are numbers. */
#include "kv.h"

#include <errno.h>
#include <string.h>

int kv_answer_error(domus_stack *stack, const char *text)
{
    domus_resp_error error = {{0}};
    size_t size = strlen(text);

    if (size > sizeof error.text) {
        domus_resp_builder builder = {0};
        (void)domus_resp_add_error(&builder, "%s", text);
        return kv_answer_what_builder_has_made(stack, &builder);
    }
    memcpy(error.text, text, size);
    return kv_answer_or_gather_answer(stack, &domus_resp_error_type, &error);
}

int kv_answer_integer(domus_stack *stack, int64_t value)
{
    return kv_answer_or_gather_answer(stack, &domus_resp_integer_type,
                                      &(domus_resp_integer){value});
}

int kv_answer_ok(domus_stack *stack)
{
    return kv_answer_or_gather_answer(stack, &domus_resp_ok_type, NULL);
}

int kv_answer_null(domus_stack *stack)
{
    return kv_answer_or_gather_answer(stack, &domus_resp_null_type, NULL);
}

static int answer_bulk_string_and_give_slice(domus_stack *stack, domus_slice slice)
{
    int error = kv_answer_or_gather_answer(stack, &domus_slice_type, &slice);

    if (error != 0)
        domus_slice_free(slice);
    return error;
}

int kv_answer_bytes_as_bulk_string(domus_stack *stack, domus_resp_bytes bytes)
{
    domus_slice slice;

    if (bytes.size <= DOMUS_RESP_SHORT_MAX) {
        domus_resp_short text = {.size = (uint8_t)bytes.size};
        memcpy(text.bytes, bytes.data, bytes.size);
        return kv_answer_or_gather_answer(stack, &domus_resp_short_type, &text);
    }
    int error = domus_slice_copy(bytes.data, bytes.size, &slice);
    return error != 0 ? error : answer_bulk_string_and_give_slice(stack, slice);
}

int kv_answer_item_as_bulk_string(domus_stack *stack, const struct kv_item *item)
{
    domus_slice slice;

    if (item->kind == KV_SHORT)
        return kv_answer_bytes_as_bulk_string(stack, kv_item_string(item));
    int error = domus_slice_keep(item->slice, &slice);
    return error != 0 ? error : answer_bulk_string_and_give_slice(stack, slice);
}

int kv_answer_reply_and_give_its_bytes(domus_stack *stack, domus_resp_reply reply)
{
    int error = kv_answer_or_gather_answer(stack, &domus_resp_reply_type, &reply);

    if (error != 0)
        domus_slice_free(reply.bytes);
    return error;
}

int kv_answer_what_builder_has_made(domus_stack *stack, domus_resp_builder *builder)
{
    domus_resp_reply reply;
    int error = domus_resp_end(builder, &reply);

    return error != 0 ? error : kv_answer_reply_and_give_its_bytes(stack, reply);
}

int kv_answer_and_set_answering_of_client(domus_stack *stack, const struct kv_session *session,
                                          domus_resp_builder *builder,
                                          domus_resp_answering answering)
{
    domus_resp_change change = {.version = session->version,
                                .answering = (uint8_t)answering,
                                .peer = session->admitted ? DOMUS_RESP_PEER_KNOWN
                                                          : DOMUS_RESP_PEER_STRANGER};
    int error = domus_resp_end(builder, &change.reply);

    if (error != 0)
        return error;
    error = domus_reply(stack, &domus_resp_change_type, &change);
    if (error != 0)
        domus_slice_free(change.reply.bytes);
    return error;
}

uint32_t kv_most_bytes_of_one_answer(void)
{
    return (uint32_t)kv_settings.answer_max_bytes;
}

bool kv_read_integer_in_text(const char *bytes, size_t size, int64_t *ret_value)
{
    bool minus = size > 0 && bytes[0] == '-';
    uint64_t value = 0;
    uint64_t most = minus ? (uint64_t)1 << 63 : INT64_MAX;
    size_t i = minus;

    if (size <= i || size > 20 || (bytes[i] == '0' && (size > 1)))
        return size == 1 && bytes[0] == '0' ? (*ret_value = 0, true) : false;
    for (; i < size; i++) {
        unsigned digit = (unsigned)(unsigned char)bytes[i] - '0';
        if (digit > 9 || value > (most - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret_value = minus ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

bool kv_read_integer_argument(const struct kv_call *call, uint32_t i, int64_t *ret_value)
{
    domus_slice argument = domus_resp_argument(call->command, i);

    return kv_read_integer_in_text(domus_slice_data(argument), argument.size, ret_value);
}

uint32_t kv_write_integer_as_text(char text[21], int64_t value)
{
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    char digits[20];
    uint32_t count = 0, size = 0;

    do {
        digits[count++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (value < 0)
        text[size++] = '-';
    while (count > 0)
        text[size++] = digits[--count];
    return size;
}
