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
static unsigned ask_with(const char *start, const char *fields)
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

static unsigned ask(const char *start)
{
    return ask_with(start, "");
}

/* Check that the last answer contains a part, or does not. */
static void has(const char *part)
{
    ck_assert_msg(strstr(answer, part) != NULL, "no '%s' in: %s", part, answer);
}

static void has_not(const char *part)
{
    ck_assert_msg(strstr(answer, part) == NULL, "'%s' is in: %s", part, answer);
}

/* Run a shell command, and store its output as the answer. Returns its status; -1 if its program is
 * not installed. */
static int run(const char *program, const char *command)
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
    int status = run(DOMT_BIN_DIR "/domus", command);
    ck_assert_msg(status <= 0, "%d: %s", status, answer);
    return status == 0;
}

/* Let promtool of Prometheus check the last answer. */
static void judge_metrics(void)
{
    char path[] = "/tmp/domus-metrics-XXXXXX", command[128];
    FILE *file = fdopen(mkstemp(path), "w");

    ck_assert_ptr_nonnull(file);
    (void)fputs(strstr(answer, "\r\n\r\n") + 4, file);
    fclose(file);
    snprintf(command, sizeof command, "promtool check metrics <%s 2>&1", path);
    int status = run("/usr/bin/promtool", command);
    ck_assert_msg(status == -1 || answer[0] == '\0', "%s", answer);
    (void)unlink(path);
}

/* --- a node alone ------------------------------------------------------------------------------
 */

static domus_system *system_;
static domus_cluster *cluster;
static domus_outsider *user;
static uint32_t registered, answered;

static int hear(domus_stack *stack, void *self, const domus_answer *heard)
{
    registered += heard->error == 0;
    answered++;
    return 0;
}

static int give_name(domus_stack *stack, void *name)
{
    return domus_cluster_register(stack, cluster, name, 5 * DOMT_SECOND, hear);
}

static int take_name(domus_stack *stack, void *name)
{
    return domus_cluster_unregister(stack, cluster, name, 5 * DOMT_SECOND, hear);
}

/* Register the name with a number for the user, or unregister it. */
static void act(int (*verb)(domus_stack *stack, void *name), uint32_t number)
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
static void hold_different(const domus_cluster_name *names, uint32_t count)
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

static void begin_alone(void)
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

static int take_add(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

static const domus_behaviour cart = {
    .name = "cart", .on = (const domus_on[]){{&add_type, take_add, 0}, {NULL, NULL, 0}}};
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
    begin_alone();
    ck_assert_uint_eq(ask("GET /cluster"), 404);
    ck_assert_uint_eq(ask("GET /profile"), 200);
    has("\"sets\":[],");
    ck_assert_uint_eq(ask("GET /metrics"), 200);
    has_not("domus_cluster");
    open_alone(NULL);
    ck_assert_uint_eq(ask("GET /cluster"), 200);
    has("Content-Type: application/json\r\n");
    has("{\"set\":\"cluster\",\"tables\":[{\"name\":\"here\",\"title\":\"This node\",");
    has("\"rows\":[{\"cluster\":\"shop\",\"node\":\"only\",\"id\":\"");
    has("\"server\":\"alone\",\"nodes_up\":0,\"names\":0,");
    has("\"is_list\":false,\"from\":0,\"total\":1,\"columns\":[{\"name\":\"node\",\"title\":"
        "\"node\","
        "\"kind\":\"label\"},");
    has("\"rows\":[{\"node\":\"only\",\"state\":\"up\",\"note\":\"this node\",");
    ck_assert_uint_eq(ask("GET /profile"), 200);
    has("\"sets\":[\"cluster\"],");
    ck_assert_uint_eq(ask("HEAD /cluster"), 200);
    ck_assert_uint_eq(ask("POST /cluster"), 405);
    has("Allow: GET, HEAD");
    ck_assert_uint_eq(ask("GET /cluster/nodes"), 404);
    ck_assert_uint_eq(ask("GET /cluste"), 404);
    ck_assert_uint_eq(ask("POST /nothing"), 404);
    ck_assert_uint_eq(ask_with("GET /cluster", "Origin: http://evil.example\r\n"), 403);
    (void)domus_outside_detach(user);
    domus_cluster_leave(cluster);
    ck_assert_int_ge(domus_system_stop(system_), 0);
    ck_assert_uint_eq(ask("GET /cluster"), 200);
    domus_cluster_close(cluster);
    ck_assert_uint_eq(ask("GET /cluster"), 404);
    end_alone();
}

