/* Jobs for the pool of helper threads, the gate at which they wait, and counts of the pool's
 * threads. */
#include "tests/runtime/jobs.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

atomic_bool domt_gate;
atomic_uint domt_begun, domt_finished, domt_cancelled;
atomic_uint domt_order[DOMT_JOBS_MAX];
static atomic_uint placed;

domi_workers *domt_new_helper_pool(uint32_t least, uint32_t most, uint32_t queue_max,
                                   uint64_t expiry_ns)
{
    const domi_workers_limits limits = {least, most, queue_max, expiry_ns};
    domi_workers *workers = NULL;

    ck_assert_int_eq(domi_workers_new(&limits, &workers), 0);
    return workers;
}

int domt_job_return_number(void *task_)
{
    atomic_fetch_add(&domt_begun, 1);
    return (int)((domt_task *)task_)->number;
}

int domt_job_wait_at_gate(void *task_)
{
    int number = domt_job_return_number(task_);

    while (!atomic_load(&domt_gate))
        domt_pause_ns(200000);
    return number;
}

void domt_job_count_end(domi_job *job)
{
    if (job->result == -ECANCELED)
        atomic_fetch_add(&domt_cancelled, 1);
    uint32_t place = atomic_fetch_add(&placed, 1);
    atomic_store(&domt_order[place % DOMT_JOBS_MAX], ((domt_task *)job->argument)->number);
    /* from here on the test may use the memory of the job again */
    atomic_fetch_add(&domt_finished, 1);
}

void domt_jobs_prepare(domt_task *tasks, uint32_t amount, int (*function)(void *))
{
    for (uint32_t i = 0; i < amount; i++) {
        tasks[i] = (domt_task){.number = i};
        tasks[i].job =
            (domi_job){.function = function, .argument = &tasks[i], .done = domt_job_count_end};
    }
}

void domt_jobs_submit(domi_workers *workers, domt_task *tasks, uint32_t amount)
{
    for (uint32_t i = 0; i < amount; i++)
        ck_assert_int_eq(domi_workers_submit_job(workers, &tasks[i].job), 0);
}

uint64_t domt_helper_pool_count_threads(const domi_workers *workers)
{
    return domi_counter_read(&workers->counters.threads);
}

uint32_t domt_count_helper_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    uint32_t found = 0;

    ck_assert_ptr_nonnull(tasks);
    for (const struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
        char path[300];
        char name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "re");
        if (file == NULL)
            continue;
        found += fgets(name, sizeof name, file) != NULL && strcmp(name, "domus-blocking\n") == 0;
        fclose(file);
    }
    closedir(tasks);
    return found;
}

void domt_helper_pool_end(domi_workers *workers)
{
    ck_assert_uint_eq(domi_workers_stop(workers, DOMT_LONG_NS), 0);
    ck_assert_uint_eq(domt_helper_pool_count_threads(workers), 0);
    ck_assert_uint_eq(domi_counter_read(&workers->counters.queued), 0);
    ck_assert_uint_eq(domi_counter_read(&workers->counters.running), 0);
    domi_workers_free(workers);
}
