/* Logs changes of nodes and servers.
 *
 * A check compares the table of nodes with what the log was told last. Lines are bounded: a burst,
 * and then one each second. A change for which there is no line now is logged by a later check,
 * unless it was undone by then. So neither a node that comes and goes, nor a stranger who makes up
 * nodes, can fill the log, and in the end it has the last state of each node.
 *
 * While this node has no server, all others are down to it, for which there is one line; they are
 * logged one by one when there has been a server again for so long that they could have been
 * heard. */
#include "protocols/cluster/inside.h"

#include <domus/log.h>

#include <errno.h>
#include <string.h>

#define BURST_LINES 32u /* lines about the cluster that may be logged at once */
#define LOOK_LINES  16u /* lines about nodes that one check logs, at most */
#define SECOND_NS   UINT64_C(1000000000)

/* A change of a node's state that is to be logged. */
typedef struct change {
    char name[DOMUS_CLUSTER_NAME_MAX + 1];
    domus_node_state from, to;
    bool is_leaving;
    uint64_t lasted_ns; /* ns for which the node was down, if the change is that it is up again */
} change;

/* --- the bound of lines ----------------------------------------------------------------------- */

static void refill_line_allowance(domi_said *said, uint64_t now_ns)
{
    uint64_t more = (now_ns - said->refilled_ns) / SECOND_NS;

    if (said->began_ns == 0) {
        *said = (domi_said){.began_ns = now_ns, .refilled_ns = now_ns, .lines = BURST_LINES};
        return;
    }
    if (more == 0)
        return;
    said->refilled_ns += more * SECOND_NS;
    said->lines = more < BURST_LINES - said->lines ? said->lines + (uint32_t)more : BURST_LINES;
    if (said->lines > BURST_LINES / 2)
        said->is_behind = false;
}

/* Returns whether the bound allows another line now, and counts that line. */
static bool take_line_from_allowance(domi_said *said)
{
    if (said->lines == 0)
        return false;
    said->lines--;
    return true;
}

/* --- servers ---------------------------------------------------------------------------------- */

/* Log if this node has got or lost its server. Returns for how many ns it has had a server; 0: it
 * has none. */
static uint64_t log_connection_to_servers(domi_cluster_gateway *gateway, uint64_t now_ns)
{
    domus_cluster *cluster = gateway->cluster;
    const domus_cluster_options *options = &cluster->options;
    domi_said *said = &cluster->said;

    domi_lock_take(&cluster->lock);
    bool is_connected = cluster->is_connected;
    uint64_t since_ns = cluster->connected_ns;
    domi_lock_release(&cluster->lock);
    if (is_connected && !said->has_server && take_line_from_allowance(said)) {
        if (said->had_server)
            domus_log_write(gateway->stack, DOMUS_LOG_INFO,
                            "cluster %s: node %s has a server again, after %.1f s", options->name,
                            options->node, (double)(since_ns - said->lost_ns) / 1e9);
        else
            domus_log_write(gateway->stack, DOMUS_LOG_INFO, "cluster %s: node %s has a server",
                            options->name, options->node);
        said->has_server = said->had_server = true;
    } else if (!is_connected && said->has_server && take_line_from_allowance(said)) {
        domus_log_write(gateway->stack, DOMUS_LOG_WARNING,
                        "cluster %s: node %s has lost its servers: it goes on for its own actors, "
                        "and other nodes are down to it",
                        options->name, options->node);
        said->has_server = false;
        said->lost_ns = since_ns;
    } else if (!is_connected && !said->had_server && !said->misses_server &&
               now_ns - said->began_ns > options->down_after_ns && take_line_from_allowance(said)) {
        domus_log_write(gateway->stack, DOMUS_LOG_WARNING,
                        "cluster %s: node %s finds no server: it goes on for its own actors, and "
                        "looks further",
                        options->name, options->node);
        said->misses_server = true;
    }
    return is_connected ? now_ns - since_ns : 0;
}

