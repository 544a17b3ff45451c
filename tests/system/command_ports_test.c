/* The program `domus` with a port that says what a newer, a broken or a hostile program might say.
 */
#include "tests/support/suite.h"
#include "tests/system/command.h"

#include <stddef.h>

DOMT_TEST(ports_are_not_trusted)
{
    domt_command_judge("fake", NULL);
}

DOMT_SUITE(70)
