/* `domus top` on a terminal in memory: what it draws, its keys, sizes and ends. */
#include "tests/support/suite.h"
#include "tests/system/command.h"

DOMT_TEST(domus_top_draws_and_takes_keys)
{
    domt_command_judge_part("screen", "pyte");
}

DOMT_SUITE(70)
