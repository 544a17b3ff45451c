/* A counter, which is a grain: whichever node is asked, one actor answers, which lives on one of
 * the nodes.
 *
 * The value is in the store, and is written before it is told, so the next life continues with it:
 * on another node, if this one has left or was killed. A node that was stopped for a while may not
 * know yet that another node has its counters. So each change names the revision that the life has
 * read, and of two lives the store refuses one; and it contains the fence of the life, so that a
 * new life which reads a greater fence than its own knows that it is outdated. */
#include "node.h"

#include <domus/nats_kv.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const domus_type counter_add_type = {.name = "counter.add"};
const domus_type counter_count_type = {.name = "counter.count",
                                       .size = sizeof(struct counter_count)};

static const domus_pickle_field fields[] = {
    {DOMUS_PICKLE(1, struct counter_count, value, UINT(0))},
    {DOMUS_PICKLE(2, struct counter_count, node, TEXT(""))},
};
const domus_pickle_table counter_count_table = DOMUS_PICKLE_TABLE(struct counter_count, fields);

struct counter {
    domus_address store;
    uint64_t value;
    uint64_t revision; /* revision of the counter's entry in the store; 0: the store has no entry */
    char key[DOMUS_NATS_KV_KEY_MAX + 1];
};

/* --- a life begins with the stored value ------------------------------------------------------ */

static int set_counter_to_stored_value(domus_stack *stack, void *self_, const domus_answer *answer)
{
    const domus_nats_kv_entry *entry = answer->payload;
    struct counter *self = self_;
    uint64_t fence = 0;
    char text[64];

    if (answer->error != 0 && answer->error != -ENOENT)
        return answer->error;
    if (answer->error == 0) {
        domus_slice value = domus_nats_kv_value(entry);
        snprintf(text, sizeof text, "%.*s", (int)value.size, domus_slice_data(value));
        if (sscanf(text, "%" SCNu64 " %" SCNu64, &self->value, &fence) != 2)
            return -EBADMSG;
        self->revision = entry->revision;
    }
    if (fence > domus_grain_fence(stack))
        /* a node with a greater fence has the counter already, so this life is outdated */
        return -ESTALE;
    snprintf(text, sizeof text, "goes on from %" PRIu64, self->value);
    domus_log_write(stack, DOMUS_LOG_INFO, "counter %s lives here, and %s", domus_grain_key(stack),
                    self->revision != 0 ? text : "is new");
    return 0;
}

static int ask_store_for_count_at_mount(domus_stack *stack, void *self_)
{
    const char *name = domus_grain_key(stack);
    struct counter *self = self_;

    if (domus_name_find(stack, STORE_NAME, &self->store) != 0)
        /* no actor has the name of the store yet, because this node has just begun */
        return -EAGAIN;
    int error = domus_nats_kv_make_key(name, strlen(name), self->key, sizeof self->key);
    if (error == 0)
        error = domus_barrier(stack); /* other asks to the counter wait until its value was read */
    if (error != 0)
        return error;
    return domus_nats_kv_read(stack, self->store, self->key, 2 * SECOND,
                              set_counter_to_stored_value);
}

/* --- asks to the counter ---------------------------------------------------------------------- */

static int reply_with_count_after_store(domus_stack *stack, void *self_, const domus_answer *answer)
{
    struct counter_count count = {.node = ""};
    struct counter *self = self_;
    domus_node_info here;

    if (answer->error != 0) {
        /* Stop this life of the counter: after a failed store nobody knows which value the store
         * has, and the next life reads it. */
        (void)domus_stop(stack, domus_self(stack));
        return answer->error;
    }
    self->revision = ((const domus_nats_kv_revision *)answer->payload)->revision;
    count.value = ++self->value;
    /* the first node of the list of nodes is this one */
    (void)domus_cluster_nodes(node_cluster, &here, 1);
    memcpy(count.node, here.name, sizeof count.node);
    return domus_reply(stack, &counter_count_type, &count);
}

static int store_next_count_of_counter(domus_stack *stack, void *self_, const void *payload)
{
    struct counter *self = self_;
    char text[64];
    /* a barrier, so that only one change of the counter is under way */
    int error = domus_barrier(stack);

    (void)payload;
    if (error != 0)
        return error;
    int size = snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64, self->value + 1,
                        domus_grain_fence(stack));
    return domus_nats_kv_update(stack, self->store, self->key, text, (size_t)size, self->revision,
                                2 * SECOND, reply_with_count_after_store);
}

const domus_behaviour counter = {
    .name = "counter",
    .state_size = sizeof(struct counter),
    .on_mount = ask_store_for_count_at_mount,
    .on = (const domus_on[]){{&counter_add_type, store_next_count_of_counter, 0}, {NULL, NULL, 0}}};
