/* The doctor as users reach it: the command `domus doctor`, and the path /doctor of the
 * observation port. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"
#include "tests/system/observe.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* `domus doctor`: with a running program's port, with files, and in its watching mode. */

static domt_observed web;
static domt_tree tree;
static char said[65536];

static bool has_program_domus(void)
{
    if (access(DOMT_BIN_DIR "/domus", X_OK) == 0)
        return true;
    printf("the program domus is not here, so it is not tried\n");
    return false;
}

static void read_output_file(const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", tree.root, name);
    said[0] = '\0';
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return; /* the command that writes this file has not begun */
    said[fread(said, 1, sizeof said - 1, file)] = '\0';
    (void)fclose(file);
}

/* Run `domus doctor` with these words, in the root of the source tree. Its output and its errors
 * are stored in `said`. Returns its exit status. */
static int run_doctor(const char *format, ...)
{
    char words[1024], line[PATH_MAX * 2];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    snprintf(line, sizeof line,
             "cd '%s' && timeout -k 1 20 " DOMT_BIN_DIR "/domus doctor %s >said 2>&1", tree.root,
             words);
    int status = system(line); /* NOLINT(cert-env33-c): a test may use the shell */
    read_output_file("said");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect_output(int status, int expected, const char *part)
{
    ck_assert_msg(status == expected, "status %d: %s", status, said);
    ck_assert_msg(strstr(said, part) != NULL, "no '%s' in: %s", part, said);
}

static void save_profile_as_file(const char *name)
{
    domt_site_expect_answer(&web.port, "GET /profile?machine=1", NULL, 200, "\"machine\"");
    domt_tree_write(&tree, name, web.port.body);
}

/* --- the port and files ----------------------------------------------------------------------- */

/* Three clients connect to a program that may have three: it is at its limit as long as they
 * stay. */
static void start_program_at_connection_limit(int fds[3])
{
    domt_tree_make(&tree);
    domt_observed_start_web(&web, (const char *const[]){"channel.maxConnections=3", NULL}, NULL);
    for (int i = 0; i < 3; i++)
        fds[i] = domt_connect_to_port(web.site.echo);
    for (int i = 0; i < 200; i++) {
        if (domt_site_ask(&web.port, "GET /profile", "", NULL) == 200 &&
            strstr(web.port.body, "\"open\":3") != NULL)
            return;
        domt_sleep_ms(10);
    }
    ck_abort_msg("not accepted: %s", web.port.body);
}

DOMT_TEST(doctor_says_the_same_by_port_and_from_files)
{
    static const char finding[] = "channel: {maxConnections: 6}";
    int fds[3];

    if (!has_program_domus())
        return;
    start_program_at_connection_limit(fds);
    save_profile_as_file("before");
    expect_output(run_doctor("-s 127.0.0.1:%u -n 300ms", web.port.web), 3, finding);
    save_profile_as_file("after");
    expect_output(run_doctor("before after"), 3, finding);
    expect_output(run_doctor("--json before after"), 3, "\"rule\":\"connections-full\"");
    domt_site_expect_answer(&web.port, "GET /doctor?seconds=1", NULL, 200, finding);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    domt_observed_stop_web(&web);
    domt_tree_remove_copy(&tree);
}

DOMT_TEST(doctor_answers_wrong_words_with_one_line)
{
    static const struct {
        const char *words;
        int status;
        const char *part;
    } rows[] = {
        {"after before", 1, "older"},
        {"before before", 1, "less than 100 ms"},
        {"before other", 1, "different programs"},
        {"before nothing", 1, "nothing: No such file"},
        {"before words", 1, "words: this is not the JSON"},
        {"before empty", 1, "empty: this is not the JSON"},
        {"before list", 1, "list: this is not the JSON"},
        {"before deep", 1, "deep: this is not the JSON"},
        {"before old", 1, "machine=1"},
        {"before many", 1, "no program has that many"},
        {"before odd", 1, "different programs"},
        {"before .", 1, "cannot be read"},
        {"before", 2, "BEFORE and AFTER"},
        {"before after before", 2, "BEFORE and AFTER"},
        {"-p 1 before after", 2, "without -w, -p and -s"},
        {"--watch --json", 2, "no JSON"},
        {"-n 0", 2, "no time"},
        {"-n x", 2, "no time"},
        {"-s 127.0.0.1:1", 1, "domus: "},
    };
    static char many[65536];
    size_t size = 0;

    if (!has_program_domus())
        return;
    domt_tree_make(&tree);
    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    save_profile_as_file("before");
    domt_sleep_ms(150);
    save_profile_as_file("after");
    domt_tree_write(&tree, "words", "not JSON");
    domt_tree_write(&tree, "empty", "");
    domt_tree_write(&tree, "list", "[1,2]");
    domt_tree_write(&tree, "old", "{\"threads\":[]}");
    domt_tree_write(&tree, "other", "{\"threads\":[{}],\"machine\":{},\"pid\":1}");
    domt_tree_write(
        &tree, "odd",
        "{\"threads\":[1,null,{\"counters\":[]}],\"machine\":{\"cpus\":-1,\"threads\":7,"
        "\"settings\":\"x\"},\"runners\":[[]],\"behaviours\":[{\"thread\":99999,"
        "\"name\":\"\\u001b[2J\"},{\"name\":1e99}],\"listeners\":[null],"
        "\"memory\":\"\",\"pid\":1.5,\"now_ns\":-9223372036854775808}");
    memset(many, '[', sizeof many - 1);
    domt_tree_write(&tree, "deep", many);
    size += (size_t)snprintf(many, sizeof many, "{\"machine\":{},\"threads\":[0");
    while (size < 4096)
        size += (size_t)snprintf(many + size, sizeof many - size, ",0");
    snprintf(many + size, sizeof many - size, "]}");
    domt_tree_write(&tree, "many", many);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_output(run_doctor("%s", rows[i].words), rows[i].status, rows[i].part);
    domt_observed_stop_web(&web);
    domt_tree_remove_copy(&tree);
}

/* --- watching --------------------------------------------------------------------------------- */

static bool does_output_contain(const char *part)
{
    read_output_file("lines");
    return strstr(said, part) != NULL;
}

DOMT_TEST(findings_are_logged_once_as_they_begin_and_end)
{
    char line[PATH_MAX * 2];
    int fds[3];

    if (!has_program_domus())
        return;
    start_program_at_connection_limit(fds);
    snprintf(line, sizeof line,
             "timeout -s INT -k 5 30 " DOMT_BIN_DIR
             "/domus doctor --watch -n 200ms -s 127.0.0.1:%u >'%s/lines' 2>&1 & echo $! >'%s/pid'",
             web.port.web, tree.root, tree.root);
    ck_assert_int_eq(system(line), 0); /* NOLINT(cert-env33-c): a test may use the shell */
    for (int i = 0; i < 1000 && !does_output_contain("Z begins: connections-full: 3 connections");
         i++)
        domt_sleep_ms(20);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    for (int i = 0; i < 1000 && !does_output_contain("Z ends: connections-full, after "); i++)
        domt_sleep_ms(20);
    ck_assert(does_output_contain("Z begins: connections-full: 3 connections"));
    ck_assert(does_output_contain("Z ends: connections-full, after "));
    domt_observed_stop_web(&web);
    for (int i = 0; i < 1000 && !does_output_contain("Z 127.0.0.1:"); i++)
        domt_sleep_ms(20);
    ck_assert_msg(does_output_contain("Z 127.0.0.1:"), "the program was not missed: %s", said);
    snprintf(line, sizeof line, "kill -INT $(cat '%s/pid')", tree.root);
    ck_assert_int_eq(system(line), 0); /* NOLINT(cert-env33-c): a test may use the shell */
    ck_assert_ptr_eq(strstr(strstr(said, "begins: conn") + 1, "begins: conn"), NULL);
    domt_tree_remove_copy(&tree);
}

/* --- doctor port ------------------------------------------------------------------------------ */

/* /doctor of the observation port: which requests are allowed, how many clients may ask at a time,
 * and when a look ends. */

#define CROWD 1000

static int connect_and_send_get(const char *path)
{
    char request[256];
    int fd = domt_connect_to_port(web.port.web);

    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    domt_send_text(fd, request);
    return fd;
}

static void wait_until_port_answers_with_status(const char *path, unsigned status)
{
    for (int i = 0; i < 200; i++) {
        if (domt_site_ask(&web.port, path, "", NULL) == status)
            return;
        domt_sleep_ms(10);
    }
    ck_abort_msg("%s: %s", path, web.port.answer);
}

DOMT_TEST(get_doctor_takes_its_seconds_and_answers_with_findings)
{
    static const struct {
        const char *request, *fields;
        unsigned status;
        const char *part;
    } rows[] = {
        {"GET /doctor?seconds=1", "", 200, "web (pid "},
        {"GET /doctor?seconds=1s&format=json", "", 200, "{\"program\":\"web\",\"pid\":"},
        {"GET /doctor?seconds=1", "Accept: text/html, application/json\r\n", 200, "\"findings\":["},
        {"GET /doctor?seconds=0", "", 400, "1..60"},
        {"GET /doctor?seconds=61", "", 400, "1..60"},
        {"GET /doctor?seconds=", "", 400, "1..60"},
        {"GET /doctor?seconds=1&format=xml", "", 400, "text or json"},
        {"POST /doctor?seconds=1", "", 405, NULL},
        {"GET /doctor?seconds=1", "Sec-Fetch-Site: cross-site\r\n", 403, NULL},
        {"GET /profile?machine=2", "", 400, "0 or 1"},
        {"GET /profile?machine=1", "", 200, "\"machine\":{\"cpus\":"},
        {"GET /profile?machine=1", "", 200, "\"scheduler.ioRatio\":50"},
    };

    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_msg(domt_site_ask(&web.port, rows[i].request, rows[i].fields, NULL) ==
                          rows[i].status,
                      "%s: %s", rows[i].request, web.port.answer);
        ck_assert_msg(rows[i].part == NULL || strstr(web.port.body, rows[i].part) != NULL, "%s: %s",
                      rows[i].request, web.port.body);
    }
    domt_site_expect_answer(&web.port, "POST /profile?level=off", NULL, 200, NULL);
    domt_site_expect_answer(&web.port, "GET /doctor?seconds=1", NULL, 409, "profile.level");
    domt_observed_stop_web(&web);
}

