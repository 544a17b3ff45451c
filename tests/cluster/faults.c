/* Faults of simulated clusters; see the header. */
#include "tests/cluster/faults.h"

#define SECOND UINT64_C(1000000000)

uint64_t domt_draw(uint64_t *chance, uint64_t below)
{
    *chance += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *chance;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

void domt_heal_all(domus_testkit_cluster *sim, const uint32_t *numbers, uint32_t nodes,
                   uint32_t servers)
{
    for (uint32_t i = 0; i < nodes; i++)
        (void)domus_testkit_cluster_resume(sim, numbers[i], DOMUS_CLOCK_JUMPS);
    (void)domus_testkit_cluster_heal(sim, DOMUS_EVERY, DOMUS_EVERY, DOMUS_BOTH_WAYS);
    for (uint32_t i = 0; i < servers; i++) {
        (void)domus_testkit_cluster_heal_route(sim, i, DOMUS_EVERY);
        (void)domus_testkit_cluster_start_server(sim, i);
    }
    (void)domus_testkit_cluster_set_leg(sim, DOMUS_EVERY, DOMUS_EVERY, DOMUS_BOTH_WAYS,
                                        &(domus_testkit_leg){0});
    (void)domus_testkit_cluster_set_store(sim, &(domus_testkit_store_faults){0});
}

/* The store loses requests and answers, and keeps entries for too long. */
static void fault_of_store(domus_testkit_cluster *sim, uint64_t *chance)
{
    const domus_testkit_store_faults faults = {
        .late_max_ns = domt_draw(chance, SECOND),
        .request_loss_ppm = (uint32_t)domt_draw(chance, 200000),
        .answer_loss_ppm = (uint32_t)domt_draw(chance, 200000)};

    (void)domus_testkit_cluster_set_store(sim, &faults);
}

void domt_fault(domus_testkit_cluster *sim, uint64_t *chance, const uint32_t *numbers,
                uint32_t nodes, uint32_t servers)
{
    uint32_t node = numbers[domt_draw(chance, nodes)];
    uint32_t server = (uint32_t)domt_draw(chance, servers);
    domus_testkit_ways ways = (domus_testkit_ways)(1 + domt_draw(chance, 3));
    domus_testkit_leg lossy = {.loss_ppm = (uint32_t)domt_draw(chance, 200000)};

    switch (domt_draw(chance, 9)) {
    case 0:
        (void)domus_testkit_cluster_cut(sim, node, DOMUS_EVERY, ways, DOMUS_CUT_HOLDS);
        break;
    case 1:
        (void)domus_testkit_cluster_cut(sim, node, DOMUS_EVERY, ways, DOMUS_CUT_LOSES);
        break;
    case 2:
        (void)domus_testkit_cluster_disconnect(sim, node, domt_draw(chance, SECOND));
        break;
    case 3:
        (void)domus_testkit_cluster_drop_slow(sim, node);
        break;
    case 4:
        (void)domus_testkit_cluster_stop_server(sim, server);
        break;
    case 5:
        (void)domus_testkit_cluster_set_leg(sim, node, DOMUS_EVERY, ways, &lossy);
        break;
    case 6:
        (void)domus_testkit_cluster_cut_route(sim, server, DOMUS_EVERY);
        break;
    case 7:
        fault_of_store(sim, chance);
        break;
    default:
        (void)domus_testkit_cluster_suspend(sim, node);
        break;
    }
}