DOMT_TEST(names_are_listed_in_parts)
{
    static domus_cluster_name names[400];

    begin_alone();
    open_alone(NULL);
    for (uint32_t i = 0; i < 300; i++)
        act(give_name, i);
    ck_assert_uint_eq(domus_cluster_names(cluster, 0, names, 400), 300);
    hold_different(names, 300);
    ck_assert_str_eq(names[300].name, "");
    ck_assert_uint_eq(domus_cluster_names(cluster, 299, names, 2), 300);
    ck_assert(names[0].name[0] != '\0' && names[1].name[0] == '\0');
    ck_assert_uint_eq(domus_cluster_names(cluster, 400, names, 1), 300);
    ck_assert_str_eq(names[0].name, "");

    ck_assert_uint_eq(ask("GET /cluster?table=names&from=298"), 200);
    has("\"is_list\":true,\"from\":298,\"total\":300,");
    has("\"rows\":[{\"name\":\"name00298\"},{\"name\":\"name00299\"}]}]}");
    has_not("\"here\"");
    ck_assert_uint_eq(ask("GET /cluster?table=names"), 200);
    has("{\"name\":\"name00256\"}");
    ck_assert_uint_eq(ask("GET /cluster?count=1"), 200);
    has("\"rows\":[{\"name\":\"\\\"zero\\\\\\\\\"}]");
    ck_assert_uint_eq(ask("GET /cluster?count=0&table=nodes"), 200);
    has("\"rows\":[]");
    ck_assert_uint_eq(ask("GET /cluster?table=none"), 200);
    has("\"tables\":[]}");
    static const char *const wrong[] = {"count=10001", "count=x", "from=-1", "from=4294967295",
                                        "table=abcdefghijklmnopqrstuvwxyzabcdef"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char start[128];
        snprintf(start, sizeof start, "GET /cluster?%s", wrong[i]);
        ck_assert_msg(ask(start) == 400, "%s", wrong[i]);
    }
    ck_assert_uint_eq(ask("GET /metrics"), 200);
    has("\ndomus_cluster_names 300\n");
    has("\ndomus_cluster_server{state=\"alone\"} 1\n");
    has("\ndomus_cluster_server{state=\"missing\"} 0\n");
    has_not("name00001");
    has_not("domus_node_"); /* there are no other nodes */

    /* the last name moves to the place of each removed name */
    for (uint32_t i = 10; i < 300; i += 17)
        act(take_name, i);
    ck_assert_uint_eq(domus_cluster_names(cluster, 0, names, 400), 282);
    hold_different(names, 282);

    (void)domus_outside_detach(user); /* the names end with their actor */
    for (int i = 0; i < 2000 && domus_cluster_names(cluster, 0, names, 1) != 0; i++)
        usleep(1000);
    ck_assert_uint_eq(domus_cluster_names(cluster, 0, names, 1), 0);
    ck_assert_int_ge(domus_system_stop(system_), 0);
    domus_cluster_close(cluster);
    end_alone();
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Check that the last answer contains each metric of a cluster that Grafana's dashboard uses,
 * either those of grains or those of nodes. */
static void judge_dashboard(bool of_grains)
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
        bool is_of_grains = begins(at, "domus_cluster_parts") || begins(at, "domus_cluster_grain");
        if ((!begins(at, "domus_cluster_") && !begins(at, "domus_node_")) ||
            is_of_grains != of_grains)
            continue;
        ck_assert_uint_lt(size + 1, sizeof metric);
        memcpy(metric + 1, at, size);
        metric[size + 1] = '\0';
        has(metric);
        count++;
    }
    ck_assert_uint_ge(count, of_grains ? 2 : 10);
}

