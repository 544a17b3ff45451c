/* Finds out whether words behind a shell command would reach its program (parts.h). The text is
 * read in one pass that knows quotes, backslashes, and the operators between commands. */
#include "tools/domus/tune/parts.h"

#include <stdbool.h>
#include <string.h>

/* Returns the text of the shell command behind a quoted part that begins here; NULL if the quotes
 * are not closed. */
static const char *text_behind_quoted_part_of_command(const char *at)
{
    const char quote = *at++;

    for (; *at != '\0' && *at != quote; at++) {
        if (quote != '\'' && *at == '\\' && at[1] != '\0')
            at++;
    }
    return *at == quote ? at + 1 : NULL;
}

/* Returns whether an operator of the shell ends a command; `&` in `>&` and `&>` does not. */
static bool is_operator_that_ends_shell_command(const char *at, char before)
{
    return *at == ';' || *at == '\n' ||
           (*at == '&' && before != '>' && before != '<' && at[1] != '>');
}

const char *tune_shell_why_added_words_are_dropped(const char *line)
{
    bool has_pipe = false, is_ended = true;
    char before = ' ';
    int depth = 0; /* depth of parentheses in which the text stands */

    for (const char *at = line; *at != '\0';) {
        const char *next = at + 1;
        if (strchr("'\"`", *at) != NULL)
            next = text_behind_quoted_part_of_command(at);
        else if (*at == '\\')
            next = at[1] != '\0' ? at + 2 : NULL;
        if (next == NULL)
            return "ends within a quoted part";
        depth += (*at == '(') - (*at == ')');
        /* inside of parentheses is a nested command, whose output may be a word of the outer one */
        if (depth > 0) {
            is_ended = false;
            before = *at;
            at = next;
            continue;
        }
        if (*at == '#' && strchr(" \t\n;&|", before) != NULL)
            return "has a comment";
        if (*at == '|' && at[1] == '|')
            next++;
        if (is_operator_that_ends_shell_command(at, before) || (*at == '|' && at[1] == '|'))
            has_pipe = false;
        else
            /* in the shell, `>|` is a redirection and no pipe */
            has_pipe |= *at == '|' && before != '>';
        is_ended = is_operator_that_ends_shell_command(at, before) ||
                   (is_ended && strchr(" \t", *at) != NULL);
        before = next[-1];
        at = next;
    }
    if (is_ended)
        return "ends with ';', '&' or a line break";
    return has_pipe ? "has a pipe in its last command" : NULL;
}
