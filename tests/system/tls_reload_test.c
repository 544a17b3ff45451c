/* At SIGHUP the example web reads certificates and keys again: the next connection gets the new
 * certificate, an open one goes on, and wrong files change nothing and are logged. */
#include "tests/support/suite.h"
#include "tests/system/secure.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ "were read again"
#define KEPT "this listener keeps what it has"

static domt_secure secure;
static const char *const nothing[] = {NULL};

/* Read the serial number of the certificate that the site shows to new connections. */
static void read_serial_of_site(char serial[128])
{
    domt_secure_expect_command_succeeds(
        &secure, "true | openssl s_client -connect 127.0.0.1:$WEB 2>/dev/null | "
                 "openssl x509 -noout -serial");
    snprintf(serial, 128, "%.127s", domt_secure_output);
}

static void read_serial_of_file(char serial[128])
{
    domt_secure_expect_command_succeeds(&secure, "openssl x509 -noout -serial -in $T/a.pem");
    snprintf(serial, 128, "%.127s", domt_secure_output);
}

/* Begin a connection to echo by a child of the shell, whose input this test writes, and whose
 * output is the file `held`. */
static FILE *open_held_connection(void)
{
    char command[PATH_MAX + 256];

    snprintf(command, sizeof command,
             "timeout 60 openssl s_client -quiet -no_ign_eof -connect 127.0.0.1:%u "
             "> %s/held 2>/dev/null",
             secure.site.echo, secure.tree.root);
    FILE *pipe = popen(command, "w"); /* NOLINT(cert-env33-c): a test may use the shell */
    ck_assert_ptr_nonnull(pipe);
    return pipe;
}

/* Send a line on the held connection, and check that it is echoed. */
static void expect_echo_on_held_connection(FILE *held, const char *line)
{
    char command[256];

    ck_assert_int_ge(fprintf(held, "%s\n", line), 0);
    ck_assert_int_eq(fflush(held), 0);
    snprintf(command, sizeof command, "until grep -x %s $T/held; do sleep 0.05; done", line);
    domt_secure_expect_command_succeeds(&secure, command);
}

DOMT_TEST(next_connection_gets_the_new_certificate_and_an_open_one_goes_on)
{
    char before[128], now[128], file[128];

    if (!domt_secure_are_programs_installed(""))
        return;
    domt_secure_make_authority(&secure);
    domt_secure_start_site(&secure, nothing);
    FILE *held = open_held_connection();
    expect_echo_on_held_connection(held, "one");
    read_serial_of_site(before);
    domt_secure_issue_certificate(&secure, "a", "DNS:localhost,IP:127.0.0.1");
    expect_echo_on_held_connection(held, "two");
    read_serial_of_site(now);
    ck_assert_str_eq(before, now); /* no signal was sent, so nothing is read again */
    domt_service_signal(&secure.site.service, SIGHUP);
    domt_secure_wait_until_logged(&secure, "SIGHUP: the files of 4 listeners " READ, 1);
    read_serial_of_site(now);
    read_serial_of_file(file);
    ck_assert_str_eq(now, file);
    ck_assert_str_ne(before, now);
    expect_echo_on_held_connection(held, "three");
    ck_assert_int_eq(pclose(held), 0);
    domt_secure_end_site(&secure);
}

