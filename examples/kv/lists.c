/* Commands of lists: pushes and pops at their ends. */
#include "list.h"

#include "kv.h"

#include <errno.h>

int kv_find_list_at_key_of_call(struct kv_call *call, struct kv_item ***ret_link)
{
    *ret_link = kv_find_item_at_key_of_call(call);
    if (*ret_link == NULL)
        return 0;
    return (**ret_link)->kind == KV_LIST ? 1 : -EINVAL;
}

struct kv_item **kv_add_empty_list_at_key_of_call(struct kv_call *call)
{
    struct kv_list *list = kv_list_new(&call->store->memory);
    struct kv_item **link = list != NULL ? kv_find_or_add_item(call, 0) : NULL;

    if (link == NULL) {
        kv_free_and_uncount_memory(&call->store->memory, list);
        return NULL;
    }
    (*link)->kind = KV_LIST;
    (*link)->list = list;
    return link;
}

static int push_all_arguments_of_command(struct kv_call *call, enum kv_end end, bool makes)
{
    struct kv_item **link;
    int there = kv_find_list_at_key_of_call(call, &link);
    int error = 0;

    if (there < 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    if (there == 0 && !makes)
        return kv_answer_integer(call->stack, 0);
    if (there == 0 && (link = kv_add_empty_list_at_key_of_call(call)) == NULL)
        return -ENOMEM;
    struct kv_list *list = (*link)->list;
    for (uint32_t i = 2; i < call->command->count && error == 0; i++) {
        domus_slice element = domus_resp_argument(call->command, i);
        error = kv_list_add_element_at_end(&call->store->memory, list, end,
                                           domus_slice_data(element), element.size);
    }
    uint64_t count = list->count;
    if (count == 0)
        /* remove the key, because its list has no elements any more */
        kv_store_remove(call->store, link);
    return error != 0 ? error : kv_answer_integer(call->stack, (int64_t)count);
}

int kv_run_lpush(struct kv_call *call)
{
    return push_all_arguments_of_command(call, KV_HEAD, true);
}

int kv_run_rpush(struct kv_call *call)
{
    return push_all_arguments_of_command(call, KV_TAIL, true);
}

int kv_run_lpushx(struct kv_call *call)
{
    return push_all_arguments_of_command(call, KV_HEAD, false);
}

int kv_run_rpushx(struct kv_call *call)
{
    return push_all_arguments_of_command(call, KV_TAIL, false);
}

/* Pop up to `count` elements of a list, and answer with an array of them. They are removed only
 * when the answer holds all of them: if it would be too long, the command fails and removes
 * nothing. */
static int pop_elements_and_answer_array(struct kv_call *call, enum kv_end end,
                                         struct kv_item **link, uint64_t count)
{
    domus_resp_builder builder = {.version = call->command->version,
                                  .bytes.size_max = kv_most_bytes_of_one_answer()};
    struct kv_list *list = (*link)->list;

    if (count > list->count)
        count = list->count;
    (void)domus_resp_add_array(&builder, (uint32_t)count);
    struct kv_place place =
        end == KV_HEAD ? kv_list_place_of_index(list, 0) : kv_list_last_place(list);
    for (uint64_t i = 0; i < count && builder.bytes.error == 0; i++) {
        domus_resp_bytes element = kv_list_element_at_place(place);
        (void)domus_resp_add_bulk(&builder, element.data, element.size);
        place = end == KV_HEAD ? kv_list_place_behind(place) : kv_list_place_before(place);
    }
    if (builder.bytes.error == 0)
        kv_list_remove_elements_at_end(&call->store->memory, list, end, count);
    if (list->count == 0)
        kv_store_remove(call->store, link);
    return kv_answer_what_builder_has_made(call->stack, &builder);
}

static int pop_as_lpop_and_rpop_do(struct kv_call *call, enum kv_end end)
{
    bool many = call->command->count > 2;
    int64_t count = 1;
    struct kv_item **link;

    if (call->command->count > 3)
        return kv_refuse_argument_count(call->stack,
                                        kv_command_find(domus_resp_argument(call->command, 0)));
    if (many && (!kv_read_integer_argument(call, 2, &count) || count < 0))
        return kv_answer_error(call->stack, "ERR value is out of range, must be positive");
    int there = kv_find_list_at_key_of_call(call, &link);
    if (there < 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    if (there == 0 && many)
        return kv_answer_or_gather_answer(call->stack, &domus_resp_null_array_type, NULL);
    if (there == 0)
        return kv_answer_null(call->stack);
    if (many)
        return pop_elements_and_answer_array(call, end, link, (uint64_t)count);
    struct kv_list *list = (*link)->list;
    int error = kv_answer_bytes_as_bulk_string(call->stack, kv_list_element_at_end(list, end));
    if (error != 0)
        return error;
    kv_list_remove_element_at_end(&call->store->memory, list, end);
    if (list->count == 0)
        kv_store_remove(call->store, link);
    return 0;
}

int kv_run_lpop(struct kv_call *call)
{
    return pop_as_lpop_and_rpop_do(call, KV_HEAD);
}

int kv_run_rpop(struct kv_call *call)
{
    return pop_as_lpop_and_rpop_do(call, KV_TAIL);
}

int kv_run_llen(struct kv_call *call)
{
    struct kv_item **link;
    int there = kv_find_list_at_key_of_call(call, &link);

    if (there < 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    return kv_answer_integer(call->stack, there == 0 ? 0 : (int64_t)(*link)->list->count);
}