static void log_nodes_with_same_name(domi_cluster_gateway *gateway)
{
    domus_cluster *cluster = gateway->cluster;

    domi_lock_take(&cluster->lock);
    bool is_rival = cluster->is_rival, has_rival = cluster->has_rival;
    domi_lock_release(&cluster->lock);
    if (has_rival && !cluster->said.has_rival && take_line_from_allowance(&cluster->said)) {
        cluster->said.has_rival = true;
        domus_log_write(gateway->stack, DOMUS_LOG_WARNING,
                        "cluster %s: another node has the name of this one, %s, and has begun "
                        "before it",
                        cluster->options.name, cluster->options.node);
    }
    if (!is_rival || cluster->said.is_rival || !take_line_from_allowance(&cluster->said))
        return;
    cluster->said.is_rival = true;
    domus_log_write(gateway->stack, DOMUS_LOG_WARNING,
                    "cluster %s: another program has begun later as node %s: to the others this "
                    "one has ended",
                    cluster->options.name, cluster->options.node);
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* Returns whether a node's change from one state to another is logged. Changes of nodes that were
 * never up are not. */
static bool is_change_of_node_logged(domus_node_state from, domus_node_state to, bool tells_down)
{
    if (to == DOMUS_NODE_UP)
        return from != DOMUS_NODE_UP;
    if (from == DOMUS_NODE_HEARD || from == DOMUS_NODE_ENDED)
        return false;
    return to == DOMUS_NODE_ENDED || (to == DOMUS_NODE_DOWN && from == DOMUS_NODE_UP && tells_down);
}

/* Find the changes of nodes to log, as many as there are lines for. Returns how many; `ret_more` is
 * set if there are more. */
static uint32_t find_changes_of_nodes_to_log(domus_cluster *cluster, bool tells_down,
                                             change *changes, bool *ret_more)
{
    uint32_t count = 0;

    *ret_more = false;
    domi_lock_take(&cluster->lock);
    for (uint32_t i = 0; i < cluster->nodes_used; i++) {
        domi_node_record *record = cluster->nodes[i];
        if (record == NULL || !is_change_of_node_logged(record->said, record->state, tells_down))
            continue;
        if (count == LOOK_LINES || !take_line_from_allowance(&cluster->said)) {
            *ret_more = true;
            break;
        }
        change *one = &changes[count++];
        *one = (change){.from = record->said,
                        .to = record->state,
                        .is_leaving = record->is_leaving,
                        .lasted_ns = record->since_ns - record->said_ns};
        memcpy(one->name, record->name, sizeof one->name);
        record->said = record->state;
        record->said_ns = record->since_ns;
    }
    domi_lock_release(&cluster->lock);
    return count;
}

static void log_change_of_node(domi_cluster_gateway *gateway, const change *one)
{
    const domus_cluster_options *options = &gateway->cluster->options;
    const char *name = options->name;

    if (one->to == DOMUS_NODE_UP && one->from == DOMUS_NODE_DOWN)
        domus_log_write(gateway->stack, DOMUS_LOG_INFO,
                        "cluster %s: node %s is up again, after %.1f s", name, one->name,
                        (double)one->lasted_ns / 1e9);
    else if (one->to == DOMUS_NODE_UP)
        domus_log_write(gateway->stack, DOMUS_LOG_INFO, "cluster %s: node %s is up", name,
                        one->name);
    else if (one->to == DOMUS_NODE_DOWN)
        domus_log_write(gateway->stack, DOMUS_LOG_WARNING,
                        "cluster %s: node %s is down: for %.1f s it was silent, or did not hear "
                        "this node",
                        name, one->name, (double)options->down_after_ns / 1e9);
    else if (one->is_leaving)
        domus_log_write(gateway->stack, DOMUS_LOG_INFO, "cluster %s: node %s has left", name,
                        one->name);
    else
        domus_log_write(gateway->stack, DOMUS_LOG_INFO,
                        "cluster %s: node %s has ended: its program has begun anew, or was silent "
                        "for too long",
                        name, one->name);
}

void domi_log_changes_of_nodes(domi_cluster_gateway *gateway)
{
    domus_cluster *cluster = gateway->cluster;
    uint64_t now_ns = domus_now_ns(gateway->stack);
    change changes[LOOK_LINES];
    bool has_more;

    if (gateway->is_leaving)
        return;
    refill_line_allowance(&cluster->said, now_ns);
    uint64_t connected_ns = log_connection_to_servers(gateway, now_ns);
    log_nodes_with_same_name(gateway);
    uint32_t count = find_changes_of_nodes_to_log(
        cluster, connected_ns > cluster->options.down_after_ns, changes, &has_more);
    for (uint32_t i = 0; i < count; i++)
        log_change_of_node(gateway, &changes[i]);
    if (!has_more || cluster->said.lines > 0 || cluster->said.is_behind)
        return;
    cluster->said.is_behind = true;
    domus_log_write(gateway->stack, DOMUS_LOG_WARNING,
                    "cluster %s: nodes change too fast for the log: it tells of %u, and then of "
                    "one in a second",
                    cluster->options.name, BURST_LINES);
}

/* --- types ------------------------------------------------------------------------------------ */

void domi_log_type_without_pickling_once(domi_cluster_gateway *gateway, const domus_type *type,
                                         int error)
{
    const char *why = strerrorname_np(-error);
    uint32_t place = 0;

    while (place < DOMI_TOLD_MAX && gateway->told[place] != NULL && gateway->told[place] != type)
        place++;
    if (place == DOMI_TOLD_MAX || gateway->told[place] == type)
        return;
    gateway->told[place] = type;
    domus_log_write(
        gateway->stack, DOMUS_LOG_WARNING,
        "cluster %s: a message of type %s could not leave for another node: %s, %s (%d; "
        "this is told once)",
        gateway->cluster->options.name, type->name != NULL ? type->name : "?",
        error == -ENOENT ? "it has no pickler" : "its pickler has refused it",
        why != NULL ? why : "?", error);
}
