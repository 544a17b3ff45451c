/* io/resources/peers.c: connections are counted by address, up to a bound. Unused entries vanish,
 * the counts of threads agree, and failing memory leaves nothing. */
#include "io/resources/peers.h"

#include "base/memory.h"
#include "base/random.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

static const uint64_t secret[2] = {1, 2};

static void make_table_of_peers(domi_peers *peers, uint32_t connections_max, uint32_t share,
                                uint32_t local)
{
    const domi_peers_limits limits = {connections_max, share, local};

    ck_assert_int_eq(domi_peers_init(peers, &limits, secret), 0);
}

static domi_peer_key key_of_address(const char *address)
{
    struct sockaddr_storage storage = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&storage;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&storage;
    domi_peer_key key;

    memset(&key, 0xa5, sizeof key);
    if (strcmp(address, "unix") == 0) {
        storage.ss_family = AF_UNIX;
    } else if (strchr(address, ':') != NULL) {
        storage.ss_family = AF_INET6;
        ck_assert_int_eq(inet_pton(AF_INET6, address, &v6->sin6_addr), 1);
    } else if (address[0] != '\0') {
        storage.ss_family = AF_INET;
        ck_assert_int_eq(inet_pton(AF_INET, address, &v4->sin_addr), 1);
    }
    domi_peer_get_key_of_address(&storage, &key);
    return key;
}

static bool are_addresses_counted_as_one(const char *one, const char *other)
{
    domi_peers peers;
    domi_peer *first;
    domi_peer *second;
    domi_peer_key keys[2] = {key_of_address(one), key_of_address(other)};

    make_table_of_peers(&peers, 100, 50, 50);
    ck_assert_int_eq(domi_peers_count_connection(&peers, &keys[0], &first), 0);
    ck_assert_int_eq(domi_peers_count_connection(&peers, &keys[1], &second), 0);
    bool same = first == second;
    ck_assert_uint_eq(peers.count, same ? 1 : 2);
    domi_peers_uncount_connection(&peers, first);
    domi_peers_uncount_connection(&peers, second);
    domi_peers_fini(&peers);
    return same;
}

DOMT_TEST(an_address_is_ipv4_or_the_half_of_ipv6)
{
    ck_assert(are_addresses_counted_as_one("192.0.2.1", "192.0.2.1"));
    ck_assert(!are_addresses_counted_as_one("192.0.2.1", "192.0.2.2"));
    ck_assert(!are_addresses_counted_as_one("192.0.2.1", "193.0.2.1"));
    ck_assert(are_addresses_counted_as_one("192.0.2.1", "::ffff:192.0.2.1"));
    ck_assert(!are_addresses_counted_as_one("::ffff:192.0.2.2", "::ffff:192.0.2.1"));
    ck_assert(are_addresses_counted_as_one("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"));
    ck_assert(!are_addresses_counted_as_one("2001:db8:1:2::1", "2001:db8:1:3::1"));
    ck_assert(!are_addresses_counted_as_one("2001:db8:1:2::1", "2002:db8:1:2::1"));
    ck_assert(!are_addresses_counted_as_one("::2", "0.0.0.0"));
    /* ::1 is an address of this machine, ::2 is a foreign one */
    ck_assert(!are_addresses_counted_as_one("::1", "::2"));
    ck_assert(are_addresses_counted_as_one("unix", "unix"));
    ck_assert(!are_addresses_counted_as_one("unix", "::1"));
    ck_assert(are_addresses_counted_as_one("", ""));
}

DOMT_TEST(loopback_and_unix_sockets_are_local)
{
    static const char *const local[] = {"127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.9",
                                        "unix"};
    static const char *const foreign[] = {"126.255.255.255", "128.0.0.1",   "10.0.0.1", "::2", "::",
                                          "::ffff:10.0.0.1", "::127.0.0.1", ""};

    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++)
        ck_assert_msg(key_of_address(local[i]).is_local, "%s", local[i]);
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        ck_assert_msg(!key_of_address(foreign[i]).is_local, "%s", foreign[i]);
}

