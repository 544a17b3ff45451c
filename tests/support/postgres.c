/* Makes clusters of PostgreSQL and starts their servers; tests/support/postgres.h has the
 * contract. */
#include "tests/support/postgres.h"
#include "tests/support/process.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <glob.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROGRAMS "/usr/lib/postgresql/*/bin/"

/* Write to `path` the path of the program `name` of PostgreSQL, in the newest version that is
 * installed. Returns false if it is not installed. */
static bool find_program(const char *name, char *path, size_t path_size)
{
    char pattern[100];
    glob_t found;

    snprintf(pattern, sizeof pattern, PROGRAMS "%s", name);
    bool is_there = glob(pattern, 0, NULL, &found) == 0;
    if (is_there)
        snprintf(path, path_size, "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    return is_there;
}

bool domt_postgres_is_installed(void)
{
    char path[128];

    return find_program("postgres", path, sizeof path) && find_program("initdb", path, sizeof path);
}

/* If the process runs as root, become the user postgres, because PostgreSQL refuses to run as
 * root. */
static void become_user_postgres(void)
{
    const struct passwd *user = getuid() == 0 ? getpwnam("postgres") : NULL;

    if (user != NULL && (setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0))
        _exit(1);
}

static void give_path_to_user_postgres(const char *path)
{
    const struct passwd *user = getuid() == 0 ? getpwnam("postgres") : NULL;

    if (user != NULL)
        ck_assert_int_eq(chown(path, user->pw_uid, user->pw_gid), 0);
}

/* Start a program of PostgreSQL in the server's directory, with its output in the file `log`
 * there. */
static pid_t start_program(const domt_postgres *server, const char *const *arguments)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid != 0)
        return pid;
    become_user_postgres();
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (getppid() != parent || chdir(server->directory) != 0)
        _exit(1);
    int out = open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (out < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(1);
    execv(arguments[0], (char *const *)(uintptr_t)arguments);
    _exit(1);
}

static void run_program(const domt_postgres *server, const char *const *arguments)
{
    int status = -1;
    pid_t pid = start_program(server, arguments);

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s has failed", arguments[0]);
}

static bool is_accepting_sessions(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    /* a request for TLS: a server that accepts sessions answers with 'N' (no TLS) or 'S' */
    static const char question[8] = {0, 0, 0, 8, 4, (char)0xd2, 0x16, 0x2f};
    char answer = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_there = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
                    send(fd, question, sizeof question, MSG_NOSIGNAL) == sizeof question &&
                    recv(fd, &answer, 1, 0) == 1 && (answer == 'N' || answer == 'S');

    close(fd);
    return is_there;
}

static bool is_server_ready(const domt_postgres *server)
{
    char path[100], text[512];

    snprintf(path, sizeof path, "%s/data/postmaster.pid", server->directory);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    return (strstr(text, "ready") != NULL || strstr(text, "standby") != NULL) &&
           is_accepting_sessions(server->port);
}

