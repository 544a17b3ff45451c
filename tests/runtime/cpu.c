/* The two actors that keep the CPU busy; tests/runtime/cpu.h has the contract. */
#include "tests/runtime/cpu.h"

#include <string.h>
#include <time.h>

#define TEXT_MAX (8u << 20)

char domt_cpu_text[TEXT_MAX];
size_t domt_cpu_length;

int domt_cpu_append_piece_to_text(void *context, const char *piece, size_t size)
{
    ck_assert_uint_lt(domt_cpu_length + size, TEXT_MAX);
    memcpy(domt_cpu_text + domt_cpu_length, piece, size);
    domt_cpu_length += size;
    domt_cpu_text[domt_cpu_length] = '\0';
    return 0;
}

/* --- actors that are busy --------------------------------------------------------------------- */

__attribute__((noinline)) void domt_cpu_keep_busy(uint64_t ns)
{
    struct timespec now;
    uint64_t until_ns = 0;
    uint64_t now_ns;

    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        now_ns = (uint64_t)now.tv_sec * 1000 * DOMT_MS + (uint64_t)now.tv_nsec;
        if (until_ns == 0)
            until_ns = now_ns + ns;
    } while (now_ns < until_ns);
}

/* The empty assembly keeps the compiler from making a jump of the call, which would take this
 * function off the stack of calls. */
__attribute__((noinline)) static void burn_much(void)
{
    domt_cpu_keep_busy(9 * DOMT_MS / 10);
    __asm__ volatile("");
}

__attribute__((noinline)) static void burn_little(void)
{
    domt_cpu_keep_busy(3 * DOMT_MS / 10);
    __asm__ volatile("");
}

const domus_type domt_cpu_go = {.name = "go"};
domus_address domt_cpu_much, domt_cpu_little;

static int on_go_burn_much(domus_stack *stack, void *self, const void *payload)
{
    burn_much();
    /* the result is ignored, because the other actor may have stopped */
    (void)domus_notice(stack, domt_cpu_little, &domt_cpu_go, NULL);
    return 0;
}

static int on_go_burn_little(domus_stack *stack, void *self, const void *payload)
{
    burn_little();
    (void)domus_notice(stack, domt_cpu_much, &domt_cpu_go, NULL);
    return 0;
}

const domus_behaviour domt_cpu_busy = {
    .name = "busy", .on = (const domus_on[]){{&domt_cpu_go, on_go_burn_much, 0}, {0}}};
const domus_behaviour domt_cpu_less_busy = {
    .name = "less;busy", .on = (const domus_on[]){{&domt_cpu_go, on_go_burn_little, 0}, {0}}};

domus_system *domt_cpu_start_busy_system(void)
{
    domus_config config = domt_config_of_threads(1);

    config.stall.threshold_ns = 0;
    domus_system *system = domt_start_system(&config);
    domt_cpu_much = domt_spawn(system, 0, &domt_cpu_busy, NULL);
    domt_cpu_little = domt_spawn(system, 0, &domt_cpu_less_busy, NULL);
    domt_send_notice(system, domt_cpu_much, &domt_cpu_go, NULL);
    return system;
}

domus_cpu_profile *domt_cpu_take_profile(domus_system *system, uint64_t duration_ms,
                                         uint32_t frequency)
{
    const domus_cpu_profile_options options = {.duration_ns = duration_ms * DOMT_MS,
                                               .frequency = frequency};
    domus_cpu_profile *profile = NULL;

    ck_assert_int_eq(domus_cpu_profile_take(system, &options, &profile), 0);
    ck_assert_ptr_nonnull(profile);
    return profile;
}

domus_cpu_profile_summary domt_cpu_summary_of_profile(const domus_cpu_profile *profile)
{
    domus_cpu_profile_summary summary;

    domus_cpu_profile_sum(profile, &summary);
    return summary;
}

void domt_cpu_write_folded_stacks(const domus_cpu_profile *profile)
{
    uint64_t sum = 0;

    domt_cpu_length = 0;
    domt_cpu_text[0] = '\0';
    ck_assert_int_eq(domus_cpu_profile_write_folded(profile, domt_cpu_append_piece_to_text, NULL),
                     0);
    for (const char *line = domt_cpu_text; *line != '\0';) {
        const char *end = strchr(line, '\n');
        ck_assert_ptr_nonnull(end);
        const char *number = end;
        while (number > line && number[-1] >= '0' && number[-1] <= '9')
            number--;
        ck_assert(number > line + 1 && number < end && number[-1] == ' ');
        ck_assert(line[0] != ';' && number[-2] != ';');
        sum += strtoull(number, NULL, 10);
        line = end + 1;
    }
    ck_assert_uint_eq(sum, domt_cpu_summary_of_profile(profile).samples);
}

uint64_t domt_cpu_sum_samples_of_lines(const char *begin)
{
    uint64_t sum = 0;

    for (const char *line = domt_cpu_text; *line != '\0'; line = strchr(line, '\n') + 1) {
        const char *end = strchr(line, '\n');
        const char *number = end;
        while (number[-1] != ' ')
            number--;
        if (strncmp(line, begin, strlen(begin)) == 0)
            sum += strtoull(number, NULL, 10);
    }
    return sum;
}
