/* io/resources/shortage.c: a spell of shortage begins once and is over once, and no stranger fills
 * the log by bringing it back. */
#include "io/resources/shortage.h"

#include "tests/support/suite.h"

#define HOUR_S 3600u

/* A stranger who makes something run out again and again does not fill the log. */
DOMT_TEST(a_spell_that_comes_back_has_to_be_quiet_for_longer)
{
    const uint64_t second = UINT64_C(1000000000);
    domi_shortage shortage = {0};
    uint64_t now_ns = 5 * second;
    uint64_t lasted_ns = 0;
    uint32_t lines = 0;

    for (uint32_t i = 0; i < HOUR_S; i++) { /* an hour of 1.1 s of quiet each */
        lines += domi_shortage_note(&shortage, now_ns);
        now_ns += second + second / 10;
        lines += domi_shortage_end(&shortage, now_ns, &lasted_ns);
    }
    ck_assert_uint_le(lines, 4); /* the second spell wants 2 s, and goes on for ever */
    lines = 0;
    for (uint32_t i = 0; i < HOUR_S; i++) { /* as soon as it is over, it begins anew */
        lines += domi_shortage_note(&shortage, now_ns);
        for (; shortage.begun_ns != 0; now_ns += second)
            lines += domi_shortage_end(&shortage, now_ns, &lasted_ns);
        ck_assert_uint_le(shortage.quiet_ns, 64 * second);
    }
    ck_assert_uint_eq(shortage.quiet_ns, 64 * second);
    domi_shortage restless = shortage;
    now_ns = shortage.ended_ns + 64 * second; /* a calm minute: all is forgiven */
    ck_assert(domi_shortage_note(&restless, now_ns - 1));
    ck_assert_uint_eq(restless.quiet_ns, 64 * second);
    ck_assert(domi_shortage_note(&shortage, now_ns));
    ck_assert_uint_eq(shortage.quiet_ns, second);
    ck_assert(!domi_shortage_end(&shortage, now_ns + second - 1, &lasted_ns));
    ck_assert(domi_shortage_end(&shortage, now_ns + second, &lasted_ns));
    ck_assert_uint_eq(lasted_ns, 0);
    ck_assert(!domi_shortage_end(&shortage, now_ns + 9 * second, &lasted_ns));
}

DOMT_SUITE(20)
