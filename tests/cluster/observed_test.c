/* A node of a cluster as other programs see it: its tables at the observation port, in the metrics
 * and in profiles, the list of its names, and the lines of `domus cluster`. */
#include "tests/cluster/pair.h"

#include <domus/front.h>
#include <domus/observe.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_SIZE (1u << 20)

static char answer[ANSWER_SIZE];
static void *state; /* the state of the observation port that the test has opened */
static uint16_t port;

/* --- the observation port --------------------------------------------------------------------- */

static void open_observe_port(domus_system *system)
{
    char error[200] = "";

    ck_assert_msg(domus_observe_front.open(system, error, sizeof error, &state, &port) == 0, "%s",
                  error);
}

/* Request a path of the port, and store the whole answer. Returns its status. */
static unsigned status_of_request_with_fields(const char *start, const char *fields)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char text[512];
    size_t size = 0;
    ssize_t got;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    int length =
        snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: localhost\r\n%sConnection: close\r\n\r\n",
                 start, fields);
    ck_assert_int_eq(send(fd, text, (size_t)length, MSG_NOSIGNAL), length);
    while ((got = recv(fd, answer + size, sizeof answer - 1 - size, 0)) > 0)
        size += (size_t)got;
    close(fd);
    answer[size] = '\0';
    return (unsigned)strtoul(answer + strlen("HTTP/1.1 "), NULL, 10);
}

static unsigned status_of_requested_path(const char *start)
{
    return status_of_request_with_fields(start, "");
}

/* Check that the last answer contains a text, or does not contain it. */
static void expect_part_in_answer(const char *part)
{
    ck_assert_msg(strstr(answer, part) != NULL, "no '%s' in: %s", part, answer);
}

static void expect_part_not_in_answer(const char *part)
{
    ck_assert_msg(strstr(answer, part) == NULL, "'%s' is in: %s", part, answer);
}

/* Run a shell command, and store its output as the answer. Returns its status; -1 if its program is
 * not installed. */
static int run_shell_if_program_exists(const char *program, const char *command)
{
    if (access(program, X_OK) != 0) {
        printf("%s is not here, so it is not tried\n", program);
        return -1;
    }
    FILE *out = popen(command, "r"); /* NOLINT(cert-env33-c): a test may use the shell */
    ck_assert_ptr_nonnull(out);
    answer[fread(answer, 1, sizeof answer - 1, out)] = '\0';
    return pclose(out);
}

static bool run_domus_cluster_command(const char *options)
{
    char command[512];

    snprintf(command, sizeof command,
             DOMT_BIN_DIR "/domus cluster -s 127.0.0.1:%u %s </dev/null 2>&1", port, options);
    int status = run_shell_if_program_exists(DOMT_BIN_DIR "/domus", command);
    ck_assert_msg(status <= 0, "%d: %s", status, answer);
    return status == 0;
}

/* Let promtool (of Prometheus) check the metrics in the last answer. */
static void check_metrics_with_promtool(void)
{
    char path[] = "/tmp/domus-metrics-XXXXXX", command[128];
    FILE *file = fdopen(mkstemp(path), "w");

    ck_assert_ptr_nonnull(file);
    (void)fputs(strstr(answer, "\r\n\r\n") + 4, file);
    fclose(file);
    snprintf(command, sizeof command, "promtool check metrics <%s 2>&1", path);
    int status = run_shell_if_program_exists("/usr/bin/promtool", command);
    ck_assert_msg(status == -1 || answer[0] == '\0', "%s", answer);
    (void)unlink(path);
}

/* --- a node alone ------------------------------------------------------------------------------
 */

static domus_system *system_;
static domus_cluster *cluster;
static domus_outsider *user;
static uint32_t registered, answered;

static int count_registration(domus_stack *stack, void *self, const domus_answer *heard)
{
    registered += heard->error == 0;
    answered++;
    return 0;
}

static int register_name_of_cluster(domus_stack *stack, void *name)
{
    return domus_cluster_register(stack, cluster, name, 5 * DOMT_SECOND, count_registration);
}

static int unregister_name_of_cluster(domus_stack *stack, void *name)
{
    return domus_cluster_unregister(stack, cluster, name, 5 * DOMT_SECOND, count_registration);
}

