/* Functions that use the service of tests/runtime/pipes.h in the kit that was made last. */
#include "tests/runtime/pipes.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

domus_system *domt_pipe_system_of_kit(void)
{
    return domus_testkit_system(domt_pipe_kit);
}

domus_peer *domt_pipe_begin_kit(const domus_config *config, const domus_behaviour *behaviour,
                                uint64_t seed)
{
    return domt_pipes_connect_peer(domt_pipes_new_kit(config, behaviour, seed));
}

domus_peer *domt_pipe_begin_with_pipeline(const domus_pipeline *pipeline)
{
    /* static, because the kit uses the behaviour until it is freed */
    static domus_behaviour behaviour;
    behaviour = domt_pipe_framed;
    behaviour.pipeline = pipeline;
    return domt_pipe_begin_kit(NULL, &behaviour, 1);
}

domus_config domt_pipe_default_config(void)
{
    domus_config config;
    domt_pipes_make_config(&config);
    return config;
}

domus_peer *domt_pipe_connect_peer(void)
{
    return domt_pipes_connect_peer(domt_pipe_kit);
}

void domt_pipe_peer_say(domus_peer *peer, const char *text)
{
    domt_kit_peer_send(peer, text);
}

void domt_pipe_peer_hear(domus_peer *peer, const char *text)
{
    domt_kit_peer_expect(domt_pipe_kit, peer, text);
}

void domt_pipe_peer_say_and_hear(domus_peer *peer, const char *said, const char *heard)
{
    domt_pipe_peer_say(peer, said);
    domt_pipe_peer_hear(peer, heard);
}

void domt_pipe_run_kit(void)
{
    ck_assert_int_eq(domus_testkit_run(domt_pipe_kit), 0);
}

void domt_pipe_pass_time(uint64_t ns)
{
    ck_assert_int_eq(domus_testkit_advance(domt_pipe_kit, ns), 0);
}

void domt_pipe_stop_channel(void)
{
    ck_assert_int_eq(domus_outside_stop(domt_pipe_system_of_kit(), domt_pipes_now.channel), 0);
}

void domt_pipe_end_kit(void)
{
    domt_pipes_end_kit(domt_pipe_kit);
}

void domt_pipe_close_peer_and_end(domus_peer *peer)
{
    domus_peer_close(peer);
    domt_pipe_end_kit();
}

void domt_pipe_finish_peer_and_end(domus_peer *peer)
{
    domus_peer_finish(peer);
    ck_assert_int_eq(domus_peer_expect_end(peer, DOMT_PIPE_SECOND), 0);
    domt_pipe_end_kit();
}

void domt_pipe_expect_end_and_close(domus_peer *peer)
{
    ck_assert_int_eq(domus_peer_expect_end(peer, DOMT_PIPE_SECOND), 0);
    domt_pipe_close_peer_and_end(peer);
}

void domt_pipe_free_kit(void)
{
    (void)domus_testkit_stop(domt_pipe_kit);
    domus_testkit_free(domt_pipe_kit);
}
