/* WebSocket: frames, the texts in them, and the frames and texts that are refused. */
#include "tests/support/frames.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct row {
    const char *frames;
    const char *expected;
} row;

static const domus_websocket_options client = {.role = DOMUS_ROLE_CLIENT, .pongs = true};
static const domus_websocket_options server = {.role = DOMUS_ROLE_SERVER, .pongs = true};

static void check_both_roles_read_rows(const domus_websocket_options *options, const row *rows,
                                       size_t count)
{
    for (size_t i = 0; i < count; i++)
        domt_check_decoded_frames(options, rows[i].frames, rows[i].expected);
}

/* Check that both roles read the same frames: a server reads them masked, and a client unmasked. */
#define HOLD_BOTH(rows)                                                                            \
    do {                                                                                           \
        check_both_roles_read_rows(&server, rows, sizeof(rows) / sizeof *(rows));                  \
        check_both_roles_read_rows(&client, rows, sizeof(rows) / sizeof *(rows));                  \
    } while (0)

#define OVER "EPIPE reset" /* the peer ends the connection without a close frame */

DOMT_TEST(websocket_messages_are_decoded_whole)
{
    static const row rows[] = {
        {"", OVER},
        {"81:", "text []\n" OVER},
        {"82:", "binary []\n" OVER},
        {"81:hello", "text [hello]\n" OVER},
        {"82:\xfe\xff", "binary [\\xfe\\xff]\n" OVER},
        {"81:a 82:b 81:c", "text [a]\nbinary [b]\ntext [c]\n" OVER},
        {"01:a 80:b", "text [ab]\n" OVER},
        {"02:a 00:b 00:c 80:d", "binary [abcd]\n" OVER},
        {"01: 00: 80:", "text []\n" OVER},
        {"01: 00:x 80:", "text [x]\n" OVER},
        {"01:abcdefghijk 00:lmnopq 80:rstuvwxyz 81:!", "text [abcdefghijklmnopqrstuvwxyz]\n"
                                                       "text [!]\n" OVER},
        {"01:a 89:ping 80:b", "text [ab]\n" OVER},
        {"01:a 8a:pong 00:b 8a: 80:c", "pong [pong]\npong []\ntext [abc]\n" OVER},
        {"01:a 88:\x03\xe8", "close 1000 []\n"},
        {"89: 89:x 8a:", "pong []\n" OVER},
    };

    HOLD_BOTH(rows);
}

DOMT_TEST(reserved_bits_and_opcodes_are_refused)
{
    static const row rows[] = {
        /* frames with reserved bits */
        {"c1:a", "EPROTO close 1002"},
        {"a1:a", "EPROTO close 1002"},
        {"91:a", "EPROTO close 1002"},
        {"f1:", "EPROTO close 1002"},
        {"c2:", "EPROTO close 1002"},
        {"c9:", "EPROTO close 1002"},
        {"98:", "EPROTO close 1002"},
        {"81:a d1:b", "text [a]\nEPROTO close 1002"},
        {"01:a c0:b", "EPROTO close 1002"},
        /* frames with reserved opcodes */
        {"83:", "EPROTO close 1002"},
        {"84:a", "EPROTO close 1002"},
        {"85:", "EPROTO close 1002"},
        {"86:", "EPROTO close 1002"},
        {"87:", "EPROTO close 1002"},
        {"03:", "EPROTO close 1002"},
        {"8b:", "EPROTO close 1002"},
        {"8c:a", "EPROTO close 1002"},
        {"8d:", "EPROTO close 1002"},
        {"8e:", "EPROTO close 1002"},
        {"8f:", "EPROTO close 1002"},
        {"81:a 8f:", "text [a]\nEPROTO close 1002"},
    };

    HOLD_BOTH(rows);
}

