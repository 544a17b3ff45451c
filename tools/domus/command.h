/* A command of the program, `domus NAME ...`. Each command is in its own file. */
#ifndef DOMUS_TOOL_COMMAND_H
#define DOMUS_TOOL_COMMAND_H

typedef struct command {
    const char *name;
    const char *summary; /* line of the command in `domus --help` */
    const char *help;    /* text that `domus NAME --help` prints for the command */
    /* runs the command, whose name is argv[0]; returns the exit status of domus */
    int (*run)(const struct command *self, int argc, char **argv);
} command;

extern const command command_top;
extern const command command_stat;
extern const command command_actors;
extern const command command_trace;
extern const command command_flame;
extern const command command_log;
extern const command command_level;
extern const command command_list;
extern const command command_cluster;
extern const command command_config;
extern const command command_doctor;
extern const command command_tune;

#endif
