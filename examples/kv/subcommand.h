/* Subcommands: the words behind the name of a command such as CLIENT. A table tells how many
 * arguments each may have, and what HELP says about it, so all commands refuse wrong words and
 * counts alike, as Redis does. */
#ifndef KV_SUBCOMMAND_H
#define KV_SUBCOMMAND_H

#include "kv.h"

struct kv_subcommand {
    const char *name; /* name of the subcommand in small letters; NULL ends a table */
    /* least and most arguments, the names of command and subcommand included */
    uint32_t least, most;
    const char *usage; /* text that HELP prints for the subcommand; NULL: none */
    const char *about;
};

/* The value of `most` for a subcommand without a bound. */
#define KV_ANY_NUMBER UINT32_MAX

/* Find the subcommand of a command, and check its arguments. HELP is answered here. Returns the row
 * of the subcommand; or NULL if the command was answered, and then `*ret_result` is what the
 * handler returns. */
const struct kv_subcommand *kv_find_subcommand_or_answer_error(domus_stack *stack,
                                                               const domus_resp_command *command,
                                                               const struct kv_subcommand *table,
                                                               int *ret_result);

/* Answer that a subcommand has wrong arguments. */
int kv_answer_error_of_wrong_subcommand(domus_stack *stack, const domus_resp_command *command);

#endif