DOMT_TEST(certificate_files_that_are_wrong_change_nothing)
{
    static const struct {
        const char *command, *said;
    } rows[] = {
        {"rm $T/a.pem", "tls.certFile: %s/a.pem: No such file or directory"},
        {"rm $T/a.key", "tls.keyFile: %s/a.key: No such file or directory"},
        {"head -c 300 $T/good.pem >$T/a.pem", "tls.certFile: %s/a.pem: "},
        {"head -c 100 $T/good.key >$T/a.key", "tls.keyFile: %s/a.key: "},
        {": >$T/a.pem", "tls.certFile: %s/a.pem: the file is empty"},
        {"cp $T/b.key $T/a.key", "tls.keyFile: %s/a.key: key values mismatch"},
        {"cp $T/b.pem $T/a.pem", "tls.keyFile: %s/a.key: key values mismatch"},
        {"rm $T/a.pem; mkdir $T/a.pem", "tls.certFile: %s/a.pem: Is a directory"},
        {"rm $T/a.key; mkfifo $T/a.key", "tls.keyFile: %s/a.key: not a regular file"},
        {"head -c 2097152 /dev/zero >>$T/a.pem", "tls.certFile: %s/a.pem: File too large"},
        {"chmod 0 $T/a.key", "tls.keyFile: %s/a.key: Permission denied"},
    };
    char before[128], now[128], said[PATH_MAX + 256];
    uint32_t kept = 0;

    if (!domt_secure_are_programs_installed(""))
        return;
    domt_secure_make_authority(&secure);
    domt_secure_issue_certificate(&secure, "b", "DNS:localhost,IP:127.0.0.1");
    domt_secure_expect_command_succeeds(&secure,
                                        "cp $T/a.pem $T/good.pem; cp $T/a.key $T/good.key");
    domt_secure_start_site(&secure, nothing);
    read_serial_of_site(before);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strncmp(rows[i].command, "chmod", 5) == 0 && geteuid() == 0)
            continue; /* root can read a file without permissions, so this row shows nothing */
        domt_secure_expect_command_succeeds(&secure, rows[i].command);
        domt_service_signal(&secure.site.service, SIGHUP);
        kept += 4;
        domt_secure_wait_until_logged(&secure, KEPT, kept);
        snprintf(said, sizeof said, rows[i].said, secure.tree.root);
        ck_assert_msg(strstr(secure.site.service.error, said) != NULL, "%s: %s", rows[i].command,
                      secure.site.service.error);
        read_serial_of_site(now);
        ck_assert_str_eq(before, now);
        domt_secure_expect_command_succeeds(&secure,
                                            "rm -rf $T/a.pem $T/a.key; cp $T/good.pem $T/a.pem; "
                                            "cp $T/good.key $T/a.key");
    }
    domt_secure_expect_command_succeeds(&secure, "cp $T/b.pem $T/a.pem; cp $T/b.key $T/a.key");
    domt_service_signal(&secure.site.service, SIGHUP);
    domt_secure_wait_until_logged(&secure, READ, 1);
    read_serial_of_site(now);
    ck_assert_str_ne(before, now);
    domt_secure_end_site(&secure);
}

/* One listener may have a wrong file while the others use their new files. */
DOMT_TEST(a_listener_with_a_wrong_file_keeps_its_certificate_alone)
{
    static const char *const settings[] = {"listeners.kv.tls.certFile=@T@/b.pem",
                                           "listeners.kv.tls.keyFile=@T@/b.key", NULL};

    if (!domt_secure_are_programs_installed(""))
        return;
    domt_secure_make_authority(&secure);
    domt_secure_issue_certificate(&secure, "b", "DNS:localhost");
    domt_secure_start_site(&secure, settings);
    domt_secure_expect_command_succeeds(&secure, "rm $T/b.key");
    domt_service_signal(&secure.site.service, SIGHUP);
    domt_secure_wait_until_logged(&secure, "SIGHUP: the files of 3 listeners " READ, 1);
    domt_secure_wait_until_logged(&secure, "SIGHUP: listeners.kv.tls.keyFile: ", 1);
    domt_secure_wait_until_logged(&secure, KEPT, 1);
    domt_secure_end_site(&secure);
}

/* Signals come faster than files are read, while the files change and clients connect. The files
 * are read again one time after the other, and the last time reads the last file. */
DOMT_TEST(a_storm_of_signals_to_reload_certificates_is_survived)
{
    char now[128], file[128];

    if (!domt_secure_are_programs_installed("curl"))
        return;
    domt_secure_make_authority(&secure);
    domt_secure_issue_certificate(&secure, "b", "DNS:localhost,IP:127.0.0.1");
    domt_secure_start_site(&secure, nothing);
    char command[512];
    snprintf(command, sizeof command,
             "cp $T/a.pem $T/c.pem; cp $T/a.key $T/c.key; for i in $(seq 20); do "
             "for n in b c; do cp $T/$n.pem $T/a.pem; kill -HUP %d; cp $T/$n.key $T/a.key; "
             "kill -HUP %d; kill -HUP %d; done; "
             "curl -sSf --cacert $CA https://localhost:$WEB/json >/dev/null || exit 1; done",
             secure.site.service.pid, secure.site.service.pid, secure.site.service.pid);
    domt_secure_expect_command_succeeds(&secure, command);
    domt_secure_issue_certificate(&secure, "a", "DNS:localhost,IP:127.0.0.1");
    read_serial_of_file(file);
    domt_service_signal(&secure.site.service, SIGHUP);
    for (int i = 0; i < 100; i++) {
        read_serial_of_site(now);
        if (strcmp(now, file) == 0)
            break;
        domt_sleep_ms(50);
    }
    ck_assert_str_eq(now, file);
    domt_secure_end_site(&secure);
}

/* A stop while files are read again ends the program as usual. */
DOMT_TEST(stop_in_the_midst_of_a_reload_ends)
{
    if (!domt_secure_are_programs_installed(""))
        return;
    for (int i = 0; i < 3; i++) {
        domt_secure_make_authority(&secure);
        domt_secure_start_site(&secure, nothing);
        domt_service_signal(&secure.site.service, SIGHUP);
        domt_sleep_ms((uint32_t)i);
        domt_secure_end_site(&secure);
    }
}

DOMT_SUITE(110)
