/* The command COMMAND: it describes the rows of the table of commands. */
#include "subcommand.h"

#include <string.h>

static void add_description_of_command(domus_resp_builder *builder, const struct kv_command *row)
{
    (void)domus_resp_add_array(builder, 10);
    (void)domus_resp_add_bulk(builder, row->name, strlen(row->name));
    (void)domus_resp_add_integer(builder, row->arity);
    (void)domus_resp_add_set(builder, 1); /* the command's flags: a set with one member */
    (void)domus_resp_add_simple(builder, (row->flags & KV_GROWS) != 0 ? "denyoom" : "fast");
    (void)domus_resp_add_integer(builder, row->first);
    (void)domus_resp_add_integer(builder, row->last);
    (void)domus_resp_add_integer(builder, row->step);
    (void)domus_resp_add_set(builder, 0);   /* the command's categories of access: none */
    (void)domus_resp_add_array(builder, 0); /* the command's tips: none */
    /* the descriptions of where the command's keys are: none */
    (void)domus_resp_add_array(builder, 0);
    (void)domus_resp_add_array(builder, 0); /* the command's subcommands: none */
}

static void add_command_rows(domus_resp_builder *builder, const domus_resp_command *command)
{
    if (command->count <= 2) {
        (void)domus_resp_add_array(builder, kv_command_count());
        for (uint32_t i = 0; i < kv_command_count(); i++)
            add_description_of_command(builder, kv_command_at_place_in_table(i));
        return;
    }
    (void)domus_resp_add_array(builder, command->count - 2);
    for (uint32_t i = 2; i < command->count; i++) {
        const struct kv_command *row = kv_command_find(domus_resp_argument(command, i));
        if (row != NULL)
            add_description_of_command(builder, row);
        else
            (void)domus_resp_add_null(builder);
    }
}

static int answer_command_getkeys(domus_stack *stack, const domus_resp_command *command)
{
    domus_resp_builder builder = {.version = command->version};
    const struct kv_command *row = kv_command_find(domus_resp_argument(command, 2));
    /* number of arguments of the command that COMMAND GETKEYS is asked about */
    uint32_t count = command->count - 2;
    uint32_t first, last;

    if (row == NULL)
        return kv_answer_error(stack, "ERR Invalid command specified");
    if (row->first == 0 && (row->flags & KV_COUNTED) == 0)
        return kv_answer_error(stack, "ERR The command has no key arguments");
    if (!kv_has_right_argument_count(row, count))
        return kv_answer_error(stack, "ERR Invalid number of arguments specified for command");
    kv_find_first_and_last_key_argument(command, 2, row, &first, &last);
    if (first == 0)
        return kv_answer_error(stack, "ERR Invalid arguments specified for command");
    uint32_t step = row->step != 0 ? (uint32_t)row->step : 1;
    (void)domus_resp_add_array(&builder, (last - first) / step + 1);
    for (uint32_t i = first; i <= last; i += step) {
        domus_slice key = domus_resp_argument(command, i + 2);
        (void)domus_resp_add_bulk(&builder, domus_slice_data(key), key.size);
    }
    return kv_answer_what_builder_has_made(stack, &builder);
}

static void add_names_of_all_commands(domus_resp_builder *builder)
{
    (void)domus_resp_add_array(builder, kv_command_count());
    for (uint32_t i = 0; i < kv_command_count(); i++) {
        const char *name = kv_command_at_place_in_table(i)->name;
        (void)domus_resp_add_bulk(builder, name, strlen(name));
    }
}

static const struct kv_subcommand subcommands[] = {
    {"count", 2, 2, "COUNT", "    Return the total number of commands in this server."},
    {"docs", 2, KV_ANY_NUMBER, "DOCS [<command-name> [...]]", "    Nothing: see those of Redis."},
    {"getkeys", 4, KV_ANY_NUMBER, "GETKEYS <full-command>",
     "    Return the keys from a full command."},
    {"info", 2, KV_ANY_NUMBER, "INFO [<command-name> ...]",
     "    Return details about multiple commands, or about all."},
    {"list", 2, 2, "LIST", "    Return a list of all commands in this server."},
    {NULL, 0, 0, NULL, NULL}};

int kv_serve_command(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    domus_resp_builder builder = {.version = command->version};
    const struct kv_subcommand *row = NULL;
    struct kv_session *session = self;
    int result;

    session->seat.word = "";
    if (command->count > 1 &&
        (row = kv_find_subcommand_or_answer_error(stack, command, subcommands, &result)) == NULL)
        return result;
    if (row != NULL)
        session->seat.word = row->name;
    if (row == NULL || strcmp(row->name, "info") == 0)
        add_command_rows(&builder, command);
    else if (strcmp(row->name, "count") == 0)
        (void)domus_resp_add_integer(&builder, kv_command_count());
    else if (strcmp(row->name, "getkeys") == 0)
        return answer_command_getkeys(stack, command);
    else if (strcmp(row->name, "docs") == 0)
        (void)domus_resp_add_map(&builder, 0);
    else
        add_names_of_all_commands(&builder);
    return kv_answer_what_builder_has_made(stack, &builder);
}
