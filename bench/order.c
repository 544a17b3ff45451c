/* This bench measures what the order of an actor costs (domus_behaviour.order): the time to put a
 * message, and to handle another one, while many wait.
 *
 * A manager without a thread is stepped by hand. An actor has N messages with random keys. In a
 * round ROUND more are put, and a run handles as many. So N stay, and those with the largest keys
 * stay for long. The keys of new messages grow slowly, as deadlines do, by N in the time of N
 * messages; so no message waits for ever. An actor without an order does the same for comparison.
 * `drain` is the time of a message when N are put at once and all of them handled; `longest` is the
 * time of the longest round, for its ROUND messages together.
 *
 * bench_order [MESSAGES]. stdout: lines `name value unit`. */
#include "base/random.h"
#include "bench/support/measure.h"
#include "house/dispatch/dispatch.h"
#include "house/dispatch/manage.h"
#include "house/dispatch/phases.h"
#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "house/message/sign.h"

#include <domus/domus.h>

#include <stdio.h>
#include <stdlib.h>

#define ROUND    64u
#define MESSAGES 2000000u

static domi_manager *manager;
static domi_random chance;
static domus_address to; /* address of the actor whose order is measured */
static uint64_t handled;

static _Noreturn void exit_with_error(const char *what)
{
    fprintf(stderr, "order: %s\n", what);
    exit(1);
}

/* --- the actors ------------------------------------------------------------------------------- */

static const domus_type item = {.name = "item", .size = sizeof(uint64_t)};

static int count_handled_message(domus_stack *stack, void *self, const void *payload)
{
    (void)stack, (void)self, (void)payload;
    handled++;
    return 0;
}

static int compare_keys(const domus_type *one_type, const void *one, const domus_type *other_type,
                        const void *other)
{
    uint64_t key = *(const uint64_t *)one;
    uint64_t other_key = *(const uint64_t *)other;

    (void)one_type, (void)other_type;
    return key < other_key ? -1 : key > other_key;
}

static const domus_behaviour plain = {
    .name = "plain", .on = (const domus_on[]){{&item, count_handled_message, 0}, {NULL, NULL, 0}}};
static const domus_behaviour ordered = {
    .name = "ordered",
    .on = (const domus_on[]){{&item, count_handled_message, 0}, {NULL, NULL, 0}},
    .order = compare_keys,
};

/* --- a measurement ---------------------------------------------------------------------------- */

static void put_message_with_key_to_actor(uint64_t key)
{
    domi_envelope *envelope = domi_envelope_new(manager, DOMI_ENVELOPE_HEAD + item.size);

    if (envelope == NULL)
        exit_with_error("no memory");
    domi_envelope_set_type_and_sender(envelope, &item, to.house);
    domi_payload_copy(envelope->payload, &key, sizeof key);
    if (domi_mailbox_put(manager, to, &envelope->node, DOMI_NOTICE) != 0)
        exit_with_error("a put was refused");
}

static void run_measured_actor_once(void)
{
    domi_house *house = domi_queue_take_house(&manager->schedule.ready[DOMUS_STATE]);

    if (house == NULL)
        exit_with_error("the actor is not ready");
    (void)domi_house_run_and_settle(manager, house);
}

/* Put `waiting` messages and handle all of them, until `messages` are handled. Returns the
 * nanoseconds for one message. */
static double measure_put_and_drain(uint64_t waiting, uint64_t messages)
{
    uint64_t rounds = messages / waiting + 1;
    uint64_t began_ns = measure_thread_cpu_ns();

    for (uint64_t i = 0; i < rounds; i++) {
        for (uint64_t j = 0; j < waiting; j++)
            put_message_with_key_to_actor(domi_random_below(&chance, waiting));
        while (to.house->mail != 0)
            run_measured_actor_once();
    }
    return (double)(measure_thread_cpu_ns() - began_ns) / (double)(rounds * waiting);
}

/* Put and handle messages while `waiting` others are always waiting. Returns the mean time of a
 * message in ns; `*ret_longest_ns` becomes the time of the longest round. */
static double measure_at_constant_mailbox_depth(uint64_t waiting, uint64_t messages,
                                                uint64_t *ret_longest_ns)
{
    uint64_t longest_ns = 0;
    uint64_t sum_ns = 0;
    uint64_t rounds = messages / ROUND;

    for (uint64_t i = 0; i < waiting; i++)
        put_message_with_key_to_actor(domi_random_below(&chance, 2 * waiting));
    for (uint64_t i = 0; i < rounds + waiting / ROUND; i++) {
        uint64_t began_ns = measure_thread_cpu_ns();
        for (uint64_t j = 0; j < ROUND; j++)
            put_message_with_key_to_actor(i * ROUND + domi_random_below(&chance, 2 * waiting));
        run_measured_actor_once();
        uint64_t took_ns = measure_thread_cpu_ns() - began_ns;
        /* the first rounds do not count, because the mix of keys in the mailbox still changes */
        if (i < waiting / ROUND)
            continue;
        sum_ns += took_ns;
        longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
    }
    while (to.house->mail != 0)
        run_measured_actor_once();
    *ret_longest_ns = longest_ns;
    return (double)sum_ns / (double)(rounds * ROUND);
}

static void measure_mailbox_of_behaviour(const domus_behaviour *behaviour, uint64_t waiting,
                                         uint64_t messages)
{
    uint64_t longest_ns;

    if (domi_house_spawn_without_parent(manager, manager, behaviour, NULL, &to) != 0)
        exit_with_error("no actor");
    (void)domi_manager_mount_actors(manager);
    handled = 0;
    double drain_ns = measure_put_and_drain(waiting, messages);
    double hold_ns = measure_at_constant_mailbox_depth(waiting, messages, &longest_ns);
    if (handled < 2 * messages)
        exit_with_error("messages were lost");
    printf("order.%s_%llu %.1f ns\n", behaviour->name, (unsigned long long)waiting, hold_ns);
    printf("order.%s_%llu_drain %.1f ns\n", behaviour->name, (unsigned long long)waiting, drain_ns);
    printf("order.%s_%llu_longest %.1f us\n", behaviour->name, (unsigned long long)waiting,
           (double)longest_ns / 1e3);
}

/* --- the world -------------------------------------------------------------------------------- */

static const domi_runtime_hooks hooks = {.wake = NULL};

int main(int argc, char **argv)
{
    static const uint64_t waiting[] = {10, 1000, 100000};
    uint64_t messages = argc > 1 ? strtoull(argv[1], NULL, 10) : MESSAGES;
    domus_config config;

    if (messages < ROUND)
        exit_with_error("usage: bench_order [MESSAGES]");
    domus_config_init(&config);
    config.scheduler.mailbox_max = UINT32_MAX;
    manager = aligned_alloc(alignof(domi_manager), sizeof(domi_manager));
    if (manager == NULL)
        exit_with_error("no memory");
    *manager = (domi_manager){0};
    const domi_manager_options options = {
        .index = 0,
        .count = 1,
        .managers = &manager,
        .config = &config,
        .now_ns = 1,
        .hooks = &hooks,
    };
    if (domi_manager_init(manager, &options) != 0)
        exit_with_error("no manager");
    domi_manager_set_messages_per_run(manager, ROUND);
    domi_random_init(&chance, 1);
    (void)measure_pin_thread_to_cpu(0);
    for (size_t i = 0; i < sizeof waiting / sizeof waiting[0]; i++) {
        measure_mailbox_of_behaviour(&plain, waiting[i], messages);
        measure_mailbox_of_behaviour(&ordered, waiting[i], messages);
    }
    return 0;
}
