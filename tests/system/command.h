/* The program `domus` of the command line, judged by tests/system/command.py. */
#ifndef DOMT_COMMAND_H
#define DOMT_COMMAND_H

/* Run a part of that file with the example web, whose file in the registry has to be gone at its
 * end. If the program or python3 is not here, this says so, and nothing is tried. */
void domt_command_judge_web(const char *part);

/* Run a part that needs no program of ours. `module` of Python has to be there, too; NULL: none. */
void domt_command_judge(const char *part, const char *module);

#endif
