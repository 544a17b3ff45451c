/* Bounds the time that pipelines take in a phase 2 (time.h). */
#include "io/pipelines/time.h"

/* number of messages between two reads of the clock while stages are cheap */
#define STEPS_UNMEASURED 16u
/* number of iterations in which each message is measured after a phase that was too long */
#define WATCHED 64u
/* divisor: a run of one channel gets a quarter of the time of all pipelines */
#define PARTS 4u

static uint64_t read_clock_of_thread(const domi_io *io)
{
    const domi_manager *manager = io->manager;

    return manager->hooks.read_clock != NULL ? manager->hooks.read_clock(manager) : manager->now_ns;
}

static uint64_t get_time_limit_of_pipelines_ns(const domi_io *io)
{
    return io->config->scheduler.stage_time_ns;
}

/* True if the channel has to wait before it decodes: the time of this phase is over, or it had its
 * turn in this round and others wait for theirs. */
static bool must_channel_wait_to_decode(const domi_pipe *pipe)
{
    const domi_io *io = pipe->channel->io;
    const domi_stage_time *time = &io->stages;

    if (time->spent_ns >= get_time_limit_of_pipelines_ns(io))
        return true;
    return time->waiting != 0 && pipe->served_round == time->round &&
           pipe->waits_round != time->round;
}

/* Record that the channel does not wait for its turn in this round any more. */
static void end_wait_for_turn_to_decode(domi_pipe *pipe)
{
    domi_stage_time *time = &pipe->channel->io->stages;

    if (pipe->waits_round != time->round)
        return;
    pipe->waits_round = time->round - 1;
    if (--time->waiting == 0)
        time->round++;
}

static void put_decoding_of_pipeline_off(domi_pipe *pipe)
{
    domi_io *io = pipe->channel->io;
    domi_stage_time *time = &io->stages;

    time->put_off = true;
    if (pipe->served_round == time->round || pipe->waits_round == time->round)
        return;
    pipe->waits_round = time->round;
    time->waiting++;
    domi_counter_add(&io->counters.channels_late, 1);
}

bool domi_stages_begin_measured_run(domi_pipe *pipe, bool has_work)
{
    domi_io *io = pipe->channel->io;
    domi_stage_time *time = &io->stages;

    if (time->begun_ns == 0) {
        time->begun_ns = io->manager->now_ns;
        /* the number 0 is the round of pipelines that never had a turn */
        time->round += time->round == 0;
        time->steps = time->watched != 0 ? 1 : STEPS_UNMEASURED;
    }
    if (time->watched == 0)
        return true;
    if (!has_work) {
        end_wait_for_turn_to_decode(pipe);
        return true;
    }
    if (must_channel_wait_to_decode(pipe)) {
        put_decoding_of_pipeline_off(pipe);
        return false;
    }
    time->served = true;
    pipe->served_round = time->round;
    end_wait_for_turn_to_decode(pipe);
    time->read_ns = read_clock_of_thread(io);
    time->steps = 1;
    return true;
}

bool domi_stages_measure_time_of_run(domi_pipe *pipe, uint64_t *spent_ns)
{
    domi_io *io = pipe->channel->io;
    domi_stage_time *time = &io->stages;
    uint64_t now_ns = read_clock_of_thread(io);

    if (time->watched == 0) {
        time->steps = STEPS_UNMEASURED;
        if (now_ns - time->begun_ns < get_time_limit_of_pipelines_ns(io))
            return true;
        time->watched = WATCHED;
        time->served = true;
        pipe->served_round = time->round;
        time->spent_ns = now_ns - time->begun_ns;
        time->steps = 1;
        return false;
    }
    time->steps = 1;
    *spent_ns += now_ns - time->read_ns;
    time->spent_ns += now_ns - time->read_ns;
    time->read_ns = now_ns;
    return time->spent_ns < get_time_limit_of_pipelines_ns(io) &&
           *spent_ns < get_time_limit_of_pipelines_ns(io) / PARTS;
}

void domi_stages_end_wait_of_ended_pipe(domi_pipe *pipe)
{
    end_wait_for_turn_to_decode(pipe);
}

void domi_stages_end_time_of_phase(domi_io *io)
{
    domi_stage_time *time = &io->stages;

    if (time->spent_ns >= get_time_limit_of_pipelines_ns(io) ||
        io->manager->now_ns - time->begun_ns >= get_time_limit_of_pipelines_ns(io))
        time->watched = WATCHED;
    else if (time->watched != 0)
        time->watched--;
    /* If no channel had a turn, the actors of the waiting channels are held up, so the round ends
     * without them. */
    if ((time->put_off && !time->served) || time->watched == 0) {
        time->round++;
        time->waiting = 0;
    }
    time->begun_ns = time->spent_ns = 0;
    time->served = time->put_off = false;
}
