/* The queue with two ends (runtime/policies/double_ended.h) by itself: it gives jobs in the order
 * of a list, and threads that take at one end and put at either end lose no job and get none twice.
 *
 * The jobs go round and round, and a flag of each job says whether it is in the queue. With few
 * jobs the two ends meet, so operations need one lock or both by turns. */
#include "base/random.h"
#include "house/message/house.h"
#include "runtime/policies/double_ended.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <stdint.h>

#define JOBS_MOST 64

static domi_house jobs[JOBS_MOST];

/* A model of the queue: the numbers of the jobs that it must hold, in a circular array. */
struct model {
    uint32_t numbers[JOBS_MOST];
    uint32_t head;
    uint32_t count;
};

static uint32_t *place_in_model(struct model *model, uint32_t number)
{
    return &model->numbers[(model->head + number) % JOBS_MOST];
}

static void put_job_at_either_end(domi_double_ended *queue, struct model *model, uint32_t number,
                                  bool at_head)
{
    if (at_head) {
        model->head = (model->head + JOBS_MOST - 1) % JOBS_MOST;
        domi_double_ended_prepend_job(queue, &jobs[number]);
    } else {
        domi_double_ended_append_job(queue, &jobs[number]);
    }
    *place_in_model(model, at_head ? 0 : model->count) = number;
    model->count++;
}

/* Take a job from one end of the queue; it must be the one that the model has there. Returns its
 * number. */
static uint32_t take_job_from_either_end(domi_double_ended *queue, struct model *model,
                                         bool at_head)
{
    domus_job *job =
        at_head ? domi_double_ended_take_first_job(queue) : domi_double_ended_take_last_job(queue);
    uint32_t number = *place_in_model(model, at_head ? 0 : model->count - 1);

    ck_assert_ptr_eq(job, &jobs[number]);
    model->count--;
    model->head = (model->head + (at_head ? 1 : 0)) % JOBS_MOST;
    return number;
}

DOMT_TEST(double_ended_queue_gives_what_a_model_list_gives)
{
    domi_double_ended queue;
    static struct model model;
    uint32_t idle[JOBS_MOST];
    uint32_t idle_count = 0;
    domi_random random;

    domi_double_ended_init(&queue);
    domi_random_init(&random, 1);
    for (uint32_t i = 0; i < JOBS_MOST; i++)
        idle[idle_count++] = i;
    for (uint32_t i = 0; i < 200000; i++) {
        /* the queue holds few jobs for 1000 rounds, and then many for 1000 rounds */
        uint64_t most = i % 2000 < 1000 ? 6 : JOBS_MOST;
        bool at_head = domi_random_below(&random, 2) != 0;
        if (domi_random_below(&random, most + 1) >= model.count && idle_count > 0) {
            put_job_at_either_end(&queue, &model, idle[--idle_count], at_head);
        } else if (model.count > 0) {
            idle[idle_count++] = take_job_from_either_end(&queue, &model, at_head);
        } else {
            ck_assert_ptr_null(domi_double_ended_take_first_job(&queue));
            ck_assert_ptr_null(domi_double_ended_take_last_job(&queue));
        }
        ck_assert_uint_eq(queue.count, model.count);
    }
}

#define TRAVELLERS 4

struct circle {
    domi_double_ended queue;
    _Atomic bool is_in[JOBS_MOST];
    _Atomic uint32_t wrong; /* number of jobs that came out although they were not in the queue */
};

typedef struct traveller {
    struct circle *circle;
    /* true: the thread works mostly at the head; false: it takes at the tail and appends */
    bool is_owner;
    uint32_t turns;
    pthread_t thread;
} traveller;

static void put_job_into_circle(struct circle *circle, domus_job *job, bool at_head)
{
    atomic_store_explicit(&circle->is_in[job - jobs], true, memory_order_relaxed);
    if (at_head)
        domi_double_ended_prepend_job(&circle->queue, job);
    else
        domi_double_ended_append_job(&circle->queue, job);
}

static domus_job *take_job_from_circle(struct circle *circle, bool at_head)
{
    domus_job *job = at_head ? domi_double_ended_take_first_job(&circle->queue)
                             : domi_double_ended_take_last_job(&circle->queue);

    if (job != NULL)
        circle->wrong +=
            !atomic_exchange_explicit(&circle->is_in[job - jobs], false, memory_order_relaxed);
    return job;
}

static void *move_jobs_between_ends(void *context)
{
    const traveller *self = context;
    domi_random random;

    domi_random_init(&random, (uintptr_t)self);
    for (uint32_t i = 0; i < self->turns; i++) {
        domus_job *first = take_job_from_circle(self->circle, self->is_owner);
        domus_job *second = domi_random_below(&random, 4) == 0
                                ? take_job_from_circle(self->circle, self->is_owner)
                                : NULL;
        if (first != NULL)
            put_job_into_circle(self->circle, first,
                                self->is_owner && domi_random_below(&random, 4) != 0);
        if (second != NULL)
            put_job_into_circle(self->circle, second, self->is_owner);
    }
    return NULL;
}

static void check_no_job_is_lost(uint32_t count)
{
    static struct circle circle;
    traveller crew[TRAVELLERS];
    uint32_t found = 0;

    circle = (struct circle){.wrong = 0};
    domi_double_ended_init(&circle.queue);
    for (uint32_t i = 0; i < count; i++)
        put_job_into_circle(&circle, &jobs[i], false);
    for (uint32_t i = 0; i < TRAVELLERS; i++) {
        crew[i] = (traveller){&circle, i % 2 == 0,
                              domt_tenfold_if_tests_are_long(DOMT_SCALE(50000, 8000)), 0};
        ck_assert_int_eq(pthread_create(&crew[i].thread, NULL, move_jobs_between_ends, &crew[i]),
                         0);
    }
    for (uint32_t i = 0; i < TRAVELLERS; i++)
        pthread_join(crew[i].thread, NULL);
    while (found < count && take_job_from_circle(&circle, found % 2 == 0) != NULL)
        found++;
    ck_assert_uint_eq(found, count);
    ck_assert_uint_eq(circle.wrong, 0);
    ck_assert_uint_eq(circle.queue.count, 0);
    ck_assert_ptr_null(take_job_from_circle(&circle, true));
}

DOMT_TEST(jobs_go_round_from_both_ends_and_none_is_lost)
{
    static const uint32_t counts[] = {1, 3, 4, 5, 6, 7, 8, 10, JOBS_MOST};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        check_no_job_is_lost(counts[i]);
}

DOMT_SUITE(120)
