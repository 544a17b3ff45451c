/* The cluster as observers see it: tables of this node, of all nodes, of its grains, and of the
 * names of its actors (domus/figures.h). They are read only while somebody looks, from the table of
 * nodes and the list of names, so no gateway does anything for them. */
#include "protocols/cluster/inside.h"

#include <domus/figures.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* nodes of a cluster, including this one, at most */
#define NODES_MAX  (DOMUS_CLUSTER_NODES_MAX + 1)
#define NAMES_STEP 256u /* registered names that are read from the list at a time */
#define ID_SIZE    17u  /* bytes of a node's id as text */

static const char *write_node_id_as_text(uint64_t id, char text[ID_SIZE])
{
    (void)snprintf(text, ID_SIZE, "%016" PRIx64, id);
    return text;
}

/* Read the information about all nodes into memory that the caller frees. Returns how many nodes
 * there are; 0 without memory. */
static uint32_t read_info_of_all_nodes(domus_cluster *cluster, domus_node_info **ret_infos)
{
    *ret_infos = calloc(NODES_MAX, sizeof **ret_infos);
    if (*ret_infos == NULL)
        return 0;
    uint32_t count = domus_cluster_nodes(cluster, *ret_infos, NODES_MAX);
    return count < NODES_MAX ? count : NODES_MAX;
}

/* --- this node -------------------------------------------------------------------------------- */

static const char *const servers[] = {"alone", "missing", "connected", "replaced", NULL};
enum { ALONE, MISSING, CONNECTED, REPLACED };

#define TOTAL(field, text)                                                                         \
    {                                                                                              \
        .name = #field, .title = #field, .kind = DOMUS_FIGURE_COUNT,                               \
        .metric = "domus_cluster_" #field, .help = (text)                                          \
    }
#define FAULT(field, text)                                                                         \
    {                                                                                              \
        .name = #field, .title = #field, .kind = DOMUS_FIGURE_FAULTS,                              \
        .metric = "domus_cluster_" #field, .help = (text)                                          \
    }

static const domus_figure_column here_columns[] = {
    {.name = "cluster", .title = "cluster", .kind = DOMUS_FIGURE_TEXT},
    {.name = "node", .title = "node", .kind = DOMUS_FIGURE_TEXT},
    {.name = "id", .title = "id", .kind = DOMUS_FIGURE_TEXT},
    {.name = "server",
     .title = "server",
     .kind = DOMUS_FIGURE_STATE,
     .metric = "domus_cluster_server",
     .help = "Whether this node has a server; replaced: another program has begun as this node.",
     .words = servers},
    {.name = "nodes_up",
     .title = "nodes up",
     .kind = DOMUS_FIGURE_AMOUNT,
     .metric = "domus_cluster_nodes_up",
     .help = "Other nodes that are up."},
    {.name = "names",
     .title = "names",
     .kind = DOMUS_FIGURE_AMOUNT,
     .metric = "domus_cluster_names",
     .help = "Names of the cluster that actors of this node have."},
    TOTAL(sent, "Messages to other nodes that have left."),
    TOTAL(received, "Messages of other nodes that have come."),
    FAULT(refused, "Messages that could not be written, or were for a node that is down."),
    FAULT(lost, "Messages that were on the way when their node went down; they may have come."),
    FAULT(resent, "Batches of messages that were sent again."),
    FAULT(dropped, "Notices that have come and found no actor, or a full mailbox."),
    FAULT(wrong, "Messages of servers that could not be read, or were for nobody."),
};
#define HERE_COLUMNS (sizeof here_columns / sizeof here_columns[0])

static uint32_t count_nodes_that_are_up(const domus_node_info *infos, uint32_t count)
{
    uint32_t up = 0;

    for (uint32_t i = 0; i < count; i++)
        up += infos[i].state == DOMUS_NODE_UP && !infos[i].is_here;
    return up;
}

