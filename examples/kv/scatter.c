/* Commands whose keys lie on several shards: each shard is asked for its keys, and the answers
 * become one. Each shard answers on its own, so such a command is not atomic. */
#include "kv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS_MAX 4u /* most arguments of a command that all shards run */

/* --- the answers ------------------------------------------------------------------------------ */

/* Returns the integer that an answer carries; 0 if the answer has another type. */
static int64_t integer_of_shard_answer_or_zero(const domus_answer *answer)
{
    return answer->type == &domus_resp_integer_type
               ? ((const domus_resp_integer *)answer->payload)->value
               : 0;
}

int kv_pass_answer_of_shard_to_client(domus_stack *stack, const domus_answer *answer)
{
    bool owns = answer->error == 0 && answer->type->release != NULL;

    if (answer->error != 0)
        return answer->error;
    if (owns && domus_take_answer(stack, answer) != 0)
        return -ENOMEM;
    int error = domus_reply(stack, answer->type, answer->payload);
    if (error != 0 && owns)
        answer->type->release((void *)(uintptr_t)answer->payload);
    return error;
}

/* Read the first value in the answer of a shard. Returns false if the answer has none, or is an
 * error. An answer that could not be pickled for the way has become an error (travel.c). */
static bool read_first_value_of_shard_answer(const domus_answer *answer,
                                             domus_resp_reader *ret_reader,
                                             domus_resp_value *ret_value)
{
    *ret_reader = (domus_resp_reader){((const domus_resp_reply *)answer->payload)->bytes, 0};
    return domus_resp_read(ret_reader, ret_value) == 1 && ret_value->kind != DOMUS_RESP_ERROR;
}

/* Reply to a command with the elements that the shards have found for its keys, in the order of the
 * keys. Each element comes from the shard of its key. */
static int reply_with_elements_in_order_of_keys(domus_stack *stack,
                                                const domus_resp_command *command,
                                                const domus_answer *answer)
{
    domus_resp_builder builder = {.version = command->version,
                                  .bytes.size_max = kv_most_bytes_of_one_answer()};
    domus_resp_reader readers[KV_SHARDS_MAX];
    domus_resp_value value;

    for (; answer != NULL; answer = answer->next) {
        if (answer->type != &domus_resp_reply_type ||
            /* this value is the head of the shard's array; the elements follow */
            !read_first_value_of_shard_answer(answer, &readers[answer->tag], &value))
            return kv_pass_answer_of_shard_to_client(stack, answer);
    }
    (void)domus_resp_add_array(&builder, command->count - 1);
    for (uint32_t i = 1; i < command->count; i++) {
        uint32_t shard = kv_shard_of_key(domus_resp_argument(command, i));
        if (domus_resp_read(&readers[shard], &value) == 1 && value.kind == DOMUS_RESP_BULK)
            (void)domus_resp_add_bulk(&builder, domus_slice_data(value.text), value.text.size);
        else
            (void)domus_resp_add_null(&builder);
    }
    return kv_answer_what_builder_has_made(stack, &builder);
}

/* Reply to a command with one array that has the elements of all shards' answers. */
static int reply_with_array_of_all_shard_elements(domus_stack *stack,
                                                  const domus_resp_command *command,
                                                  const domus_answer *answers)
{
    domus_resp_builder builder = {.version = command->version,
                                  .bytes.size_max = kv_most_bytes_of_one_answer()};
    domus_resp_reader reader;
    domus_resp_value value;
    uint32_t count = 0;

    for (const domus_answer *each = answers; each != NULL; each = each->next) {
        bool is_list = each->type == &domus_resp_reply_type &&
                       read_first_value_of_shard_answer(each, &reader, &value);
        if (is_list)
            count += ((const domus_resp_reply *)each->payload)->values;
        else if (each->type != &domus_resp_null_type) /* the answer of a shard is an error */
            return kv_pass_answer_of_shard_to_client(stack, each);
    }
    (void)domus_resp_add_array(&builder, count);
    for (const domus_answer *each = answers; each != NULL; each = each->next) {
        if (each->type == &domus_resp_reply_type)
            (void)domus_resp_add_reply(&builder, each->payload);
    }
    return kv_answer_what_builder_has_made(stack, &builder);
}

/* Reply to a command with one of the shards' answers that are not null, chosen at random. */
static int reply_with_random_answer_of_shards(domus_stack *stack, const domus_answer *answers)
{
    const domus_answer *chosen = answers;
    uint64_t count = 0;

    for (const domus_answer *each = answers; each != NULL; each = each->next) {
        if (each->type != &domus_resp_null_type && kv_random_number() % ++count == 0)
            chosen = each;
    }
    return kv_pass_answer_of_shard_to_client(stack, chosen);
}

