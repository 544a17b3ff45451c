/* The bank of tests/chaos, three nodes at three nats-servers, loses no money while nodes, servers
 * and their network fail. `./dev chaos` runs it for any time; this test is a short run with all
 * faults, and only in the long form. */
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"
#include "tests/system/judges.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"
#define SERVER "/usr/sbin/nats-server"
#define BANK   DOMT_BIN_DIR "/chaos_bank"

DOMT_TEST(bank_on_a_cluster_keeps_its_money_under_chaos)
{
    if (!domt_tests_are_long())
        return;
    if (access(BANK, X_OK) != 0 || access(SERVER, X_OK) != 0 ||
        !domt_are_judges_installed(PYTHON)) {
        printf("chaos_bank, nats-server or python3 is not here, so it is not tried\n");
        return;
    }
    /* NOLINTNEXTLINE(cert-env33-c): a test may use the shell */
    int status = system("exec timeout -k 10 200 " PYTHON " " DOMT_SOURCE_DIR
                        "/tests/chaos/run --bin " DOMT_BIN_DIR " --seconds 45 --every 5 --rate 30");
    ck_assert_msg(status == 0, "chaos says %d; its text is above", status);
}

DOMT_SUITE(240)
