/* Runs programs of other projects with the example web; tests/system/judges.h describes the
 * functions. */
#include "tests/system/judges.h"

#include "tests/support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONFIG_MAX 8192

static pid_t nginx;

bool domt_are_judges_installed(const char *programs)
{
    char line[512];

    (void)snprintf(
        line, sizeof line,
        "for p in %s; do command -v $p >/dev/null || { echo \"no $p: it does not judge\"; "
        "exit 1; }; done",
        programs);
    return system(line) == 0; /* NOLINT(cert-env33-c): a test may use the shell */
}

void domt_run_judge_command(const domt_tree *tree, const domt_site *site, const char *command)
{
    char line[4096];
    int size = snprintf(line, sizeof line,
                        "T=%s; export T; IN=$T/in; export IN; N=\"--unix-socket $T/nginx\"; "
                        "export N; URL=http://127.0.0.1:%u; export URL; "
                        "timeout -k 1 30 sh -c '%s'",
                        tree->root, site->web, command);

    ck_assert_int_lt(size, (int)sizeof line);
    int status = system(line); /* NOLINT(cert-env33-c): a test may use the shell */
    ck_assert_msg(status == 0, "%s", command);
}

void domt_make_directory_for_judges(domt_tree *tree)
{
    char line[PATH_MAX + 64];

    domt_tree_make(tree);
    domt_tree_write(tree, "www/small.txt", "hello\n");
    domt_tree_write(tree, "tmp/x", "");
    (void)snprintf(line, sizeof line, "seq 200000 | head -c 1000000 >%s/in", tree->root);
    ck_assert_int_eq(system(line), 0); /* NOLINT(cert-env33-c): a test may use the shell */
}

/* Copy the text of a configuration, with the directory for @T@ and the port for @P@. */
static void fill_in_directory_and_port(const domt_tree *tree, const domt_site *site,
                                       const char *from, char *to, size_t room)
{
    size_t at = 0;

    while (*from != '\0') {
        bool is_tree = strncmp(from, "@T@", 3) == 0;
        bool is_port = strncmp(from, "@P@", 3) == 0;
        ck_assert_uint_lt(at, room - PATH_MAX);
        if (is_tree)
            at += (size_t)snprintf(to + at, room - at, "%s", tree->root);
        else if (is_port)
            at += (size_t)snprintf(to + at, room - at, "%u", site->web);
        else
            to[at++] = *from;
        from += is_tree || is_port ? 3 : 1;
    }
    to[at] = '\0';
}

void domt_nginx_start(const domt_tree *tree, const domt_site *site, const char *servers)
{
    static const char begin[] =
        "daemon off; master_process off; pid @T@/tmp/pid; error_log @T@/tmp/log;\n"
        "events { worker_connections 256; }\n"
        "http { access_log off; client_max_body_size 100m; client_body_temp_path @T@/tmp/b;\n"
        "proxy_temp_path @T@/tmp/p; fastcgi_temp_path @T@/tmp/f; uwsgi_temp_path @T@/tmp/u;\n"
        "scgi_temp_path @T@/tmp/s;\n";
    static char text[CONFIG_MAX], config[CONFIG_MAX + PATH_MAX];
    pid_t parent = getpid();

    (void)snprintf(text, sizeof text, "%s%s}\n", begin, servers);
    fill_in_directory_and_port(tree, site, text, config, sizeof config);
    domt_tree_write(tree, "nginx.conf", config);
    nginx = fork();
    ck_assert_int_ge(nginx, 0);
    if (nginx == 0) {
        char path[PATH_MAX], log[PATH_MAX];
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)snprintf(path, sizeof path, "%s/nginx.conf", tree->root);
        (void)snprintf(log, sizeof log, "%s/tmp/log", tree->root);
        if (getppid() == parent)
            (void)execlp("nginx", "nginx", "-p", tree->root, "-c", path, "-e", log, (char *)NULL);
        _exit(127);
    }
    domt_run_judge_command(
        tree, site,
        "i=0; until [ -S $T/nginx ]; do i=$((i + 1)); [ $i -lt 1000 ] || exit 1; "
        "sleep 0.01; done");
}

void domt_nginx_kill(void)
{
    (void)kill(nginx, SIGKILL);
    (void)waitpid(nginx, NULL, 0);
}
