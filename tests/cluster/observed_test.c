/* A node as other programs see it: its tables at the observation port, in the metrics and in
 * profiles, the list of its names, and the lines of `domus cluster`. */
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
static void *state; /* state of the observation port */
static uint16_t port;

/* --- the observation port --------------------------------------------------------------------- */

static void open_port(domus_system *system)
{
    char error[200] = "";

    ck_assert_msg(domus_observe_front.open(system, error, sizeof error, &state, &port) == 0, "%s",
                  error);
}

/* Request a path, and store the whole answer. Returns its status. */
static unsigned request_with_fields(const char *start, const char *fields)
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

static unsigned request_path(const char *start)
{
    return request_with_fields(start, "");
}

/* Check that the last answer contains a part, or does not. */
static void expect_part(const char *part)
{
    ck_assert_msg(strstr(answer, part) != NULL, "no '%s' in: %s", part, answer);
}

static void expect_no_part(const char *part)
{
    ck_assert_msg(strstr(answer, part) == NULL, "'%s' is in: %s", part, answer);
}

/* Run a shell command, and store its output as the answer. Returns its status; -1 if its program is
 * not installed. */
static int run_shell(const char *program, const char *command)
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

static bool run_domus(const char *options)
{
    char command[512];

    snprintf(command, sizeof command,
             DOMT_BIN_DIR "/domus cluster -s 127.0.0.1:%u %s </dev/null 2>&1", port, options);
    int status = run_shell(DOMT_BIN_DIR "/domus", command);
    ck_assert_msg(status <= 0, "%d: %s", status, answer);
    return status == 0;
}

/* Let promtool of Prometheus check the last answer. */
static void check_metrics_with_promtool(void)
{
    char path[] = "/tmp/domus-metrics-XXXXXX", command[128];
    FILE *file = fdopen(mkstemp(path), "w");

    ck_assert_ptr_nonnull(file);
    (void)fputs(strstr(answer, "\r\n\r\n") + 4, file);
    fclose(file);
    snprintf(command, sizeof command, "promtool check metrics <%s 2>&1", path);
    int status = run_shell("/usr/bin/promtool", command);
    ck_assert_msg(status == -1 || answer[0] == '\0', "%s", answer);
    (void)unlink(path);
}

/* --- a node alone ------------------------------------------------------------------------------
 */

static domus_system *system_;
static domus_cluster *cluster;
static domus_outsider *user;
static uint32_t registered, answered;

static int receive_error(domus_stack *stack, void *self, const domus_answer *heard)
{
    registered += heard->error == 0;
    answered++;
    return 0;
}

static int give_name(domus_stack *stack, void *name)
{
    return domus_cluster_register(stack, cluster, name, 5 * DOMT_SECOND, receive_error);
}

static int unregister_name(domus_stack *stack, void *name)
{
    return domus_cluster_unregister(stack, cluster, name, 5 * DOMT_SECOND, receive_error);
}

/* Register the name with a number for the user, or unregister it. */
static void order_user(int (*verb)(domus_stack *stack, void *name), uint32_t number)
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

/* Check that these are `count` names with different numbers below 300, all of the user. */
static void check_names(const domus_cluster_name *names, uint32_t count)
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

