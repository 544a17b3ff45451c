/* The fulfilment of wishes (wish.h), and the return of elements whose client is gone. An element
 * leaves its list only when the answer that has it is on its way. */
#include "wish.h"

#include "observed.h"

#include <errno.h>
#include <stdlib.h>

static void remove_popped_element_of_list(struct kv_store *store, struct kv_item **link,
                                          enum kv_end end)
{
    struct kv_list *list = (*link)->list;

    kv_list_remove_element_at_end(&store->memory, list, end);
    if (list->count == 0)
        kv_store_remove(store, link);
}

/* Push an element to the list of the call's key. Returns 0; -EINVAL when the key has another kind
 * of value; -ENOMEM. */
static int push_element_to_list_at_key(struct kv_call *call, enum kv_end end, domus_slice element)
{
    struct kv_item **link;
    int there = kv_find_list_at_key_of_call(call, &link);

    if (there == 0 && (link = kv_add_empty_list_at_key_of_call(call)) == NULL)
        return -ENOMEM;
    if (there < 0)
        return there;
    struct kv_list *list = (*link)->list;
    int error = kv_list_add_element_at_end(&call->store->memory, list, end,
                                           domus_slice_data(element), element.size);
    if (list->count == 0)
        kv_store_remove(call->store, link);
    return error;
}

static void change_key_of_call(struct kv_call *call, domus_slice key)
{
    if (call->store->observed != NULL)
        kv_mark_key_if_command_changed_it(call->store, call->hash, call->key);
    call->key = key;
    call->hash = kv_hash_of_bytes(domus_slice_data(key), key.size);
}

/* Push the elements of a gift back to their list, the one that was popped last first. */
static void push_elements_of_gift_back(struct kv_call *call, const struct kv_gift *gift)
{
    domus_resp_reader reader = {gift->elements, 0};
    domus_resp_value value;
    domus_slice *elements = calloc(gift->count, sizeof *elements);

    if (elements == NULL)
        return;                             /* without memory for the list the elements are lost */
    (void)domus_resp_read(&reader, &value); /* read past the head of the gift's array */
    for (uint32_t i = 0; i < gift->count && domus_resp_read(&reader, &value) == 1; i++)
        elements[i] = value.text;
    for (uint32_t i = gift->count; i > 0; i--)
        (void)push_element_to_list_at_key(call, gift->end, elements[i - 1]);
    free(elements);
}

void kv_push_gift_back_to_its_list(struct kv_call *call, const struct kv_gift *gift)
{
    change_key_of_call(call, gift->key);
    if (gift->count != 0)
        push_elements_of_gift_back(call, gift);
    else
        (void)push_element_to_list_at_key(call, gift->end, gift->elements);
}

/* Answer the command that has waited (`kept`), or, if that is NULL, the command that runs. The
 * answer owns what its payload owns, unless this fails. */
static int answer_kept_or_running_command(struct kv_call *call, const domus_kept *kept,
                                          const domus_type *type, const void *payload)
{
    return kept != NULL ? domus_kept_reply(call->stack, *kept, type, payload)
                        : kv_answer_or_gather_answer(call->stack, type, payload);
}

/* Build a reply that is an array of `count` elements, read from an end of a list. */
static int build_reply_of_elements_at_list_end(const struct kv_list *list, enum kv_end end,
                                               uint64_t count, domus_resp_reply *ret_array)
{
    domus_resp_builder builder = {.bytes.size_max = kv_most_bytes_of_one_answer()};
    struct kv_place place =
        end == KV_HEAD ? kv_list_place_of_index(list, 0) : kv_list_last_place(list);

    (void)domus_resp_add_array(&builder, (uint32_t)count);
    for (; count > 0 && builder.bytes.error == 0; count--) {
        domus_resp_bytes element = kv_list_element_at_place(place);
        (void)domus_resp_add_bulk(&builder, element.data, element.size);
        place = end == KV_HEAD ? kv_list_place_behind(place) : kv_list_place_before(place);
    }
    return domus_resp_end(&builder, ret_array);
}

/* Answer the call with an array of its key and `elements`. */
static int answer_with_key_and_elements(struct kv_call *call, const domus_resp_reply *elements)
{
    domus_resp_builder builder = {.version = call->command->version,
                                  .bytes.size_max = kv_most_bytes_of_one_answer()};

    (void)domus_resp_add_array(&builder, 2);
    (void)domus_resp_add_bulk(&builder, domus_slice_data(call->key), call->key.size);
    (void)domus_resp_add_reply(&builder, elements);
    domus_slice_free(elements->bytes);
    return kv_answer_what_builder_has_made(call->stack, &builder);
}

