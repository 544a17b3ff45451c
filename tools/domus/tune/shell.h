/* The shell command of a service, to which words are added. */
#ifndef DOMUS_TOOL_TUNE_SHELL_H
#define DOMUS_TOOL_TUNE_SHELL_H

/* Returns why words behind a command would not reach its program, such as a comment, a pipe in the
 * last command, or an operator like `;` or `&` at the end; NULL if no reason is found. Only the
 * text is read, so a script may still ignore its words. */
const char *tune_shell_drops_words(const char *command);

#endif
