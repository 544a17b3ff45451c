/* The command lines of benches: names of rows, and the options of those that write a page. */
#include "bench/support/options.h"

#include "tests/support/suite.h"

#include <getopt.h>

DOMT_TEST(all_are_wanted_when_none_is_named)
{
    ck_assert(options_wanted(0, NULL, "ask"));
}

DOMT_TEST(only_those_that_are_named_are_wanted)
{
    char *names[] = {(char[]){"ask"}, (char[]){"ring"}};

    ck_assert(options_wanted(2, names, "ask"));
    ck_assert(options_wanted(2, names, "ring"));
    ck_assert(!options_wanted(2, names, "rin"));
}

DOMT_TEST(options_of_a_page_are_taken_and_names_are_left)
{
    char *argv[] = {(char[]){"bench"}, (char[]){"--long"}, (char[]){"--out"},
                    (char[]){"docs"},  (char[]){"ask"},    NULL};
    struct options_page options = {.gnuplot_script = "a.gp"};

    optind = 1;
    ck_assert(options_page(5, argv, &options));
    ck_assert(options.is_long);
    ck_assert_str_eq(options.out, "docs");
    ck_assert_str_eq(options.gnuplot_script, "a.gp");
    ck_assert_int_eq(optind, 4);
}

DOMT_TEST(option_that_no_page_has_is_refused)
{
    char *argv[] = {(char[]){"bench"}, (char[]){"--short"}, NULL};
    struct options_page options = {.out = NULL};

    optind = 1;
    opterr = 0;
    ck_assert(!options_page(2, argv, &options));
}

DOMT_SUITE(20)
