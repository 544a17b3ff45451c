/* Turns samples into meters and rows of behaviours (view.h). */
#include "tools/domus/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The phases in the order of VIEW_LETTERS: work of actors first, and sleep last, so that the bar
 * grows with the thread's work. */
static const int drawn[PHASES] = {PHASE_CHANNELS, PHASE_STATE, PHASE_EVENTS, PHASE_COMPLETIONS,
                                  PHASE_SUBMIT,   PHASES - 1,  PHASE_SLEEP};

/* --- samples ---------------------------------------------------------------------------------- */

static const sample *get_sample_before(const view *shown)
{
    return shown->has_before ? &shown->before : NULL;
}

static void make_meters_of_sample(view *shown)
{
    const sample *now = &shown->now;

    shown->meter_count = 0;
    free(shown->meters);
    shown->meters =
        calloc((size_t)now->thread_count + now->runner_count + 1, sizeof *shown->meters);
    if (shown->meters == NULL)
        return;
    for (uint32_t i = 0; i < now->thread_count; i++) {
        meter *one = &shown->meters[shown->meter_count++];
        thread_rates rates;
        rates_between_samples_of_thread(get_sample_before(shown), now, i, &rates);
        snprintf(one->label, sizeof one->label, "%u", i);
        one->letters = VIEW_LETTERS;
        for (int part = 0; part < PHASES; part++) {
            one->shares[part] = rates.shares[drawn[part]];
            one->busy += part + 1 < PHASES ? one->shares[part] : 0;
        }
        memcpy(one->rates, rates.rates, sizeof one->rates);
        one->stalls = rates.counts[COUNTER_STALLS];
    }
    for (uint32_t i = 0; i < now->runner_count; i++) {
        meter *one = &shown->meters[shown->meter_count++];
        runner_rates rates;
        rates_between_samples_of_runner(get_sample_before(shown), now, i, &rates);
        snprintf(one->label, sizeof one->label, "%.16s/%u", now->runners[i].pool,
                 (unsigned)now->runners[i].runner);
        one->letters = "rl.";
        one->shares[0] = rates.run;
        one->shares[1] = rates.search;
        one->shares[2] = rates.park;
        one->busy = rates.run + rates.search;
        memcpy(one->rates, rates.rates, sizeof one->rates);
        one->stalls = rates.counts[COUNTER_STALLS];
    }
}

bool view_request_next_sample_from_port(view *shown, port *from, long ms)
{
    sample next;

    if (!sample_request_from_port(from, ms, &next)) {
        snprintf(shown->trouble, sizeof shown->trouble, "%s", from->error);
        return false;
    }
    shown->trouble[0] = '\0';
    shown->row_count = 0; /* rows that point to the sample which is freed must not be shown */
    sample_free(&shown->before);
    shown->has_before = shown->has_now && rates_can_samples_be_compared(&shown->now, &next);
    if (shown->has_before)
        shown->before = shown->now;
    else
        sample_free(&shown->now);
    shown->now = next;
    shown->has_now = true;
    make_meters_of_sample(shown);
    view_list_filtered_behaviours_sorted(shown);
    return true;
}

void view_fini(view *shown)
{
    sample_free(&shown->before);
    sample_free(&shown->now);
    free(shown->meters);
    free(shown->rows);
    memset(shown, 0, sizeof *shown);
}

/* --- behaviours ------------------------------------------------------------------------------- */

static double get_value_in_column(const row *one, column which)
{
    switch (which) {
    case COLUMN_TIME:
        return one->rates.share;
    case COLUMN_RUNS:
        return one->rates.runs;
    case COLUMN_MESSAGES:
        return one->rates.messages;
    case COLUMN_WAIT:
        return one->rates.wait_ns;
    case COLUMN_FAILURES:
        return (double)one->rates.failed;
    case COLUMN_ALIVE:
        return (double)one->rates.alive;
    case COLUMN_BYTES:
        return (double)one->rates.bytes;
    default:
        return 0;
    }
}

/* The column by which qsort() sorts behaviours. Only view_list_filtered_behaviours_sorted() sets
 * it. */
static column sort_by;
static bool sort_reversed;