DOMT_TEST(grains_are_counted_by_kind)
{
    domus_grains carts;

    begin_alone();
    open_alone(kinds);
    ck_assert_int_eq(domus_outside_grain_open(system_, &kinds[0], &carts), 0);
    for (int i = 0; i < 3; i++) {
        char key[] = {(char)('a' + i), '\0'};
        ck_assert_int_eq(domus_outside_grain_notice(system_, carts, key, &add_type, NULL), 0);
    }
    ck_assert_uint_eq(ask("GET /cluster?table=grains"), 200);
    has("\"rows\":[{\"kind\":\"cart\",\"grains\":3},{\"kind\":\"order\",\"grains\":0}]}]}");
    ck_assert_uint_eq(ask("GET /cluster?table=parts"), 200);
    has("\"total\":1,");
    has("\"rows\":[{\"parts\":");
    ck_assert_uint_eq(ask("GET /metrics"), 200);
    has("\ndomus_cluster_grains{kind=\"cart\"} 3\n");
    judge_dashboard(true);
    if (run_domus("")) {
        has("\nParts of grains: parts ");
        has("\n\nKIND  GRAINS\ncart       3\norder      0\n");
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
    begin_alone();
    ck_assert_int_eq(domus_figures_add(system_, &shelves, NULL), 0);
    open_alone(NULL);
    ck_assert_uint_eq(ask("GET /shop"), 200);
    has("\"rows\":[{\"room\":\"a\\\"b\",\"shelf\":\"c\\\\\\\\d\",\"door\":\"shut\","
        "\"age\":2500000000},{\"room\":\"gone\",");
    ck_assert_uint_eq(ask("GET /profile"), 200);
    has("\"sets\":[\"shop\",\"cluster\"],");
    ck_assert_uint_eq(ask("GET /metrics"), 200);
    has("\nshop_door{room=\"a\\\"b\",shelf=\"c\\\\\\\\d\",state=\"open\"} 0\n");
    has("\nshop_door{room=\"a\\\"b\",shelf=\"c\\\\\\\\d\",state=\"shut\"} 1\n");
    has("\nshop_age_seconds{room=\"a\\\"b\",shelf=\"c\\\\\\\\d\"} 2.5");
    has_not("gone");
    judge_metrics();
    (void)domus_outside_detach(user);
    ck_assert_int_ge(domus_system_stop(system_), 0);
    domus_cluster_close(cluster);
    end_alone();
}

/* --- two nodes ---------------------------------------------------------------------------------
 */

static void look_at_text(const char *part)
{
    (void)domus_system_profile_table(domt_systems[0], answer, sizeof answer);
    has("-- cluster: This node\n");
    has("-- cluster: Nodes\nnode ");
    has(part);
}

DOMT_TEST(a_node_is_seen_that_is_up_and_that_is_down)
{
    domt_pair_open(1, NULL);
    open_port(domt_systems[0]);
    domus_address worker = domt_spawn_worker();
    for (uint64_t i = 0; i < 10; i++)
        ck_assert_int_eq(domt_ask(worker, &domt_twice_type, i, 5 * DOMT_SECOND, NULL), 0);
    ck_assert_uint_eq(ask("GET /cluster"), 200);
    has("\"server\":\"connected\",\"nodes_up\":1,");
    has("{\"node\":\"b\",\"state\":\"up\",\"note\":\"\",");
    has("\"queued_bytes\":0,\"sent\":1");
    ck_assert_uint_eq(ask("GET /metrics"), 200);
    has("\ndomus_node_state{node=\"b\",state=\"up\"} 1\n");
    has("\ndomus_node_state{node=\"b\",state=\"down\"} 0\n");
    has("# TYPE domus_node_sent_total counter\ndomus_node_sent_total{node=\"b\"} 1");
    has("# TYPE domus_node_lost_total counter\ndomus_node_lost_total{node=\"b\"} 0");
    has("\ndomus_node_rtt_seconds{node=\"b\"} 0.0");
    has("\ndomus_cluster_nodes_up 1\n");
    has_not("node=\"a\"");
    judge_dashboard(false);
    judge_metrics();
    look_at_text("\nb                                   up");
    if (run_domus("")) {
        has("This node: cluster pair, node a, id ");
        has(", server connected, nodes up 1, names 0, ");
        has("\n\nNODE STATE NOTE      ID ");
        has("\na    up    this node ");
        has("\nb    up   ");
    }
    if (run_domus("--json -n 1")) {
        has("{\"set\":\"cluster\",\"tables\":[{");
        has_not("\"node\":\"b\"");
    }
    if (run_domus("-n 1"))
        has("\nand 1 more\n");
    domt_pair_end(false);
    domt_pair_wait(DOMUS_NODE_DOWN);
    ck_assert_uint_eq(ask("GET /metrics"), 200);
    has("\ndomus_node_state{node=\"b\",state=\"up\"} 0\n");
    has("\ndomus_node_state{node=\"b\",state=\"down\"} 1\n");
    domt_pair_begin(); /* the earlier start of b has ended, so the metrics contain one b */
    domt_pair_wait(DOMUS_NODE_UP);
    ck_assert_uint_eq(ask("GET /metrics"), 200);
    const char *first = strstr(answer, "domus_node_sent_total{node=\"b\"}");
    ck_assert(first != NULL && strstr(first + 1, "domus_node_sent_total{node=\"b\"}") == NULL);
    domus_observe_front.close(state);
    domt_pair_close();
}

DOMT_SUITE(60)
