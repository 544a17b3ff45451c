/* `domus top` on a terminal in memory: what it draws, its keys, sizes and ends. */
#include "tests/support/suite.h"
#include "tests/system/command.h"

START_TEST(top_draws_and_takes_keys)
{
    domt_command_judge("screen", "pyte");
}
END_TEST

DOMT_MAIN("command_screen", 70, top_draws_and_takes_keys)
