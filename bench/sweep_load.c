/* This file makes the requests of each row, and checks the answers (sweep_load.h). The bytes of a
 * packet follow from its number, so the load knows what has to come back. */
#include "bench/sweep_load.h"

#include "bench/kv_load.h"
#include "bench/web_load.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>

#define STALL_NS UINT64_C(5000000000)
#define KEYS     1000u
#define WORDS    8u
#define PACKET   (WORDS * sizeof(uint64_t))
#define HOME     "hello, world\n" /* the body with which web_domus answers */

/* --- packets ---------------------------------------------------------------------------------- */

static void write_words_of_packet_by_number(uint64_t number, uint64_t *words)
{
    words[0] = number;
    for (uint32_t i = 1; i < WORDS; i++)
        words[i] = (number + i) * UINT64_C(0x9e3779b97f4a7c15);
}

static void write_next_number_into_packet(void *context, char *request)
{
    uint64_t *next = context, words[WORDS];

    write_words_of_packet_by_number((*next)++, words);
    memcpy(request, words, PACKET);
}

static int check_returned_packet(const void *context, uint64_t *place, const char *bytes,
                                 size_t size, bool *ret_ends)
{
    const uint64_t *next = context;
    uint64_t number, words[WORDS];

    (void)place;
    if (size < PACKET)
        return 0;
    memcpy(&number, bytes, sizeof number);
    write_words_of_packet_by_number(number, words);
    if (number >= *next || memcmp(bytes, words, PACKET) != 0)
        return -EBADMSG;
    *ret_ends = true;
    return (int)PACKET;
}

/* --- loads ------------------------------------------------------------------------------------ */

struct kinds {
    uint64_t next_packet;
    struct request_load_kind packets;
    struct web_load web;
    struct kv_load fill, keys;
};

static const struct request_load_kind *make_requests_of_row(const struct sweep_row *row,
                                                            struct kinds *kinds)
{
    static const struct kv_load_row get = {"get", "GET KEY", "$"};
    static const struct kv_load_row set = {"set", "SET KEY VALUE", "+OK\r\n"};

    switch (row->requests) {
    case SWEEP_GETS:
        web_load_make_requests(&kinds->web, "/", HOME, strlen(HOME));
        return &kinds->web.kind;
    case SWEEP_KEYS:
        kv_load_make_requests(&kinds->fill, &set, KEYS);
        kv_load_make_requests(&kinds->keys, &get, KEYS);
        return &kinds->keys.kind;
    case SWEEP_PACKETS:
        break;
    }
    kinds->packets = (struct request_load_kind){.request_size = PACKET,
                                                .vary = write_next_number_into_packet,
                                                .check = check_returned_packet,
                                                .context = &kinds->next_packet};
    return &kinds->packets;
}

/* Send a request that sets each key once. */
static int send_requests_that_set_each_key(const struct sweep_load *load, const struct kinds *kinds)
{
    const struct request_load_options options = {.port = load->port,
                                                 .kind = &kinds->fill.kind,
                                                 .connections = 1,
                                                 .depth = 16,
                                                 .requests_least = KEYS,
                                                 .stall_ns = STALL_NS};
    struct request_load_result unused;

    return load->row->requests == SWEEP_KEYS ? request_load_run_to_its_end(&options, &unused) : 0;
}

int sweep_load_move_to_cpus(bool with_first, bool with_second)
{
    cpu_set_t mine, wanted;
    uint32_t passed = 0;

    if (sched_getaffinity(0, sizeof mine, &mine) != 0)
        return -errno;
    CPU_ZERO(&wanted);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && passed < 2; cpu++) {
        if (CPU_ISSET(cpu, &mine) && (passed++ == 0 ? with_first : with_second))
            CPU_SET(cpu, &wanted);
    }
    if (passed < 2)
        return 0;
    return sched_setaffinity(0, sizeof wanted, &wanted) == 0 ? 0 : -errno;
}

int sweep_load_run_on_service(const struct sweep_load *load, struct request_load_result *ret_result)
{
    static struct kinds kinds;
    const struct sweep_row *row = load->row;
    const struct request_load_options options = {.port = load->port,
                                                 .link = row->is_secure ? load->link : NULL,
                                                 .kind = make_requests_of_row(row, &kinds),
                                                 .connections = row->connections,
                                                 .depth = row->depth,
                                                 .rate = row->rate,
                                                 .burst = row->burst,
                                                 .counts_waits = true,
                                                 .watched = load->watched,
                                                 .duration_ns = load->duration_ns,
                                                 .stall_ns = STALL_NS};
    int error = sweep_load_move_to_cpus(false, true);

    /* The number of ns by which the kernel may wake this thread late; its default is 50 us. */
    if (error == 0 && prctl(PR_SET_TIMERSLACK, 1UL) != 0)
        error = -errno;
    if (error == 0)
        error = send_requests_that_set_each_key(load, &kinds);
    return error != 0 ? error : request_load_run_to_its_end(&options, ret_result);
}
