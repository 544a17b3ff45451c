/* The shell's command of a service, to which words are added. */
#ifndef DOMUS_TOOL_TUNE_SHELL_H
#define DOMUS_TOOL_TUNE_SHELL_H

/* Returns why words behind a command would not reach the program; NULL: nothing speaks against it.
 * Such is a comment, a pipe in the last command, or an end such as `;` or `&`. Only the text is
 * looked at, so a script may still drop its words. */
const char *tune_shell_drops_words(const char *command);

#endif
