/* A service is suspended for longer than its time-outs, as by a debugger or a busy machine. A
 * client that sent bytes meanwhile does not count as silent. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <sys/wait.h>

#define COUNT      DOMT_SCALE(2000, 300)
#define BYTES      100u
#define TIMEOUT_MS 3000u

static domt_service service;
static domt_crowd crowd;

static bool have_clients_sent_all(const domt_crowd *of)
{
    for (uint32_t i = 0; i < of->count; i++) {
        if (of->clients[i].fd >= 0 && of->clients[i].sent < of->clients[i].bytes)
            return false;
    }
    return true;
}

static void give_all_clients_more_to_send(uint32_t bytes)
{
    for (uint32_t i = 0; i < COUNT; i++)
        crowd.clients[i].bytes += bytes;
}

DOMT_TEST(peers_that_spoke_during_a_pause_are_not_idle)
{
    uint32_t lost = 0;
    int status;

    ck_assert(domt_raise_descriptor_limit(COUNT + 100));
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "channel.idleTimeout=3s", ));
    domt_crowd_init(&crowd, service.port, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        crowd.clients[i].stays = true;
    give_all_clients_more_to_send(1);
    domt_crowd_connect_clients(&crowd, 0, COUNT);
    ck_assert(domt_crowd_run_until(&crowd, domt_crowd_has_all_echoes, 10000));
    domt_service_signal(&service, SIGSTOP);
    /* While the service's threads stop, it may still serve bytes that are sent now, so this waits
     * until all have stopped. */
    ck_assert_int_eq(waitpid(service.pid, &status, WUNTRACED), service.pid);
    ck_assert(WIFSTOPPED(status));
    give_all_clients_more_to_send(BYTES);
    ck_assert(domt_crowd_run_until(&crowd, have_clients_sent_all, 10000));
    domt_sleep_ms(TIMEOUT_MS + 300);
    domt_service_signal(&service, SIGCONT);
    ck_assert(domt_crowd_run_until(&crowd, domt_crowd_has_all_echoes, 10000));
    for (uint32_t i = 0; i < COUNT; i++)
        lost += crowd.clients[i].received != crowd.clients[i].bytes;
    ck_assert_msg(lost == 0, "%u of %u were closed", lost, COUNT);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels reset"), 0);
    domt_crowd_fini(&crowd);
}

DOMT_SUITE(60)