DOMT_TEST(frames_in_the_wrong_place_are_refused)
{
    static const row rows[] = {
        /* control frames that are fragmented or too long */
        {"09:", "EPROTO close 1002"},
        {"0a:", "EPROTO close 1002"},
        {"08:", "EPROTO close 1002"},
        {"89:*126", "EPROTO close 1002"},
        {"8a:*126", "EPROTO close 1002"},
        {"88:*126", "EPROTO close 1002"},
        /* frames that continue nothing, or a message that does not go on */
        {"80:", "EPROTO close 1002"},
        {"00:a", "EPROTO close 1002"},
        {"81:a 80:b", "text [a]\nEPROTO close 1002"},
        {"01:a 80:b 80:c", "text [ab]\nEPROTO close 1002"},
        {"01:a 81:b", "EPROTO close 1002"},
        {"01:a 01:b", "EPROTO close 1002"},
        {"02:a 82:b", "EPROTO close 1002"},
        /* the bytes end within a frame or message */
        {"=81", OVER},
        {"01:a", OVER},
        {"81:a 01:", "text [a]\n" OVER},
    };

    HOLD_BOTH(rows);
}

/* Frames of a client and of a server whose length is not the shortest or has the highest bit, whose
 * mask is missing, or that have a mask too many. */
DOMT_TEST(wrong_lengths_and_masks_of_frames_are_refused)
{
    static const row of_clients[] = {
        {"=81fe0000a51cff07", "EPROTO close 1002"},
        {"=81fe007da51cff07", "EPROTO close 1002"},
        {"=81ff0000000000000000a51cff07", "EPROTO close 1002"},
        {"=81ff000000000000ffffa51cff07", "EPROTO close 1002"},
        {"=81ff8000000000010000a51cff07", "EPROTO close 1002"},
        {"=81ffffffffffffffffffa51cff07", "EPROTO close 1002"},
        {"=8105", "EPROTO close 1002"}, /* the mask of a client's frame is missing */
        {"=8100", "EPROTO close 1002"},
        {"=8900", "EPROTO close 1002"},
        {"=8800", "EPROTO close 1002"},
    };
    static const row of_servers[] = {
        {"=817e0000", "EPROTO close 1002"},
        {"=817e007d", "EPROTO close 1002"},
        {"=817f0000000000000000", "EPROTO close 1002"},
        {"=817f000000000000ffff", "EPROTO close 1002"},
        {"=817f8000000000010000", "EPROTO close 1002"},
        {"=817fffffffffffffffff", "EPROTO close 1002"},
        {"=8181a51cff07", "EPROTO close 1002"}, /* a frame of a server has a mask */
        {"=8980a51cff07", "EPROTO close 1002"},
    };

    check_both_roles_read_rows(&server, of_clients, sizeof of_clients / sizeof *of_clients);
    check_both_roles_read_rows(&client, of_servers, sizeof of_servers / sizeof *of_servers);
}

/* Write the text of a close frame with this code. */
static const char *make_text_of_close_frame(unsigned code, const char *reason)
{
    static char text[64];

    snprintf(text, sizeof text, "=%s%02x%02x%02x%s", "88", (unsigned)(2 + strlen(reason) / 2),
             code >> 8, code & 0xff, reason);
    return text;
}

DOMT_TEST(closes_are_heard_and_answered)
{
    static const unsigned right[] = {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010,
                                     1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999};
    static const unsigned wrong[] = {0,    1,    999,  1004, 1005, 1006, 1015,
                                     1016, 1100, 2000, 2999, 5000, 65535};
    static const row rows[] = {
        {"88:", "close 1005 []\n"},
        {"88:\x03", "EPROTO close 1002"},
        {"88:\x03\xe8", "close 1000 []\n"},
        {"88:\003\350bye", "close 1000 [bye]\n"},
        {"88:\x03\xe8\xc3\xa4", "close 1000 [\\xc3\\xa4]\n"},
        {"88:\x03\xe8\xc3", "EPROTO close 1007"},
        {"88:\x03\xe8\xed\xa0\x80", "EPROTO close 1007"},
        {"81:a 88:\x0f\xa0", "text [a]\nclose 4000 []\n"},
    };

    HOLD_BOTH(rows);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "close %u []\n", right[i]);
        domt_check_decoded_frames(&client, make_text_of_close_frame(right[i], ""), expected);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        domt_check_decoded_frames(&client, make_text_of_close_frame(wrong[i], ""),
                                  "EPROTO close 1002");
}

