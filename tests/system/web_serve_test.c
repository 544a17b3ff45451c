/* `./dev serve` starts the example `web` with all its services. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/site.h"

#include <unistd.h>

#define ARGUMENTS_MAX 64

static domt_site site;
static char text[65536];

/* The script `./dev` is run from another directory, as a user may, and each service answers. */
DOMT_TEST(dev_serve_serves)
{
    const char *arguments[ARGUMENTS_MAX];

    ck_assert_int_eq(chdir("/"), 0);
    domt_site_arguments_of_dev_serve((const char *const[]){NULL}, arguments, ARGUMENTS_MAX);
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

DOMT_SUITE(30)
