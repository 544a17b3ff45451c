/* libdomus-observe: the answer of each path of the observation port about the example web, and
 * checks of these answers by programs of other projects. */
#include "tests/support/suite.h"
#include "tests/system/judges.h"
#include "tests/system/observe.h"
#include "tests/system/prometheus.h"

#include <domus/profile.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static domt_observed web;
static domt_tree tree;

/* A site with a pool of runners, which measures histograms. */
static void start_web_with_pool(void)
{
    char path[PATH_MAX];

    domt_tree_write(&tree, "pools.yaml", "pools: [{name: work, runners: 2, spares: 1}]\n");
    snprintf(path, sizeof path, "%s/pools.yaml", tree.root);
    domt_observed_start_web(&web, (const char *const[]){"profile.level=histograms", NULL}, path);
}

DOMT_TEST(every_path_answers_get_and_nothing_else)
{
    static const char classic[] = "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n";
    static const char *const paths[] = {"/",       "/metrics", "/profile", "/actors",
                                        "/health", "/ready",   "/config",  "/stalls"};
    static const struct {
        const char *request;
        unsigned status;
        const char *part;
    } rows[] = {
        {"GET /", 200, "/metrics  counters for Prometheus"},
        {"GET /metrics", 200, classic},
        {"GET /metrics", 200, "Cache-Control: no-store\r\n"},
        {"GET /metrics", 200, "X-Content-Type-Options: nosniff\r\n"},
        {"GET /profile", 200, "Content-Type: application/json\r\n"},
        {"GET /profile", 200, "\"threads\":[{\"thread\":0,\"counters\":{\"wall_ns\":"},
        {"GET /actors", 200, "thread 1: "},
        {"GET /actors?count=1&from=1", 200, "thread 0: "},
        {"GET /actors?behaviour=a%20b", 200, "thread 0: 0 actors\n"},
        {"GET /health", 200, "ok\n"},
        {"GET /ready", 200, "ready\n"},
        {"GET /actors?count=0", 400, "count is 1..1000"},
        {"GET /actors?count=1001", 400, ""},
        {"GET /actors?count=-1", 400, ""},
        {"GET /actors?count=", 400, ""},
        {"GET /actors?from=1e3", 400, ""},
        {"GET /actors?from=99999999999999999999", 400, ""},
        {"GET /actors?behaviour=%zz", 400, ""},
        {"GET /metrics/", 404, ""},
        {"GET /nothing", 404, ""},
        {"GET /../metrics", 404, ""},
        {"GET //metrics", 404, ""},
        {"BREW /metrics", 501, ""},
    };
    char start[128], body[258];

    memset(body, 'a', sizeof body - 1);
    body[sizeof body - 1] = '\0';
    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        domt_site_expect_answer(&web.port, rows[i].request, NULL, rows[i].status, rows[i].part);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        snprintf(start, sizeof start, "HEAD %s", paths[i]);
        domt_site_expect_answer(&web.port, start, NULL, 200, "Content-Length: ");
        ck_assert_str_eq(web.port.body, "");
        snprintf(start, sizeof start, "DELETE %s", paths[i]);
        domt_site_expect_answer(&web.port, start, "a", 405, "Allow: GET, HEAD, ");
    }
    domt_site_expect_answer(&web.port, "GET /health", body, 413, "");
    domt_observed_stop_web(&web);
}

/* A page of any site could make its own name point to 127.0.0.1, so the port refuses requests whose
 * Host is such a name. */
DOMT_TEST(hosts_that_are_not_of_loopback_are_refused)
{
    static const struct {
        const char *fields;
        unsigned status;
    } rows[] = {{"Host: evil.example\r\n", 421},       {"Host: localhost.evil.example\r\n", 421},
                {"Host: notlocalhost\r\n", 421},       {"Host: 10.0.0.1:9100\r\n", 421},
                {"Host: app.LocalHost:9100\r\n", 200}, {"Host: 127.0.0.2\r\n", 200},
                {"Host: [::1]:9100\r\n", 200},         {"Host: [::ffff:127.0.0.1]\r\n", 200},
                {"Host: [::ffff:10.0.0.1]\r\n", 421}};
    char text[512];

    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(text, sizeof text, "GET /health HTTP/1.1\r\n%sConnection: close\r\n\r\n",
                 rows[i].fields);
        unsigned status = domt_site_send_raw_request(&web.port, text);
        ck_assert_msg(status == rows[i].status, "%s: %u", rows[i].fields, status);
    }
    ck_assert_uint_eq(domt_site_send_raw_request(&web.port, "GET /health HTTP/1.0\r\n\r\n"), 200);
    domt_observed_stop_web(&web);

    domt_observed_start_web(&web, (const char *const[]){"observe.public=true", NULL}, NULL);
    snprintf(text, sizeof text, "GET /health HTTP/1.1\r\n%sConnection: close\r\n\r\n",
             rows[0].fields);
    ck_assert_uint_eq(domt_site_send_raw_request(&web.port, text), 200);
    domt_observed_stop_web(&web);
}