void domt_postgres_start_again(domt_postgres *server)
{
    char program[128] = "";
    const char *const arguments[] = {program, "-D", "data", NULL};

    ck_assert(find_program("postgres", program, sizeof program));
    server->pid = start_program(server, arguments);
    for (int i = 0; i < 4000; i++) {
        if (is_server_ready(server))
            return;
        ck_assert_msg(waitpid(server->pid, NULL, WNOHANG) == 0, "postgres has ended");
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    ck_abort_msg("postgres does not listen");
}

/* Drop the databases of a new cluster that no test uses: each has 300 files, which would be copied
 * for each later cluster. */
static void drop_template_databases(const domt_postgres *server)
{
    static const char *const commands = "UPDATE pg_database SET datistemplate = false\n"
                                        "DROP DATABASE template0\nDROP DATABASE template1\n";
    char program[128] = "", command[512];

    ck_assert(find_program("postgres", program, sizeof program));
    snprintf(command, sizeof command, "printf '%s' | %s --single -D data -F postgres >/dev/null",
             commands, program);
    run_program(server, (const char *const[]){"/bin/sh", "-c", command, NULL});
}

static void init_cluster(const domt_postgres *server)
{
    char program[128] = "";
    const char *const init[] = {program,    "-D", "data", "-A",   "trust",      "-U",
                                "postgres", "-N", "-E",   "UTF8", "--locale=C", "--wal-segsize=1",
                                NULL};

    ck_assert(find_program("initdb", program, sizeof program));
    run_program(server, init);
    drop_template_databases(server);
}

static void copy_directory(const char *from, const char *to)
{
    char command[512];

    /* an interrupted copy may be there */
    snprintf(command, sizeof command, "rm -rf '%s.new' && cp -a '%s' '%s.new' && mv '%s.new' '%s'",
             to, from, to, to, to);
    ck_assert_int_eq(system(command), 0);
}

/* Make a cluster. A run of tests (tests/run) copies one cluster, because initdb takes a second of
 * CPU time. */
static void make_cluster(const domt_postgres *server)
{
    const char *scratch = getenv("DOMT_SCRATCH");
    char data[100], kept[256], lock[256];

    if (scratch == NULL) {
        init_cluster(server);
        return;
    }
    snprintf(data, sizeof data, "%s/data", server->directory);
    snprintf(kept, sizeof kept, "%s/postgres", scratch);
    snprintf(lock, sizeof lock, "%s/postgres.lock", scratch);
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    if (access(kept, F_OK) == 0)
        copy_directory(kept, data);
    else {
        init_cluster(server);
        copy_directory(data, kept);
    }
    close(fd);
}

/* Fork a process that waits for the end of the test, also by a crash, and then removes the files of
 * the cluster. The server itself ends with the test by PR_SET_PDEATHSIG. */
static void begin_watcher_process(domt_postgres *server)
{
    static const char script[] = "cat; i=0\n"
                                 "until rm -rf \"$0\" 2>/dev/null || [ $i -ge 100 ]; do\n"
                                 "    i=$((i + 1)); sleep 0.1\n"
                                 "done";
    int ends[2];

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    server->watcher = fork();
    ck_assert_int_ge(server->watcher, 0);
    if (server->watcher == 0) {
        int none = open("/dev/null", O_RDWR | O_CLOEXEC);
        /* a new session, because a test that takes too long is killed with its process group */
        (void)setsid();
        if (dup2(ends[0], 0) < 0 || dup2(none, 1) < 0 || dup2(none, 2) < 0 ||
            close_range(3, ~0u, 0) != 0)
            _exit(1);
        execl("/bin/sh", "sh", "-c", script, server->directory, (char *)NULL);
        _exit(1);
    }
    close(ends[0]);
    server->watched = ends[1];
}

void domt_postgres_start(domt_postgres *server, const char *settings)
{
    char path[100];

    ck_assert_msg(domt_postgres_is_installed(),
                  "no " PROGRAMS "postgres (Debian: postgresql), which this test talks with");
    *server = (domt_postgres){.port = domt_find_free_port()};
    snprintf(server->directory, sizeof server->directory, "/tmp/domus-postgres-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(server->directory));
    begin_watcher_process(server);
    give_path_to_user_postgres(server->directory);
    make_cluster(server);
    snprintf(path, sizeof path, "%s/data/postgresql.conf", server->directory);
    FILE *file = fopen(path, "ae");
    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "fsync = off\nfull_page_writes = off\nsynchronous_commit = off\nport = %u\n"
            "listen_addresses = '127.0.0.1'\nunix_socket_directories = '%s'\n"
            "max_connections = 100\nshared_buffers = 32MB\n%s\n",
            server->port, server->directory, settings != NULL ? settings : "");
    ck_assert_int_eq(fclose(file), 0);
    snprintf(server->url, sizeof server->url, "postgresql://postgres@127.0.0.1:%u/postgres",
             server->port);
    snprintf(server->unix_url, sizeof server->unix_url,
             "postgresql:///postgres?host=%s&port=%u&user=postgres", server->directory,
             server->port);
    domt_postgres_start_again(server);
}

void domt_postgres_signal_and_wait(domt_postgres *server, int signal)
{
    if (server->pid <= 0)
        return;
    kill(server->pid, signal);
    (void)waitpid(server->pid, NULL, 0);
    server->pid = 0;
}

void domt_postgres_stop(domt_postgres *server)
{
    domt_postgres_signal_and_wait(server, SIGQUIT);
    close(server->watched);
    ck_assert_int_eq(waitpid(server->watcher, NULL, 0), server->watcher);
    ck_assert_int_ne(access(server->directory, F_OK), 0);
}
