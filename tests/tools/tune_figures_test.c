/* The figures that `domus tune` reads from the output of loads, and the limits of figures. */
#include "tools/domus/tune/figures.h"

#include "tests/support/suite.h"
#include "tools/domus/tune/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The output of a load, and the figures in it: NAME=VALUE, separated by blanks. */
struct output {
    const char *text;
    const char *figures;
};

static const struct output outputs[] = {
    /* the output of the load generator wrk 4.1.0 -t1 -c8 -d1s --latency */
    {"Running 1s test @ http://127.0.0.1:7080/\n"
     "  1 threads and 8 connections\n"
     "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n"
     "    Latency   151.59us   62.90us   2.61ms   97.51%\n"
     "    Req/Sec    52.62k     1.62k   54.08k    90.91%\n"
     "  Latency Distribution\n"
     "     50%  149.00us\n"
     "     75%  157.00us\n"
     "     90%    1.17ms\n"
     "     99%  247.00us\n"
     "  57556 requests in 1.10s, 9.28MB read\n"
     "Requests/sec:  52338.06\n"
     "Transfer/sec:      8.44MB\n",
     "p50=149e-6 p90=1.17e-3 p99=247e-6 count=57556 seconds=1.1 rate=52338.06"},
    {"  Socket errors: connect 0, read 3, write 0, timeout 1\n"
     "  Non-2xx or 3xx responses: 12\n"
     "Requests/sec:      0.00\n",
     "errors=16 rate=0"},
    /* the output of the load generator ab 2.3 */
    {"Complete requests:      1000\n"
     "Failed requests:        0\n"
     "Non-2xx responses:      7\n"
     "Time taken for tests:   0.091 seconds\n"
     "Requests per second:    10936.86 [#/sec] (mean)\n"
     "Time per request:       0.731 [ms] (mean)\n"
     "Percentage of the requests served within a certain time (ms)\n"
     "  50%      1\n"
     "  66%      1\n"
     "  90%      2\n"
     "  95%      2\n"
     "  99%      3\n"
     " 100%      5 (longest request)\n",
     "count=1000 errors=7 seconds=0.091 rate=10936.86 p50=1e-3 p90=2e-3 p95=2e-3 p99=3e-3 "
     "max=5e-3"},
    /* the output of the load generator h2load of nghttp2 1.52 */
    {"starting benchmark...\n"
     "progress: 10% done\n"
     "finished in 96.54ms, 103584.08 req/s, 5.94MB/s\n"
     "requests: 10000 total, 10000 started, 10000 done, 9990 succeeded, 10 failed, 5 errored, 5 "
     "timeout\n"
     "status codes: 9990 2xx, 0 3xx, 5 4xx, 0 5xx\n"
     "                     min         max         mean         sd        +/- sd\n"
     "time for request:      101us      4.79ms       727us       309us    83.83%\n"
     "time for connect:      133us       343us       215us        76us    62.50%\n",
     "seconds=0.09654 rate=103584.08 count=9990 errors=10 max=4.79e-3"},
    /* Output of hey, copied from its documentation; the other outputs come from real runs. */
    {"Summary:\n"
     "  Total:\t1.0012 secs\n"
     "  Slowest:\t0.0100 secs\n"
     "  Requests/sec:\t9987.5\n"
     "Latency distribution:\n"
     "  50%% in 0.0012 secs\n"
     "  95% in 0.0030 secs\n"
     "  99% in 0.0041 secs\n"
     "Status code distribution:\n"
     "  [200]\t9000 responses\n"
     "  [204]\t990 responses\n"
     "  [404]\t2 responses\n"
     "  [503]\t8 responses\n"
     "Error distribution:\n"
     "  [3]\tGet http://127.0.0.1/: EOF\n",
     "seconds=1.0012 rate=9987.5 p50=1.2e-3 p95=3e-3 p99=4.1e-3 count=9990 errors=11"},
    /* Output of redis-benchmark 7 --csv with two tests, and of a version before 6.2. */
    {"\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\","
     "\"p99_latency_ms\",\"max_latency_ms\"\n"
     "\"SET\",\"100000.00\",\"0.1\",\"0.1\",\"0.2\",\"0.3\",\"0.4\",\"0.5\"\n"
     "\"GET\",\"50000.00\",\"0.1\",\"0.1\",\"0.1\",\"0.3\",\"0.6\",\"0.5\"\n",
     "rate=66666.6667 p50=2e-4 p95=3e-4 p99=6e-4 max=5e-4"},
    {"\"SET\",\"100000.00\"\n", "rate=100000"},
    /* Lines in the form in which the loads of domus print figures. */
    {"rate 51.5 k\n  p99\t1.5 ms\ncpu_us 3 us/message\nechoes.p50 12 us\nerrors 0\nlast 7",
     "rate=51500 p99=1.5e-3 cpu_us=3 echoes.p50=12e-6 errors=0 last=7"},
    /* Lines that are no figures, which are skipped. */
    {"rate: 5\nrate five\nrate 5 1/s more\n-rate 5\nrate -5\nrate 0x10\nrate nan\nrate 5x\n9rate "
     "5\n"
     "rate\n\n Requests/sec: fast\nRequests/sec: 5 now\n50% 3 parsecs\n\"unfinished\n\"a\"b\n",
     ""},
};