DOMT_TEST(messages_of_each_length_are_decoded_at_every_cut)
{
    static const unsigned sizes[] = {0, 1, 125, 126, 127, 128, 1000, 65535, 65536, 65537};
    static const size_t cuts[] = {0, 1, 2, 3, 4, 5, 9, 10, 13, 14, 15, 70, 4000, 65535, 65540};
    char frames[64];

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        snprintf(frames, sizeof frames, "82:*%u 81:x", sizes[i]);
        const char *whole = domt_decode_frames_to_text(&server, frames, 0, 0);
        ck_assert(sizes[i] <= 64 || strtoul(whole + 7, NULL, 10) == sizes[i]);
        ck_assert_ptr_nonnull(strstr(whole, "\ntext [x]\n" OVER));
        for (size_t j = 0; j < sizeof cuts / sizeof *cuts; j++)
            ck_assert_str_eq(domt_decode_frames_to_text(&server, frames, cuts[j], 1000), whole);
        ck_assert_str_eq(domt_decode_frames_to_text(&client, frames, 0, 0), whole);
        ck_assert_str_eq(domt_decode_frames_to_text(&client, frames, 3, 4096), whole);
    }
}

static const domus_websocket_options plain_client = {.role = DOMUS_ROLE_CLIENT};

/* Valid texts of UTF-8, in hexadecimal digits. */
static const char *const right[] = {
    "7f",      "ee8080",   "20202020202020c3a4",
    "c280",    "efbfbd",   "cebae1bdb9cf83cebcceb5",
    "dfbf",    "efbfbe",   "f09f9880f09f9880f09f9880",
    "e0a080",  "efbfbf",   "48656c6c6f2dc2b540c39fc3b6c3a4c3bcc3a0c3a12d5554462d382121",
    "ecbfbf",  "f0908080", "6162636465666768e282ac696a6b6c6d6e6f707172737475f09f98807677",
    "ed8080",  "f3bfbfbf", "ed9fbf",
    "f48fbfbf"};

/* Byte sequences with which no text of UTF-8 begins; only the last byte is wrong. */
static const char *const wrong[] = {
    "80", "f6",   "8080", "e09f", "f020", "e0a07f",   "f18080c0",
    "bf", "f7",   "c220", "e120", "f080", "e0a0c0",   "e282ac80",
    "c0", "f8",   "c27f", "eda0", "f08f", "e18020",   "f09f988080",
    "c1", "fb",   "c2c2", "edad", "f490", "ee80c0",   "6161616161616161616161ff",
    "fe", "fc",   "df00", "edaf", "f49f", "efbf20",   "cebae1bdb9cf83cebcceb5eda0",
    "ff", "fd",   "e020", "edb0", "f4a0", "f09020",   "cebae1bdb9cf83cebcceb5f490",
    "f5", "6180", "e080", "edbf", "f4bf", "f0908020", "6161616161616161c3a461616161616161c0"};

DOMT_TEST(texts_that_are_no_utf_8_are_refused)
{
    char frames[256], whole[256];

    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        snprintf(frames, sizeof frames, "82#%s", right[i]);
        snprintf(whole, sizeof whole, "text%s",
                 domt_decode_frames_to_text(&plain_client, frames, 0, 0) + 6);
        snprintf(frames, sizeof frames, "81#%s", right[i]);
        domt_check_decoded_frames(NULL, frames, whole);
        domt_check_decoded_frames(&plain_client, frames, whole);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(frames, sizeof frames, "81#%s", wrong[i]);
        domt_check_decoded_frames(NULL, frames, "EPROTO close 1007");
        domt_check_decoded_frames(&plain_client, frames, "EPROTO close 1007");
        /* a binary message may have any bytes */
        snprintf(frames, sizeof frames, "82#%s 88:", wrong[i]);
        ck_assert_ptr_nonnull(
            strstr(domt_decode_frames_to_text(NULL, frames, 0, 0), "\nclose 1005 []\n"));
    }
}

