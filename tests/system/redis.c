/* Sends RESP to kv and redis-server: each command is followed by an ECHO of a mark, so that the end
 * of its reply is known without a parser. */
#include "tests/system/redis.h"
#include "tests/support/process.h"

#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/talks.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_MS  10000
#define WORDS_MAX 64
#define ARGUMENTS 32

static bool is_port_open(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool there = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;

    close(fd);
    return there;
}

void domt_kv_start(domt_service *service, const char *const settings[])
{
    const char *arguments[ARGUMENTS] = {DOMT_BIN_DIR "/kv",
                                        "--config",
                                        DOMT_SOURCE_DIR "/examples/kv/kv.yaml",
                                        "--set",
                                        "listeners.kv.address=127.0.0.1:0",
                                        "--set",
                                        "system.threads=2"};
    size_t count = 7;

    for (; *settings != NULL; settings++) {
        ck_assert_uint_lt(count, ARGUMENTS - 2);
        arguments[count++] = "--set";
        arguments[count++] = *settings;
    }
    domt_service_start(service, arguments);
}

int domt_kv_start_and_connect(domt_service *service, const char *const settings[])
{
    domt_kv_start(service, settings);
    return domt_connect_to_port(service->port);
}

void domt_kv_close_and_stop(domt_service *service, int fd)
{
    close(fd);
    domt_service_stop(service);
}

/* Start redis-server on a free port. Returns whether it answers. */
static bool start_redis_on_free_port(pid_t *ret_pid, uint16_t *ret_port)
{
    char port[8];

    *ret_port = domt_find_free_port();
    snprintf(port, sizeof port, "%u", *ret_port);
    *ret_pid = fork();
    ck_assert_int_ge(*ret_pid, 0);
    if (*ret_pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
               "--appendonly", "no", "--enable-debug-command", "yes", "--logfile", "/dev/null",
               /* redis-server looks for commands whose time is over every 2 ms */
               "--dir", "/tmp", "--hz", "500", (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < START_MS; i++) {
        if (is_port_open(*ret_port))
            return true;
        if (waitpid(*ret_pid, NULL, WNOHANG) == *ret_pid)
            return false;
        domt_sleep_ms(1);
    }
    domt_redis_stop_server(*ret_pid);
    return false;
}

bool domt_redis_start_server(pid_t *ret_pid, uint16_t *ret_port)
{
    bool is_there = start_redis_on_free_port(ret_pid, ret_port);

    if (!is_there)
        printf("redis-server is not installed: nothing compared\n");
    return is_there;
}

void domt_redis_stop_server(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* --- commands --------------------------------------------------------------------------------- */

struct word {
    const char *bytes; /* the word's bytes; NULL: the word is `size` letters */
    size_t size;
};

static uint32_t split_into_words(const char *words, struct word *ret_words)
{
    uint32_t count = 0;

    while (*words != '\0') {
        bool quoted = *words == '"';
        size_t size = strcspn(words += quoted, quoted ? "\"" : " ");
        ck_assert_uint_lt(count, WORDS_MAX);
        ret_words[count] = (struct word){words, size};
        if (!quoted && words[0] == '%')
            ret_words[count] = (struct word){NULL, strtoul(words + 1, NULL, 10)};
        count++;
        words += size + quoted;
        words += strspn(words, " ");
    }
    return count;
}

static void send_letters(int fd, size_t size)
{
    char letters[26 * 256];

    for (size_t i = 0; i < sizeof letters; i++)
        letters[i] = (char)('a' + i % 26);
    for (size_t part; size > 0; size -= part) {
        part = size < sizeof letters ? size : sizeof letters;
        domt_send_all(fd, letters, part);
    }
}

void domt_resp_send_command(int fd, const char *words)
{
    struct word split_words[WORDS_MAX];
    uint32_t count = split_into_words(words, split_words);
    char head[32];

    domt_send_all(fd, head, (size_t)snprintf(head, sizeof head, "*%u\r\n", count));
    for (uint32_t i = 0; i < count; i++) {
        const struct word *word = &split_words[i];
        domt_send_all(fd, head, (size_t)snprintf(head, sizeof head, "$%zu\r\n", word->size));
        if (word->bytes != NULL)
            domt_send_all(fd, word->bytes, word->size);
        else
            send_letters(fd, word->size);
        domt_send_all(fd, "\r\n", 2);
    }
}

size_t domt_resp_ask_for_reply(int fd, const char *words, char reply[DOMT_REPLY_MAX])
{
    static const char mark[] = "$12\r\n<end-of-it!>\r\n";
    size_t size = 0;

    domt_resp_send_command(fd, words);
    domt_resp_send_command(fd, "ECHO <end-of-it!>");
    while (size < sizeof mark - 1 ||
           memcmp(reply + size - (sizeof mark - 1), mark, sizeof mark - 1) != 0) {
        ssize_t got = recv(fd, reply + size, DOMT_REPLY_MAX - 1 - size, 0);
        ck_assert_msg(got > 0, "no reply to: %s", words);
        size += (size_t)got;
    }
    size -= sizeof mark - 1;
    reply[size] = '\0';
    return size;
}

void domt_resp_expect_trace(int fd, const char *words, const char *reply)
{
    char got[DOMT_REPLY_MAX];

    ck_assert_uint_eq(domt_resp_ask_for_reply(fd, words, got), strlen(reply));
    ck_assert_str_eq(got, reply);
}

void domt_resp_compare_replies(int fd, int redis, const char *const commands[])
{
    char ours[DOMT_REPLY_MAX], theirs[DOMT_REPLY_MAX];

    for (const char *const *command = commands; *command != NULL; command++) {
        size_t size = domt_resp_ask_for_reply(fd, *command, ours);
        size_t wanted = domt_resp_ask_for_reply(redis, *command, theirs);
        ck_assert_msg(size == wanted && memcmp(ours, theirs, size) == 0,
                      "%s\n kv:    %s\n redis: %s", *command, ours, theirs);
    }
}

void domt_resp_compare_with_new_redis(int fd, const char *const commands[])
{
    uint16_t port;
    pid_t pid;

    if (!domt_redis_start_server(&pid, &port))
        return;
    int redis = domt_connect_to_port(port);
    domt_resp_compare_replies(fd, redis, commands);
    close(redis);
    domt_redis_stop_server(pid);
}
