/* The service of those loads of `bench sweep` that no example has: packets of 64 bytes come back
 * unchanged, most of them at once, and each n-th one from a state actor that has worked on it.
 *
 * The first 8 bytes of a packet are its number, which decides whether it is work, and for which
 * actor. The section `loads` of the configuration says how many actors there are, how long one
 * works, and where they live. Further actors may work in the background, each of them once in
 * TICK_NS. */
#include <domus/domus.h>
#include <domus/main.h>
#include <domus/observe.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PACKET         64u
#define TICK_NS        UINT64_C(2000000)
#define BACKGROUND_MAX 1024u

static struct settings {
    uint32_t actors, steps, every, background;
    bool in_pool;
} settings; /* the section `loads` of the configuration; constant once the program has started */

/* addresses of the actors that work; constant once the program has started */
static domus_address *workers;

static const domus_type tick_type = {.name = "tick"};

/* Answer a packet with its own bytes, from the memory in which they came. */
static int answer_with_packet(domus_stack *stack, const void *packet)
{
    int error = domus_take(stack);

    return error != 0 ? error : domus_reply(stack, &domus_packet_type, packet);
}

/* --- the actors that work
 * ---------------------------------------------------------------------- */

/* Do the steps of a packet's work. Each step needs the result of the last one, so that the work is
 * CPU time and nothing else. */
static void compute_steps_of_packet_work(void *self)
{
    volatile uint64_t *kept = self;
    uint64_t word = *kept;

    for (uint32_t i = 0; i < settings.steps; i++)
        word = word * UINT64_C(6364136223846793005) + 1;
    *kept = word;
}

static int compute_and_answer_packet(domus_stack *stack, void *self, const void *packet)
{
    compute_steps_of_packet_work(self);
    return answer_with_packet(stack, packet);
}

static int compute_steps_of_background_notice(domus_stack *stack, void *self, const void *nothing)
{
    (void)stack, (void)nothing;
    compute_steps_of_packet_work(self);
    return 0;
}

static const domus_behaviour worker = {
    .name = "worker",
    .state_size = sizeof(uint64_t),
    .on = (const domus_on[]){{&domus_packet_type, compute_and_answer_packet, 0},
                             {&tick_type, compute_steps_of_background_notice, 0},
                             {NULL, NULL, 0}}};

static int give_work_to_background(domus_stack *stack, void *self, const void *nothing)
{
    (void)nothing;
    return domus_notice_all(stack, self, settings.background, &tick_type, NULL, NULL);
}

static int spawn_background_workers(domus_stack *stack, void *self)
{
    domus_address *background = self;
    int error = 0;

    for (uint32_t i = 0; i < settings.background && error == 0; i++)
        error = domus_spawn(stack, &worker, NULL, &background[i]);
    return error != 0 ? error : domus_every(stack, TICK_NS, &tick_type, NULL, NULL);
}

static const domus_behaviour ticker = {
    .name = "ticker",
    .state_size = BACKGROUND_MAX * sizeof(domus_address),
    .on_mount = spawn_background_workers,
    .on = (const domus_on[]){{&tick_type, give_work_to_background, 0}, {NULL, NULL, 0}}};

/* Make the actors that work. A pool gives one address for all of them, and each packet is taken by
 * the next one. */
static int make_workers(domus_system *system)
{
    const domus_spawn_options options = {.pool = domus_outside_pool_find(system, "work")};
    uint32_t threads = domus_system_threads(system);
    int error = 0;

    workers = calloc(settings.actors, sizeof *workers);
    if (workers == NULL)
        return -ENOMEM;
    if (settings.in_pool) {
        error = domus_outside_spawn_many(system, &worker, NULL, settings.actors, NULL, &options,
                                         &workers[0]);
        settings.actors = 1;
        return error;
    }
    for (uint32_t i = 0; i < settings.actors && error == 0; i++)
        error = domus_outside_spawn_on(system, i % threads, &worker, NULL, &workers[i]);
    return error;
}

/* --- the service ------------------------------------------------------------------------------ */

static int answer_packet_or_forward_to_worker(domus_stack *stack, void *self, const void *payload)
{
    const domus_packet *packet = payload;
    uint64_t number;

    (void)self;
    memcpy(&number, domus_slice_data(packet->bytes), sizeof number);
    if (number % settings.every != 0)
        return answer_with_packet(stack, packet);
    return domus_forward(stack, workers[number / settings.every % settings.actors]);
}

static const domus_fixed_options packets = {.size = PACKET};
static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_fixed_stage, &packets}, {NULL, NULL}}};
static const domus_behaviour service = {
    .name = "loads",
    .kind = DOMUS_CHANNELS,
    .pipeline = &pipeline,
    .on_peer = (const domus_on_peer[]){
        {.type = &domus_packet_type, .handle = answer_packet_or_forward_to_worker},
        {.type = NULL}}};

static int start_service(domus_system *system, void *argument)
{
    domus_address address;
    int error = make_workers(system);

    if (error == 0 && settings.background != 0)
        error = domus_outside_spawn(system, &ticker, NULL, &address);
    return error != 0 ? error : domus_main_serve(system, argument, &service, NULL);
}

static void end_service(domus_system *system, void *argument)
{
    (void)system, (void)argument;
    free(workers);
}

static const domus_config_key keys[] = {
    {DOMUS_KEY("actors", COUNT, struct settings, actors, 1, 65536, 64)},
    {DOMUS_KEY("steps", COUNT, struct settings, steps, 0, 1000000, 10000)},
    {DOMUS_KEY("every", COUNT, struct settings, every, 1, 1000, 1)},
    {DOMUS_KEY("background", COUNT, struct settings, background, 0, BACKGROUND_MAX, 0)},
    {DOMUS_KEY_SWITCH("inPool", struct settings, in_pool, false)},
    {.path = NULL},
};
static const domus_section section = {.name = "loads", .keys = keys, .size = sizeof settings};

int main(int argc, char **argv)
{
    static const domus_program program = {.name = "loads",
                                          .start = start_service,
                                          .end = end_service,
                                          .argument = "load",
                                          .section = &section,
                                          .settings = &settings,
                                          .observe = &domus_observe_front};

    return domus_main(argc, argv, &program);
}
