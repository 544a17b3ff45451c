/* io/pipelines/stream.c: answers that leave in pieces (streams): their order, how they are cut, and
 * their bounds; drains; and stages with bodies in a kit of stages. */
#include "tests/runtime/streams.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <domus/stage_kit.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

/* --- streams ---------------------------------------------------------------------------------- */

DOMT_TEST(streamed_answers_leave_in_pieces)
{
    domt_streams_check_answers("Q give 3\nQ drop\nQ fgive 3\n", false,
                               "give+\n3:abc0:dropped\ngive+\n3:abc0:");
    domt_streams_check_answers("Q give 0\nC echo\n0:C fecho\nT-x\nQ drop\n", false,
                               "give+\n0:echo+\n0:echo+\nT-x\ndropped\n");
    domt_streams_check_answers("Q lend\nQ drop\n", false, "lent+\n5:hello0:dropped\n");
    domt_streams_check_answers("Q wrong\nQ drop\n", false, "head+\n2:ok0:dropped\n");
}

DOMT_TEST(a_body_is_echoed_while_it_comes)
{
    (void)domt_streams_new_kit(NULL, &domt_stream_service);
    domus_peer *peer = domt_pipe_connect_peer();

    for (int i = 0; i < 2; i++) {
        domt_pipe_peer_send_and_expect(peer, i == 0 ? "C echo\n5:hello" : "C fecho\n5:hello",
                                       "echo+\n5:hello");
        domt_pipe_peer_send_and_expect(peer, "3:you", "3:you");
        domt_pipe_peer_send_and_expect(peer, "T-z\n", "T-z\n");
    }
    domt_pipe_end_kit();
}

DOMT_TEST(streams_leave_in_the_order_of_the_requests)
{
    (void)domt_streams_new_kit(NULL, &domt_stream_service);
    domus_peer *peer = domt_pipe_connect_peer();

    domt_pipe_peer_send_text(peer, "Q wait 10\nQ give 2500\nQ drop\nQ fgive 2\nQ drop\n");
    domt_pipe_pass_time(5 * MS);
    /* both streams have to wait with their first pieces */
    ck_assert_uint_eq(domt_streams_now.given, 0);
    domt_pipe_peer_expect_text(peer, "waited\ngive+\n1000:abc");
    domt_pipe_run_kit();
    size_t size;
    const char *got = domus_peer_got(peer, &size);
    static const char rest[] = "0:dropped\ngive+\n2:ab0:dropped\n";
    ck_assert_uint_ge(size, sizeof rest);
    ck_assert_mem_eq(got + size - (sizeof rest - 1), rest, sizeof rest - 1);
    ck_assert_uint_eq(domt_streams_now.given, 2502);
    domt_pipe_end_kit();
}

DOMT_TEST(a_write_waits_for_a_peer_that_does_not_read)
{
    static const char *const asked[] = {"Q give 50000000\n", "Q fgive 50000000\n"};

    domus_config config = domt_pipe_default_config();
    config.channel.send_high_bytes = 10000;
    config.channel.send_low_bytes = 2000;
    for (int i = 0; i < 2; i++) {
        (void)domt_streams_new_kit(&config, &domt_stream_service);
        domus_peer *peer = domt_pipe_connect_peer();
        domus_peer_pause(peer);
        domt_pipe_peer_send_text(peer, asked[i]);
        domt_pipe_pass_time(100 * MS);
        uint64_t given = domt_streams_now.given;
        ck_assert_uint_lt(given, 5000000);
        domt_pipe_pass_time(100 * MS);
        ck_assert_uint_eq(domt_streams_now.given, given);
        domus_peer_resume(peer);
        domt_pipe_pass_time(5 * MS);
        ck_assert_uint_gt(domt_streams_now.given, given);
        domus_peer_reset(peer);
        domt_pipe_run_kit();
        ck_assert_uint_eq(domt_streams_now.ended, 1);
        domt_pipe_end_kit();
    }
}

DOMT_TEST(a_stream_that_fails_is_cut)
{
    domt_streams_check_answers("Q part 3\nQ drop\nQ fpart 2\n", false,
                               "part+\n3:abc!EBADMSG\ndropped\npart+\n2:ab!EBADMSG\n");
    /* A stream that has failed while it waited is cut when its turn comes. */
    domt_streams_check_answers("Q wait 5\nQ part 3\nQ drop\n", false,
                               "waited\npart+\n3:abc!EBADMSG\ndropped\n");
}

static const domt_stream_options cutless_options = {.role = DOMUS_ROLE_SERVER};
static const domus_pipeline cutless = {.stages = (const domus_pipeline_stage[]){
                                           {&domt_cutless_stage, &cutless_options}, {NULL, NULL}}};

DOMT_TEST(cut_without_a_text_resets_channel_behind_earlier_bytes)
{
    static const char *const sent[] = {"Q drop\nQ part 3\nQ drop\n",
                                       "Q wait 5\nQ fpart 3\nQ drop\n"};
    static const char *const got[] = {"dropped\npart+\n3:abc", "waited\npart+\n3:abc"};
    domus_behaviour behaviour = domt_stream_service;

    behaviour.pipeline = &cutless;
    for (size_t i = 0; i < 2; i++) {
        (void)domt_streams_new_kit(NULL, &behaviour);
        domus_peer *peer = domt_pipe_connect_peer();
        domt_pipe_peer_send_and_expect(peer, sent[i], got[i]);
        ck_assert_int_eq(domus_peer_expect_reset(peer, SECOND), 0);
        domt_pipe_run_kit();
        ck_assert_int_eq(domt_pipes_now.close_error, -EBADMSG);
        domt_pipe_end_kit();
    }
}