static int combine_shard_answers_and_reply(domus_stack *stack, void *self,
                                           const domus_answer *answer)
{
    const struct kv_scatter *scatter = domus_frame(stack);
    bool is_integer = true;
    int64_t sum = 0;

    (void)self;
    for (const domus_answer *each = answer; each != NULL; each = each->next) {
        if (each->error != 0)
            return each->error;
        is_integer = is_integer && each->type == &domus_resp_integer_type;
        sum += integer_of_shard_answer_or_zero(each);
    }
    if (scatter->row->where == KV_GATHER)
        return reply_with_elements_in_order_of_keys(stack, scatter->command, answer);
    if (scatter->row->where == KV_JOIN)
        return reply_with_array_of_all_shard_elements(stack, scatter->command, answer);
    if (scatter->row->where == KV_ANY)
        return reply_with_random_answer_of_shards(stack, answer);
    if (is_integer)
        return kv_answer_integer(stack, sum);
    while (answer->type == &domus_resp_integer_type)
        answer = answer->next;
    return kv_pass_answer_of_shard_to_client(
        stack, answer); /* the answer of the shard is OK, or an error */
}

/* --- the questions ---------------------------------------------------------------------------- */

static int ask_shard_to_run_part_of_command(domus_stack *stack, uint32_t shard,
                                            const domus_resp_bytes *arguments, uint32_t count)
{
    domus_resp_command part;
    int error = domus_resp_command_make(arguments, count, &part);

    if (error != 0)
        return error;
    error = domus_ask_add(stack, kv_shards[shard], &domus_resp_command_type, &part, 0, shard);
    if (error != 0)
        domus_resp_command_type.release(&part);
    return error;
}

static domus_resp_bytes bytes_of_slice(domus_slice slice)
{
    return (domus_resp_bytes){domus_slice_data(slice), slice.size};
}

/* Ask each shard that has keys of the command, with its keys in the order of the command. */
static int ask_shards_to_run_command_on_own_keys(domus_stack *stack,
                                                 const domus_resp_command *command)
{
    /* index in `sorted` at which the keys of each shard begin */
    uint32_t begins[KV_SHARDS_MAX + 1] = {0};
    uint32_t ends[KV_SHARDS_MAX];
    uint32_t keys = command->count - 1;
    int error = 0;

    /* The keys sorted by their shard. Before those of each shard there is a place for the name of
     * the command. */
    domus_resp_bytes *sorted = malloc((keys + (size_t)kv_shard_count) * sizeof *sorted);
    if (sorted == NULL)
        return -ENOMEM;
    for (uint32_t i = 1; i <= keys; i++)
        begins[kv_shard_of_key(domus_resp_argument(command, i)) + 1]++;
    for (uint32_t i = 0; i < kv_shard_count; i++) {
        begins[i + 1] += begins[i] + 1;
        sorted[begins[i]] = bytes_of_slice(domus_resp_argument(command, 0));
        ends[i] = begins[i] + 1;
    }
    for (uint32_t i = 1; i <= keys; i++) {
        domus_slice key = domus_resp_argument(command, i);
        sorted[ends[kv_shard_of_key(key)]++] = bytes_of_slice(key);
    }
    for (uint32_t i = 0; i < kv_shard_count && error == 0; i++) {
        uint32_t count = ends[i] - begins[i];
        if (count > 1)
            error = ask_shard_to_run_part_of_command(stack, i, &sorted[begins[i]], count);
    }
    free(sorted);
    return error;
}

int kv_ask_all_shards_of_command(domus_stack *stack, const domus_resp_command *command,
                                 const struct kv_command *row)
{
    struct kv_scatter *scatter = domus_frame(stack);
    domus_resp_bytes arguments[ARGUMENTS_MAX];
    uint32_t count = command->count < ARGUMENTS_MAX ? command->count : ARGUMENTS_MAX;
    int error = 0;

    scatter->row = row;
    scatter->command = command;
    for (uint32_t i = 0; i < count; i++)
        arguments[i] = bytes_of_slice(domus_resp_argument(command, i));
    if (row->where < KV_EVERYWHERE)
        error = ask_shards_to_run_command_on_own_keys(stack, command);
    for (uint32_t i = 0; row->where >= KV_EVERYWHERE && i < kv_shard_count && error == 0; i++)
        error = ask_shard_to_run_part_of_command(stack, i, arguments, count);
    return error != 0 ? error : domus_wait_all(stack, combine_shard_answers_and_reply);
}