DOMT_TEST(texts_may_be_cut_anywhere_by_fragments)
{
    char frames[256], whole[256];

    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        snprintf(frames, sizeof frames, "82#%s", right[i]);
        snprintf(whole, sizeof whole, "text%s",
                 domt_decode_frames_to_text(&plain_client, frames, 0, 0) + 6);
        for (int cut = 0; cut <= (int)strlen(right[i]); cut += 2) {
            snprintf(frames, sizeof frames, "01#%.*s 89: 80#%s", cut, right[i], right[i] + cut);
            domt_check_decoded_frames(NULL, frames, whole);
        }
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        for (int cut = 0; cut <= (int)strlen(wrong[i]); cut += 2) {
            snprintf(frames, sizeof frames, "01#%.*s 00: 00#%s", cut, wrong[i], wrong[i] + cut);
            domt_check_decoded_frames(NULL, frames, "EPROTO close 1007");
        }
    }
}

DOMT_TEST(texts_that_end_within_a_character_are_refused)
{
    static const char *const begun[] = {"c2",   "e0",     "e0a0", "f0",
                                        "f090", "f09080", "61c3", "e28281e2"};
    char frames[256];

    for (size_t i = 0; i < sizeof begun / sizeof *begun; i++) {
        snprintf(frames, sizeof frames, "81#%s", begun[i]);
        domt_check_decoded_frames(NULL, frames, "EPROTO close 1007");
        snprintf(frames, sizeof frames, "01#%s 80:", begun[i]);
        domt_check_decoded_frames(NULL, frames, "EPROTO close 1007");
        snprintf(frames, sizeof frames, "01#%s 80:a", begun[i]);
        domt_check_decoded_frames(NULL, frames, "EPROTO close 1007");
    }
}

/* The frame announces more bytes than come: a wrong byte of its text is refused as soon as it is
 * read. */
DOMT_TEST(wrong_byte_is_refused_before_the_frame_is_whole)
{
    char frames[256];

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(frames, sizeof frames, "=017f%016x%s", 1000000u, wrong[i]);
        domt_check_decoded_frames(&plain_client, frames, "EPROTO close 1007");
    }
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        snprintf(frames, sizeof frames, "=817f%016x%s", 1000000u, right[i]);
        domt_check_decoded_frames(&plain_client, frames, "EPIPE reset");
    }
}

/* --- limits ----------------------------------------------------------------------------------- */

DOMT_TEST(limits_of_frames_and_messages_hold_at_exactly_their_size)
{
    static const domus_websocket_options small = {
        .message_max = 10, .frame_max = 6, .fragments_max = 3};
    static const domus_websocket_options defaults = {.role = DOMUS_ROLE_CLIENT};

    domt_check_decoded_frames(&small, "82:*6", "binary [******]\nEPIPE reset");
    domt_check_decoded_frames(&small, "82:*7", "EMSGSIZE close 1009");
    domt_check_decoded_frames(&small, "02:*6 80:*4", "binary [**********]\nEPIPE reset");
    domt_check_decoded_frames(&small, "02:*6 80:*5", "EMSGSIZE close 1009");
    domt_check_decoded_frames(&small, "02:*4 00:*4 80:*2 82:*6",
                              "binary [**********]\nbinary [******]\nEPIPE reset");
    domt_check_decoded_frames(&small, "02: 00: 80:", "binary []\nEPIPE reset");
    domt_check_decoded_frames(&small, "02: 00: 00: 80:", "EPROTO close 1008");
    domt_check_decoded_frames(&small, "02: 89: 89: 89: 89: 00: 80:", "binary []\nEPIPE reset");
    /* a frame whose length is the limit is allowed, and one byte more is not */
    domt_check_decoded_frames(&defaults, "=827f0000000000100000", "EPIPE reset");
    domt_check_decoded_frames(&defaults, "=827f0000000000100001", "EMSGSIZE close 1009");
    domt_check_decoded_frames(&defaults, "=827f7fffffffffffffff", "EMSGSIZE close 1009");
}

DOMT_TEST(endless_fragments_are_refused)
{
    domt_codec codec;
    domus_stage_message message;

    domt_codec_start(&codec, &domus_websocket_stage, &plain_client);
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

DOMT_TEST(options_of_websockets_are_checked)
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
