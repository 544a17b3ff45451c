/* The search for subcommands (subcommand.h), and the answer to HELP. */
#include "subcommand.h"

#include <ctype.h>
#include <string.h>

#define WORD_MOST 64u /* most bytes of a wrong word that an error repeats */

static bool are_bytes_word_in_any_case(domus_slice bytes, const char *word)
{
    uint32_t i = 0;

    for (; i < bytes.size && word[i] != '\0'; i++) {
        if (tolower((unsigned char)domus_slice_data(bytes)[i]) != word[i])
            return false;
    }
    return i == bytes.size && word[i] == '\0';
}

/* Copy the name of a command in capitals. */
static void copy_command_name_in_capitals(const char *name, char capitals[KV_NAME_MAX + 1])
{
    size_t size = 0;

    for (; name[size] != '\0'; size++)
        capitals[size] = (char)toupper((unsigned char)name[size]);
    capitals[size] = '\0';
}

static int answer_help_with_all_subcommands(domus_stack *stack, const domus_resp_command *command,
                                            const char *capitals, const struct kv_subcommand *table)
{
    domus_resp_builder builder = {.version = command->version};
    domus_resp_error head = domus_resp_error_text(
        "%s <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", capitals);
    uint32_t lines = 3;

    for (const struct kv_subcommand *each = table; each->name != NULL; each++)
        lines += each->usage != NULL ? 2 : 0;
    (void)domus_resp_add_array(&builder, lines);
    (void)domus_resp_add_simple(&builder, head.text);
    for (const struct kv_subcommand *each = table; each->name != NULL; each++) {
        if (each->usage == NULL)
            continue;
        (void)domus_resp_add_simple(&builder, each->usage);
        (void)domus_resp_add_simple(&builder, each->about);
    }
    (void)domus_resp_add_simple(&builder, "HELP");
    (void)domus_resp_add_simple(&builder, "    Print this help.");
    return kv_answer_what_builder_has_made(stack, &builder);
}

static int refuse_argument_count(domus_stack *stack, const char *command, const char *name)
{
    domus_resp_error error =
        domus_resp_error_text("ERR wrong number of arguments for '%s|%s' command", command, name);

    return kv_answer_error(stack, error.text);
}

const struct kv_subcommand *kv_find_subcommand_or_answer_error(domus_stack *stack,
                                                               const domus_resp_command *command,
                                                               const struct kv_subcommand *table,
                                                               int *ret_result)
{
    const char *name = kv_command_find(domus_resp_argument(command, 0))->name;
    domus_slice word = domus_resp_argument(command, 1);
    const struct kv_subcommand *row = table;
    char capitals[KV_NAME_MAX + 1];

    while (row->name != NULL && !are_bytes_word_in_any_case(word, row->name))
        row++;
    if (row->name != NULL && command->count >= row->least && command->count <= row->most)
        return row;
    copy_command_name_in_capitals(name, capitals);
    if (row->name != NULL) {
        *ret_result = refuse_argument_count(stack, name, row->name);
    } else if (are_bytes_word_in_any_case(word, "help")) {
        *ret_result = command->count == 2
                          ? answer_help_with_all_subcommands(stack, command, capitals, table)
                          : refuse_argument_count(stack, name, "help");
    } else {
        domus_resp_error error = domus_resp_error_text(
            "ERR unknown subcommand '%.*s'. Try %s HELP.",
            (int)(word.size < WORD_MOST ? word.size : WORD_MOST), domus_slice_data(word), capitals);
        *ret_result = kv_answer_error(stack, error.text);
    }
    return NULL;
}

int kv_answer_error_of_wrong_subcommand(domus_stack *stack, const domus_resp_command *command)
{
    domus_slice word = domus_resp_argument(command, 1);
    char capitals[KV_NAME_MAX + 1];

    copy_command_name_in_capitals(kv_command_find(domus_resp_argument(command, 0))->name, capitals);
    domus_resp_error error = domus_resp_error_text(
        "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try %s HELP.",
        (int)(word.size < WORD_MOST ? word.size : WORD_MOST), domus_slice_data(word), capitals);
    return kv_answer_error(stack, error.text);
}