static uint32_t state_of_server_connection(domus_cluster *cluster)
{
    const domus_cluster_options *options = &cluster->options;

    if (options->servers == NULL && options->open_client == NULL)
        return ALONE;
    domi_lock_take(&cluster->lock);
    uint32_t is = cluster->is_rival ? REPLACED : cluster->is_connected ? CONNECTED : MISSING;
    domi_lock_release(&cluster->lock);
    return is;
}

static int read_row_of_this_node(void *context, uint32_t from, domus_figures_shot *to,
                                 uint64_t *ret_total)
{
    domus_cluster *cluster = context;
    domus_cluster_counts counts = domus_cluster_count(cluster);
    domus_node_info *infos;
    char id[ID_SIZE];
    uint32_t count = read_info_of_all_nodes(cluster, &infos);

    if (count == 0)
        return -ENOMEM;
    const domus_figure cells[HERE_COLUMNS] = {
        {.text = cluster->options.name},
        {.text = cluster->options.node},
        {.text = write_node_id_as_text(cluster->id, id)},
        {.number = state_of_server_connection(cluster)},
        {.number = count_nodes_that_are_up(infos, count)},
        {.number = domus_cluster_names(cluster, 0, NULL, 0)},
        {.number = counts.sent},
        {.number = counts.received},
        {.number = counts.refused},
        {.number = counts.lost},
        {.number = counts.resent},
        {.number = counts.dropped},
        {.number = counts.wrong},
    };
    free(infos);
    if (from == 0)
        (void)domus_figures_put(to, cells, false);
    *ret_total = 1;
    return 0;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static const char *const states[] = {
    [DOMUS_NODE_HEARD] = "heard",
    [DOMUS_NODE_UP] = "up",
    [DOMUS_NODE_DOWN] = "down",
    [DOMUS_NODE_ENDED] = "ended",
    NULL,
};

static const domus_figure_column nodes_columns[] = {
    {.name = "node", .title = "node", .kind = DOMUS_FIGURE_LABEL},
    {.name = "state",
     .title = "state",
     .kind = DOMUS_FIGURE_STATE,
     .metric = "domus_node_state",
     .help = "The state of another node, as this one sees it.",
     .words = states},
    {.name = "note", .title = "note", .kind = DOMUS_FIGURE_TEXT},
    {.name = "id", .title = "id", .kind = DOMUS_FIGURE_TEXT},
    {.name = "threads", .title = "threads", .kind = DOMUS_FIGURE_AMOUNT},
    {.name = "rtt_ns",
     .title = "round trip",
     .kind = DOMUS_FIGURE_TIME,
     .metric = "domus_node_rtt_seconds",
     .help = "Round trip of the last confirmed batch; 0: none yet."},
    {.name = "queued_bytes",
     .title = "on the way",
     .kind = DOMUS_FIGURE_BYTES,
     .metric = "domus_node_queued_bytes",
     .help = "Bytes on the way to a node that it has not confirmed."},
    {.name = "sent",
     .title = "sent",
     .kind = DOMUS_FIGURE_COUNT,
     .metric = "domus_node_sent",
     .help = "Messages to a node that have left."},
    {.name = "received",
     .title = "received",
     .kind = DOMUS_FIGURE_COUNT,
     .metric = "domus_node_received",
     .help = "Messages of a node that have come."},
    {.name = "refused",
     .title = "refused",
     .kind = DOMUS_FIGURE_FAULTS,
     .metric = "domus_node_refused",
     .help = "Messages to a node that were refused, or could not be written."},
    {.name = "lost",
     .title = "lost",
     .kind = DOMUS_FIGURE_FAULTS,
     .metric = "domus_node_lost",
     .help = "Messages that were on the way when the node went down; they may have come."},
    {.name = "resent",
     .title = "resent",
     .kind = DOMUS_FIGURE_FAULTS,
     .metric = "domus_node_resent",
     .help = "Batches to a node that were sent again."},
};
#define NODES_COLUMNS (sizeof nodes_columns / sizeof nodes_columns[0])

/* Put a row for a node into the table of nodes. A node that has ended may have the name of its next
 * start, and a rival has the name of this node: such rows are left out of metrics, and so is the
 * row of this node, which sends itself nothing. */
static bool put_row_of_node(const domus_cluster *cluster, const domus_node_info *info,
                            domus_figures_shot *to)
{
    bool is_own_name = strcmp(info->name, cluster->options.node) == 0;
    char id[ID_SIZE];
    const domus_figure cells[NODES_COLUMNS] = {
        {.text = info->name},
        {.number = info->state},
        {.text = info->is_here      ? "this node"
                 : is_own_name      ? "has this node's name"
                 : info->is_leaving ? "leaves"
                                    : ""},
        {.text = write_node_id_as_text(info->node.id, id)},
        {.number = info->threads},
        {.number = info->rtt_ns},
        {.number = info->queued_bytes},
        {.number = info->sent},
        {.number = info->received},
        {.number = info->refused},
        {.number = info->lost},
        {.number = info->resent},
    };

    return domus_figures_put(to, cells, is_own_name || info->state == DOMUS_NODE_ENDED);
}

static int read_rows_of_nodes(void *context, uint32_t from, domus_figures_shot *to,
                              uint64_t *ret_total)
{
    domus_cluster *cluster = context;
    domus_node_info *infos;
    uint32_t count = read_info_of_all_nodes(cluster, &infos);

    if (count == 0)
        return -ENOMEM;
    for (uint32_t i = from; i < count && put_row_of_node(cluster, &infos[i], to); i++)
        ;
    free(infos);
    *ret_total = count;
    return 0;
}

/* --- grains ----------------------------------------------------------------------------------- */

static const domus_figure_column grains_columns[] = {
    {.name = "kind", .title = "kind", .kind = DOMUS_FIGURE_LABEL},
    {.name = "grains",
     .title = "grains",
     .kind = DOMUS_FIGURE_AMOUNT,
     .metric = "domus_cluster_grains",
     .help = "Grains of a kind that live on this node."},
};

static int read_rows_of_grain_kinds(void *context, uint32_t from, domus_figures_shot *to,
                                    uint64_t *ret_total)
{
    const domus_cluster *cluster = context;
    bool goes_on = true;

    for (uint32_t i = from; i < cluster->kinds_count && goes_on; i++) {
        const domus_figure cells[] = {{.text = cluster->options.grains[i].name},
                                      {.number = domus_grain_count(cluster->kinds[i])}};
        goes_on = domus_figures_put(to, cells, false);
    }
    *ret_total = cluster->kinds_count;
    return 0;
}

static const domus_figure_column parts_columns[] = {
    {.name = "parts",
     .title = "parts",
     .kind = DOMUS_FIGURE_AMOUNT,
     .metric = "domus_cluster_parts",
     .help = "Parts of the grains of the cluster, of 256, that this node has."},
    {.name = "taken",
     .title = "taken",
     .kind = DOMUS_FIGURE_COUNT,
     .metric = "domus_cluster_parts_taken",
     .help = "Parts that this node has taken."},
    {.name = "given",
     .title = "given",
     .kind = DOMUS_FIGURE_COUNT,
     .metric = "domus_cluster_parts_given",
     .help = "Parts that this node has given to others in order."},
    {.name = "lost",
     .title = "lost",
     .kind = DOMUS_FIGURE_FAULTS,
     .metric = "domus_cluster_parts_lost",
     .help = "Parts that this node has lost with its lease."},
    {.name = "waiting",
     .title = "waiting",
     .kind = DOMUS_FIGURE_AMOUNT,
     .metric = "domus_cluster_grain_messages_waiting",
     .help = "Messages to grains that wait until a node has their part."},
    {.name = "returned",
     .title = "returned",
     .kind = DOMUS_FIGURE_COUNT,
     .metric = "domus_cluster_grain_messages_returned",
     .help = "Messages to grains that another node did not take, because the part had gone."},
};
#define PARTS_COLUMNS (sizeof parts_columns / sizeof parts_columns[0])

/* Read the table of the parts of grains; it has no rows if no grains are spread over the
 * cluster. */
static int read_rows_of_parts(void *context, uint32_t from, domus_figures_shot *to,
                              uint64_t *ret_total)
{
    const domus_cluster *cluster = context;
    domus_cluster_grain_counts counts = domus_cluster_count_grains(cluster);
    const domus_figure cells[PARTS_COLUMNS] = {
        {.number = counts.parts}, {.number = counts.taken},   {.number = counts.given},
        {.number = counts.lost},  {.number = counts.waiting}, {.number = counts.returned},
    };

    *ret_total = cluster->kinds_count > 0;
    if (from == 0 && cluster->kinds_count > 0)
        (void)domus_figures_put(to, cells, false);
    return 0;
}

/* --- names ------------------------------------------------------------------------------------ */

static const domus_figure_column names_columns[] = {
    {.name = "name", .title = "name", .kind = DOMUS_FIGURE_LABEL},
};

static int read_rows_of_registered_names(void *context, uint32_t from, domus_figures_shot *to,
                                         uint64_t *ret_total)
{
    domus_cluster_name names[NAMES_STEP];
    bool goes_on = true;
    uint32_t total;

    do {
        total = domus_cluster_names(context, from, names, NAMES_STEP);
        for (uint32_t i = 0; i < NAMES_STEP && names[i].name[0] != '\0' && goes_on; i++, from++)
            goes_on = domus_figures_put(to, &(domus_figure){.text = names[i].name}, false);
    } while (goes_on && from < total);
    *ret_total = total;
    return 0;
}

/* --- tables ----------------------------------------------------------------------------------- */

static void mark_cluster_as_shown_no_more(void *cluster)
{
    ((domus_cluster *)cluster)->is_shown = false;
}

static const domus_figures_table tables[] = {
    {.set = "cluster",
     .name = "here",
     .title = "This node",
     .columns = here_columns,
     .columns_count = HERE_COLUMNS,
     .read = read_row_of_this_node,
     .end = mark_cluster_as_shown_no_more},
    {.set = "cluster",
     .name = "nodes",
     .title = "Nodes",
     .columns = nodes_columns,
     .columns_count = NODES_COLUMNS,
     .read = read_rows_of_nodes,
     .end = mark_cluster_as_shown_no_more},
    {.set = "cluster",
     .name = "parts",
     .title = "Parts of grains",
     .columns = parts_columns,
     .columns_count = PARTS_COLUMNS,
     .read = read_rows_of_parts,
     .end = mark_cluster_as_shown_no_more},
    {.set = "cluster",
     .name = "grains",
     .title = "Grains",
     .columns = grains_columns,
     .columns_count = sizeof grains_columns / sizeof grains_columns[0],
     .read = read_rows_of_grain_kinds,
     .end = mark_cluster_as_shown_no_more},
    {.set = "cluster",
     .name = "names",
     .title = "Names",
     .columns = names_columns,
     .columns_count = 1,
     .is_list = true,
     .read = read_rows_of_registered_names,
     .end = mark_cluster_as_shown_no_more},
};
#define TABLES (sizeof tables / sizeof tables[0])

/* If the system has no room for further tables of figures, the cluster's tables are not shown. */
void domi_cluster_show_figures(domus_cluster *cluster)
{
    for (size_t i = 0; i < TABLES; i++) {
        if (domus_figures_add(cluster->system, &tables[i], cluster) == 0)
            cluster->is_shown = true;
    }
}

void domi_cluster_hide_figures(domus_cluster *cluster)
{
    for (size_t i = 0; i < TABLES && cluster->is_shown; i++)
        domus_figures_remove(cluster->system, &tables[i], cluster);
}
