/* The common options of the benches' command lines. */
#ifndef DOMUS_BENCH_OPTIONS_H
#define DOMUS_BENCH_OPTIONS_H

#include <stdbool.h>

/* Returns whether `name` is one of the `count` names of the command line; true if none were
 * given. */
bool options_wanted(int count, char *const *names, const char *name);

/* The options of a bench that can write a page. A field whose option is not given
 * keeps its value. */
struct options_page {
    bool is_long;
    const char *out;            /* directory to which the page is written; NULL: no page */
    const char *gnuplot_script; /* the gnuplot script for the page's plot */
};

/* Read --long, --out DIR and --gnuplot FILE. Further arguments begin at optind. Returns false if
 * there is any other option. */
bool options_page(int argc, char **argv, struct options_page *ret_options);

#endif
