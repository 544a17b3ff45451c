/* Doubles are written and read with a point, also in a program whose locale has a comma. */
#include <domus/resp.h>

#include "tests/support/comma.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- doubles ---------------------------------------------------------------------------------- */

static void check_double(double value, const char *text)
{
    domus_resp_builder builder = {0};
    domus_resp_reply reply;
    domus_resp_value read;

    ck_assert_int_eq(domus_resp_add_double(&builder, value), 0);
    ck_assert_int_eq(domus_resp_end(&builder, &reply), 0);
    ck_assert_msg(domus_slice_equals(reply.bytes, text, strlen(text)), "%.*s",
                  (int)reply.bytes.size, domus_slice_data(reply.bytes));
    domus_resp_reader reader = {.bytes = reply.bytes};
    ck_assert_int_eq(domus_resp_read(&reader, &read), 1);
    ck_assert(read.kind == DOMUS_RESP_DOUBLE);
    ck_assert(read.number == value || (isnan(read.number) && isnan(value)));
    domus_slice_free(reply.bytes);
}

DOMT_TEST(doubles_have_a_point_in_every_locale)
{
    char text[8];

    domt_use_comma();
    check_double(3.5, ",3.5\r\n");
    check_double(-0.1, ",-0.1\r\n");
    check_double(1.0 / 3, ",0.3333333333333333\r\n");
    check_double(1.5e300, ",1.5e+300\r\n");
    check_double(7, ",7\r\n");
    check_double(NAN, ",nan\r\n");
    check_double(-INFINITY, ",-inf\r\n");
    /* check that the program's locale is unchanged */
    snprintf(text, sizeof text, "%.1f", 1.5);
    ck_assert_str_eq(text, "1,5");
}

DOMT_SUITE(30)
