/* Text is UTF-8: what is not is refused at the byte that makes it so, in whatever fragments and
 * pieces it comes. The rows are those of the Autobahn suite, section 6, and Markus Kuhn's. */
#include "tests/support/frames.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const domus_websocket_options client = {.role = DOMUS_ROLE_CLIENT};

/* Texts, in digits of base 16. */
static const char *const right[] = {
    "7f",
    "c280",
    "dfbf",
    "e0a080",
    "ecbfbf",
    "ed8080",
    "ed9fbf",
    "ee8080",
    "efbfbd",
    "efbfbe",
    "efbfbf",
    "f0908080",
    "f3bfbfbf",
    "f48fbfbf",
    "cebae1bdb9cf83cebcceb5",
    "48656c6c6f2dc2b540c39fc3b6c3a4c3bcc3a0c3a12d5554462d382121",
    "6162636465666768e282ac696a6b6c6d6e6f707172737475f09f98807677",
    "f09f9880f09f9880f09f9880",
    "20202020202020c3a4",
};

/* Bytes that no text begins with; the last one is wrong. */
static const char *const wrong[] = {
    "80",
    "bf",
    "6180",
    "8080",
    "c0",
    "c1",
    "fe",
    "ff",
    "f5",
    "f6",
    "f7",
    "f8",
    "fb",
    "fc",
    "fd",
    "c220",
    "c27f",
    "c2c2",
    "df00",
    "e020",
    "e080",
    "e09f",
    "e0a07f",
    "e0a0c0",
    "e120",
    "e18020",
    "eda0",
    "edad",
    "edaf",
    "edb0",
    "edbf",
    "ee80c0",
    "efbf20",
    "f020",
    "f080",
    "f08f",
    "f09020",
    "f0908020",
    "f18080c0",
    "f490",
    "f49f",
    "f4a0",
    "f4bf",
    "cebae1bdb9cf83cebcceb5eda0",
    "cebae1bdb9cf83cebcceb5f490",
    "6161616161616161616161ff",
    "6161616161616161c3a461616161616161c0",
    "e282ac80",
    "f09f988080",
};

DOMT_TEST(texts_are_told_from_other_bytes)
{
    char frames[256], whole[256];

    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        snprintf(frames, sizeof frames, "82#%s", right[i]);
        snprintf(whole, sizeof whole, "text%s", domt_frames_run(&client, frames, 0, 0) + 6);
        snprintf(frames, sizeof frames, "81#%s", right[i]);
        domt_frames_hold(NULL, frames, whole);
        domt_frames_hold(&client, frames, whole);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(frames, sizeof frames, "81#%s", wrong[i]);
        domt_frames_hold(NULL, frames, "EPROTO close 1007");
        domt_frames_hold(&client, frames, "EPROTO close 1007");
        snprintf(frames, sizeof frames, "82#%s 88:", wrong[i]); /* binary data may be anything */
        ck_assert_ptr_nonnull(strstr(domt_frames_run(NULL, frames, 0, 0), "\nclose 1005 []\n"));
    }
}

DOMT_TEST(texts_may_be_cut_anywhere_by_fragments)
{
    char frames[256], whole[256];

    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        snprintf(frames, sizeof frames, "82#%s", right[i]);
        snprintf(whole, sizeof whole, "text%s", domt_frames_run(&client, frames, 0, 0) + 6);
        for (int cut = 0; cut <= (int)strlen(right[i]); cut += 2) {
            snprintf(frames, sizeof frames, "01#%.*s 89: 80#%s", cut, right[i], right[i] + cut);
            domt_frames_hold(NULL, frames, whole);
        }
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        for (int cut = 0; cut <= (int)strlen(wrong[i]); cut += 2) {
            snprintf(frames, sizeof frames, "01#%.*s 00: 00#%s", cut, wrong[i], wrong[i] + cut);
            domt_frames_hold(NULL, frames, "EPROTO close 1007");
        }
    }
}

DOMT_TEST(texts_that_end_in_a_character_are_refused)
{
    static const char *const begun[] = {"c2",   "e0",     "e0a0", "f0",
                                        "f090", "f09080", "61c3", "e28281e2"};
    char frames[256];

    for (size_t i = 0; i < sizeof begun / sizeof *begun; i++) {
        snprintf(frames, sizeof frames, "81#%s", begun[i]);
        domt_frames_hold(NULL, frames, "EPROTO close 1007");
        snprintf(frames, sizeof frames, "01#%s 80:", begun[i]);
        domt_frames_hold(NULL, frames, "EPROTO close 1007");
        snprintf(frames, sizeof frames, "01#%s 80:a", begun[i]);
        domt_frames_hold(NULL, frames, "EPROTO close 1007");
    }
}