DOMT_TEST(each_counter_of_the_profile_is_a_metric)
{
    /* number of families of metrics that are not counters of the profile: 8 of memory, 5 of usage,
     * 8 of behaviours, 5 of listeners */
    const uint32_t others = 8 + 5 + 8 + 5;

    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    domt_site_expect_answer(&web.site, "GET /json", NULL, 200, NULL);
    domt_site_expect_answer(&web.port, "GET /metrics", NULL, 200, NULL);
    uint32_t families = domt_prometheus_check_text(web.port.body);
    /* these two families are there only if a thread has run houses of another one */
    if (strstr(web.port.body, "domus_pair_steals") != NULL)
        families -= 2;
    /* all phases share one family, and so do all lengths of stalls */
    size_t counters = sizeof(domus_profile) / sizeof(uint64_t);
    ck_assert_uint_eq(families - others, counters - DOMUS_PHASES + 1 - DOMUS_STALL_LENGTHS - 2 + 1);
    ck_assert(domt_prometheus_sum_samples_of_name(web.port.body, "domus_behaviour_actors") >= 4);
    ck_assert(domt_prometheus_sum_samples_of_name(web.port.body, "domus_behaviour_runs_total") >=
              1);
    ck_assert(strstr(web.port.body, "domus_behaviour_actors{thread=\"0\",behaviour=\"shard\"} "));
    ck_assert(domt_prometheus_sum_samples_of_name(web.port.body, "domus_accepted_total") == 1);
    ck_assert(domt_prometheus_sum_samples_of_name(web.port.body, "domus_queued_bytes") >= 0);
    ck_assert(domt_prometheus_sum_samples_of_name(web.port.body, "domus_stall_seconds_count") >= 0);
    ck_assert(domt_prometheus_sum_samples_of_name(web.port.body, "domus_memory_used_bytes") > 1e6);
    double wall = domt_prometheus_sum_samples_of_name(web.port.body, "domus_wall_seconds_total");
    double phases = domt_prometheus_sum_samples_of_name(web.port.body, "domus_phase_seconds_total");
    ck_assert(wall > 0 && phases > wall * 0.99 && phases < wall * 1.01);
    domt_observed_stop_web(&web);
}

static void test_web_with_pool_by_command(const char *programs, const char *command)
{
    if (!domt_are_judges_installed(programs))
        return;
    domt_make_directory_for_judges(&tree);
    start_web_with_pool();
    domt_run_judge_command(&tree, &web.port, command);
    domt_observed_stop_web(&web);
    domt_tree_remove_copy(&tree);
}

DOMT_TEST(promtool_finds_nothing_in_the_metrics)
{
    test_web_with_pool_by_command(
        "curl promtool", "curl -sf $URL/metrics >$T/m || exit 1\n"
                         "grep -q ^domus_phase_length_seconds_bucket $T/m || exit 2\n"
                         "promtool check metrics <$T/m >$T/x 2>&1 || exit 1\n! test -s $T/x");
}

/* The reader of Prometheus' own client accepts only what OpenMetrics 1.0 allows. */
DOMT_TEST(openmetrics_are_read_by_a_strict_reader)
{
    test_web_with_pool_by_command(
        "curl python3",
        "/usr/bin/python3 -c \"import prometheus_client.openmetrics.parser\" 2>$T/x || exit 0\n"
        "curl -sf -D $T/head -H \"Accept: application/openmetrics-text;version=1.0.0,*/*;q=0.1\" "
        "$URL/metrics >$T/text || exit 1\n"
        "grep -q \"^Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\" "
        "$T/head || exit 2\n"
        "/usr/bin/python3 - $T/text <<END\n"
        "import sys\n"
        "from prometheus_client.openmetrics.parser import text_string_to_metric_families\n"
        "text = open(sys.argv[1]).read()\n"
        "assert text.endswith(\"\\n# EOF\\n\")\n"
        "families = {f.name: f for f in text_string_to_metric_families(text)}\n"
        "assert families[\"domus_phase_seconds\"].unit == \"seconds\"\n"
        "assert families[\"domus_received_bytes\"].unit == \"bytes\"\n"
        "assert families[\"domus_stall_seconds\"].type == \"histogram\"\n"
        "assert families[\"domus_iteration_seconds\"].type == \"histogram\"\n"
        "labels = [s.labels for s in families[\"domus_asks\"].samples]\n"
        "assert {\"thread\": \"1\"} in labels and {\"thread\": \"outside\"} in labels, labels\n"
        "assert {\"pool\": \"work\", \"runner\": \"2\"} in labels, labels\n"
        "assert len(labels) == 6, labels\n"
        "states = [s.labels[\"state\"] for s in families[\"domus_runner_seconds\"].samples]\n"
        "assert states == [\"run\", \"search\", \"park\"] * 3, states\n"
        "END\n");
}

