/* The program `domus` with the example web: how it finds the program, and what it says of it. */
#include "tests/support/suite.h"
#include "tests/system/command.h"

START_TEST(commands_show_a_program_that_runs)
{
    domt_command_judge_web("real");
}
END_TEST

START_TEST(wrong_words_and_files_end_with_a_line)
{
    domt_command_judge_web("wrong");
}
END_TEST

DOMT_MAIN("command", 70, commands_show_a_program_that_runs, wrong_words_and_files_end_with_a_line)