DOMT_TEST(an_address_has_its_share_and_no_more)
{
    static const struct {
        uint32_t connections_max, share, local;
        const char *address;
        uint32_t most;
    } cases[] = {
        {1000, 10, 100, "192.0.2.1", 100},   {1000, 10, 20, "127.0.0.1", 200},
        {1000, 10, 20, "unix", 200},         {5, 10, 100, "192.0.2.1", 1},
        {1048576, 1, 1, "192.0.2.1", 10485},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        domi_peers peers;
        domi_peer *peer = NULL;
        domi_peer *none = NULL;
        domi_peer_key key = key_of_address(cases[i].address);
        domi_peer_key other = key_of_address("198.51.100.1");
        make_table_of_peers(&peers, cases[i].connections_max, cases[i].share, cases[i].local);
        ck_assert(domi_peers_is_any_address_bounded(&peers));
        ck_assert_uint_eq(domi_peers_max_connections_of_address(&peers, &key), cases[i].most);
        for (uint32_t n = 0; n < cases[i].most; n++)
            ck_assert_int_eq(domi_peers_count_connection(&peers, &key, &peer), 0);
        ck_assert_int_eq(domi_peers_count_connection(&peers, &key, &none), -EDQUOT);
        ck_assert_ptr_null(none);
        ck_assert_int_eq(domi_peers_count_connection(&peers, &other, &none), 0);
        domi_peers_uncount_connection(&peers, none);
        domi_peers_uncount_connection(
            &peers, peer); /* makes room for one connection of the first address */
        ck_assert_int_eq(domi_peers_count_connection(&peers, &key, &peer), 0);
        ck_assert_int_eq(domi_peers_count_connection(&peers, &key, &none), -EDQUOT);
        for (uint32_t n = 0; n < cases[i].most; n++) {
            ck_assert_uint_eq(peers.count, 1);
            domi_peers_uncount_connection(&peers, peer);
        }
        ck_assert_uint_eq(peers.count, 0);
        domi_peers_fini(&peers);
    }
}

DOMT_TEST(without_a_bound_no_address_is_kept)
{
    domi_peers peers;
    domi_peer *peer = (domi_peer *)(uintptr_t)1;
    domi_peer_key local = key_of_address("127.0.0.1");

    make_table_of_peers(&peers, 10, 100, 100);
    ck_assert(!domi_peers_is_any_address_bounded(&peers));
    ck_assert_int_eq(domi_peers_count_connection(&peers, &local, &peer), 0);
    ck_assert_ptr_null(peer);
    domi_peers_uncount_connection(&peers, NULL);
    domi_peers_fini(&peers);
    /* foreign addresses have a bound, those of this machine none */
    make_table_of_peers(&peers, 10, 10, 100);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(domi_peers_count_connection(&peers, &local, &peer), 0);
        ck_assert_ptr_null(peer);
    }
    ck_assert_uint_eq(peers.count, 0);
    domi_peers_fini(&peers);
}

/* Many addresses share a bucket, and leave it in any order. */
DOMT_TEST(addresses_of_one_bucket_are_told_apart)
{
    enum { COUNT = 1000 };
    static domi_peer *peers_of[COUNT];
    domi_random random;
    domi_peers peers;

    domi_random_init(&random, 7);
    make_table_of_peers(&peers, 64, 10, 10);
    ck_assert_uint_eq(peers.buckets_count, 16);
    for (uint32_t i = 0; i < COUNT; i++) {
        domi_peer_key key = {.network = i, .family = AF_INET};
        ck_assert_int_eq(domi_peers_count_connection(&peers, &key, &peers_of[i]), 0);
    }
    ck_assert_uint_eq(peers.count, COUNT);
    for (uint32_t left = COUNT; left != 0; left--) {
        uint32_t at = (uint32_t)domi_random_below(&random, left);
        domi_peer *again = NULL;
        domi_peer_key key = peers_of[at]->key;
        ck_assert_int_eq(domi_peers_count_connection(&peers, &key, &again), 0);
        ck_assert_ptr_eq(again, peers_of[at]);
        domi_peers_uncount_connection(&peers, again);
        domi_peers_uncount_connection(&peers, peers_of[at]);
        peers_of[at] = peers_of[left - 1];
        ck_assert_uint_eq(peers.count, left - 1);
    }
    for (uint32_t i = 0; i < peers.buckets_count; i++)
        ck_assert_ptr_null(peers.buckets[i]);
    domi_peers_fini(&peers);
}

