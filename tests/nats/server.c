/* Starts nats-server, and a system with a client of it; see the header. */
#include "tests/nats/server.h"
#include "tests/support/suite.h"

#include <domus/spawn.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM "/usr/sbin/nats-server"
#define SECOND  UINT64_C(1000000000)

/* --- the server ------------------------------------------------------------------------------- */

static void run(const domt_nats_server *server, pid_t parent)
{
    char config[100], port[16];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(config, sizeof config, "%s/conf", server->directory);
    snprintf(port, sizeof port, "%d", server->port != 0 ? server->port : -1);
    int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (getppid() != parent || out < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(1);
    execl(PROGRAM, PROGRAM, "-a", "127.0.0.1", "-p", port, "-c", config, "--ports_file_dir",
          server->directory, (char *)NULL);
    _exit(1);
}

/* Read a port behind `key` from the file that the server writes when it listens. Returns 0
 * before. */
static uint16_t read_port(const domt_nats_server *server, const char *key)
{
    char path[128], text[512];
    unsigned port = 0;

    snprintf(path, sizeof path, "%s/nats-server_%d.ports", server->directory, (int)server->pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    const char *at = strstr(text, key);
    at = at != NULL ? strstr(at, "127.0.0.1:") : NULL;
    return at != NULL && sscanf(at + 10, "%u", &port) == 1 ? (uint16_t)port : 0;
}

uint16_t domt_nats_server_cluster(const domt_nats_server *server)
{
    return read_port(server, "\"cluster\"");
}

static void write_config(const domt_nats_server *server, const char *config)
{
    char path[100];

    snprintf(path, sizeof path, "%s/conf", server->directory);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "max_control_line: 4096\n%s\n", config != NULL ? config : "");
    ck_assert_int_eq(fclose(file), 0);
}

void domt_nats_server_start(domt_nats_server *server, const char *config, uint16_t port)
{
    ck_assert_msg(access(PROGRAM, X_OK) == 0,
                  "no " PROGRAM " (Debian: nats-server), which this test talks with");
    *server = (domt_nats_server){.port = port};
    snprintf(server->directory, sizeof server->directory, "/tmp/domus-nats-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(server->directory));
    write_config(server, config);
    pid_t parent = getpid();
    server->pid = fork();
    ck_assert_int_ge(server->pid, 0);
    if (server->pid == 0)
        run(server, parent);
    for (int i = 0; i < 2000; i++) {
        uint16_t listens = read_port(server, "\"nats\"");
        if (listens != 0) {
            server->port = listens;
            snprintf(server->url, sizeof server->url, "127.0.0.1:%u", listens);
            return;
        }
        ck_assert_msg(waitpid(server->pid, NULL, WNOHANG) == 0, "nats-server has ended");
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    ck_abort_msg("nats-server does not listen");
}

void domt_nats_server_kill(domt_nats_server *server, int signal)
{
    ck_assert_int_eq(kill(server->pid, signal), 0);
}

void domt_nats_server_stop(domt_nats_server *server)
{
    char path[400];
    DIR *directory = opendir(server->directory);

    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    ck_assert_ptr_nonnull(directory);
    for (const struct dirent *entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) {
        snprintf(path, sizeof path, "%s/%s", server->directory, entry->d_name);
        (void)unlink(path);
    }
    closedir(directory);
    (void)rmdir(server->directory);
}

/* --- the client ------------------------------------------------------------------------------- */

static domus_nats_options opened;
static domus_address client;
static const domus_type opened_type = {.name = "opened"};

static int on_mount(domus_stack *stack, void *self)
{
    (void)self;
    return domus_nats_open(stack, &opened, &client);
}

static int on_opened(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return domus_reply(stack, &opened_type, NULL);
}

static const domus_behaviour opener = {
    .name = "opener",
    .kind = DOMUS_STATE,
    .on = (const domus_on[]){{&opened_type, on_opened, 0}, {NULL, NULL, 0}},
    .on_mount = on_mount,
};

domus_address domt_nats_user_open(domt_nats_user *user, const domus_nats_options *options)
{
    domus_address address;

    opened = *options;
    ck_assert_int_eq(domus_outside_spawn(user->system, &opener, NULL, &address), 0);
    int result = domus_outsider_ask(user->outsider, address, &opened_type, NULL, 5 * SECOND, NULL);
    ck_assert_int_eq(result, 0);
    return client;
}

void domt_nats_user_start(domt_nats_user *user, const domus_nats_options *options)
{
    domus_config config;
    char error[200];

    domus_config_init(&config);
    config.system.threads = 1;
    ck_assert_msg(domus_system_new(&config, error, sizeof error, &user->system) == 0, "%s", error);
    ck_assert_int_eq(domus_system_start(user->system), 0);
    ck_assert_int_eq(domus_outside_attach(user->system, NULL, &user->outsider), 0);
    user->client = domt_nats_user_open(user, options);
}

void domt_nats_user_stop(domt_nats_user *user)
{
    (void)domus_outside_detach(user->outsider);
    ck_assert_int_ge(domus_system_stop(user->system), 0);
    domus_system_free(user->system);
}

domus_nats_status domt_nats_user_look(domt_nats_user *user)
{
    domus_nats_status status;
    domus_outside_reply reply = {.buffer = &status, .size = sizeof status};

    ck_assert_int_eq(domus_outsider_ask(user->outsider, user->client, &domus_nats_look_type, NULL,
                                        5 * SECOND, &reply),
                     0);
    return status;
}

void domt_nats_user_connected(domt_nats_user *user)
{
    for (int i = 0; i < 10000; i++) {
        if (domt_nats_user_look(user).connected)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    ck_abort_msg("the client does not connect");
}

void domt_nats_user_does(domt_nats_user *user, const domus_type *type, const void *payload)
{
    int result = domus_outsider_ask(user->outsider, user->client, type, payload, 10 * SECOND, NULL);

    ck_assert_msg(result == 0, "%s: %s", type->name, strerrorname_np(-result));
}

void domt_nats_user_publish(domt_nats_user *user, const char *subject, const void *data,
                            size_t size)
{
    domus_nats_publish publish = {.used = 0};

    ck_assert_int_eq(domus_nats_set_subject(&publish, subject), 0);
    ck_assert_int_eq(domus_nats_set_payload(&publish, data, size), 0);
    ck_assert_int_eq(
        domus_outsider_notice(user->outsider, user->client, &domus_nats_publish_type, &publish), 0);
}

uint64_t domt_nats_user_subscribe(domt_nats_user *user, const char *subject, const char *queue,
                                  uint64_t tag)
{
    domus_nats_subscribe subscribe;
    domus_nats_subscription subscription;
    domus_outside_reply reply = {.buffer = &subscription, .size = sizeof subscription};

    ck_assert_int_eq(domus_nats_subscribe_make(subject, queue, &subscribe), 0);
    subscribe.tag = tag;
    ck_assert_int_eq(domus_outsider_ask(user->outsider, user->client, &domus_nats_subscribe_type,
                                        &subscribe, 5 * SECOND, &reply),
                     0);
    return subscription.number;
}

const domus_nats_message *domt_nats_user_message(domt_nats_user *user)
{
    static domus_outside_message message;

    int result = domus_outside_receive(user->outsider, NULL, 10 * SECOND, &message);
    ck_assert_msg(result == 0, "no message: %s", strerrorname_np(-result));
    ck_assert_ptr_eq(message.type, &domus_nats_message_type);
    return message.payload;
}

int domt_nats_user_request(domt_nats_user *user, const char *subject, const char *payload,
                           uint64_t timeout_ns, domus_nats_message *ret_answer)
{
    domus_nats_publish publish = {.used = 0};
    domus_outside_reply reply = {.buffer = ret_answer, .size = sizeof *ret_answer};

    ck_assert_int_eq(domus_nats_set_subject(&publish, subject), 0);
    ck_assert_int_eq(domus_nats_set_payload(&publish, payload, strlen(payload)), 0);
    return domus_outsider_ask(user->outsider, user->client, &domus_nats_request_type, &publish,
                              timeout_ns, &reply);
}

bool domt_slice_is(domus_slice slice, const char *text)
{
    return domus_slice_equals(slice, text, strlen(text));
}
