/* Answers that wait for their turn do not hold up the one before them, however much they are. */
#include "io/channels/crowd.h"
#include "runtime/system/system.h"
#include "tests/http/served.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND    DOMT_SERVED_S
#define FIRST     500000u /* bytes of the first answer */
#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static void lower_marks(domus_config *config)
{
    config->channel.send_high_bytes = 10000;
    config->channel.send_low_bytes = 1000;
}

static void keep_marks(domus_config *config)
{
}

/* Count the bodies of pipelined answers to /give/N, which leave in chunks of 1,000 bytes, and the
 * answers to /now. */
static void count(const char *got, uint32_t *ret_chunks, uint32_t *ret_nows)
{
    *ret_chunks = *ret_nows = 0;
    for (const char *at = got; (at = strstr(at, "\r\n3e8\r\n")) != NULL; at++)
        ++*ret_chunks;
    for (const char *at = got; (at = strstr(at, "now\n")) != NULL; at++)
        ++*ret_nows;
}

static void hold(void (*change)(domus_config *config), uint64_t queue_max, const char *behind,
                 uint32_t times, uint32_t chunks, uint32_t nows)
{
    domus_config config;
    char first[128];
    size_t size = 0;
    uint32_t got_chunks = 0, got_nows = 0;

    domt_served_configure(&config);
    change(&config);
    domus_testkit *kit = domt_served_start(&config, &domt_served_by_streams, 1);
    for (uint32_t i = 0; queue_max != 0 && i < 3; i++)
        domi_io_set_queue_max(&domus_testkit_system(kit)->threads[i].io, queue_max);
    domus_peer *peer = domt_served_peer(kit);
    snprintf(first, sizeof first, GET("/give/%u"), FIRST);
    domt_served_send(peer, first);
    for (uint32_t i = 0; i < times; i++)
        domt_served_send(peer, behind);
    domt_served_pass(kit, SECOND);
    const char *bytes = domus_peer_got(peer, &size);
    char *got = malloc(size + 1);
    ck_assert_ptr_nonnull(got);
    for (size_t i = 0; i < size; i++) /* the bodies are zeros */
        got[i] = bytes[i] != '\0' ? bytes[i] : '.';
    got[size] = '\0';
    count(got, &got_chunks, &got_nows);
    free(got);
    ck_assert_uint_eq(got_chunks, FIRST / 1000 + chunks);
    ck_assert_uint_eq(got_nows, nows);
    domus_peer_close(peer);
    domt_served_end(kit);
}

DOMT_TEST(streams_behind_a_stream_do_not_hold_it_up)
{
    hold(lower_marks, 0, GET("/give/3000"), 8, 24, 0);
}

DOMT_TEST(whole_answers_behind_a_stream_do_not_hold_it_up)
{
    hold(lower_marks, 0, GET("/now"), 50, 0, 50);
}

/* The marks are not reached, but the part of a channel of what the thread may queue is small. */
DOMT_TEST(answers_behind_a_stream_do_not_crowd_it_out)
{
    hold(keep_marks, 120000, GET("/give/3000"), 8, 24, 0);
}

DOMT_SUITE(20)
