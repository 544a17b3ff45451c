/* The threads of attacks; tests/system/attack.h tells more. Each thread wakes every millisecond and
 * does the actions that are due by then, so the load is even and leaves most of its CPU unused. */
#include "tests/system/attack.h"
#include "tests/support/process.h"

#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/talks.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ADDRESSES  200u  /* number of different source addresses of an attack */
#define VISITS_MAX 1024u /* largest number of visits that wait for their echo */
#define TICK_NS    UINT64_C(1000000)

/* --- connections ------------------------------------------------------------------------------ */

int domt_attack_connect_from_address(uint16_t port, uint32_t number)
{
    struct sockaddr_in from = {.sin_family = AF_INET};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + number % ADDRESSES);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    /* the kernel chooses the port at the connect, so each address can use all ports */
    if (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on) == 0 &&
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0 &&
        bind(fd, (struct sockaddr *)&from, sizeof from) == 0 &&
        (connect(fd, (struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static void end_connection_by_reset_or_fin(int fd, bool reset)
{
    domt_client client = {.fd = fd};

    domt_client_close(&client, reset);
}

static bool is_connected(int fd)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           info.tcpi_state == TCP_ESTABLISHED;
}

/* --- actions ---------------------------------------------------------------------------------- */

static const char message[DOMT_ATTACK_MESSAGE] = "a message";

static void send_bytes_and_drop_echoes(int fd, const char *bytes, size_t size)
{
    char echo[4096];

    while (recv(fd, echo, sizeof echo, MSG_DONTWAIT) > 0)
        continue;
    (void)send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static const char *message_of_attack(const domt_attack *attack, size_t *ret_size)
{
    *ret_size = attack->says != NULL ? strlen(attack->says) : sizeof message;
    return attack->says != NULL ? attack->says : message;
}

/* Send the next byte of the message over a connection that stays. These connections take turns, so
 * all of them have sent the same part of the message. */
static void send_next_byte(const domt_attack *attack, int fd)
{
    size_t size;
    const char *bytes = message_of_attack(attack, &size);

    send_bytes_and_drop_echoes(fd, bytes + (attack->next - 1) / attack->count % size, 1);
}

static void send_whole_message(const domt_attack *attack, int fd)
{
    size_t size;
    const char *bytes = message_of_attack(attack, &size);

    send_bytes_and_drop_echoes(fd, bytes, size);
}

static void send_until_full(int fd)
{
    static const char bytes[16384];

    for (int i = 0; i < 4; i++) {
        if (send(fd, bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT) <= 0)
            return;
    }
}

/* Close the oldest visits whose echo has come, or has not come in time. */
static void close_visits_with_echo(domt_attack *attack, bool all)
{
    char echo[DOMT_ATTACK_MESSAGE];

    while (attack->waiting != attack->next) {
        int fd = attack->fds[attack->waiting % VISITS_MAX];
        bool is_late = attack->next - attack->waiting == VISITS_MAX;
        if (!all && !is_late && recv(fd, echo, sizeof echo, MSG_DONTWAIT) < 0 && errno == EAGAIN)
            return;
        close(fd);
        attack->waiting++;
    }
}

static void make_passing_connection(domt_attack *attack)
{
    uint64_t made = atomic_load(&attack->made);
    int fd = domt_attack_connect_from_address(attack->port, (uint32_t)made);

    if (fd < 0) {
        atomic_fetch_add(&attack->refused, 1);
        return;
    }
    atomic_store(&attack->made, made + 1);
    if (attack->kind == DOMT_ATTACK_DROP) {
        end_connection_by_reset_or_fin(fd, true);
    } else if (attack->kind == DOMT_ATTACK_HALF) {
        (void)send(fd, message, 1 + made % (sizeof message - 1), MSG_NOSIGNAL);
        end_connection_by_reset_or_fin(fd, true);
    } else {
        (void)send(fd, message, sizeof message, MSG_NOSIGNAL);
        attack->fds[attack->next++ % VISITS_MAX] = fd;
        close_visits_with_echo(attack, false);
    }
}

static bool is_passing_kind(const domt_attack *attack)
{
    return attack->kind == DOMT_ATTACK_DROP || attack->kind == DOMT_ATTACK_HALF ||
           attack->kind == DOMT_ATTACK_VISIT;
}

static void do_next_action_of_attack(domt_attack *attack)
{
    atomic_fetch_add(&attack->deeds, 1);
    if (is_passing_kind(attack)) {
        make_passing_connection(attack);
        return;
    }
    int fd = attack->fds[attack->next++ % attack->count];
    if (fd < 0)
        return;
    if (attack->kind == DOMT_ATTACK_DRIP)
        send_next_byte(attack, fd);
    else if (attack->kind == DOMT_ATTACK_TALK)
        send_whole_message(attack, fd);
    else if (attack->kind == DOMT_ATTACK_FLOOD)
        send_until_full(fd);
}

bool domt_attack_is_done(const domt_attack *attack)
{
    return is_passing_kind(attack) && attack->count != 0 &&
           atomic_load((_Atomic uint64_t *)(uintptr_t)&attack->deeds) >= attack->count;
}

static uint64_t cpu_time_of_clock_ns(clockid_t clock)
{
    struct timespec used;

    clock_gettime(clock, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static void *run_attack_thread(void *attack_)
{
    domt_attack *attack = attack_;
    uint64_t begin_ns = domt_monotonic_ns();
    uint64_t begin_cpu_ns = cpu_time_of_clock_ns(CLOCK_THREAD_CPUTIME_ID);

    /* a lower priority, so that the good client goes first where both want a CPU */
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 10);
    while (!atomic_load(&attack->over)) {
        uint64_t past_ns = domt_monotonic_ns() - begin_ns;
        uint64_t due = attack->rate != 0 ? past_ns * attack->rate / 1000000000u : UINT64_MAX;
        for (int i = 0;
             i < 512 && atomic_load(&attack->deeds) < due && !domt_attack_is_done(attack); i++)
            do_next_action_of_attack(attack);
        if (attack->kind == DOMT_ATTACK_VISIT)
            close_visits_with_echo(attack, false);
        if (attack->rate != 0 || domt_attack_is_done(attack))
            domt_sleep_ms(1);
    }
    atomic_store(&attack->cpu_ns, cpu_time_of_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_cpu_ns);
    return NULL;
}

/* --- begin and end ---------------------------------------------------------------------------- */

/* Make the connections that stay: at a time only so many as the service's backlog holds. */
static void make_staying_connections(domt_attack *attack)
{
    for (uint32_t i = 0; i < attack->count; i++) {
        attack->fds[i] = domt_attack_connect_from_address(attack->port, i);
        if (attack->fds[i] < 0) {
            atomic_fetch_add(&attack->refused, 1);
            continue;
        }
        atomic_fetch_add(&attack->made, 1);
        for (int tries = 0; !attack->is_fast && !is_connected(attack->fds[i]) && tries < 2000;
             tries++)
            domt_sleep_ms(1);
        if (attack->kind == DOMT_ATTACK_SAID)
            send_whole_message(attack, attack->fds[i]);
        if (i % 64 == 63)
            domt_sleep_ms(1);
    }
}

void domt_attack_begin(domt_attack *attack)
{
    uint32_t places = is_passing_kind(attack) ? VISITS_MAX : attack->count;

    attack->fds = calloc(places + 1, sizeof *attack->fds);
    ck_assert_ptr_nonnull(attack->fds);
    if (attack->kind == DOMT_ATTACK_NONE)
        return;
    if (!is_passing_kind(attack))
        make_staying_connections(attack);
    ck_assert_int_eq(pthread_create(&attack->thread, NULL, run_attack_thread, attack), 0);
}

void domt_attack_end(domt_attack *attack, bool reset)
{
    if (attack->kind != DOMT_ATTACK_NONE) {
        atomic_store(&attack->over, true);
        ck_assert_int_eq(pthread_join(attack->thread, NULL), 0);
        if (is_passing_kind(attack)) {
            close_visits_with_echo(attack, true);
        } else {
            for (uint32_t i = 0; i < attack->count; i++)
                end_connection_by_reset_or_fin(attack->fds[i], reset);
        }
    }
    free(attack->fds);
}

/* --- the good client -------------------------------------------------------------------------- */

static bool make_round_trip(int fd, const char *ask, size_t ask_size, const char *answer,
                            size_t answer_size)
{
    char back[512];
    size_t have = 0;

    if (send(fd, ask, ask_size, MSG_NOSIGNAL) != (ssize_t)ask_size)
        return false;
    while (have < answer_size) {
        ssize_t size = recv(fd, back + have, answer_size - have, 0);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return false;
        have += (size_t)size;
    }
    return domt_do_bytes_match_pattern(back, answer, answer_size);
}

static bool make_round_trip_of_echo(int fd, char seed)
{
    char bytes[DOMT_ATTACK_MESSAGE];

    memset(bytes, seed, sizeof bytes);
    return make_round_trip(fd, bytes, sizeof bytes, bytes, sizeof bytes);
}

domt_good domt_measure_good_client(int fd, const char *ask, const char *answer, uint32_t count,
                                   uint32_t period_us)
{
    uint64_t *took_ns = calloc(count, sizeof *took_ns);
    uint64_t begin_ns = domt_monotonic_ns();
    uint64_t begin_cpu_ns = cpu_time_of_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    domt_good good = {0};

    ck_assert_ptr_nonnull(took_ns);
    for (uint32_t i = 0; i < count && good.failed == 0; i++) {
        uint64_t due_ns = begin_ns + i * UINT64_C(1000) * period_us;
        uint64_t now_ns = domt_monotonic_ns();
        if (due_ns > now_ns) {
            const struct timespec pause = {.tv_nsec = (long)(due_ns - now_ns)};
            (void)nanosleep(&pause, NULL);
        }
        now_ns = domt_monotonic_ns();
        good.failed += ask != NULL ? !make_round_trip(fd, ask, strlen(ask), answer, strlen(answer))
                                   : !make_round_trip_of_echo(fd, (char)i);
        took_ns[i] = domt_monotonic_ns() - now_ns;
    }
    good.cpu = (double)(cpu_time_of_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_cpu_ns) /
               (double)(domt_monotonic_ns() - begin_ns);
    qsort(took_ns, count, sizeof *took_ns, domt_compare_u64);
    good.p50_ms = (double)took_ns[count / 2] / 1e6;
    good.p99_ms = (double)took_ns[count - 1 - count / 100] / 1e6;
    good.worst_ms = (double)took_ns[count - 1] / 1e6;
    free(took_ns);
    return good;
}

/* --- the service ------------------------------------------------------------------------------ */

static uint32_t count_profiles_of_threads(const char *text)
{
    uint32_t count = 0;

    for (const char *at = strstr(text, "\nthread ("); at != NULL; at = strstr(at + 1, "\nthread ("))
        count++;
    return count;
}

uint64_t domt_service_count_connections(domt_service *service)
{
    domt_service_read_error(service);
    uint32_t before = count_profiles_of_threads(service->error);
    uint64_t until_ns = domt_monotonic_ns() + UINT64_C(5000000000);
    domt_service_signal(service, SIGUSR1);
    while (count_profiles_of_threads(service->error) == before) {
        ck_assert_msg(domt_monotonic_ns() < until_ns, "no profile");
        domt_sleep_ms(5);
        domt_service_read_error(service);
    }
    domt_sleep_ms(20); /* the profile has further lines behind the awaited one */
    domt_service_read_error(service);
    return domt_service_count_in_profile(service, "channels opened") -
           domt_service_count_in_profile(service, "channels closed");
}

uint32_t domt_service_count_descriptors(const domt_service *service)
{
    char path[64];
    uint32_t count = 0;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)service->pid);
    DIR *entries = opendir(path);
    ck_assert_ptr_nonnull(entries);
    while (readdir(entries) != NULL)
        count++;
    closedir(entries);
    return count;
}

void domt_service_wait_until_counts_fall_to(domt_service *service, uint64_t connections,
                                            uint32_t descriptors, uint32_t ms)
{
    uint64_t until_ns = domt_monotonic_ns() + ms * UINT64_C(1000000);

    while (domt_service_count_descriptors(service) != descriptors) {
        ck_assert_msg(domt_monotonic_ns() < until_ns, "%u descriptors instead of %u",
                      domt_service_count_descriptors(service), descriptors);
        domt_sleep_ms(5);
    }
    /* the service counts a connection until the connection's actor has run after the close */
    for (uint64_t left; (left = domt_service_count_connections(service)) != connections;) {
        ck_assert_msg(domt_monotonic_ns() < until_ns, "%llu connections are left",
                      (unsigned long long)left);
        domt_sleep_ms(5);
    }
}
