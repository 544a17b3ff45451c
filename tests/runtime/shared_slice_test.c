/* One value is sent to many slow readers. Its memory counts only once on each thread, so even under
 * a memory limit all readers get it, and other clients are served meanwhile. */
#include "tests/runtime/running.h"
#include "tests/support/crowd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB     UINT64_C(1048576)
#define READERS DOMT_SCALE(100u, 30u)
#define VALUE   (16 * MIB)
#define LIMIT   ((DOMT_SANITIZED ? 600 : 64) * MIB)

static domus_slice value;

static int reply_shared_value_or_pong(domus_stack *stack, void *self, const void *payload)
{
    domus_slice line = ((const domus_packet *)payload)->bytes;
    domus_packet answer;
    int error = domus_slice_equals(line, "value", 5) ? domus_slice_keep(value, &answer.bytes)
                                                     : domus_slice_copy("pong", 4, &answer.bytes);
    return error != 0 ? error : domus_reply(stack, &domus_packet_type, &answer);
}

/* Answers of this service are lines, so the value that it sends contains no line end. */
static const domus_behaviour service = {
    .name = "value",
    .kind = DOMUS_CHANNELS,
    .pipeline =
        &(const domus_pipeline){
            .stages = (const domus_pipeline_stage[]){{&domus_line_stage, NULL}, {NULL, NULL}}},
    .on_peer = (const domus_on_peer[]){{&domus_packet_type, reply_shared_value_or_pong, 0, 0, NULL},
                                       {.type = NULL}}};

static char byte_of_value_at(uint64_t place)
{
    return (char)('a' + (place * 7919u >> 7) % 26);
}

typedef struct reader {
    int fd;
    uint64_t got;
} reader;

static reader readers[100];

static int connect_with_receive_buffer(uint16_t port, int window)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof window), 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* Read at most `most` bytes of the value by one reader, and check them. */
static void read_part_of_value(reader *one, size_t most)
{
    static char bytes[262144];

    while (most != 0 && one->got <= VALUE) {
        ssize_t got = recv(one->fd, bytes, most < sizeof bytes ? most : sizeof bytes, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        ck_assert_msg(got > 0, "reader %d has %llu bytes: recv is %d, %s", (int)(one - readers),
                      (unsigned long long)one->got, (int)got, strerror(errno));
        for (ssize_t i = 0; i < got; i += 997) /* each 997th byte is compared */
            ck_assert_int_eq(bytes[i], one->got + (uint64_t)i == VALUE
                                           ? '\n'
                                           : byte_of_value_at(one->got + (uint64_t)i));
        one->got += (uint64_t)got;
        most -= (size_t)got;
    }
}

static void ping_and_expect_pong(int fd)
{
    char got[5];
    ck_assert_int_eq(send(fd, "ping\n", 5, MSG_NOSIGNAL), 5);
    ck_assert_int_eq(recv(fd, got, sizeof got, MSG_WAITALL), sizeof got);
    ck_assert_mem_eq(got, "pong\n", 5);
}

/* Let each reader read `most` bytes, again and again, until each has read `enough`, while another
 * client is served. */
static void let_all_readers_read(int other, uint64_t enough, size_t most)
{
    uint64_t until_ns = domt_now_ns() + 100000 * DOMT_MS;
    bool over = false;

    while (!over) {
        ck_assert_uint_lt(domt_now_ns(), until_ns);
        over = true;
        for (uint32_t i = 0; i < READERS; i++) {
            read_part_of_value(&readers[i], most);
            over = over && readers[i].got >= enough;
        }
        ping_and_expect_pong(other);
    }
}

static void make_shared_value(void)
{
    char *bytes = malloc(VALUE);
    ck_assert_ptr_nonnull(bytes);
    for (uint64_t i = 0; i < VALUE; i++)
        bytes[i] = byte_of_value_at(i);
    ck_assert_int_eq(domus_slice_copy(bytes, VALUE, &value), 0);
    free(bytes);
}

static void check_readers_get_value(uint32_t threads)
{
    domus_config config = domt_config_of_threads(threads);

    domt_add_front_listener(&config);
    config.memory.limit_bytes = LIMIT;
    domus_system *system = domt_start_system(&config);
    make_shared_value();
    uint16_t port = domt_serve_front_listener(system, &service, NULL);
    int other = domt_connect_to_port(port);
    for (uint32_t i = 0; i < READERS; i++) {
        readers[i] = (reader){.fd = connect_with_receive_buffer(port, 65536)};
        ck_assert_int_eq(send(readers[i].fd, "value\n", 6, MSG_NOSIGNAL), 6);
    }
    /* The value waits for all readers at the same time, but counts only once on each thread. */
    DOMT_WAIT_FOR(30, domt_profile_of_all_threads(system).queued_bytes >= threads * VALUE);
    let_all_readers_read(other, 100000, 1000);
    ck_assert_uint_lt(domt_profile_of_all_threads(system).queued_bytes, threads * VALUE + 8 * MIB);
    let_all_readers_read(other, VALUE + 1, SIZE_MAX);
    for (uint32_t i = 0; i < READERS; i++) {
        ck_assert_uint_eq(readers[i].got, VALUE + 1);
        close(readers[i].fd);
    }
    close(other);
    ck_assert_uint_eq(domt_profile_of_all_threads(system).channels_shed, 0);
    domus_slice_free(value);
    domt_end_system(system);
}

DOMT_TEST(one_value_for_many_slow_readers_counts_once)
{
    check_readers_get_value(1);
    check_readers_get_value(2);
}

DOMT_SUITE(240)