/* The doctor's rules use the settings at the time of the look, not those at the start. */
DOMT_TEST(the_doctor_looks_at_keys_as_they_are_now)
{
    domt_observed_start_web(&web, (const char *const[]){"observe.change=true", NULL}, NULL);
    domt_site_expect_answer(&web.port, "GET /profile?machine=1", NULL, 200,
                            "\"channel.requestsMax\":128,\"listeners.channel.requestsMax\":0,");
    domt_site_expect_answer(&web.port, "PUT /config/channel.requestsMax", "7\n", 200, NULL);
    domt_site_expect_answer(&web.port, "PUT /config/scheduler.ioRatio", "auto\n", 200, NULL);
    domt_site_expect_answer(&web.port, "GET /profile?machine=1", NULL, 200,
                            "\"channel.requestsMax\":7,\"listeners.channel.requestsMax\":0,");
    domt_site_expect_answer(&web.port, "GET /profile?machine=1", NULL, 200,
                            "\"scheduler.ioRatio\":4294967295,");
    domt_observed_stop_web(&web);
}

DOMT_TEST(viewers_that_wait_keep_nobody_out_and_a_stop_ends_their_wait)
{
    char text[4096];
    int fds[17];

    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    for (int i = 0; i < 16; i++)
        fds[i] = connect_and_send_get("/doctor?seconds=60");
    domt_sleep_ms(300);
    /* this look joins one that has begun earlier, so it covers more than a second */
    domt_site_expect_answer(&web.port, "GET /doctor?seconds=1", NULL, 200, "web (pid ");
    ck_assert_ptr_null(strstr(web.port.body, "), 1.0 s"));
    close(fds[0]);
    /* this look has just begun, and is too short for a result when the program stops */
    fds[0] = connect_and_send_get("/doctor?seconds=60");
    domt_sleep_ms(60);
    time_t began = time(NULL);
    domt_service_signal(&web.site.service, SIGTERM);
    for (int i = 0; i < 16; i++) {
        domt_read_until_text(fds[i], "web (pid ", text, sizeof text);
        close(fds[i]);
    }
    ck_assert_int_eq(domt_service_wait(&web.site.service, 10000), 0);
    ck_assert_int_le(time(NULL) - began, 5);
}

