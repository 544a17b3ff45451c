/* Messages come whole in whatever frames and pieces they were sent, and bytes that are wrong are
 * refused with their code. The rows are the cases of the Autobahn suite, sections 1 to 5 and 7, and
 * some more. */
#include "tests/support/frames.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

typedef struct row {
    const char *frames;
    const char *expected;
} row;

static const domus_websocket_options client = {.role = DOMUS_ROLE_CLIENT, .pongs = true};
static const domus_websocket_options server = {.role = DOMUS_ROLE_SERVER, .pongs = true};

static void hold(const domus_websocket_options *options, const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        domt_frames_hold(options, rows[i].frames, rows[i].expected);
}

/* Both sides read the same frames, a server masked ones and a client plain ones. */
#define HOLD_BOTH(rows)                                                                            \
    do {                                                                                           \
        hold(&server, rows, sizeof(rows) / sizeof *(rows));                                        \
        hold(&client, rows, sizeof(rows) / sizeof *(rows));                                        \
    } while (0)

#define OVER "EPIPE reset" /* the peer ends without a close */

DOMT_TEST(messages_come_whole)
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
        /* reserved bits */
        {"c1:a", "EPROTO close 1002"},
        {"a1:a", "EPROTO close 1002"},
        {"91:a", "EPROTO close 1002"},
        {"f1:", "EPROTO close 1002"},
        {"c2:", "EPROTO close 1002"},
        {"c9:", "EPROTO close 1002"},
        {"98:", "EPROTO close 1002"},
        {"81:a d1:b", "text [a]\nEPROTO close 1002"},
        {"01:a c0:b", "EPROTO close 1002"},
        /* reserved opcodes */
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
        /* frames of control in fragments, or too long */
        {"09:", "EPROTO close 1002"},
        {"0a:", "EPROTO close 1002"},
        {"08:", "EPROTO close 1002"},
        {"89:*126", "EPROTO close 1002"},
        {"8a:*126", "EPROTO close 1002"},
        {"88:*126", "EPROTO close 1002"},
        /* continuations */
        {"80:", "EPROTO close 1002"},
        {"00:a", "EPROTO close 1002"},
        {"81:a 80:b", "text [a]\nEPROTO close 1002"},
        {"01:a 80:b 80:c", "text [ab]\nEPROTO close 1002"},
        {"01:a 81:b", "EPROTO close 1002"},
        {"01:a 01:b", "EPROTO close 1002"},
        {"02:a 82:b", "EPROTO close 1002"},
        /* the end in the midst of something */
        {"=81", OVER},
        {"01:a", OVER},
        {"81:a 01:", "text [a]\n" OVER},
    };

    HOLD_BOTH(rows);
}

/* Lengths that are not the shortest or have the highest bit, and masks that are missing or too
 * many, in frames of a client and of a server. */
DOMT_TEST(lengths_and_masks_are_refused)
{
    static const row of_clients[] = {
        {"=81fe0000a51cff07", "EPROTO close 1002"},
        {"=81fe007da51cff07", "EPROTO close 1002"},
        {"=81ff0000000000000000a51cff07", "EPROTO close 1002"},
        {"=81ff000000000000ffffa51cff07", "EPROTO close 1002"},
        {"=81ff8000000000010000a51cff07", "EPROTO close 1002"},
        {"=81ffffffffffffffffffa51cff07", "EPROTO close 1002"},
        {"=8105", "EPROTO close 1002"}, /* no mask */
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
        {"=8181a51cff07", "EPROTO close 1002"}, /* a mask */
        {"=8980a51cff07", "EPROTO close 1002"},
    };

    hold(&server, of_clients, sizeof of_clients / sizeof *of_clients);
    hold(&client, of_servers, sizeof of_servers / sizeof *of_servers);
}

/* Write the text of a close with a code. */
static const char *close_of(unsigned code, const char *reason)
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
        {"88:\x03\xe8"
         "bye",
         "close 1000 [bye]\n"},
        {"88:\x03\xe8\xc3\xa4", "close 1000 [\\xc3\\xa4]\n"},
        {"88:\x03\xe8\xc3", "EPROTO close 1007"},
        {"88:\x03\xe8\xed\xa0\x80", "EPROTO close 1007"},
        {"81:a 88:\x0f\xa0", "text [a]\nclose 4000 []\n"},
    };

    HOLD_BOTH(rows);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "close %u []\n", right[i]);
        domt_frames_hold(&client, close_of(right[i], ""), expected);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        domt_frames_hold(&client, close_of(wrong[i], ""), "EPROTO close 1002");
}

DOMT_TEST(each_length_comes_in_each_form)
{
    static const unsigned sizes[] = {0, 1, 125, 126, 127, 128, 1000, 65535, 65536, 65537};
    static const size_t cuts[] = {0, 1, 2, 3, 4, 5, 9, 10, 13, 14, 15, 70, 4000, 65535, 65540};
    char frames[64];

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        snprintf(frames, sizeof frames, "82:*%u 81:x", sizes[i]);
        const char *whole = domt_frames_run(&server, frames, 0, 0);
        ck_assert(sizes[i] <= 64 || strtoul(whole + 7, NULL, 10) == sizes[i]);
        ck_assert_ptr_nonnull(strstr(whole, "\ntext [x]\n" OVER));
        for (size_t j = 0; j < sizeof cuts / sizeof *cuts; j++)
            ck_assert_str_eq(domt_frames_run(&server, frames, cuts[j], 1000), whole);
        ck_assert_str_eq(domt_frames_run(&client, frames, 0, 0), whole);
        ck_assert_str_eq(domt_frames_run(&client, frames, 3, 4096), whole);
    }
}

DOMT_SUITE(60)
