/* The program `domus` of the command line with a port that answers as a newer, a broken or a
 * hostile program might. */
#include "tests/support/suite.h"
#include "tests/system/command.h"

#include <stddef.h>

DOMT_TEST(domus_command_does_not_trust_ports)
{
    domt_command_judge_part("fake", NULL);
}

DOMT_SUITE(70)
