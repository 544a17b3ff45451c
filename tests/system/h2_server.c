/* Finds the server of HTTP/2 under test; tests/system/h2_server.h describes the environment. */
#include "tests/system/h2_server.h"

#include "tests/support/suite.h"
#include "tests/system/h2.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns whether examples/web speaks HTTP/2 on its port. DOMT_H2_WEB=1 says so for one run. */
static const bool web_speaks_h2 = true;

bool domt_h2_is_example_web_tested(void)
{
    const char *text = getenv("DOMT_H2_WEB");

    return getenv("DOMT_H2_AT") == NULL && (web_speaks_h2 || (text != NULL && text[0] == '1'));
}

bool domt_h2_server_begin(domt_h2_server *server, const char *const settings[])
{
    const char *at = getenv("DOMT_H2_AT");
    const char *pid = getenv("DOMT_H2_PID");
    const char *path = getenv("DOMT_H2_PATH");

    memset(server, 0, sizeof *server);
    if (path != NULL)
        (void)snprintf(domt_h2_path, sizeof domt_h2_path, "%s", path);
    if (at != NULL) {
        server->port = (uint16_t)strtoul(at, NULL, 10);
        server->pid = pid != NULL ? (pid_t)strtol(pid, NULL, 10) : 0;
    } else if (domt_h2_is_example_web_tested()) {
        domt_site_start_program(&server->site, settings);
        server->is_site = true;
        server->port = server->site.web;
        server->pid = server->site.service.pid;
    } else {
        puts("no server of HTTP/2 is judged: DOMT_H2_AT names none");
        return false;
    }
    (void)snprintf(domt_h2_authority, sizeof domt_h2_authority, "127.0.0.1:%u", server->port);
    return true;
}

void domt_h2_server_end(domt_h2_server *server)
{
    static domt_h2 h2;

    ck_assert_msg(domt_h2_open_connection(&h2, server->port), "the server serves no more");
    domt_h2_close_connection(&h2, false);
    if (server->is_site)
        domt_site_stop_program(&server->site);
}

uint64_t domt_h2_server_rss_bytes(const domt_h2_server *server)
{
    domt_service service = {.pid = server->pid};

    return server->pid != 0 ? domt_service_rss_bytes(&service) : 0;
}
