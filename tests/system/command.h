/* The program `domus` of the command line, tested by tests/system/command.py. */
#ifndef DOMT_COMMAND_H
#define DOMT_COMMAND_H

/* Run one part of command.py with the example web, whose file in the registry has to be gone at its
 * end. If the program or python3 is not installed, prints a note and does nothing. */
void domt_command_run_python_part_with_web(const char *part);

/* Run one part of command.py that needs no program of the examples. `module` is a Python module
 * that has to be installed; NULL: none. */
void domt_command_run_python_part(const char *part, const char *module);

#endif
