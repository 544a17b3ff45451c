/* Two nodes of a cluster, and workers on them; tests/cluster/pair.h describes the functions. */
#include "tests/cluster/pair.h"

#include <errno.h>
#include <string.h>
#include <time.h>

domt_nats_server domt_broker;
domus_system *domt_systems[2];
domus_cluster *domt_clusters[2];
domus_outsider *domt_user;
const char *domt_pair_config;
_Atomic uint64_t domt_told, domt_disorder;
_Atomic unsigned domt_cancelled;

#define NUMBER(variable, text)                                                                     \
    const domus_type variable = {.name = text, .size = sizeof(domt_number)}
NUMBER(domt_number_type, "number");
NUMBER(domt_secret_type, "secret");
NUMBER(domt_twice_type, "twice");
NUMBER(domt_hold_type, "hold");
NUMBER(domt_pass_type, "pass");
NUMBER(domt_end_type, "end");
NUMBER(domt_tell_type, "tell");
NUMBER(domt_back_type, "back");

static const domus_pickle_field fields[] = {
    {DOMUS_PICKLE(1, domt_number, value, UINT(0))},
    {DOMUS_PICKLE(2, domt_number, about, ADDRESS)},
};
static const domus_pickle_table table = DOMUS_PICKLE_TABLE(domt_number, fields);
static const domus_pickler picklers[] = {
    {.type = &domt_number_type, .version = 1, .table = &table},
    {.type = &domt_twice_type, .version = 1, .table = &table},
    {.type = &domt_hold_type, .version = 1, .table = &table},
    {.type = &domt_pass_type, .version = 1, .table = &table},
    {.type = &domt_end_type, .version = 1, .table = &table},
    {.type = &domt_tell_type, .version = 1, .table = &table},
    {.type = &domt_back_type, .version = 1, .table = &table},
    {.type = NULL},
};

/* --- workers ---------------------------------------------------------------------------------- */

static int on_ask_reply_with_double(domus_stack *stack, void *self, const void *payload)
{
    domt_number answer = *(const domt_number *)payload;

    answer.value *= 2;
    answer.about = domus_sender(stack);
    return domus_reply(stack, &domt_number_type, &answer);
}

static int count_cancelled_ask(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error == -ECANCELED)
        atomic_fetch_add(&domt_cancelled, 1);
    return answer->error;
}

static int on_ask_keep_it_open(domus_stack *stack, void *self, const void *payload)
{
    return domus_sleep(stack, 1000 * DOMT_SECOND, count_cancelled_ask);
}

static int on_ask_forward_to_other(domus_stack *stack, void *self, const void *payload)
{
    domus_address to = ((const domt_number *)payload)->about;
    return to.house == domus_self(stack).house ? on_ask_reply_with_double(stack, self, payload)
                                               : domus_forward(stack, to);
}

static int stop_or_escalate_worker(domus_stack *stack, void *self, const void *payload)
{
    int error = -(int)((const domt_number *)payload)->value;

    return error != 0 ? domus_escalate(stack, error) : domus_stop(stack, domus_self(stack));
}

static int on_number_check_order(domus_stack *stack, void *self, const void *payload)
{
    uint64_t *expected = self;

    if (((const domt_number *)payload)->value != *expected)
        atomic_fetch_add(&domt_disorder, 1);
    *expected = ((const domt_number *)payload)->value + 1;
    atomic_fetch_add(&domt_told, 1);
    return 0;
}

static int on_number_send_it_back(domus_stack *stack, void *self, const void *payload)
{
    domt_number number = *(const domt_number *)payload;

    number.about = domus_self(stack);
    return domus_notice(stack, domus_sender(stack), &domt_number_type, &number);
}

static const domus_behaviour worker = {
    .name = "worker",
    .state_size = 8,
    .on = (const domus_on[]){{&domt_twice_type, on_ask_reply_with_double, 0},
                             {&domt_hold_type, on_ask_keep_it_open, 0},
                             {&domt_pass_type, on_ask_forward_to_other, 0},
                             {&domt_end_type, stop_or_escalate_worker, 0},
                             {&domt_tell_type, on_number_check_order, 0},
                             {&domt_back_type, on_number_send_it_back, 0},
                             {NULL, NULL, 0}},
};

static int make_state_of_worker(const void *input, void *self)
{
    uint64_t value = ((const domt_number *)input)->value;

    if (value == 666)
        return -EILSEQ;
    memcpy(self, &value, sizeof value);
    return 0;
}

static const domus_cluster_export exports[] = {
    {.name = "worker",
     .behaviour = &worker,
     .input = &domt_number_type,
     .make = make_state_of_worker},
    {.name = "plain", .behaviour = &worker},
    {.name = NULL},
};

/* --- nodes ------------------------------------------------------------------------------------ */

static uint32_t threads;
static domus_cluster_options chosen;