/* Let the user register the name with this number, or unregister it. */
static void run_name_verb_as_user(int (*verb)(domus_stack *stack, void *name), uint32_t number)
{
    domus_outside_message message;
    uint32_t before = answered;
    char name[32];

    snprintf(name, sizeof name, number == 0 ? "\"zero\\" : "name%05u", number);
    ck_assert_int_ge(domus_outsider_act(user, verb, name), 0);
    for (int i = 0; i < 20000 && answered == before; i++)
        (void)domus_outside_receive(user, NULL, DOMT_MS / 5, &message);
    ck_assert_uint_eq(registered, answered);
}

/* Check that these are `count` names with different numbers below 300, which all belong to the
 * user. */
static void check_names_are_listed(const domus_cluster_name *names, uint32_t count)
{
    bool is_there[300] = {false};

    for (uint32_t i = 0; i < count; i++) {
        unsigned number = 0;
        (void)sscanf(names[i].name, "name%5u", &number);
        ck_assert(number < 300 && !is_there[number]);
        is_there[number] = true;
        ck_assert(domus_address_equals(names[i].actor, domus_outsider_address(user)));
    }
}

static void start_system_with_user(void)
{
    domus_config config;
    char error[200] = "";

    registered = answered = 0;
    domus_config_init(&config);
    config.system.threads = 1;
    config.observe.listen = "127.0.0.1:0";
    ck_assert_int_eq(domus_system_new(&config, error, sizeof error, &system_), 0);
    ck_assert_int_eq(domus_system_start(system_), 0);
    open_observe_port(system_);
}

static const domus_type add_type = {.name = "add"};