/* Build a reply of the first element from an end of a list. */
static int build_reply_of_element_at_list_end(const struct kv_list *list, enum kv_end end,
                                              domus_resp_reply *ret_element)
{
    domus_resp_builder builder = {.version = 0};
    domus_resp_bytes element = kv_list_element_at_end(list, end);

    (void)domus_resp_add_bulk(&builder, element.data, element.size);
    return domus_resp_end(&builder, ret_element);
}

/* Answer with a gift (gift.h), which is made of the elements and owns them. */
static int answer_with_new_gift_of_elements(struct kv_call *call, const struct kv_wish *wish,
                                            domus_slice elements, uint32_t count,
                                            const domus_kept *kept)
{
    struct kv_gift *gift =
        kv_gift_new_of_popped_elements(call->store->index, wish->from, call->key, elements, count);

    if (gift == NULL)
        return -ENOMEM;
    gift->was_waited_for = kept != NULL;
    int error = answer_kept_or_running_command(call, kept, &kv_gift_type, &gift);

    if (error != 0)
        kv_gift_free(gift);
    return error;
}

/* Give elements of the list of the call's key to the client, with the key, and remove them from the
 * list. */
static int give_elements_and_key_to_client(struct kv_call *call, struct kv_item **link,
                                           const struct kv_wish *wish, const domus_kept *kept)
{
    struct kv_list *list = (*link)->list;
    uint64_t count = wish->count < list->count ? wish->count : list->count;
    domus_resp_reply shown = {.values = 0};
    int error;

    if (count != 0)
        error = build_reply_of_elements_at_list_end(list, wish->from, count, &shown);
    else if (kv_are_answers_gathered())
        error = build_reply_of_element_at_list_end(list, wish->from, &shown);
    else
        error =
            domus_slice_copy(kv_list_element_at_end(list, wish->from).data,
                             (uint32_t)kv_list_element_at_end(list, wish->from).size, &shown.bytes);
    if (error != 0)
        return error;
    error = kv_are_answers_gathered() || wish->is_direct
                ? answer_with_key_and_elements(call, &shown)
                : answer_with_new_gift_of_elements(call, wish, shown.bytes, (uint32_t)count, kept);
    if (error != 0)
        return error;
    kv_list_remove_elements_at_end(&call->store->memory, list, wish->from, count != 0 ? count : 1);
    if (list->count == 0)
        kv_store_remove(call->store, link);
    return 0;
}

/* Move an element from the list of the call's key to the key `to`, and answer with it. */
static int move_element_to_list_and_answer_it(struct kv_call *call, struct kv_item **link,
                                              const struct kv_wish *wish, domus_slice to,
                                              const domus_kept *kept)
{
    domus_resp_bytes bytes = kv_list_element_at_end((*link)->list, wish->from);
    domus_slice from = call->key;
    domus_slice element;

    int error = domus_slice_copy(bytes.data, bytes.size, &element);
    if (error != 0)
        return error;
    change_key_of_call(call, to);
    error = push_element_to_list_at_key(call, wish->to, element);
    if (error != 0) {
        domus_resp_error text = domus_resp_error_text("%s", KV_WRONG_TYPE);
        domus_slice_free(element);
        return error == -EINVAL
                   ? answer_kept_or_running_command(call, kept, &domus_resp_error_type, &text)
                   : error;
    }
    change_key_of_call(call, from);
    remove_popped_element_of_list(call->store, kv_find_item_at_key_of_call(call), wish->from);
    change_key_of_call(
        call, to); /* note the change of the other key before the answer frees the command */
    error = answer_kept_or_running_command(call, kept, &domus_slice_type, &element);
    if (error == 0)
        return 0;
    change_key_of_call(call, from);
    (void)push_element_to_list_at_key(call, wish->from, element);
    change_key_of_call(call, to);
    remove_popped_element_of_list(call->store, kv_find_item_at_key_of_call(call), wish->to);
    domus_slice_free(element);
    return error;
}

int kv_pop_or_move_for_command(struct kv_call *call, const struct kv_wish *wish, domus_slice to,
                               const domus_kept *kept)
{
    struct kv_item **link;
    int there = kv_find_list_at_key_of_call(call, &link);

    if (there == 0 || (there < 0 && kept != NULL))
        return 1;
    if (there < 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    return wish->moves ? move_element_to_list_and_answer_it(call, link, wish, to, kept)
                       : give_elements_and_key_to_client(call, link, wish, kept);
}
