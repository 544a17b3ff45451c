/* The ring: n actors, each of which passes tokens to the next one, and an actor (the maker) that
 * makes them.
 *
 * The program measures, in this order and all on one thread: start-up (spawn, wire, until each has
 * handled its first message), the passes of ten tokens that begin as far apart as they can, the
 * time to touch as many bytes as the ring took (in pages as the kernel gives them, and in huge
 * ones, which domus asks for), stopping all, and start-up again in the slots that were used. In
 * spawn order each actor is told its next (the actor before it) as soon as it is spawned; shuffled,
 * all are spawned first, and then told in the order of the spawns. The maker makes a thousand
 * actors and goes on by a message to itself, so that its thread can do other work between. As it
 * may handle 64 messages in a run, some 65,000 actors are made and wired before the first of them
 * is mounted.
 *
 * Before the clock starts, the program touches as much memory, in small pages and in huge ones. A
 * virtual machine may take long for the first touch of a page since it booted, and that is not what
 * is compared here. */
#include "bench/actors/rows.h"
#include "bench/support/measure.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BYTES 4096u
/* bytes of memory for each node that are touched before the clock starts, in small and in huge
 * pages */
#define WARM_BYTES_NODE 640u

static const domus_type next_type = {.name = "next", .size = sizeof(domus_address)};
static const domus_type token_type = {.name = "token", .size = sizeof(uint64_t)};
static const domus_type ready_type = {.name = "ready"};
static const domus_type home_type = {.name = "home"};
static const domus_type gone_type = {.name = "gone"};

/* The state of the ring. While the system runs, only the system's one thread uses it. */
static struct {
    uint64_t size;
    uint64_t made;
    uint64_t wired;
    uint64_t stopped;
    uint64_t ready; /* number of nodes that have handled their first message */
    uint64_t gone;  /* number of nodes that have stopped */
    uint64_t each;  /* number of passes that each token makes */
    uint32_t home;  /* number of tokens that have made all their passes */
    bool shuffled;
    bool again;
    bool stopping;
    uint64_t began_ns;
    size_t resident_bytes;
    domus_address maker;
    domus_address *nodes; /* addresses of all nodes, in the order of the spawns */
    /* `order` and `next` are NULL unless the ring is shuffled. `order`: the nodes along the ring,
     * against the direction in which tokens go */
    uint32_t *order;
    /* for each node, in the order of the spawns, the node to which it passes tokens */
    uint32_t *next;
} ring;

/* --- nodes ------------------------------------------------------------------------------------ */

static int pass_to_next_node(domus_stack *stack, void *self, const void *next)
{
    *(domus_address *)self = *(const domus_address *)next;
    if (++ring.ready == ring.size)
        return domus_notice(stack, ring.maker, &ready_type, NULL);
    return 0;
}

/* Handle a token, which is the number of passes that it has left: pass it on to the next node, or
 * report its end. */
static int pass_token_or_report_its_end(domus_stack *stack, void *self, const void *token)
{
    uint64_t left = *(const uint64_t *)token;

    if (left == 0)
        return domus_notice(stack, ring.maker, &home_type, NULL);
    left--;
    return domus_notice(stack, *(const domus_address *)self, &token_type, &left);
}

static void count_stopped_node(domus_stack *stack, void *self)
{
    (void)self;
    /* when the last node is gone, the maker begins the next step; at the end of the system there is
     * no maker any more */
    if (++ring.gone == ring.size && ring.stopping)
        stage_must_succeed(domus_notice(stack, ring.maker, &gone_type, NULL), "notice");
}

static const domus_behaviour node = {
    .name = "node",
    .state_size = sizeof(domus_address),
    .on = (const domus_on[]){{.type = &token_type, .handle = pass_token_or_report_its_end},
                             {.type = &next_type, .handle = pass_to_next_node},
                             {.type = NULL}},
    .on_stop = count_stopped_node,
};

/* --- memory ----------------------------------------------------------------------------------- */

static size_t read_own_resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    size_t pages = 0;

    stage_must_succeed(file == NULL || fscanf(file, "%*u %zu", &pages) != 1 ? -EIO : 0, "statm");
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Map `bytes` bytes, write to each page of them, and unmap them. Returns how many seconds the
 * writing took. */