static void open_node_of_pair(uint32_t i)
{
    static const char *const names[] = {"a", "b"};
    domus_config config;
    domus_cluster_options options = chosen;
    char error[200] = "";

    domus_config_init(&config);
    config.system.threads = threads;
    /* an address for the observation port, which only some tests open */
    config.observe.listen = "127.0.0.1:0";
    ck_assert_int_eq(domus_system_new(&config, error, sizeof error, &domt_systems[i]), 0);
    ck_assert_int_eq(domus_system_start(domt_systems[i]), 0);
    options.name = "pair";
    options.node = names[i];
    options.servers = domt_broker.url;
    options.picklers = picklers;
    options.exports = exports;
    ck_assert_msg(
        domus_cluster_open(domt_systems[i], &options, error, sizeof error, &domt_clusters[i]) == 0,
        "%s", error);
}

static void close_node_of_pair(uint32_t i, bool leaves)
{
    if (leaves)
        domus_cluster_leave(domt_clusters[i]);
    ck_assert_int_ge(domus_system_stop(domt_systems[i]), 0);
    domus_cluster_close(domt_clusters[i]);
    domus_system_free(domt_systems[i]);
    domt_clusters[i] = NULL;
}

void domt_pair_open_nodes(uint32_t threads_, const domus_cluster_options *options)
{
    atomic_store(&domt_told, 0);
    atomic_store(&domt_disorder, 0);
    atomic_store(&domt_cancelled, 0);
    threads = threads_;
    chosen = options != NULL ? *options
                             : (domus_cluster_options){.heartbeat_ns = 50 * DOMT_MS,
                                                       .down_after_ns = 400 * DOMT_MS};
    domt_nats_server_start(&domt_broker, domt_pair_config, 0);
    open_node_of_pair(0);
    open_node_of_pair(1);
    ck_assert_int_eq(domus_outside_attach(domt_systems[0], NULL, &domt_user), 0);
    domt_pair_wait_for_state_of_b(DOMUS_NODE_UP);
}

void domt_pair_close_nodes(void)
{
    (void)domus_outside_detach(domt_user);
    if (domt_clusters[1] != NULL)
        close_node_of_pair(1, false);
    close_node_of_pair(0, false);
    domt_nats_server_stop(&domt_broker);
}

void domt_pair_end_node_b(bool leaves)
{
    close_node_of_pair(1, leaves);
}

void domt_pair_open_node_b(void)
{
    open_node_of_pair(1);
}

/* Returns node b as node a sees it: the newest start of b that a knows. */
domus_node_info domt_read_info_of_b(void)
{
    domus_node_info infos[8];
    domus_node_info found = {.state = DOMUS_NODE_ENDED};
    uint32_t count = domus_cluster_nodes(domt_clusters[0], infos, 8);

    for (uint32_t i = 1; i < count && i < 8; i++) {
        if (infos[i].state != DOMUS_NODE_ENDED || found.node.id == 0)
            found = infos[i];
    }
    return found;
}

void domt_pair_wait_for_state_of_b(domus_node_state state)
{
    for (int i = 0; i < 2000 && domt_read_info_of_b().state != state; i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    ck_assert_int_eq(domt_read_info_of_b().state, state);
}

domus_node domt_read_id_of_b(void)
{
    return domt_read_info_of_b().node;
}

/* --- the user --------------------------------------------------------------------------------- */

static domus_address spawned;
static int spawn_error;

static int store_address_of_worker(domus_stack *stack, void *self, const domus_answer *answer)
{
    spawn_error = answer->error;
    if (answer->error == 0)
        spawned = ((const domus_cluster_spawned *)answer->payload)->address;
    return 0;
}

static int spawn_worker_from_node_a(domus_stack *stack, void *node)
{
    const domt_number input = {.value = 0};

    return domus_cluster_spawn(stack, *(domus_node *)node, "worker", &domt_number_type, &input,
                               5 * DOMT_SECOND, store_address_of_worker);
}

domus_address domt_spawn_worker_on_b(void)
{
    domus_node node = domt_read_id_of_b();
    domus_outside_message message;

    spawn_error = 1;
    ck_assert_int_ge(domus_outsider_act(domt_user, spawn_worker_from_node_a, &node), 0);
    for (int i = 0; i < 1000 && spawn_error == 1; i++)
        (void)domus_outside_receive(domt_user, NULL, 5 * DOMT_MS, &message);
    ck_assert_int_eq(spawn_error, 0);
    return spawned;
}

static int ask_worker_and_wait(domus_address to, const domus_type *type, const domt_number *number,
                               uint64_t timeout_ns, uint64_t *ret_value)
{
    domt_number answer = {.value = 0};
    domus_outside_reply reply = {.buffer = &answer, .size = sizeof answer};
    int error = domus_outsider_ask(domt_user, to, type, number, timeout_ns, &reply);

    if (error == 0 && ret_value != NULL)
        *ret_value = answer.value;
    return error;
}

int domt_ask_from_node_a(domus_address to, const domus_type *type, uint64_t value,
                         uint64_t timeout_ns, uint64_t *ret_value)
{
    return ask_worker_and_wait(to, type, &(domt_number){.value = value}, timeout_ns, ret_value);
}

int domt_ask_from_node_a_about(domus_address to, const domus_type *type, domus_address about,
                               uint64_t *ret_value)
{
    return ask_worker_and_wait(to, type, &(domt_number){.value = 21, .about = about},
                               5 * DOMT_SECOND, ret_value);
}