static void start_alone(void)
{
    domus_config config;
    char error[200] = "";

    registered = answered = 0;
    domus_config_init(&config);
    config.system.threads = 1;
    config.observe.listen = "127.0.0.1:0";
    ck_assert_int_eq(domus_system_new(&config, error, sizeof error, &system_), 0);
    ck_assert_int_eq(domus_system_start(system_), 0);
    open_port(system_);
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

static void open_alone(const domus_grain_kind *grains)
{
    const domus_cluster_options options = {.name = "shop", .node = "only", .grains = grains};
    char error[200] = "";

    ck_assert_msg(domus_cluster_open(system_, &options, error, sizeof error, &cluster) == 0, "%s",
                  error);
    ck_assert_int_eq(domus_outside_attach(system_, NULL, &user), 0);
}

static void end_alone(void)
{
    domus_observe_front.close(state);
    domus_system_free(system_);
}

DOMT_TEST(a_path_is_there_as_long_as_the_node_is)
{
    start_alone();
    ck_assert_uint_eq(request_path("GET /cluster"), 404);
    ck_assert_uint_eq(request_path("GET /profile"), 200);
    expect_part("\"sets\":[],");
    ck_assert_uint_eq(request_path("GET /metrics"), 200);
    expect_no_part("domus_cluster");
    open_alone(NULL);
    ck_assert_uint_eq(request_path("GET /cluster"), 200);
    expect_part("Content-Type: application/json\r\n");
    expect_part("{\"set\":\"cluster\",\"tables\":[{\"name\":\"here\",\"title\":\"This node\",");
    expect_part("\"rows\":[{\"cluster\":\"shop\",\"node\":\"only\",\"id\":\"");
    expect_part("\"server\":\"alone\",\"nodes_up\":0,\"names\":0,");
    expect_part(
        "\"is_list\":false,\"from\":0,\"total\":1,\"columns\":[{\"name\":\"node\",\"title\":"
        "\"node\","
        "\"kind\":\"label\"},");
    expect_part("\"rows\":[{\"node\":\"only\",\"state\":\"up\",\"note\":\"this node\",");
    ck_assert_uint_eq(request_path("GET /profile"), 200);
    expect_part("\"sets\":[\"cluster\"],");
    ck_assert_uint_eq(request_path("HEAD /cluster"), 200);
    ck_assert_uint_eq(request_path("POST /cluster"), 405);
    expect_part("Allow: GET, HEAD");
    ck_assert_uint_eq(request_path("GET /cluster/nodes"), 404);
    ck_assert_uint_eq(request_path("GET /cluste"), 404);
    ck_assert_uint_eq(request_path("POST /nothing"), 404);
    ck_assert_uint_eq(request_with_fields("GET /cluster", "Origin: http://evil.example\r\n"), 403);
    (void)domus_outside_detach(user);
    domus_cluster_leave(cluster);
    ck_assert_int_ge(domus_system_stop(system_), 0);
    ck_assert_uint_eq(request_path("GET /cluster"), 200);
    domus_cluster_close(cluster);
    ck_assert_uint_eq(request_path("GET /cluster"), 404);
    end_alone();
}

DOMT_TEST(names_are_listed_in_parts)
{
    static domus_cluster_name names[400];

    start_alone();
    open_alone(NULL);
    for (uint32_t i = 0; i < 300; i++)
        order_user(give_name, i);
    ck_assert_uint_eq(domus_cluster_names(cluster, 0, names, 400), 300);
    check_names(names, 300);
    ck_assert_str_eq(names[300].name, "");
    ck_assert_uint_eq(domus_cluster_names(cluster, 299, names, 2), 300);
    ck_assert(names[0].name[0] != '\0' && names[1].name[0] == '\0');
    ck_assert_uint_eq(domus_cluster_names(cluster, 400, names, 1), 300);
    ck_assert_str_eq(names[0].name, "");

    ck_assert_uint_eq(request_path("GET /cluster?table=names&from=298"), 200);
    expect_part("\"is_list\":true,\"from\":298,\"total\":300,");
    expect_part("\"rows\":[{\"name\":\"name00298\"},{\"name\":\"name00299\"}]}]}");
    expect_no_part("\"here\"");
    ck_assert_uint_eq(request_path("GET /cluster?table=names"), 200);
    expect_part("{\"name\":\"name00256\"}");
    ck_assert_uint_eq(request_path("GET /cluster?count=1"), 200);
    expect_part("\"rows\":[{\"name\":\"\\\"zero\\\\\\\\\"}]");
    ck_assert_uint_eq(request_path("GET /cluster?count=0&table=nodes"), 200);
    expect_part("\"rows\":[]");
    ck_assert_uint_eq(request_path("GET /cluster?table=none"), 200);
    expect_part("\"tables\":[]}");
    static const char *const wrong[] = {"count=10001", "count=x", "from=-1", "from=4294967295",
                                        "table=abcdefghijklmnopqrstuvwxyzabcdef"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char start[128];
        snprintf(start, sizeof start, "GET /cluster?%s", wrong[i]);
        ck_assert_msg(request_path(start) == 400, "%s", wrong[i]);
    }
    ck_assert_uint_eq(request_path("GET /metrics"), 200);
    expect_part("\ndomus_cluster_names 300\n");
    expect_part("\ndomus_cluster_server{state=\"alone\"} 1\n");
    expect_part("\ndomus_cluster_server{state=\"missing\"} 0\n");
    expect_no_part("name00001");
    expect_no_part("domus_node_"); /* there are no other nodes */

    /* the last name moves to the place of each removed name */
    for (uint32_t i = 10; i < 300; i += 17)
        order_user(unregister_name, i);
    ck_assert_uint_eq(domus_cluster_names(cluster, 0, names, 400), 282);
    check_names(names, 282);

    (void)domus_outside_detach(user); /* the names end with their actor */
    for (int i = 0; i < 2000 && domus_cluster_names(cluster, 0, names, 1) != 0; i++)
        usleep(1000);
    ck_assert_uint_eq(domus_cluster_names(cluster, 0, names, 1), 0);
    ck_assert_int_ge(domus_system_stop(system_), 0);
    domus_cluster_close(cluster);
    end_alone();
}

static bool begins_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Check that the last answer contains each metric of a cluster that Grafana's dashboard uses,
 * either those of grains or those of nodes. */
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
        bool is_of_grains =
            begins_with(at, "domus_cluster_parts") || begins_with(at, "domus_cluster_grain");
        if ((!begins_with(at, "domus_cluster_") && !begins_with(at, "domus_node_")) ||
            is_of_grains != of_grains)
            continue;
        ck_assert_uint_lt(size + 1, sizeof metric);
        memcpy(metric + 1, at, size);
        metric[size + 1] = '\0';
        expect_part(metric);
        count++;
    }
    ck_assert_uint_ge(count, of_grains ? 2 : 10);
}

