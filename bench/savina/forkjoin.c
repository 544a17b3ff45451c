/* fjthrput: one producer sends to 60 workers that count; at most 100 messages to each are under
 * way. fjcreate: an actor is spawned for each piece of work, 1,000 at a time, and ends when it has
 * sent its result. */
#include "bench/savina/rows.h"

#include <math.h>

#define WORKERS     60u
#define WINDOW      100u
#define ALIVE_MAX   1000u
#define ANGLE       37.2
#define PRODUCT_MAX 1e-9 /* the error that a product of angles may have, at most */

/* --- throughput ------------------------------------------------------------------------------- */

static const domus_type job_type = {.name = "job"};
static const domus_type window_done_type = {.name = "window done"};
static const domus_type count_type = {.name = "count", .size = sizeof(uint64_t)};

static int count_job(domus_stack *stack, void *self, const void *nothing)
{
    uint64_t *count = self;

    (void)nothing;
    ++*count;
    if (*count % WINDOW == 0)
        return domus_notice(stack, domus_sender(stack), &window_done_type, NULL);
    return 0;
}

static int reply_count_of_jobs(domus_stack *stack, void *self, const void *nothing)
{
    (void)nothing;
    return domus_reply(stack, &count_type, self);
}

static const domus_behaviour worker = {
    .name = "worker",
    .state_size = sizeof(uint64_t),
    .on = (const domus_on[]){{.type = &job_type, .handle = count_job},
                             {.type = &count_type, .handle = reply_count_of_jobs},
                             {.type = NULL}},
};

struct producer {
    domus_address workers[WORKERS];
    uint64_t left;    /* number of jobs that the producer has still to send to each worker */
    uint32_t working; /* number of workers that have not finished the present window */
};

static int add_counts_of_workers(domus_stack *stack, void *self, const domus_answer *answer)
{
    uint64_t sum = 0;

    (void)self;
    for (; answer != NULL; answer = answer->next) {
        stage_must_succeed(answer->error, "count");
        sum += *(const uint64_t *)answer->payload;
    }
    return stage_end_root_with_result(stack, sum);
}

static int send_window_of_jobs(domus_stack *stack, struct producer *self)
{
    const uint64_t unused = 0;

    if (self->left == 0) {
        for (uint32_t i = 0; i < WORKERS; i++)
            stage_must_succeed(domus_ask_add(stack, self->workers[i], &count_type, &unused, 0, i),
                               "ask");
        return domus_wait_all(stack, add_counts_of_workers);
    }
    self->left -= WINDOW;
    self->working = WORKERS;
    for (uint32_t i = 0; i < WINDOW; i++) {
        for (uint32_t j = 0; j < WORKERS; j++)
            stage_send_notice(stack, self->workers[j], &job_type, NULL);
    }
    return 0;
}

static int send_next_window_when_all_are_done(domus_stack *stack, void *self_, const void *nothing)
{
    struct producer *self = self_;

    (void)nothing;
    return --self->working == 0 ? send_window_of_jobs(stack, self) : 0;
}

static int start_producer_and_workers(domus_stack *stack, void *self_, const void *jobs)
{
    struct producer *self = self_;

    self->left = *(const uint64_t *)jobs;
    for (uint32_t i = 0; i < WORKERS; i++)
        self->workers[i] = stage_spawn_child_of_root(stack, &worker, NULL);
    return send_window_of_jobs(stack, self);
}

static const domus_behaviour producer = {
    .name = "producer",
    .state_size = sizeof(struct producer),
    .on = (const domus_on[]){{.type = &window_done_type,
                              .handle = send_next_window_when_all_are_done},
                             {.type = &go_type, .handle = start_producer_and_workers},
                             {.type = NULL}},
    .on_stop = stage_on_stop_of_root,
};

const struct stage_row row_fjthrput = {.name = "fjthrput", .root = &producer};

/* --- create ----------------------------------------------------------------------------------- */

static const domus_type angle_type = {.name = "angle", .size = sizeof(double)};
static const domus_type product_type = {.name = "product", .size = sizeof(double)};

static int tell_squared_sine_and_stop(domus_stack *stack, void *self, const void *angle)
{
    double sine = sin(*(const double *)angle);
    double product = sine * sine;

    (void)self;
    stage_send_notice(stack, domus_sender(stack), &product_type, &product);
    return domus_stop(stack, domus_self(stack));
}

static const domus_behaviour piece = {
    .name = "piece",
    .on = (const domus_on[]){{.type = &angle_type, .handle = tell_squared_sine_and_stop},
                             {.type = NULL}},
};

struct collector {
    uint64_t size;
    uint64_t created;
    uint64_t told;
    double expected;
};

static void spawn_actor_of_piece_and_send_angle(domus_stack *stack, struct collector *self)
{
    const double angle = ANGLE;

    self->created++;
    stage_send_notice(stack, stage_spawn_child_of_root(stack, &piece, NULL), &angle_type, &angle);
}

static int spawn_first_pieces_of_collector(domus_stack *stack, void *self_, const void *size)
{
    struct collector *self = self_;

    self->size = *(const uint64_t *)size;
    self->expected = sin(ANGLE) * sin(ANGLE);
    while (self->created < self->size && self->created < ALIVE_MAX)
        spawn_actor_of_piece_and_send_angle(stack, self);
    return 0;
}

static int check_product_and_spawn_next_piece(domus_stack *stack, void *self_, const void *product)
{
    struct collector *self = self_;

    if (fabs(*(const double *)product - self->expected) > PRODUCT_MAX)
        stage_exit_with_wrong_result("a product");
    self->told++;
    if (self->created < self->size)
        spawn_actor_of_piece_and_send_angle(stack, self);
    return self->told == self->size ? stage_end_root_with_result(stack, self->told) : 0;
}

static const domus_behaviour collector = {
    .name = "collector",
    .state_size = sizeof(struct collector),
    .on = (const domus_on[]){{.type = &product_type, .handle = check_product_and_spawn_next_piece},
                             {.type = &go_type, .handle = spawn_first_pieces_of_collector},
                             {.type = NULL}},
    .on_stop = stage_on_stop_of_root,
};

const struct stage_row row_fjcreate = {.name = "fjcreate", .root = &collector};
