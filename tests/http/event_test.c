/* Events are lines, and no text of a user makes another one. */
#include "tests/support/suite.h"

#include <domus/http_event.h>

#include <errno.h>
#include <string.h>

static void hold(domus_http_event event, const char *expected)
{
    domus_appender piece = {0};
    domus_slice made;

    ck_assert_int_eq(domus_http_add_event(&piece, &event), 0);
    ck_assert_int_eq(domus_append_end(&piece, &made), 0);
    ck_assert(domus_slice_equals(made, expected, strlen(expected)));
    domus_slice_free(made);
}

DOMT_TEST(events_are_lines)
{
    hold((domus_http_event){.data = "a"}, "data: a\n\n");
    hold((domus_http_event){.data = ""}, "data: \n\n");
    hold((domus_http_event){.name = "n", .id = "7", .data = "a", .retry_ms = 500},
         "event: n\nid: 7\nretry: 500\ndata: a\n\n");
    hold((domus_http_event){.id = ""}, "id: \n\n");
    hold((domus_http_event){.data = "a\nb\r\nc\rd\n\ne\n"},
         "data: a\ndata: b\ndata: c\ndata: d\ndata: \ndata: e\ndata: \n\n");
    hold((domus_http_event){.data = "id: 7\n\nevent: x"},
         "data: id: 7\ndata: \ndata: event: x\n\n");
}

DOMT_TEST(names_and_ids_are_one_line)
{
    static const domus_http_event wrong[] = {
        {.name = "a\nb", .data = "c"}, {.name = "a\r", .data = "c"}, {.id = "a\n", .data = "c"}};
    domus_slice made;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        domus_appender piece = {0};
        ck_assert_int_eq(domus_http_add_heartbeat(&piece), 0);
        ck_assert_int_eq(domus_http_add_event(&piece, &wrong[i]), -EINVAL);
        ck_assert_int_eq(domus_append_end(&piece, &made), -EINVAL);
    }
}

DOMT_TEST(heartbeat_is_a_comment)
{
    domus_appender piece = {0};
    domus_slice made;

    ck_assert_int_eq(domus_http_add_heartbeat(&piece), 0);
    ck_assert_int_eq(domus_append_end(&piece, &made), 0);
    ck_assert(domus_slice_equals(made, ":\n\n", 3));
    domus_slice_free(made);
}

DOMT_SUITE(10)