/* While one viewer waits, another one gets a look of its own, unless the port believes that a crowd
 * is waiting: then it would cover the two seconds of this pause, too. */
static void expect_new_viewer_gets_own_look(void)
{
    int fd = connect_and_send_get("/doctor?seconds=60");

    domt_sleep_ms(2000);
    domt_site_expect_answer(&web.port, "GET /doctor?seconds=1", NULL, 200, "web (pid ");
    ck_assert(strtod(strstr(web.port.body, "), ") + 3, NULL) < 2.9);
    close(fd);
}

/* Many viewers use all places of the port, and some leave while they wait: the others are answered
 * or refused, and the program is as before. */
DOMT_TEST(a_crowd_at_the_doctor_does_no_harm)
{
    static int fds[CROWD];

    domt_observed_start_web(&web, (const char *const[]){"observe.viewersMax=2000", NULL}, NULL);
    for (int i = 0; i < CROWD; i++)
        fds[i] = connect_and_send_get(i % 2 == 0 ? "/doctor?seconds=1"
                                                 : "/doctor?seconds=60&format=json");
    domt_site_expect_answer(&web.site, "GET /json", NULL, 200, "hello");
    for (int i = 0; i < CROWD; i += 3)
        close(fds[i]);
    for (int i = 0; i < CROWD; i++)
        if (i % 3 != 0)
            close(fds[i]);
    wait_until_port_answers_with_status("GET /doctor?seconds=1", 200);
    expect_new_viewer_gets_own_look();
    domt_observed_stop_web(&web);
}

DOMT_SUITE(70)