/* Without the key, a stranger cannot choose addresses that meet in one bucket. */
DOMT_TEST(another_key_spreads_the_same_addresses_otherwise)
{
    domi_peers_limits limits = {65536, 10, 10};
    domi_peers peers[2];
    uint32_t same = 0;

    ck_assert_int_eq(domi_peers_init(&peers[0], &limits, (const uint64_t[2]){1, 2}), 0);
    ck_assert_int_eq(domi_peers_init(&peers[1], &limits, (const uint64_t[2]){1, 3}), 0);
    for (uint32_t i = 0; i < 1000; i++) {
        domi_peer_key key = {.network = i, .family = AF_INET};
        domi_peer *at[2];
        for (int t = 0; t < 2; t++)
            ck_assert_int_eq(domi_peers_count_connection(&peers[t], &key, &at[t]), 0);
        same += at[0]->bucket == at[1]->bucket;
        for (int t = 0; t < 2; t++)
            domi_peers_uncount_connection(&peers[t], at[t]);
    }
    /* fewer than 20 of 1000 addresses in 16,384 buckets meet by chance */
    ck_assert_uint_lt(same, 20);
    domi_peers_fini(&peers[0]);
    domi_peers_fini(&peers[1]);
}

DOMT_TEST(without_memory_nothing_is_counted)
{
    domi_peers_limits limits = {100, 10, 10};
    domi_peer_key key = key_of_address("192.0.2.1");
    domi_peer *peer = NULL;
    domi_peers peers;

    domi_memory_fail_allocation_after(0, 0);
    ck_assert_int_eq(domi_peers_init(&peers, &limits, secret), -ENOMEM);
    domi_peers_fini(&peers);
    make_table_of_peers(&peers, 100, 10, 10);
    domi_memory_fail_allocation_after(0, 0);
    ck_assert_int_eq(domi_peers_count_connection(&peers, &key, &peer), -ENOMEM);
    ck_assert_ptr_null(peer);
    ck_assert_uint_eq(peers.count, 0);
    ck_assert_int_eq(domi_peers_count_connection(&peers, &key, &peer), 0);
    domi_peers_uncount_connection(&peers, peer);
    domi_peers_fini(&peers);
}

/* --- memory that is given back ------------------------------------------------------------- */

static int blocks;
/* if not NULL: while the table allocates, another connection is counted in, as by another thread */
static domi_peers *entered;
static domi_peer *faster;

static void *allocate_and_let_other_count_first(void *context, size_t bytes)
{
    domi_peer_key key = key_of_address("192.0.2.1");
    domi_peers *peers = entered;

    entered = NULL;
    if (peers != NULL)
        ck_assert_int_eq(domi_peers_count_connection(peers, &key, &faster), 0);
    blocks++;
    return calloc(1, bytes);
}

static void *allocate_and_count_pages(void *context, size_t bytes)
{
    void *pages = aligned_alloc(4096, bytes);

    ck_assert_ptr_nonnull(pages);
    blocks++;
    return memset(pages, 0, bytes);
}

static void free_and_uncount_block(void *context, void *memory, size_t bytes)
{
    blocks--;
    free(memory);
}

static const domus_allocator counting = {
    .allocate = allocate_and_let_other_count_first,
    .free = free_and_uncount_block,
    .map = allocate_and_count_pages,
    .unmap = free_and_uncount_block,
};

DOMT_TEST(the_memory_of_an_address_goes_with_its_last_connection)
{
    domi_peer_key key = key_of_address("192.0.2.1");
    domi_peer *one = NULL;
    domi_peer *other = NULL;
    domi_peers peers;

    (void)domi_memory_set_allocator(&counting);
    make_table_of_peers(&peers, 100, 50, 50);
    int before = blocks;
    ck_assert_int_eq(domi_peers_count_connection(&peers, &key, &one), 0);
    ck_assert_int_eq(domi_peers_count_connection(&peers, &key, &other), 0);
    ck_assert_int_eq(blocks, before + 1);
    domi_peers_uncount_connection(&peers, one);
    ck_assert_int_eq(blocks, before + 1);
    domi_peers_uncount_connection(&peers, other);
    ck_assert_int_eq(blocks, before);
    ck_assert_int_eq(domi_peers_count_connection(&peers, &key, &one), 0);
    /* the connection is never counted out, but the end of the table frees its entry */
    domi_peers_fini(&peers);
    ck_assert_int_eq(blocks, 0);
    (void)domi_memory_set_allocator(NULL);
}