DOMT_TEST(a_stream_that_expires_is_cut)
{
    (void)domt_streams_new_kit(NULL, &domt_stream_hasty);
    domus_peer *peer = domt_pipe_connect_peer();
    domt_pipe_peer_send_and_expect(peer, "C echo\n5:hello", "echo+\n5:hello!ETIMEDOUT\n");
    domt_pipe_peer_send_and_expect(peer, "0:Q drop\n", "dropped\n");
    domt_pipe_end_kit();
}

/* --- drains ----------------------------------------------------------------------------------- */

DOMT_TEST(a_drain_waits_for_bodies_and_streams)
{
    static const char *const asked[] = {"C count 20\n5:hello6: world0:", "L5 fcount 20\nhello",
                                        "Q wait 5\nQ fgive 3\nQ give 2\n",
                                        "L5 one 20\nhelloC fecho\n2:hi0:"};
    static const char *const answered[] = {
        "11 958916\n", "5 162322\n", "waited\ngive+\n3:abc0:give+\n2:ab0:", "one\necho+\n2:hi0:"};

    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        (void)domt_streams_new_kit(NULL, &domt_stream_service);
        domus_peer *peer = domt_pipe_connect_peer();
        domt_pipe_peer_send_text(peer, asked[i]);
        domt_pipe_run_kit();
        ck_assert_int_eq(domus_testkit_stop(domt_pipe_kit), 0);
        domt_pipe_peer_expect_text(peer, answered[i]);
        domt_pipe_end_kit();
    }
}

DOMT_TEST(a_drain_reads_a_body_to_its_end)
{
    enum { BYTES = 1000000 };
    (void)domt_streams_new_kit(NULL, &domt_stream_service);
    domus_peer *peer = domt_pipe_connect_peer();
    char *body = calloc(1, BYTES);

    ck_assert_ptr_nonnull(body);
    domt_pipe_peer_send_text(peer, "L1000000 count 1\n");
    /* most bytes of the body wait at the peer */
    ck_assert_int_eq(domus_peer_send(peer, body, BYTES), 0);
    free(body);
    domt_pipe_run_kit();
    ck_assert_uint_lt(domt_streams_now.bytes, BYTES / 2);
    ck_assert_int_eq(domus_testkit_stop(domt_pipe_kit), 0);
    domt_pipe_peer_expect_text(peer, "1000000 0\n");
    domt_pipe_end_kit();
}

DOMT_TEST(a_drain_ends_in_time_though_a_body_never_ends)
{
    domus_config config = domt_pipe_default_config();
    config.shutdown.drain_timeout_ns = SECOND;
    (void)domt_streams_new_kit(&config, &domt_stream_service);
    domus_peer *peer = domt_pipe_connect_peer();

    domt_pipe_peer_send_and_expect(peer, "C echo\n5:hello", "echo+\n5:hello");
    ck_assert_int_eq(domus_testkit_stop(domt_pipe_kit), 1);
    domt_pipe_end_kit();
}

/* --- by ids ----------------------------------------------------------------------------------- */

DOMT_TEST(a_pipeline_with_ids_has_no_bodies)
{
    domus_pipeline pipeline = domt_stream_server;
    domus_stage_kit *kit;
    pipeline.by_id = true;
    ck_assert_int_eq(domus_stage_kit_new(&pipeline, &kit), -EINVAL);
}

DOMT_TEST(stage_with_bodies_runs_in_a_stage_kit)
{
    domus_stage_kit *kit;
    domus_stage_message message;
    static const char text[] = "C count\n2:hi0:X count\nTbye\n";
    uint64_t stream = 0;
    size_t size;

    ck_assert_int_eq(domus_stage_kit_new(&domt_stream_server, &kit), 0);
    /* feed the text byte by byte, all but its last byte */
    for (size_t i = 0; i + 1 < sizeof text - 1; i++)
        ck_assert_int_eq(domus_stage_kit_feed(kit, text + i, 1), 0);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
    ck_assert(message.kind == DOMUS_STAGE_REQUEST && message.has_body && !message.last);
    ck_assert_uint_eq(((const domt_line *)message.payload)->body.number, 1);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
    ck_assert(message.kind == DOMUS_STAGE_PIECE && !message.last);
    ck_assert(domus_slice_equals(((const domus_piece *)message.payload)->bytes, "hi", 2));
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
    ck_assert(message.kind == DOMUS_STAGE_PIECE && message.last);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
    ck_assert(message.kind == DOMUS_STAGE_REQUEST && message.has_body);
    ck_assert_int_eq(domus_stage_kit_wanted(kit), 0);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 0);
    ck_assert_int_eq(domus_stage_kit_feed(kit, "\n", 1), 0);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
    ck_assert(message.last && message.type == &domt_trailer_type);
    domt_line head = {.text = "head"};
    domus_stage_kit_stream(kit, &stream);
    ck_assert_int_eq(domus_stage_kit_encode(kit, 0, &domt_line_type, &head), 0);
    ck_assert_int_eq(domus_stage_kit_cut(kit, 0, -EIO), 0);
    ck_assert_mem_eq(domus_stage_kit_output(kit, &size), "go\nhead+\n!EIO\n", 14);
    ck_assert_int_eq(domus_stage_kit_feed(kit, "C count\n9:", 10), 0);
    domus_stage_kit_finish(kit);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), -EPIPE);
    domus_stage_kit_free(kit);
}

DOMT_SUITE(120)
