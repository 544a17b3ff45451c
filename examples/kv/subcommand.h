/* Subcommands: the words behind the name of a command such as CLIENT. A table tells how many
 * arguments each may have, and what HELP says about it, so all commands refuse wrong words and
 * counts alike, as Redis does. */
#ifndef KV_SUBCOMMAND_H
#define KV_SUBCOMMAND_H

#include "kv.h"

struct kv_subcommand {
    const char *name;     /* in small letters; NULL ends a table */
    uint32_t least, most; /* arguments, with the names of the command and the subcommand */
    const char *usage;    /* what HELP says; NULL: nothing */
    const char *about;
};

/* How many arguments a subcommand may have, when there is no bound. */
#define KV_ANY_NUMBER UINT32_MAX

/* Find the subcommand of a command, and check its arguments. HELP is answered here.
 *
 * Returns its row; NULL if the command was answered, with `*ret_result` from that. */
const struct kv_subcommand *kv_subcommand(domus_stack *stack, const domus_resp_command *command,
                                          const struct kv_subcommand *table, int *ret_result);

/* Refuse the form of a subcommand. */
int kv_refuse_form(domus_stack *stack, const domus_resp_command *command);

#endif