DOMT_TEST(grains_are_counted_by_kind)
{
    domus_grains carts;

    start_alone();
    open_alone(kinds);
    ck_assert_int_eq(domus_outside_grain_open(system_, &kinds[0], &carts), 0);
    for (int i = 0; i < 3; i++) {
        char key[] = {(char)('a' + i), '\0'};
        ck_assert_int_eq(domus_outside_grain_notice(system_, carts, key, &add_type, NULL), 0);
    }
    ck_assert_uint_eq(request_path("GET /cluster?table=grains"), 200);
    expect_part("\"rows\":[{\"kind\":\"cart\",\"grains\":3},{\"kind\":\"order\",\"grains\":0}]}]}");
    ck_assert_uint_eq(request_path("GET /cluster?table=parts"), 200);
    expect_part("\"total\":1,");
    expect_part("\"rows\":[{\"parts\":");
    ck_assert_uint_eq(request_path("GET /metrics"), 200);
    expect_part("\ndomus_cluster_grains{kind=\"cart\"} 3\n");
    check_dashboard_metrics(true);
    if (run_domus("")) {
        expect_part("\nParts of grains: parts ");
        expect_part("\n\nKIND  GRAINS\ncart       3\norder      0\n");
    }
    (void)domus_outside_detach(user);
    ck_assert_int_ge(domus_system_stop(system_), 0);
    domus_cluster_close(cluster);
    end_alone();
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

static int read_shelves(void *context, uint32_t from, domus_figures_shot *to, uint64_t *ret_total)
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
                                            .read = read_shelves};

