/* COMMAND: what the table of commands says. */
#include "kv.h"

#include <string.h>

static void add_row(domus_resp_builder *builder, const struct kv_command *row)
{
    (void)domus_resp_add_array(builder, 10);
    (void)domus_resp_add_bulk(builder, row->name, strlen(row->name));
    (void)domus_resp_add_integer(builder, row->arity);
    (void)domus_resp_add_set(builder, 1); /* flags */
    (void)domus_resp_add_simple(builder, (row->flags & KV_GROWS) != 0 ? "denyoom" : "fast");
    (void)domus_resp_add_integer(builder, row->first);
    (void)domus_resp_add_integer(builder, row->last);
    (void)domus_resp_add_integer(builder, row->step);
    (void)domus_resp_add_set(builder, 0);   /* categories of access */
    (void)domus_resp_add_array(builder, 0); /* tips */
    (void)domus_resp_add_array(builder, 0); /* where its keys are, in words */
    (void)domus_resp_add_array(builder, 0); /* subcommands */
}

static void add_rows(domus_resp_builder *builder, const domus_resp_command *command)
{
    if (command->count <= 2) {
        (void)domus_resp_add_array(builder, kv_command_count());
        for (uint32_t i = 0; i < kv_command_count(); i++)
            add_row(builder, kv_command_at(i));
        return;
    }
    (void)domus_resp_add_array(builder, command->count - 2);
    for (uint32_t i = 2; i < command->count; i++) {
        const struct kv_command *row = kv_command_find(domus_resp_argument(command, i));
        if (row != NULL)
            add_row(builder, row);
        else
            (void)domus_resp_add_null(builder);
    }
}

static int answer_keys(domus_stack *stack, const domus_resp_command *command)
{
    domus_resp_builder builder = {.version = command->version};
    const struct kv_command *row = kv_command_find(domus_resp_argument(command, 2));
    uint32_t count = command->count - 2; /* of the command that is asked about */

    if (row == NULL)
        return kv_error(stack, "ERR Invalid command specified");
    if (row->first == 0)
        return kv_error(stack, "ERR The command has no key arguments");
    if (!kv_arity_holds(row, count))
        return kv_error(stack, "ERR Invalid number of arguments specified for command");
    uint32_t last = row->last < 0 ? count - 1 : (uint32_t)row->last;
    uint32_t first = (uint32_t)row->first, step = (uint32_t)row->step;
    (void)domus_resp_add_array(&builder, (last - first) / step + 1);
    for (uint32_t i = first; i <= last; i += step) {
        domus_slice key = domus_resp_argument(command, i + 2);
        (void)domus_resp_add_bulk(&builder, domus_slice_data(key), key.size);
    }
    return kv_reply(stack, &builder);
}

int kv_serve_command(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    domus_resp_builder builder = {.version = command->version};
    domus_slice word = domus_resp_argument(command, 1);
    static const char *const known[] = {"COUNT", "GETKEYS", NULL};

    (void)self;
    if (domus_resp_is(word, "COUNT") && command->count == 2)
        return kv_integer(stack, kv_command_count());
    if (domus_resp_is(word, "GETKEYS") && command->count > 2)
        return answer_keys(stack, command);
    if (domus_resp_is(word, "DOCS")) {
        (void)domus_resp_add_map(&builder, 0);
    } else if (domus_resp_is(word, "LIST") && command->count == 2) {
        (void)domus_resp_add_array(&builder, kv_command_count());
        for (uint32_t i = 0; i < kv_command_count(); i++)
            (void)domus_resp_add_bulk(&builder, kv_command_at(i)->name,
                                      strlen(kv_command_at(i)->name));
    } else if (command->count == 1 || domus_resp_is(word, "INFO")) {
        add_rows(&builder, command);
    } else {
        return kv_refuse_word(stack, "COMMAND", word, known);
    }
    return kv_reply(stack, &builder);
}