DOMT_TEST(figures_are_read_from_load_outputs)
{
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++) {
        char wanted[512], *rest = wanted, *word;
        tune_figures figures;
        size_t count = 0;
        ck_assert(tune_figures_read_output(outputs[i].text, strlen(outputs[i].text), &figures));
        snprintf(wanted, sizeof wanted, "%s", outputs[i].figures);
        while ((word = strsep(&rest, " ")) != NULL) {
            char *value = strchr(word, '=');
            if (value == NULL)
                continue;
            *value++ = '\0';
            const tune_figure *figure = tune_figures_find_by_name(&figures, word);
            ck_assert_msg(figure != NULL, "output %zu has no %s", i, word);
            ck_assert_double_eq_tol(figure->value, strtod(value, NULL),
                                    1e-12 + 1e-6 * strtod(value, NULL));
            count++;
        }
        ck_assert_uint_eq(figures.count, count);
    }
}

DOMT_TEST(duplicate_figure_is_refused)
{
    static const char text[] = "rate 5\np99 1 ms\nrate 6\n";
    tune_figures figures;

    ck_assert(!tune_figures_read_output(text, sizeof text - 1, &figures));
    ck_assert_str_eq(figures.error, "'rate' stands in its output twice");
}

DOMT_TEST(number_of_figures_is_limited)
{
    char text[65 * 8 + 1] = "";
    tune_figures figures;

    for (int i = 0; i < 65; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "n%d 1\n", i);
    ck_assert(!tune_figures_read_output(text, strlen(text), &figures));
    ck_assert_str_eq(figures.error, "its output has more than 64 figures");
}

DOMT_TEST(random_bytes_give_no_wrong_figures)
{
    char text[4096];
    uint64_t chance = 1;
    tune_figures figures;

    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < sizeof text; i++) {
            chance = chance * 6364136223846793005u + 1442695040888963407u;
            text[i] = "0123456789.@^%*\"',:; \t\n[]rateReqpms\0\x80"[(chance >> 33) % 38];
        }
        (void)tune_figures_read_output(text, sizeof text, &figures);
        ck_assert_uint_le(figures.count, TUNE_FIGURES_MAX);
    }
    memset(text, '9', sizeof text); /* a line that is too long, and has no end */
    ck_assert(tune_figures_read_output(text, sizeof text, &figures));
    ck_assert_uint_eq(figures.count, 0);
}

DOMT_TEST(figure_values_are_read_and_shown)
{
    static const struct {
        const char *text;
        double value; /* the number that the text gives; NAN: the text is refused */
    } read[] = {{"2ms", 2e-3}, {" 2 ms ", 2e-3}, {"1.5s", 1.5}, {"3us", 3e-6},  {"7ns", 7e-9},
                {"50k", 5e4},  {"5", 5},         {"", NAN},     {"ms", NAN},    {"2 m s", NAN},
                {"-2ms", NAN}, {"0x10", NAN},    {"inf", NAN},  {"1e400", NAN}, {"2 parsecs", NAN}};
    static const struct {
        const char *name;
        double value;
        const char *text;
    } shown[] = {{"p99", 1.25e-3, "1.25 ms"}, {"p50", 2, "2 s"},    {"cpu", 3.2e-8, "32 ns"},
                 {"rate", 51234, "51.23 k"},  {"rate", 2e6, "2 M"}, {"rate", 7, "7"},
                 {"p99", 5e-6, "5 us"},       {"errors", 0, "0"},   {"p99", 0, "0 ns"}};

    for (size_t i = 0; i < sizeof read / sizeof read[0]; i++) {
        double value = NAN;
        ck_assert_msg(tune_value_read_with_unit(read[i].text, &value) == !isnan(read[i].value),
                      "'%s'", read[i].text);
        if (!isnan(read[i].value))
            ck_assert_double_eq_tol(value, read[i].value, read[i].value * 1e-9);
    }
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        char text[32];
        tune_value_write_with_unit(shown[i].name, shown[i].value, text, sizeof text);
        ck_assert_str_eq(text, shown[i].text);
    }
}

DOMT_TEST(limits_on_figures_are_read)
{
    tune_bound bound;

    ck_assert(tune_bound_read_text("p99 < 2ms", &bound));
    ck_assert_str_eq(bound.name, "p99");
    ck_assert_double_eq_tol(tune_bound_log_of_ratio_if_broken(&bound, 4e-3), log(2), 1e-9);
    ck_assert_double_eq(tune_bound_log_of_ratio_if_broken(&bound, 2e-3), 0);
    ck_assert(tune_bound_read_text(" rate>=50k", &bound));
    ck_assert_str_eq(bound.name, "rate");
    ck_assert_double_eq_tol(tune_bound_log_of_ratio_if_broken(&bound, 25000), log(2), 1e-9);
    ck_assert_double_eq(tune_bound_log_of_ratio_if_broken(&bound, 60000), 0);
    static const char *const wrong[] = {"",        "p99",      "p99 <",   "< 2ms",      "p99 = 2",
                                        "p99 < 0", "p99 < -1", "p99 2ms", "p99 < 2ms 3"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(!tune_bound_read_text(wrong[i], &bound), "'%s'", wrong[i]);
}

DOMT_SUITE(20)
