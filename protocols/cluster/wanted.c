/* Finds the node that should have a part of the grains: among the nodes that are up and do not
 * leave, the one whose name has the highest hash together with the part (rendezvous hashing). */
#include "protocols/cluster/wards.h"

#include <string.h>

static uint64_t mix_bits_of_hash(uint64_t number)
{
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}

/* List the nodes that may have parts of the grains now. Returns how many there are. */
static uint32_t list_candidates_for_parts(const domus_stack *stack, const domi_warden *self,
                                          domi_candidate *ret_list)
{
    domus_cluster *cluster = self->cluster;
    uint32_t count = 0;

    if (domi_cluster_should_have_parts(cluster, stack) && !self->gives_all)
        ret_list[count++] = (domi_candidate){cluster->id, domus_pickle_hash(cluster->options.node)};
    domi_lock_take(&cluster->lock);
    for (uint32_t i = 0; i < cluster->nodes_used; i++) {
        const domi_node_record *record = cluster->nodes[i];
        if (record != NULL && record->state == DOMUS_NODE_UP && record->hosts_grains &&
            !record->is_leaving)
            ret_list[count++] = (domi_candidate){record->id, domus_pickle_hash(record->name)};
    }
    domi_lock_release(&cluster->lock);
    return count;
}

static uint64_t choose_candidate_of_highest_weight(const domi_warden *self, uint32_t index)
{
    uint64_t best = 0, id = 0;

    for (uint32_t i = 0; i < self->candidates_count; i++) {
        uint64_t weight =
            mix_bits_of_hash(self->candidates[i].hash + (index + 1) * UINT64_C(0x9e3779b97f4a7c15));
        if (id == 0 || weight > best) {
            best = weight;
            id = self->candidates[i].id;
        }
    }
    return id;
}

/* Find out which nodes are up, and if they have changed, which of them should have each part. */
void domi_wanted_assign_parts_to_nodes_up(domus_stack *stack, domi_warden *self)
{
    domi_candidate now[DOMUS_CLUSTER_NODES_MAX + 1];
    uint32_t count = list_candidates_for_parts(stack, self, now);

    if (count == self->candidates_count && memcmp(now, self->candidates, count * sizeof *now) == 0)
        return;
    memcpy(self->candidates, now, count * sizeof *now);
    self->candidates_count = count;
    self->settled_ns = domus_now_ns(stack) + DOMI_WARD_SETTLE * self->cluster->options.heartbeat_ns;
    for (uint32_t i = 0; i < DOMUS_REMOTE_PARTS; i++)
        self->parts[i].wanted = choose_candidate_of_highest_weight(self, i);
    domi_lock_take(&self->cluster->lock);
    for (uint32_t i = 0; i < DOMUS_REMOTE_PARTS; i++)
        self->cluster->parts->parts[i].wanted = self->parts[i].wanted;
    domi_lock_release(&self->cluster->lock);
}