static int compare_behaviours_by_sort_column(const void *one_, const void *other_)
{
    const row *one = one_, *other = other_;
    double a = get_value_in_column(one, sort_by), b = get_value_in_column(other, sort_by);
    int order = (a < b) - (a > b); /* the behaviour with the largest value comes first */
    int names = strcmp(one->who->name, other->who->name);

    if (names == 0)
        names = strcmp(one->who->pool, other->who->pool);
    if (order == 0)
        return sort_by == COLUMN_NAME && sort_reversed ? -names : names;
    return sort_reversed ? -order : order;
}

void view_list_filtered_behaviours_sorted(view *shown)
{
    const sample *now = &shown->now;

    shown->row_count = 0;
    row *rows = realloc(shown->rows, ((size_t)now->behaviour_count + 1) * sizeof *rows);
    if (rows == NULL)
        return;
    shown->rows = rows;
    for (uint32_t i = 0; i < now->behaviour_count; i++) {
        const behaviour_sample *one = &now->behaviours[i];
        if (shown->filter[0] != '\0' && strcasestr(one->name, shown->filter) == NULL)
            continue;
        rows[shown->row_count].who = one;
        rates_between_samples_of_behaviour(get_sample_before(shown), now, i,
                                           &rows[shown->row_count].rates);
        shown->row_count++;
    }
    sort_by = shown->sort;
    sort_reversed = shown->is_reversed;
    qsort(rows, shown->row_count, sizeof *rows, compare_behaviours_by_sort_column);
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Write a number in short form: 999, 12k, 4.5M. */
static void write_short_number(double value, char *ret_text, size_t size)
{
    static const char units[] = " kMGTPE";
    int unit = 0;

    while (value >= 999.5 && unit < 6) {
        value /= 1000;
        unit++;
    }
    if (unit == 0)
        snprintf(ret_text, size, value < 9.95 && value > floor(value) ? "%.1f" : "%.0f", value);
    else
        snprintf(ret_text, size, value < 9.95 ? "%.1f%c" : "%.0f%c", value, units[unit]);
}

static void write_short_time(double ns, char *ret_text, size_t size)
{
    if (ns <= 0)
        snprintf(ret_text, size, "-");
    else if (ns < 1e3)
        snprintf(ret_text, size, "%.0fns", ns);
    else if (ns < 1e6)
        snprintf(ret_text, size, ns < 1e4 ? "%.1fus" : "%.0fus", ns / 1e3);
    else if (ns < 1e9)
        snprintf(ret_text, size, ns < 1e7 ? "%.1fms" : "%.0fms", ns / 1e6);
    else
        snprintf(ret_text, size, ns < 1e10 ? "%.1fs" : "%.0fs", ns / 1e9);
}

void view_write_first_line_of_top(const view *shown, char *ret_line, size_t size)
{
    const sample *now = &shown->now;
    char pid[32] = "", up[48] = "", memory[16];
    unsigned long long s = now->uptime_ns / 1000000000u;

    if (now->pid != 0)
        snprintf(pid, sizeof pid, " (pid %lld)", (long long)now->pid);
    if (now->uptime_ns != 0)
        snprintf(up, sizeof up, ", up %llu:%02llu:%02llu", s / 3600, s / 60 % 60, s % 60);
    write_short_number((double)now->used_bytes, memory, sizeof memory);
    snprintf(ret_line, size, "domus top: %s%s%s, %u threads, %sB of memory%s%s",
             now->program[0] != '\0' ? now->program : "a program", pid, up, now->thread_count,
             memory, now->level[0] != '\0' ? ", level " : "", now->level);
}

void view_write_totals(const view *shown, char *ret_line, size_t size)
{
    char runs[16], messages[16], reads[16], in[16], out[16], fails[16];
    thread_rates all;

    rates_between_samples_of_all_threads(get_sample_before(shown), &shown->now, &all);
    write_short_number(all.rates[COUNTER_RUNS], runs, sizeof runs);
    write_short_number(all.rates[COUNTER_MESSAGES], messages, sizeof messages);
    write_short_number(all.rates[COUNTER_READS], reads, sizeof reads);
    write_short_number(all.rates[COUNTER_RECEIVED], in, sizeof in);
    write_short_number(all.rates[COUNTER_SENT], out, sizeof out);
    write_short_number(all.rates[COUNTER_FAILURES], fails, sizeof fails);
    double busy = shown->now.thread_count > 0 ? 1 - all.shares[PHASE_SLEEP] : 0;
    snprintf(
        ret_line, size,
        "busy %.1f%%, %s runs/s, %s messages/s, %s reads/s, in %sB/s, out %sB/s, %s failures/s, "
        "%llu stalls",
        busy * 100, runs, messages, reads, in, out, fails,
        (unsigned long long)all.counts[COUNTER_STALLS]);
}

void view_write_rates_of_meter(const meter *one, char *ret_line, size_t size)
{
    char runs[16], messages[16], steals[16], parks[16];

    write_short_number(one->rates[COUNTER_RUNS], runs, sizeof runs);
    write_short_number(one->rates[COUNTER_MESSAGES], messages, sizeof messages);
    write_short_number(one->rates[COUNTER_STEALS], steals, sizeof steals);
    write_short_number(one->rates[COUNTER_PARKS], parks, sizeof parks);
    snprintf(ret_line, size, "%5.1f%% %5s runs %5s msgs %5s steals %5s parks %3llu stalls",
             one->busy * 100, runs, messages, steals, parks, (unsigned long long)one->stalls);
}

static const struct {
    const char *name;
    int width; /* width of the column; columns are aligned to the right, except the last one */
} columns[COLUMNS_] = {
    [COLUMN_TIME] = {"TIME%", 7},      [COLUMN_RUNS] = {"RUNS/s", 8},
    [COLUMN_MESSAGES] = {"MSGS/s", 8}, [COLUMN_WAIT] = {"WAIT", 8},
    [COLUMN_FAILURES] = {"FAILED", 8}, [COLUMN_ALIVE] = {"ALIVE", 8},
    [COLUMN_BYTES] = {"BYTES", 8},     [COLUMN_NAME] = {"BEHAVIOUR", 0},
};

const char *view_get_title_of_column(column which, int *ret_width)
{
    *ret_width = columns[which].width;
    return columns[which].name;
}

void view_write_row(const row *one, char *ret_line, size_t size)
{
    char runs[16], messages[16], wait[16], fails[16], alive[16], bytes[16];
    const char *pool = one->who->pool;

    write_short_number(one->rates.runs, runs, sizeof runs);
    write_short_number(one->rates.messages, messages, sizeof messages);
    write_short_time(one->rates.wait_ns, wait, sizeof wait);
    write_short_number((double)one->rates.failed, fails, sizeof fails);
    write_short_number((double)one->rates.alive, alive, sizeof alive);
    write_short_number((double)one->rates.bytes, bytes, sizeof bytes);
    snprintf(ret_line, size, "%7.1f %7s %7s %7s %7s %7s %7s  %s%s%s%s", one->rates.share * 100,
             runs, messages, wait, fails, alive, bytes, one->who->name, pool[0] != '\0' ? " (" : "",
             pool, pool[0] != '\0' ? ")" : "");
}

/* --- bars ------------------------------------------------------------------------------------- */

/* Each part of a bar gets the whole characters of its share; the remaining characters go to the
 * parts that have lost the largest fractions. */
void view_write_bar_of_meter_as_letters(const meter *one, int width, char *ret_bar)
{
    int cells[METER_PARTS] = {0}, used = 0, parts = (int)strlen(one->letters);
    double rest[METER_PARTS] = {0}, sum = 0;

    for (int i = 0; i < parts; i++)
        sum += one->shares[i];
    for (int i = 0; i < parts && sum > 0.5; i++) {
        double exact = one->shares[i] * width;
        cells[i] = (int)exact;
        rest[i] = exact - cells[i];
        used += cells[i];
    }
    while (used < width && sum > 0.5) {
        int most = 0;
        for (int i = 1; i < parts; i++)
            most = rest[i] > rest[most] ? i : most;
        cells[most]++;
        rest[most] -= 1;
        used++;
    }
    int at = 0;
    for (int i = 0; i < parts; i++) {
        for (int cell = 0; cell < cells[i] && at < width; cell++)
            ret_bar[at++] = one->letters[i];
    }
    while (at < width)
        ret_bar[at++] = ' ';
    ret_bar[at] = '\0';
}