static double measure_seconds_to_write_new_pages(size_t bytes, bool huge)
{
    bytes += PAGE_BYTES - bytes % PAGE_BYTES;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stage_must_succeed(memory == MAP_FAILED ? -errno : 0, "memory to touch");
    if (huge)
        (void)madvise(memory, bytes, MADV_HUGEPAGE);

    uint64_t began_ns = measure_now_ns();
    for (size_t at = 0; at < bytes; at += PAGE_BYTES)
        memset(memory + at, 1, PAGE_BYTES);
    double taken_s = (double)(measure_now_ns() - began_ns) / 1e9;
    munmap(memory, bytes);
    return taken_s;
}

/* --- the maker -------------------------------------------------------------------------------- */

/* Returns the address of the node at this place along the ring. */
static domus_address node_at_place(uint64_t place)
{
    return ring.nodes[ring.shuffled ? ring.order[place] : place];
}

static void connect_nodes(domus_stack *stack, domus_address from, domus_address to)
{
    stage_must_succeed(domus_notice(stack, from, &next_type, &to), "notice");
}

static uint64_t number_behind_last_node_of_batch(uint64_t from)
{
    return ring.size - from < RING_BATCH ? ring.size : from + RING_BATCH;
}

static void make_batch_of_nodes(domus_stack *stack)
{
    for (uint64_t end = number_behind_last_node_of_batch(ring.made); ring.made < end; ring.made++) {
        domus_address *made = &ring.nodes[ring.made];
        stage_must_succeed(domus_spawn(stack, &node, NULL, made), "spawn");
        if (!ring.shuffled && ring.made > 0)
            connect_nodes(stack, made[0], made[-1]);
    }
    if (!ring.shuffled && ring.made == ring.size)
        connect_nodes(stack, ring.nodes[0], ring.nodes[ring.size - 1]);
}

static void connect_batch_of_nodes(domus_stack *stack)
{
    for (uint64_t end = number_behind_last_node_of_batch(ring.wired); ring.wired < end;
         ring.wired++)
        connect_nodes(stack, ring.nodes[ring.wired], ring.nodes[ring.next[ring.wired]]);
}

static void stop_batch_of_nodes(domus_stack *stack)
{
    for (uint64_t end = number_behind_last_node_of_batch(ring.stopped); ring.stopped < end;
         ring.stopped++)
        stage_must_succeed(domus_stop(stack, ring.nodes[ring.stopped]), "stop");
}

static bool are_nodes_left(void)
{
    if (ring.stopping)
        return ring.stopped < ring.size;
    return ring.made < ring.size || (ring.shuffled && ring.wired < ring.size);
}

static int make_connect_or_stop_next_batch(domus_stack *stack, void *self, const void *nothing)
{
    (void)self, (void)nothing;
    if (ring.stopping)
        stop_batch_of_nodes(stack);
    else if (ring.made < ring.size)
        make_batch_of_nodes(stack);
    else
        connect_batch_of_nodes(stack);
    return are_nodes_left() ? domus_notice(stack, ring.maker, &go_type, NULL) : 0;
}

static int make_all_nodes(domus_stack *stack)
{
    ring.made = ring.wired = ring.stopped = ring.ready = ring.gone = 0;
    ring.stopping = false;
    ring.began_ns = measure_now_ns();
    return domus_notice(stack, ring.maker, &go_type, NULL);
}

static double seconds_since_row_began(void)
{
    return (double)(measure_now_ns() - ring.began_ns) / 1e9;
}

static int print_startup_and_send_tokens(domus_stack *stack, void *self, const void *nothing)
{
    (void)self, (void)nothing;
    if (ring.again) {
        printf("again_seconds %.9f\n", seconds_since_row_began());
        stage_let_main_thread_return();
        return 0;
    }
    printf("startup_seconds %.9f\n", seconds_since_row_began());
    printf("passes %" PRIu64 "\n", ring.each * RING_TOKENS);
    ring.resident_bytes = read_own_resident_bytes() - ring.resident_bytes;
    printf("bytes %zu\n", ring.resident_bytes);
    stage_begin_clocks();
    for (uint64_t i = 0; i < RING_TOKENS; i++)
        stage_must_succeed(domus_notice(stack, node_at_place(i * ring.size / RING_TOKENS),
                                        &token_type, &ring.each),
                           "notice");
    return 0;
}

