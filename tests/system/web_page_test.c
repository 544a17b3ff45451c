/* The example `web` as a newcomer meets it: `./dev serve` starts it, and its page works in a
 * browser. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The page of the example `web`: tests/system/browser.py uses it in headless Chromium as a person
 * does. Without Chromium nothing is tested. */

static domt_site site;

DOMT_TEST(each_part_of_the_page_works_in_a_browser)
{
    char command[512];

    if (system("command -v chromium >/dev/null && command -v python3 >/dev/null") != 0) {
        printf("chromium or python3 is not installed, so the page is not tried\n");
        return;
    }
    domt_site_start_program(&site, (const char *const[]){"web.tick=100ms", NULL});
    snprintf(command, sizeof command,
             "timeout -k 5 90 python3 " DOMT_SOURCE_DIR "/tests/system/browser.py %u %u", site.web,
             site.rooms);
    ck_assert_int_eq(system(command), 0);
    domt_site_stop_program(&site);
}

/* --- web serve -------------------------------------------------------------------------------- */

/* `./dev serve` starts the example `web` with all its services. */

#define ARGUMENTS_MAX 64

static char text[65536];

/* The script `./dev` is run from another directory, as a user may, and each service answers. */
DOMT_TEST(dev_serve_starts_all_services)
{
    const char *arguments[ARGUMENTS_MAX];

    ck_assert_int_eq(chdir("/"), 0);
    domt_site_gather_arguments_of_dev_serve((const char *const[]){NULL}, arguments, ARGUMENTS_MAX);
    domt_site_start_by_arguments(&site, arguments);
    domt_site_expect_answer(&site, "GET /", NULL, 200, "<html");
    domt_site_expect_answer(&site, "PUT /kv/a", "one", 204, NULL);
    int kv = domt_connect_to_port(site.kv);
    domt_send_text(kv, "GET a\r\n");
    (void)domt_read_until_text(kv, "$3\r\none\r\n", text, sizeof text);
    int rooms = domt_connect_to_port(site.rooms);
    domt_send_text(rooms, "/join garden\nhello\n");
    (void)domt_read_until_text(rooms, "hello\n", text, sizeof text);
    int echo = domt_connect_to_port(site.echo);
    domt_send_text(echo, "any bytes");
    (void)domt_read_until_text(echo, "any bytes", text, sizeof text);
    close(kv);
    close(rooms);
    close(echo);
    domt_site_stop_program(&site);
}

DOMT_SUITE(100)
