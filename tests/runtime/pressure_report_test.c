/* runtime/system/pressure_report.c: the begin and the end of resets are logged once each, and an
 * end tells the figures since the last one. */
#include "runtime/system/pressure_report.h"

#include "runtime/system/system.h"
#include "tests/runtime/running.h"

#include <stdio.h>
#include <string.h>

#define SECOND (1000 * DOMT_MS)

static char lines[8][DOMUS_LOG_TEXT_MAX + 1];
static uint32_t count;
static domus_system *system_; /* never started, so the test alone looks */

static void note(void *context, domus_log_level level, uint32_t thread, const char *text)
{
    ck_assert_uint_lt(count, 8);
    (void)snprintf(lines[count++], sizeof lines[0], "%s", text);
}

static void shed(uint64_t connections, uint64_t bytes)
{
    domi_counter_add(&system_->pressure.shared.shed, connections);
    domi_counter_add(&system_->pressure.shared.shed_bytes, bytes);
}

static void look(uint64_t now_ns)
{
    domi_pressure_note_shed(&system_->pressure, now_ns);
    domi_pressure_report(system_, 0);
}

DOMT_TEST(each_end_of_resets_has_its_own_figures)
{
    const domus_hooks hooks = {.log = note};
    const domus_config config = domt_config(1);
    char error[256];

    ck_assert_int_eq(domus_system_new_with(&config, &hooks, error, sizeof error, &system_), 0);
    count = 0;
    look(0);
    ck_assert_uint_eq(count, 0);
    for (uint64_t round = 0; round < 2; round++) {
        uint64_t at_ns = round * 10 * SECOND + SECOND;
        shed(3 - round, UINT64_C(4096) << round);
        look(at_ns);
        look(at_ns + 1);
        ck_assert_uint_eq(count, round * 2 + 1);
        ck_assert(strstr(lines[round * 2], "connections are reset for want of memory") != NULL);
        look(at_ns + SECOND - 1);
        ck_assert_uint_eq(count, round * 2 + 1);
        look(at_ns + SECOND);
        look(at_ns + 2 * SECOND);
        ck_assert_uint_eq(count, round * 2 + 2);
    }
    ck_assert_str_eq(lines[1], "3 connections were reset for want of memory; they held 4 KiB");
    ck_assert_str_eq(lines[3], "2 connections were reset for want of memory; they held 8 KiB");
    domus_system_free(system_);
}

DOMT_SUITE(10)