/* domus/text.h doubles backslashes, and JSON and the metrics double them again. */
DOMT_TEST(a_table_of_the_program_is_shown_as_well)
{
    start_alone();
    ck_assert_int_eq(domus_figures_add(system_, &shelves, NULL), 0);
    open_alone(NULL);
    ck_assert_uint_eq(request_path("GET /shop"), 200);
    expect_part("\"rows\":[{\"room\":\"a\\\"b\",\"shelf\":\"c\\\\\\\\d\",\"door\":\"shut\","
                "\"age\":2500000000},{\"room\":\"gone\",");
    ck_assert_uint_eq(request_path("GET /profile"), 200);
    expect_part("\"sets\":[\"shop\",\"cluster\"],");
    ck_assert_uint_eq(request_path("GET /metrics"), 200);
    expect_part("\nshop_door{room=\"a\\\"b\",shelf=\"c\\\\\\\\d\",state=\"open\"} 0\n");
    expect_part("\nshop_door{room=\"a\\\"b\",shelf=\"c\\\\\\\\d\",state=\"shut\"} 1\n");
    expect_part("\nshop_age_seconds{room=\"a\\\"b\",shelf=\"c\\\\\\\\d\"} 2.5");
    expect_no_part("gone");
    check_metrics_with_promtool();
    (void)domus_outside_detach(user);
    ck_assert_int_ge(domus_system_stop(system_), 0);
    domus_cluster_close(cluster);
    end_alone();
}

/* --- two nodes ---------------------------------------------------------------------------------
 */

static void read_figure_text(const char *part)
{
    (void)domus_system_profile_table(domt_systems[0], answer, sizeof answer);
    expect_part("-- cluster: This node\n");
    expect_part("-- cluster: Nodes\nnode ");
    expect_part(part);
}

DOMT_TEST(a_node_is_seen_that_is_up_and_that_is_down)
{
    domt_pair_open(1, NULL);
    open_port(domt_systems[0]);
    domus_address worker = domt_spawn_worker();
    for (uint64_t i = 0; i < 10; i++)
        ck_assert_int_eq(domt_ask(worker, &domt_twice_type, i, 5 * DOMT_SECOND, NULL), 0);
    ck_assert_uint_eq(request_path("GET /cluster"), 200);
    expect_part("\"server\":\"connected\",\"nodes_up\":1,");
    expect_part("{\"node\":\"b\",\"state\":\"up\",\"note\":\"\",");
    expect_part("\"queued_bytes\":0,\"sent\":1");
    ck_assert_uint_eq(request_path("GET /metrics"), 200);
    expect_part("\ndomus_node_state{node=\"b\",state=\"up\"} 1\n");
    expect_part("\ndomus_node_state{node=\"b\",state=\"down\"} 0\n");
    expect_part("# TYPE domus_node_sent_total counter\ndomus_node_sent_total{node=\"b\"} 1");
    expect_part("# TYPE domus_node_lost_total counter\ndomus_node_lost_total{node=\"b\"} 0");
    expect_part("\ndomus_node_rtt_seconds{node=\"b\"} 0.0");
    expect_part("\ndomus_cluster_nodes_up 1\n");
    expect_no_part("node=\"a\"");
    check_dashboard_metrics(false);
    check_metrics_with_promtool();
    read_figure_text("\nb                                   up");
    if (run_domus("")) {
        expect_part("This node: cluster pair, node a, id ");
        expect_part(", server connected, nodes up 1, names 0, ");
        expect_part("\n\nNODE STATE NOTE      ID ");
        expect_part("\na    up    this node ");
        expect_part("\nb    up   ");
    }
    if (run_domus("--json -n 1")) {
        expect_part("{\"set\":\"cluster\",\"tables\":[{");
        expect_no_part("\"node\":\"b\"");
    }
    if (run_domus("-n 1"))
        expect_part("\nand 1 more\n");
    domt_pair_end(false);
    domt_pair_wait_for_state(DOMUS_NODE_DOWN);
    ck_assert_uint_eq(request_path("GET /metrics"), 200);
    expect_part("\ndomus_node_state{node=\"b\",state=\"up\"} 0\n");
    expect_part("\ndomus_node_state{node=\"b\",state=\"down\"} 1\n");
    domt_pair_begin(); /* the earlier start of b has ended, so the metrics contain one b */
    domt_pair_wait_for_state(DOMUS_NODE_UP);
    ck_assert_uint_eq(request_path("GET /metrics"), 200);
    const char *first = strstr(answer, "domus_node_sent_total{node=\"b\"}");
    ck_assert(first != NULL && strstr(first + 1, "domus_node_sent_total{node=\"b\"}") == NULL);
    domus_observe_front.close(state);
    domt_pair_close();
}

DOMT_SUITE(60)