/* Returns whether the token that `sender` brought ended where it should. That place follows from
 * where it began and its number of passes, so this checks the size of the ring. */
static bool does_token_end_where_it_should(domus_address sender)
{
    for (uint64_t i = 0; i < RING_TOKENS; i++) {
        uint64_t place = i * ring.size / RING_TOKENS;
        domus_address end = node_at_place((place + ring.size - ring.each % ring.size) % ring.size);
        if (end.house == sender.house && end.lease == sender.lease)
            return true;
    }
    return false;
}

static int check_end_of_token_and_stop_if_last(domus_stack *stack, void *self, const void *nothing)
{
    (void)self, (void)nothing;
    if (!does_token_end_where_it_should(domus_sender(stack)))
        stage_exit_with_wrong_result("where a token ended");
    if (++ring.home != RING_TOKENS)
        return 0;
    stage_end_clocks();
    printf("touch_seconds %.9f\n", measure_seconds_to_write_new_pages(ring.resident_bytes, false));
    printf("touch_huge_seconds %.9f\n",
           measure_seconds_to_write_new_pages(ring.resident_bytes, true));
    ring.stopping = true;
    ring.began_ns = measure_now_ns();
    return domus_notice(stack, ring.maker, &go_type, NULL);
}

static int print_stop_time_and_make_ring_again(domus_stack *stack, void *self, const void *nothing)
{
    (void)self, (void)nothing;
    printf("stop_seconds %.9f\n", seconds_since_row_began());
    ring.again = true;
    return make_all_nodes(stack);
}

static int mount_maker_of_ring(domus_stack *stack, void *self)
{
    (void)self;
    ring.maker = domus_self(stack);
    ring.resident_bytes = read_own_resident_bytes();
    return make_all_nodes(stack);
}

static const domus_behaviour maker = {
    .name = "maker",
    .on = (const domus_on[]){{.type = &go_type, .handle = make_connect_or_stop_next_batch},
                             {.type = &ready_type, .handle = print_startup_and_send_tokens},
                             {.type = &home_type, .handle = check_end_of_token_and_stop_if_last},
                             {.type = &gone_type, .handle = print_stop_time_and_make_ring_again},
                             {.type = NULL}},
    .on_mount = mount_maker_of_ring,
};

/* --- the rows --------------------------------------------------------------------------------- */

static void draw_order_of_ring(size_t size)
{
    ring.order = malloc(size * sizeof *ring.order);
    ring.next = malloc(size * sizeof *ring.next);
    stage_must_succeed(ring.order == NULL || ring.next == NULL ? -ENOMEM : 0, "the order");
    for (uint64_t i = 0; i < size; i++)
        ring.order[i] = (uint32_t)i;
    ring_shuffle_order(ring.order, size);
    for (uint64_t i = 0; i < size; i++)
        ring.next[ring.order[i]] = ring.order[(i == 0 ? size : i) - 1];
}

static void run_row_of_ring(domus_system *system, uint64_t nodes, bool shuffled)
{
    stage_must_succeed(nodes > SIZE_MAX / WARM_BYTES_NODE ? -ENOMEM : 0, "the ring");
    size_t size = (size_t)nodes;
    uint64_t passes = size > RING_PASSES_MIN ? size : RING_PASSES_MIN;

    ring.size = size;
    ring.shuffled = shuffled;
    ring.each = passes / RING_TOKENS;
    ring.nodes = malloc(size * sizeof *ring.nodes);
    stage_must_succeed(ring.nodes == NULL ? -ENOMEM : 0, "the ring");
    if (shuffled)
        draw_order_of_ring(size);
    (void)measure_seconds_to_write_new_pages(size * WARM_BYTES_NODE, false);
    (void)measure_seconds_to_write_new_pages(size * WARM_BYTES_NODE, true);
    stage_spawn_child_of_root(system, 0, &maker, NULL);
    stage_wait_and_print_times();
    free(ring.nodes);
    free(ring.order);
    free(ring.next);
}

void row_run_ring(domus_system *system, uint64_t nodes)
{
    run_row_of_ring(system, nodes, false);
}

void row_run_ring_in_shuffled_order(domus_system *system, uint64_t nodes)
{
    run_row_of_ring(system, nodes, true);
}
