/* The faults that a seed draws, for tests on simulated clusters. */
#ifndef DOMT_CLUSTER_FAULTS_H
#define DOMT_CLUSTER_FAULTS_H

#include <domus/testkit_cluster.h>

/* Draw a number below `below`. `chance` begins with the seed, and changes. */
uint64_t domt_draw(uint64_t *chance, uint64_t below);

/* Let something happen to one of the nodes of these numbers, or to one of the servers. */
void domt_fault(domus_testkit_cluster *sim, uint64_t *chance, const uint32_t *numbers,
                uint32_t nodes, uint32_t servers);

/* Heal all that such faults have done. */
void domt_heal_all(domus_testkit_cluster *sim, const uint32_t *numbers, uint32_t nodes,
                   uint32_t servers);

#endif
