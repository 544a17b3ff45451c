/* The common options of the benches' command lines. */
#ifndef DOMUS_BENCH_OPTIONS_H
#define DOMUS_BENCH_OPTIONS_H

#include <stdbool.h>

/* Returns whether `name` is one of the `count` names that the command line gives, or the command
 * line gives none. */
bool options_is_name_wanted(int count, char *const *names, const char *name);

/* The options of a bench that can write its results as a page. A field whose option is not given
 * keeps its value. */
struct options_page {
    bool is_long;
    const char *out; /* directory to which the page is written; NULL: no page is written */
    const char *gnuplot_script; /* path of the gnuplot script for the page's plot */
};

/* Read --long, --out DIR and --gnuplot FILE. Further arguments begin at optind. Returns false if
 * there is any other option. */
bool options_parse_of_page_bench(int argc, char **argv, struct options_page *ret_options);

#endif
