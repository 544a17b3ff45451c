/* Starts the example web behind TLS; tests/system/secure.h describes the functions. */
#include "tests/system/secure.h"

#include "tests/support/suite.h"
#include "tests/system/judges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define SETTINGS_MAX 24u
#define SETTING_SIZE 256u

char domt_secure_output[65536];

bool domt_secure_are_programs_installed(const char *programs)
{
    return domt_are_judges_installed("openssl") &&
           (programs[0] == '\0' || domt_are_judges_installed(programs));
}

int domt_secure_run_command(const domt_secure *secure, const char *command)
{
    char line[4096];
    int size = snprintf(line, sizeof line,
                        "T=%s CA=%s/ca.pem WEB=%u KV=%u ROOMS=%u ECHO=%u; "
                        "export T CA WEB KV ROOMS ECHO; timeout -k 1 30 sh -c '%s' 2>&1",
                        secure->tree.root, secure->tree.root, secure->site.web, secure->site.kv,
                        secure->site.rooms, secure->site.echo, command);

    ck_assert_int_lt(size, (int)sizeof line);
    FILE *pipe = popen(line, "r"); /* NOLINT(cert-env33-c): a test may use the shell */
    ck_assert_ptr_nonnull(pipe);
    size_t got = fread(domt_secure_output, 1, sizeof domt_secure_output - 1, pipe);
    domt_secure_output[got] = '\0';
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void domt_secure_expect_command_succeeds(const domt_secure *secure, const char *command)
{
    int status = domt_secure_run_command(secure, command);

    ck_assert_msg(status == 0, "%s: status %d: %s", command, status, domt_secure_output);
}

void domt_secure_issue_certificate(const domt_secure *secure, const char *name, const char *names)
{
    char command[1024];

    (void)snprintf(command, sizeof command,
                   "openssl req -x509 -config $T/cnf -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
                   "-nodes -days 2 -CA $T/ca.pem -CAkey $T/ca.key -subj /CN=%s "
                   "-addext basicConstraints=critical,CA:FALSE -addext subjectAltName=%s "
                   "-keyout $T/new.key -out $T/new.pem && mv $T/new.key $T/%s.key && "
                   "mv $T/new.pem $T/%s.pem",
                   name, names, name, name);
    domt_secure_expect_command_succeeds(secure, command);
}

void domt_secure_make_authority(domt_secure *secure)
{
    *secure = (domt_secure){.site.web = 0};
    domt_tree_make(&secure->tree);
    domt_tree_write(&secure->tree, "cnf", "[req]\ndistinguished_name=dn\n[dn]\n");
    domt_secure_expect_command_succeeds(
        secure, "umask 077; openssl req -x509 -config $T/cnf -newkey ec "
                "-pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority "
                "-addext basicConstraints=critical,CA:TRUE "
                "-addext subjectKeyIdentifier=hash -keyout $T/ca.key -out $T/ca.pem");
    domt_secure_issue_certificate(secure, "a", "DNS:localhost,IP:127.0.0.1");
}

/* Copy a setting with the directory in place of @T@. */
static void fill_in_directory(const domt_secure *secure, const char *from, char to[SETTING_SIZE])
{
    size_t at = 0;

    to[0] = '\0';
    while (*from != '\0') {
        bool is_tree = strncmp(from, "@T@", 3) == 0;
        at += (size_t)snprintf(to + at, SETTING_SIZE - at, "%.*s", is_tree ? 4096 : 1,
                               is_tree ? secure->tree.root : from);
        ck_assert_uint_lt(at, SETTING_SIZE);
        from += is_tree ? 3 : 1;
    }
}

void domt_secure_start_site(domt_secure *secure, const char *const settings[])
{
    static const char *const always[] = {
        "listeners.web.tls.certFile=@T@/a.pem",  "listeners.web.tls.keyFile=@T@/a.key",
        "listeners.web.tls.alpn=http/1.1",       "listeners.kv.tls.certFile=@T@/a.pem",
        "listeners.kv.tls.keyFile=@T@/a.key",    "listeners.rooms.tls.certFile=@T@/a.pem",
        "listeners.rooms.tls.keyFile=@T@/a.key", "listeners.echo.tls.certFile=@T@/a.pem",
        "listeners.echo.tls.keyFile=@T@/a.key",  NULL};
    static char texts[SETTINGS_MAX][SETTING_SIZE];
    const char *filled[SETTINGS_MAX + 1];
    const char *const *const lists[] = {always, settings};
    size_t count = 0;

    for (size_t i = 0; i < 2; i++) {
        for (const char *const *setting = lists[i]; *setting != NULL; setting++) {
            ck_assert_uint_lt(count, SETTINGS_MAX);
            fill_in_directory(secure, *setting, texts[count]);
            filled[count] = texts[count];
            count++;
        }
    }
    filled[count] = NULL;
    domt_site_start_program(&secure->site, filled);
}

/* Returns how many times a text occurs in another one. */
static uint32_t count_part_in_text(const char *text, const char *part)
{
    uint32_t count = 0;

    for (; (text = strstr(text, part)) != NULL; text++)
        count++;
    return count;
}

void domt_secure_wait_until_logged(domt_secure *secure, const char *text, uint32_t times)
{
    for (uint32_t i = 0; i < 2000; i++) {
        domt_service_read_error(&secure->site.service);
        if (count_part_in_text(secure->site.service.error, text) >= times)
            return;
        domt_sleep_ms(10);
    }
    ck_abort_msg("\"%s\" was not said %u times: %s", text, times, secure->site.service.error);
}

void domt_secure_end_site(domt_secure *secure)
{
    if (secure->site.web != 0)
        domt_site_stop_program(&secure->site);
    domt_tree_remove_copy(&secure->tree);
}