static int ignore_add(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

static const domus_behaviour cart = {
    .name = "cart", .on = (const domus_on[]){{&add_type, ignore_add, 0}, {NULL, NULL, 0}}};
static const domus_grain_kind kinds[] = {
    {.name = "cart", .behaviour = &cart}, {.name = "order", .behaviour = &cart}, {.name = NULL}};

static void open_single_node_cluster(const domus_grain_kind *grains)
{
    const domus_cluster_options options = {.name = "shop", .node = "only", .grains = grains};
    char error[200] = "";

    ck_assert_msg(domus_cluster_open(system_, &options, error, sizeof error, &cluster) == 0, "%s",
                  error);
    ck_assert_int_eq(domus_outside_attach(system_, NULL, &user), 0);
}

static void close_port_and_free_system(void)
{
    domus_observe_front.close(state);
    domus_system_free(system_);
}

DOMT_TEST(path_of_the_cluster_is_there_as_long_as_its_node)
{
    start_system_with_user();
    ck_assert_uint_eq(status_of_requested_path("GET /cluster"), 404);
    ck_assert_uint_eq(status_of_requested_path("GET /profile"), 200);
    expect_part_in_answer("\"sets\":[],");
    ck_assert_uint_eq(status_of_requested_path("GET /metrics"), 200);
    expect_part_not_in_answer("domus_cluster");
    open_single_node_cluster(NULL);
    ck_assert_uint_eq(status_of_requested_path("GET /cluster"), 200);
    expect_part_in_answer("Content-Type: application/json\r\n");
    expect_part_in_answer(
        "{\"set\":\"cluster\",\"tables\":[{\"name\":\"here\",\"title\":\"This node\",");
    expect_part_in_answer("\"rows\":[{\"cluster\":\"shop\",\"node\":\"only\",\"id\":\"");
    expect_part_in_answer("\"server\":\"alone\",\"nodes_up\":0,\"names\":0,");
    expect_part_in_answer(
        "\"is_list\":false,\"from\":0,\"total\":1,\"columns\":[{\"name\":\"node\",\"title\":"
        "\"node\","
        "\"kind\":\"label\"},");
    expect_part_in_answer("\"rows\":[{\"node\":\"only\",\"state\":\"up\",\"note\":\"this node\",");
    ck_assert_uint_eq(status_of_requested_path("GET /profile"), 200);
    expect_part_in_answer("\"sets\":[\"cluster\"],");
    ck_assert_uint_eq(status_of_requested_path("HEAD /cluster"), 200);
    ck_assert_uint_eq(status_of_requested_path("POST /cluster"), 405);
    expect_part_in_answer("Allow: GET, HEAD");
    ck_assert_uint_eq(status_of_requested_path("GET /cluster/nodes"), 404);
    ck_assert_uint_eq(status_of_requested_path("GET /cluste"), 404);
    ck_assert_uint_eq(status_of_requested_path("POST /nothing"), 404);
    ck_assert_uint_eq(
        status_of_request_with_fields("GET /cluster", "Origin: http://evil.example\r\n"), 403);
    (void)domus_outside_detach(user);
    domus_cluster_leave(cluster);
    ck_assert_int_ge(domus_system_stop(system_), 0);
    ck_assert_uint_eq(status_of_requested_path("GET /cluster"), 200);
    domus_cluster_close(cluster);
    ck_assert_uint_eq(status_of_requested_path("GET /cluster"), 404);
    close_port_and_free_system();
}

DOMT_TEST(names_of_a_cluster_are_listed_in_parts)
{
    static domus_cluster_name names[400];

    start_system_with_user();
    open_single_node_cluster(NULL);
    for (uint32_t i = 0; i < 300; i++)
        run_name_verb_as_user(register_name_of_cluster, i);
    ck_assert_uint_eq(domus_cluster_names(cluster, 0, names, 400), 300);
    check_names_are_listed(names, 300);
    ck_assert_str_eq(names[300].name, "");
    ck_assert_uint_eq(domus_cluster_names(cluster, 299, names, 2), 300);
    ck_assert(names[0].name[0] != '\0' && names[1].name[0] == '\0');
    ck_assert_uint_eq(domus_cluster_names(cluster, 400, names, 1), 300);
    ck_assert_str_eq(names[0].name, "");

    ck_assert_uint_eq(status_of_requested_path("GET /cluster?table=names&from=298"), 200);
    expect_part_in_answer("\"is_list\":true,\"from\":298,\"total\":300,");
    expect_part_in_answer("\"rows\":[{\"name\":\"name00298\"},{\"name\":\"name00299\"}]}]}");
    expect_part_not_in_answer("\"here\"");
    ck_assert_uint_eq(status_of_requested_path("GET /cluster?table=names"), 200);
    expect_part_in_answer("{\"name\":\"name00256\"}");
    ck_assert_uint_eq(status_of_requested_path("GET /cluster?count=1"), 200);
    expect_part_in_answer("\"rows\":[{\"name\":\"\\\"zero\\\\\\\\\"}]");
    ck_assert_uint_eq(status_of_requested_path("GET /cluster?count=0&table=nodes"), 200);
    expect_part_in_answer("\"rows\":[]");
    ck_assert_uint_eq(status_of_requested_path("GET /cluster?table=none"), 200);
    expect_part_in_answer("\"tables\":[]}");
    static const char *const wrong[] = {"count=10001", "count=x", "from=-1", "from=4294967295",
                                        "table=abcdefghijklmnopqrstuvwxyzabcdef"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char start[128];
        snprintf(start, sizeof start, "GET /cluster?%s", wrong[i]);
        ck_assert_msg(status_of_requested_path(start) == 400, "%s", wrong[i]);
    }
    ck_assert_uint_eq(status_of_requested_path("GET /metrics"), 200);
    expect_part_in_answer("\ndomus_cluster_names 300\n");
    expect_part_in_answer("\ndomus_cluster_server{state=\"alone\"} 1\n");
    expect_part_in_answer("\ndomus_cluster_server{state=\"missing\"} 0\n");
    expect_part_not_in_answer("name00001");
    /* the node is alone, so there are no metrics of other nodes */
    expect_part_not_in_answer("domus_node_");

    /* when a name is removed, the last name moves to its place */
    for (uint32_t i = 10; i < 300; i += 17)
        run_name_verb_as_user(unregister_name_of_cluster, i);
    ck_assert_uint_eq(domus_cluster_names(cluster, 0, names, 400), 282);
    check_names_are_listed(names, 282);

    (void)domus_outside_detach(user); /* the user's actor ends here, and its names with it */
    for (int i = 0; i < 2000 && domus_cluster_names(cluster, 0, names, 1) != 0; i++)
        usleep(1000);
    ck_assert_uint_eq(domus_cluster_names(cluster, 0, names, 1), 0);
    ck_assert_int_ge(domus_system_stop(system_), 0);
    domus_cluster_close(cluster);
    close_port_and_free_system();
}

static bool does_text_begin_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Check that the last answer contains each metric of a cluster that Grafana's dashboard uses: those
 * of grains, or those of nodes. */
static void check_dashboard_metrics(bool of_grains)
{
    static char board[1 << 20];
    FILE *file = fopen(DOMT_SOURCE_DIR "/docs/grafana-dashboard.json", "re");
    uint32_t count = 0;

    ck_assert_ptr_nonnull(file);
    board[fread(board, 1, sizeof board - 1, file)] = '\0';
    fclose(file);
    for (const char *at = board; (at = strstr(at, "domus_")) != NULL; at++) {
        char metric[80] = "\n";
        size_t size = strspn(at, "abcdefghijklmnopqrstuvwxyz_");
        bool is_of_grains = does_text_begin_with(at, "domus_cluster_parts") ||
                            does_text_begin_with(at, "domus_cluster_grain");
        if ((!does_text_begin_with(at, "domus_cluster_") &&
             !does_text_begin_with(at, "domus_node_")) ||
            is_of_grains != of_grains)
            continue;
        ck_assert_uint_lt(size + 1, sizeof metric);
        memcpy(metric + 1, at, size);
        metric[size + 1] = '\0';
        expect_part_in_answer(metric);
        count++;
    }
    ck_assert_uint_ge(count, of_grains ? 2 : 10);
}

DOMT_TEST(grains_are_counted_by_kind)
{
    domus_grains carts;

    start_system_with_user();
    open_single_node_cluster(kinds);
    ck_assert_int_eq(domus_outside_grain_open(system_, &kinds[0], &carts), 0);
    for (int i = 0; i < 3; i++) {
        char key[] = {(char)('a' + i), '\0'};
        ck_assert_int_eq(domus_outside_grain_notice(system_, carts, key, &add_type, NULL), 0);
    }
    ck_assert_uint_eq(status_of_requested_path("GET /cluster?table=grains"), 200);
    expect_part_in_answer(
        "\"rows\":[{\"kind\":\"cart\",\"grains\":3},{\"kind\":\"order\",\"grains\":0}]}]}");
    ck_assert_uint_eq(status_of_requested_path("GET /cluster?table=parts"), 200);
    expect_part_in_answer("\"total\":1,");
    expect_part_in_answer("\"rows\":[{\"parts\":");
    ck_assert_uint_eq(status_of_requested_path("GET /metrics"), 200);
    expect_part_in_answer("\ndomus_cluster_grains{kind=\"cart\"} 3\n");
    check_dashboard_metrics(true);
    if (run_domus_cluster_command("")) {
        expect_part_in_answer("\nParts of grains: parts ");
        expect_part_in_answer("\n\nKIND  GRAINS\ncart       3\norder      0\n");
    }
    (void)domus_outside_detach(user);
    ck_assert_int_ge(domus_system_stop(system_), 0);
    domus_cluster_close(cluster);
    close_port_and_free_system();
}

/* --- a table of the program itself ------------------------------------------------------------ */

static const char *const doors[] = {"open", "shut", NULL};
static const domus_figure_column columns[] = {
    {.name = "room", .title = "room", .kind = DOMUS_FIGURE_LABEL},
    {.name = "shelf", .title = "shelf", .kind = DOMUS_FIGURE_LABEL},
    {.name = "door",
     .title = "door",
     .kind = DOMUS_FIGURE_STATE,
     .metric = "shop_door",
     .help = "Doors.",
     .words = doors},
    {.name = "age",
     .title = "age",
     .kind = DOMUS_FIGURE_TIME,
     .metric = "shop_age_seconds",
     .help = "Ages."},
};

static int read_figures_of_shelves(void *context, uint32_t from, domus_figures_shot *to,
                                   uint64_t *ret_total)
{
    const domus_figure here[] = {
        {.text = "a\"b"}, {.text = "c\\d"}, {.number = 1}, {.number = 2500000000}};
    const domus_figure gone[] = {{.text = "gone"}, {.text = "e"}, {.number = 0}, {.number = 1}};

    if (from == 0 && domus_figures_put(to, here, false))
        (void)domus_figures_put(to, gone, true);
    *ret_total = 2;
    return 0;
}

static const domus_figures_table shelves = {.set = "shop",
                                            .name = "shelves",
                                            .title = "Shelves",
                                            .columns = columns,
                                            .columns_count = 4,
                                            .read = read_figures_of_shelves};

/* domus/text.h doubles backslashes, and JSON and the metrics double them again. */
DOMT_TEST(a_table_of_the_program_is_shown_as_well)
{
    start_system_with_user();
    ck_assert_int_eq(domus_figures_add(system_, &shelves, NULL), 0);
    open_single_node_cluster(NULL);
    ck_assert_uint_eq(status_of_requested_path("GET /shop"), 200);
    expect_part_in_answer(
        "\"rows\":[{\"room\":\"a\\\"b\",\"shelf\":\"c\\\\\\\\d\",\"door\":\"shut\","
        "\"age\":2500000000},{\"room\":\"gone\",");
    ck_assert_uint_eq(status_of_requested_path("GET /profile"), 200);
    expect_part_in_answer("\"sets\":[\"shop\",\"cluster\"],");
    ck_assert_uint_eq(status_of_requested_path("GET /metrics"), 200);
    expect_part_in_answer("\nshop_door{room=\"a\\\"b\",shelf=\"c\\\\\\\\d\",state=\"open\"} 0\n");
    expect_part_in_answer("\nshop_door{room=\"a\\\"b\",shelf=\"c\\\\\\\\d\",state=\"shut\"} 1\n");
    expect_part_in_answer("\nshop_age_seconds{room=\"a\\\"b\",shelf=\"c\\\\\\\\d\"} 2.5");
    expect_part_not_in_answer("gone");
    check_metrics_with_promtool();
    (void)domus_outside_detach(user);
    ck_assert_int_ge(domus_system_stop(system_), 0);
    domus_cluster_close(cluster);
    close_port_and_free_system();
}

/* --- two nodes ---------------------------------------------------------------------------------
 */

static void expect_part_in_figure_text(const char *part)
{
    (void)domus_system_profile_table(domt_systems[0], answer, sizeof answer);
    expect_part_in_answer("-- cluster: This node\n");
    expect_part_in_answer("-- cluster: Nodes\nnode ");
    expect_part_in_answer(part);
}

DOMT_TEST(other_nodes_are_shown_as_up_and_as_down)
{
    domt_pair_open_nodes(1, NULL);
    open_observe_port(domt_systems[0]);
    domus_address worker = domt_spawn_worker_on_b();
    for (uint64_t i = 0; i < 10; i++)
        ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_twice_type, i, 5 * DOMT_SECOND, NULL),
                         0);
    ck_assert_uint_eq(status_of_requested_path("GET /cluster"), 200);
    expect_part_in_answer("\"server\":\"connected\",\"nodes_up\":1,");
    expect_part_in_answer("{\"node\":\"b\",\"state\":\"up\",\"note\":\"\",");
    expect_part_in_answer("\"queued_bytes\":0,\"sent\":1");
    ck_assert_uint_eq(status_of_requested_path("GET /metrics"), 200);
    expect_part_in_answer("\ndomus_node_state{node=\"b\",state=\"up\"} 1\n");
    expect_part_in_answer("\ndomus_node_state{node=\"b\",state=\"down\"} 0\n");
    expect_part_in_answer(
        "# TYPE domus_node_sent_total counter\ndomus_node_sent_total{node=\"b\"} 1");
    expect_part_in_answer(
        "# TYPE domus_node_lost_total counter\ndomus_node_lost_total{node=\"b\"} 0");
    expect_part_in_answer("\ndomus_node_rtt_seconds{node=\"b\"} 0.0");
    expect_part_in_answer("\ndomus_cluster_nodes_up 1\n");
    expect_part_not_in_answer("node=\"a\"");
    check_dashboard_metrics(false);
    check_metrics_with_promtool();
    expect_part_in_figure_text("\nb                                   up");
    if (run_domus_cluster_command("")) {
        expect_part_in_answer("This node: cluster pair, node a, id ");
        expect_part_in_answer(", server connected, nodes up 1, names 0, ");
        expect_part_in_answer("\n\nNODE STATE NOTE      ID ");
        expect_part_in_answer("\na    up    this node ");
        expect_part_in_answer("\nb    up   ");
    }
    if (run_domus_cluster_command("--json -n 1")) {
        expect_part_in_answer("{\"set\":\"cluster\",\"tables\":[{");
        expect_part_not_in_answer("\"node\":\"b\"");
    }
    if (run_domus_cluster_command("-n 1"))
        expect_part_in_answer("\nand 1 more\n");
    domt_pair_end_node_b(false);
    domt_pair_wait_for_state_of_b(DOMUS_NODE_DOWN);
    ck_assert_uint_eq(status_of_requested_path("GET /metrics"), 200);
    expect_part_in_answer("\ndomus_node_state{node=\"b\",state=\"up\"} 0\n");
    expect_part_in_answer("\ndomus_node_state{node=\"b\",state=\"down\"} 1\n");
    domt_pair_open_node_b(); /* the earlier start of node b is forgotten, so the metrics contain
                                 one b */
    domt_pair_wait_for_state_of_b(DOMUS_NODE_UP);
    ck_assert_uint_eq(status_of_requested_path("GET /metrics"), 200);
    const char *first = strstr(answer, "domus_node_sent_total{node=\"b\"}");
    ck_assert(first != NULL && strstr(first + 1, "domus_node_sent_total{node=\"b\"}") == NULL);
    domus_observe_front.close(state);
    domt_pair_close_nodes();
}

DOMT_SUITE(60)