/* The frame announces more than comes: the byte is refused when it is there. */
DOMT_TEST(wrong_byte_is_refused_before_the_frame_is_whole)
{
    char frames[256];

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(frames, sizeof frames, "=017f%016x%s", 1000000u, wrong[i]);
        domt_frames_hold(&client, frames, "EPROTO close 1007");
    }
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        snprintf(frames, sizeof frames, "=817f%016x%s", 1000000u, right[i]);
        domt_frames_hold(&client, frames, "EPIPE reset");
    }
}

/* --- limits ----------------------------------------------------------------------------------- */

DOMT_TEST(limits_hold_at_exactly_their_size)
{
    static const domus_websocket_options small = {
        .message_max = 10, .frame_max = 6, .fragments_max = 3};
    static const domus_websocket_options defaults = {.role = DOMUS_ROLE_CLIENT};

    domt_frames_hold(&small, "82:*6", "binary [******]\nEPIPE reset");
    domt_frames_hold(&small, "82:*7", "EMSGSIZE close 1009");
    domt_frames_hold(&small, "02:*6 80:*4", "binary [**********]\nEPIPE reset");
    domt_frames_hold(&small, "02:*6 80:*5", "EMSGSIZE close 1009");
    domt_frames_hold(&small, "02:*4 00:*4 80:*2 82:*6",
                     "binary [**********]\nbinary [******]\nEPIPE reset");
    domt_frames_hold(&small, "02: 00: 80:", "binary []\nEPIPE reset");
    domt_frames_hold(&small, "02: 00: 00: 80:", "EPROTO close 1008");
    domt_frames_hold(&small, "02: 89: 89: 89: 89: 00: 80:", "binary []\nEPIPE reset");
    domt_frames_hold(&defaults, "=827f0000000000100000", "EPIPE reset"); /* it may come */
    domt_frames_hold(&defaults, "=827f0000000000100001", "EMSGSIZE close 1009");
    domt_frames_hold(&defaults, "=827f7fffffffffffffff", "EMSGSIZE close 1009");
}

DOMT_TEST(endless_fragments_are_refused)
{
    domt_codec codec;
    domus_stage_message message;

    domt_codec_start(&codec, &domus_websocket_stage, &client);
    ck_assert_int_eq(domus_stage_kit_feed(codec.kit, "\x01\0", 2), 0);
    for (int i = 1; i < 4096; i++) {
        ck_assert_int_eq(domus_stage_kit_next(codec.kit, &message), 0);
        ck_assert_int_eq(domus_stage_kit_feed(codec.kit, "\0\0", 2), 0);
    }
    ck_assert_int_eq(domus_stage_kit_next(codec.kit, &message), 0);
    ck_assert_int_eq(domus_stage_kit_feed(codec.kit, "\0\0", 2), 0);
    ck_assert_int_eq(domus_stage_kit_next(codec.kit, &message), -EPROTO);
    domt_codec_stop(&codec);
}

DOMT_TEST(options_are_checked)
{
    static const domus_websocket_options wrong_options[] = {
        {.role = DOMUS_ROLE_PEER},          {.message_max = DOMUS_SLICE_MAX + 1},
        {.frame_max = UINT32_MAX},          {.ping_ns = 999999},
        {.ping_ns = 3600000000001},         {.close_ns = 1},
        {.close_ns = DOMUS_WEBSOCKET_NEVER}};
    static const domus_websocket_options right_options[] = {
        {.message_max = DOMUS_SLICE_MAX, .frame_max = DOMUS_SLICE_MAX},
        {.ping_ns = 1000000, .close_ns = 3600000000000},
        {.ping_ns = DOMUS_WEBSOCKET_NEVER, .fragments_max = UINT32_MAX}};

    for (size_t i = 0; i < sizeof wrong_options / sizeof *wrong_options; i++)
        ck_assert_int_eq(domus_websocket_stage.check(&wrong_options[i]), -EINVAL);
    for (size_t i = 0; i < sizeof right_options / sizeof *right_options; i++)
        ck_assert_int_eq(domus_websocket_stage.check(&right_options[i]), 0);
    ck_assert_int_eq(domus_websocket_stage.check(NULL), 0);
}

DOMT_SUITE(60)
