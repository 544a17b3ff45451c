/* Chapter 8: the port for lines in a test kit. A probe plays the store, so no database is needed,
 * and the store can fail in every way. */
#include "board.h"

#include <domus/testkit_net.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SEEDS 100

struct world {
    domus_testkit *kit;
    domus_probe *store;
    domus_peer *client;
};

/* Make a system with the port, a store that the test plays, and a client that has connected. */
static bool begin(uint64_t seed, struct world *world)
{
    static const domus_net_faults slow = {.latency_max_ns = 3000000,
                                          .short_reads = DOMUS_NET_ALWAYS / 2};
    domus_listener_config listener = {.name = "lines", .address = "127.0.0.1:7000", .backlog = 16};
    domus_config config;

    domus_config_init(&config);
    config.listeners = &listener;
    config.listener_count = 1;
    if (domus_testkit_new(&config, seed, NULL, 0, &world->kit) != 0)
        return false;
    domus_system *system = domus_testkit_system(world->kit);
    if (domus_testkit_net_set(world->kit, &slow) != 0 ||
        domus_probe_new(world->kit, &world->store) != 0)
        return false;
    board_keepers = board_referee = domus_probe_address(world->store);
    return domus_serve(system, "lines", &board_lines, NULL, NULL) == 0 &&
           domus_peer_connect(world->kit, "127.0.0.1:7000", NULL, &world->client) == 0;
}

static bool sends(struct world *world, const char *text)
{
    return domus_peer_send(world->client, text, strlen(text)) == 0;
}

static bool gets(struct world *world, const char *text)
{
    return domus_peer_expect(world->client, text, strlen(text), 5 * SECOND) == 0;
}

/* Whether the store is asked `type` for this score. */
static bool is_asked(struct world *world, const domus_type *type, struct score score)
{
    struct score got;

    return domus_probe_expect(world->store, type, SECOND, &got) == 0 &&
           strcmp(got.name, score.name) == 0 && got.points == score.points;
}

static bool each_line_gets_its_answer(struct world *world)
{
    return sends(world, "add ada 5\nshow bob\n") &&
           is_asked(world, &add_type, (struct score){"ada", 5}) &&
           is_asked(world, &show_type, (struct score){"bob", 0}) &&
           domus_probe_reply(world->store, &score_type, &(struct score){"ada", 15}) == 0 &&
           domus_probe_fail(world->store, -ENOENT) == 0 && gets(world, "15\nerror: ENOENT\n");
}

static bool a_store_that_is_silent_has_a_second(struct world *world)
{
    uint64_t begun = domus_testkit_now_ns(world->kit);

    return sends(world, "best\n") &&
           domus_probe_expect(world->store, &best_type, SECOND, NULL) == 0 &&
           gets(world, "error: ETIMEDOUT\n") && domus_testkit_now_ns(world->kit) - begun >= SECOND;
}

static bool wrong_lines_do_not_reach_the_store(struct world *world)
{
    return sends(world, "add ada\nadd ADA 5\nshow\nbest of all\n") &&
           gets(world, "error: EINVAL\nerror: EINVAL\nerror: EINVAL\nerror: EINVAL\n") &&
           domus_probe_expect_nothing(world->store, SECOND) == 0;
}

static int test(uint64_t seed, void *context)
{
    bool (*part)(struct world *) = *(bool (**)(struct world *))context;
    struct world world = {.kit = NULL};
    char text[DOMUS_TESTKIT_TEXT_MAX];
    bool good = begin(seed, &world) && part(&world);

    if (!good && world.kit != NULL)
        printf("%s\n%s\n", domus_testkit_error(world.kit),
               domus_testkit_replay(seed, text, sizeof text));
    domus_testkit_free(world.kit);
    return good ? 0 : -EBADMSG;
}

int main(void)
{
    static const struct {
        const char *name;
        bool (*part)(struct world *world);
    } parts[] = {
        {"each line gets its answer", each_line_gets_its_answer},
        {"a store that is silent has a second", a_store_that_is_silent_has_a_second},
        {"wrong lines do not reach the store", wrong_lines_do_not_reach_the_store},
    };
    int failed = 0;

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        bool (*part)(struct world *) = parts[i].part;
        int result = domus_testkit_sweep(1, SEEDS, test, (void *)&part, NULL);
        printf("%s: %s\n", result == 0 ? "passed" : "failed", parts[i].name);
        failed += result != 0;
    }
    return failed != 0;
}