DOMT_TEST(of_two_entries_for_one_address_one_is_given_back)
{
    domi_peer_key key = key_of_address("192.0.2.1");
    domi_peer *one = NULL;
    domi_peers peers;

    (void)domi_memory_set_allocator(&counting);
    make_table_of_peers(&peers, 2, 50, 50); /* a table with one connection for each address */
    int before = blocks;
    entered = &peers;
    ck_assert_int_eq(domi_peers_count_connection(&peers, &key, &one), -EDQUOT);
    ck_assert_ptr_null(one);
    ck_assert_int_eq(blocks, before + 1);
    domi_peers_uncount_connection(&peers, faster);
    ck_assert_int_eq(blocks, before);
    domi_peers_fini(&peers);
    make_table_of_peers(&peers, 4, 50, 50);
    entered = &peers;
    ck_assert_int_eq(domi_peers_count_connection(&peers, &key, &one), 0);
    ck_assert_ptr_eq(one, faster);
    ck_assert_uint_eq(one->count, 2);
    ck_assert_int_eq(blocks, before + 1);
    domi_peers_uncount_connection(&peers, one);
    domi_peers_uncount_connection(&peers, one);
    domi_peers_fini(&peers);
    ck_assert_int_eq(blocks, 0);
    (void)domi_memory_set_allocator(NULL);
}

/* The key does not matter here, even if both addresses fall into one bucket. */
DOMT_TEST(a_local_address_is_counted_apart_from_foreign_ones)
{
    domi_peer_key keys[2] = {key_of_address("::1"), key_of_address("::2")};
    const domi_peers_limits limits = {16, 50, 50};

    for (uint64_t seed = 0; seed < 300; seed++) {
        domi_peers peers;
        domi_peer *at[2];
        ck_assert_int_eq(domi_peers_init(&peers, &limits, (const uint64_t[2]){seed, 1}), 0);
        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(domi_peers_count_connection(&peers, &keys[i], &at[i]), 0);
        ck_assert_ptr_ne(at[0], at[1]);
        domi_peers_uncount_connection(&peers, at[0]);
        domi_peers_uncount_connection(&peers, at[1]);
        domi_peers_fini(&peers);
    }
}

/* --- threads ------------------------------------------------------------------------------- */

#define THREADS   4
#define ADDRESSES 8u
#define MOST      10u /* the limit of connections of an address */
#define HELD_MAX  64u
#define ROUNDS    50000

static domi_peers shared;
static _Atomic uint32_t inside[ADDRESSES];
static _Atomic uint32_t refused;

static void *count_connections_in_and_out_at_random(void *number)
{
    struct {
        domi_peer *peer;
        uint32_t address;
    } held[HELD_MAX];
    uint32_t count = 0;
    domi_random random;

    domi_random_init(&random, (uintptr_t)number);
    for (int i = 0; i < ROUNDS || count != 0; i++) {
        bool comes = i < ROUNDS && count < HELD_MAX && domi_random_below(&random, 2) == 0;
        if (comes) {
            uint32_t address = (uint32_t)domi_random_below(&random, ADDRESSES);
            domi_peer_key key = {.network = address, .family = AF_INET};
            int result = domi_peers_count_connection(&shared, &key, &held[count].peer);
            if (result == 0) {
                held[count++].address = address;
                ck_assert_uint_lt(atomic_fetch_add(&inside[address], 1), MOST);
            } else {
                ck_assert_int_eq(result, -EDQUOT);
                atomic_fetch_add(&refused, 1);
            }
        } else if (count != 0) {
            uint32_t at = (uint32_t)domi_random_below(&random, count);
            atomic_fetch_sub(&inside[held[at].address], 1);
            domi_peers_uncount_connection(&shared, held[at].peer);
            held[at] = held[--count];
        }
    }
    return NULL;
}

DOMT_TEST(threads_that_count_connections_at_once_agree)
{
    pthread_t threads[THREADS];

    make_table_of_peers(&shared, 100, 10, 10);
    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, count_connections_in_and_out_at_random, (void *)i),
            0);
    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_uint_gt(refused, 0);
    ck_assert_uint_eq(shared.count, 0);
    domi_peers_fini(&shared);
}

static void expect_printed_address(const char *address, const char *expected)
{
    char text[DOMI_PEER_TEXT_SIZE];
    domi_peer_key key = key_of_address(address);

    domi_peer_write_key_as_text(&key, text, sizeof text);
    ck_assert_str_eq(text, expected);
}

DOMT_TEST(an_address_is_printed_as_it_counts)
{
    expect_printed_address("192.0.2.1", "192.0.2.1");
    expect_printed_address("::ffff:192.0.2.1", "192.0.2.1");
    expect_printed_address("2001:db8:1:2:3::4", "2001:db8:1:2::/64");
    expect_printed_address("unix", "a Unix socket");
    expect_printed_address("", "an unknown address");
}

DOMT_SUITE(60)