/* A real Prometheus server accepts all metrics, in the format that it requests. */
DOMT_TEST(prometheus_scrapes_the_port)
{
    test_web_with_pool_by_command(
        "curl prometheus",
        "P=$(/usr/bin/python3 -c \"import socket; s = socket.socket(); "
        "s.bind((\\\"127.0.0.1\\\", 0)); print(s.getsockname()[1])\")\n"
        "echo \"scrape_configs: [{job_name: d, scrape_interval: 200ms, scrape_timeout: 200ms, "
        "static_configs: [{targets: [\\\"${URL#http://}\\\"]}]}]\" >$T/p.yml\n"
        "prometheus --config.file=$T/p.yml --storage.tsdb.path=$T/data "
        "--web.listen-address=127.0.0.1:$P >$T/log 2>&1 &\n"
        "trap \"kill $!\" EXIT\n"
        "for i in $(seq 100); do sleep 0.2\n"
        "curl -sf \"http://127.0.0.1:$P/api/v1/query?query=domus_phase_seconds_total\" >$T/x "
        "&& grep -q \"phase.*sleep\" $T/x && grep -q \"thread.*1\" $T/x && exit 0\n"
        "done; tail $T/log; exit 1\n");
}

DOMT_TEST(the_profile_is_json_with_all_that_counts)
{
    test_web_with_pool_by_command(
        "curl python3",
        "curl -sf $URL/profile >$T/text || exit 1\n"
        "/usr/bin/python3 - $T/text <<END\n"
        "import json, sys\n"
        "all = json.load(open(sys.argv[1]))\n"
        "def all_of(those, what):\n"
        "    return {one[what] for one in those}\n"
        "assert [t[\"thread\"] for t in all[\"threads\"]] == [0, 1]\n"
        "for thread in all[\"threads\"]:\n"
        "    counters = thread[\"counters\"]\n"
        "    assert abs(sum(counters[\"phase_ns\"].values()) / counters[\"wall_ns\"] - 1) < 0.01\n"
        "    assert len(counters[\"stall_lengths\"]) == 16\n"
        "    assert counters[\"spawns\"] > 0 and \"waits_lost\" in counters\n"
        "assert \"asks\" in all[\"outside\"] and \"iterations\" not in all[\"outside\"]\n"
        "assert [(r[\"pool\"], r[\"runner\"]) for r in all[\"runners\"]] == [\n"
        "    (\"work\", 0), (\"work\", 1), (\"work\", 2)]\n"
        "times = all[\"runners\"][0][\"times\"]\n"
        "assert times[\"wall_ns\"] == times[\"run_ns\"] + times[\"search_ns\"] + "
        "times[\"park_ns\"] > 0\n"
        "assert \"asks\" in all[\"runners\"][0][\"counters\"]\n"
        "assert all[\"memory\"][\"used_bytes\"] > 10**6\n"
        "assert all[\"usage\"][\"helpers\"] >= all[\"usage\"][\"helpers_busy\"]\n"
        "assert all[\"usage\"][\"detached_threads\"] >= all[\"usage\"][\"detached_busy\"]\n"
        "shards = [b for b in all[\"behaviours\"] if b[\"name\"] == \"shard\"]\n"
        "assert sum(b[\"alive\"] for b in shards) == 2, shards\n"
        "assert sum(b[\"bytes\"] for b in shards) >= 2 * 192\n"
        "assert all_of(shards, \"kind\") == {\"state\"}\n"
        "places = [(b.get(\"thread\"), b.get(\"pool\"), b[\"name\"]) for b in "
        "all[\"behaviours\"]]\n"
        "assert len(places) == len(set(places))\n"
        "for t in 0, 1:\n"
        "    runs = sum(b[\"runs\"] for b in all[\"behaviours\"] if b.get(\"thread\") == t)\n"
        "    assert abs(runs - all[\"threads\"][t][\"counters\"][\"runs\"]) < 50\n"
        "for pair in all[\"pairs\"]:\n"
        "    assert sorted([pair[\"thief\"], pair[\"victim\"]]) == [0, 1]\n"
        "    assert pair[\"steals\"] + pair[\"stand_ins\"] > 0\n"
        "END\n");
}

