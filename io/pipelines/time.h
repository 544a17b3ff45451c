/* The time that pipelines take in one phase 2 is bounded (scheduler.stageTime), so that expensive
 * stages hold neither state actors nor timers, nor channels of bytes.
 *
 * As long as stages are cheap, the clock is read once for 16 messages. When a phase was too long,
 * the thread measures each message for some iterations. Then a channel gets a quarter of the time
 * in a run, and one message at least. If no time is left, it is put off: it is ready again in the
 * next iteration. Turns go round: a channel that had its turn in this round waits until all that
 * were put off in it have had theirs. Owner thread. */
#ifndef DOMI_IO_PIPELINES_TIME_H
#define DOMI_IO_PIPELINES_TIME_H

#include "io/pipelines/pipe.h"

/* Begin a run of a pipeline; `has_work` says whether the pipeline has work. Returns false if the
 * channel has to wait for its turn to decode. */
bool domi_stages_begin_measured_run(domi_pipe *pipe, bool has_work);

/* True if domi_stages_begin_measured_run() has to be called before a run: it is the first run of a
 * pipeline in this phase 2, or time is measured. */
static inline bool domi_stages_are_measured(const domi_pipe *pipe)
{
    const domi_stage_time *time = &pipe->channel->io->stages;

    return time->begun_ns == 0 || time->watched != 0;
}

/* Count one message that the run of a pipeline has handled, or one search for a message. Returns
 * false if the run has to end. `spent_ns` counts the time of this run. */
bool domi_stages_measure_time_of_run(domi_pipe *pipe, uint64_t *spent_ns);

static inline bool domi_stages_count_step_of_run(domi_pipe *pipe, uint64_t *spent_ns)
{
    return DOMI_LIKELY(--pipe->channel->io->stages.steps != 0) ||
           domi_stages_measure_time_of_run(pipe, spent_ns);
}

/* Forget a pipeline that ends: it does not wait for its turn any more. */
void domi_stages_end_wait_of_ended_pipe(domi_pipe *pipe);

/* End the time of pipelines in this phase 2. */
void domi_stages_end_time_of_phase(domi_io *io);

#endif
