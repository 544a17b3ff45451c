/* The program `domus` with a port that answers as a newer, a broken or a hostile program might. */
#include "tests/support/suite.h"
#include "tests/system/command.h"

#include <stddef.h>

DOMT_TEST(ports_are_not_trusted)
{
    domt_command_judge("fake", NULL);
}

DOMT_SUITE(70)