/* Returns how many actors the text of /actors describes. */
static uint32_t count_actors_in_text(const char *text)
{
    uint32_t count = 0;

    for (; (text = strstr(text, "\nactor ")) != NULL; text++)
        count++;
    return count;
}

DOMT_TEST(actors_are_paged_and_filtered)
{
    char first[4096];

    domt_observed_start_web(&web, (const char *const[]){"web.kv.shards=8", NULL}, NULL);
    domt_site_expect_answer(&web.port, "GET /actors?behaviour=shard", NULL, 200, " shard: ");
    ck_assert_uint_eq(count_actors_in_text(web.port.body), 8);
    ck_assert_ptr_null(strstr(web.port.body, "clock"));
    domt_site_expect_answer(&web.port, "GET /actors?behaviour=shard&count=1", NULL, 200,
                            ": 4 actors\n");
    /* the limit of 1 holds for each of two threads */
    ck_assert_uint_eq(count_actors_in_text(web.port.body), 2);
    snprintf(first, sizeof first, "%s", web.port.body);
    domt_site_expect_answer(&web.port, "GET /actors?behaviour=shard&from=1&count=1", NULL, 200,
                            NULL);
    ck_assert_uint_eq(count_actors_in_text(web.port.body), 2);
    ck_assert_str_ne(web.port.body, first);
    domt_site_expect_answer(&web.port, "GET /actors?behaviour=shard&from=3", NULL, 200, NULL);
    ck_assert_uint_eq(count_actors_in_text(web.port.body), 2);
    domt_site_expect_answer(&web.port, "GET /actors?behaviour=shard&from=4", NULL, 200,
                            ": 4 actors\n");
    ck_assert_uint_eq(count_actors_in_text(web.port.body), 0);
    domt_observed_stop_web(&web);
}

DOMT_TEST(a_wrong_address_of_the_port_ends_the_start)
{
    static const struct {
        const char *setting, *said;
    } rows[] = {
        {"observe.listen=0.0.0.0:0",
         "web: observe.listen: 0.0.0.0:0 is not of loopback, so strangers could see all"},
        {"observe.listen=[::]:0", "is not of loopback"},
        {"observe.listen=192.0.2.1:9100", "is not of loopback"},
        {"observe.listen=nonsense", "must be unix:PATH, or such as 127.0.0.1:9100"},
        {"observe.listen=localhost:9100", "must be unix:PATH, or such as 127.0.0.1:9100"},
        {"observe.viewersMax=0", "observe.viewersMax: must be 1..65536"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int status = domt_observed_run_with_wrong_setting(
            &web, (const char *const[]){rows[i].setting, NULL});
        ck_assert_msg(status == 2, "%s: %d", rows[i].setting, status);
        ck_assert_msg(strstr(web.site.service.error, rows[i].said) != NULL, "%s: %s",
                      rows[i].setting, web.site.service.error);
        ck_assert_ptr_null(strstr(web.site.service.said, "listening"));
    }
    int status = domt_observed_run_with_wrong_setting(
        &web, (const char *const[]){"observe.listen=unix:/nowhere/x", NULL});
    ck_assert_int_eq(status, 1);
    ck_assert_ptr_nonnull(strstr(web.site.service.error, "observe.listen: unix:/nowhere/x: "));
    ck_assert_ptr_null(strstr(web.site.service.said, "listening"));
}

/* A program that is built without the port refuses to start with the port's settings, because its
 * operator would wait for the port. */
DOMT_TEST(a_program_without_the_port_refuses_the_key)
{
    domt_service *service = &web.site.service;

    domt_service_spawn(service, DOMT_ECHO_ARGUMENTS("--set", "observe.listen=127.0.0.1:0", ));
    ck_assert_int_eq(domt_service_wait(service, 10000), 2);
    ck_assert_ptr_nonnull(
        strstr(service->error, "observe.listen: this program has no observation port"));
}

DOMT_SUITE(60)
