/* What the command lines of benches have in common. */
#ifndef DOMUS_BENCH_OPTIONS_H
#define DOMUS_BENCH_OPTIONS_H

#include <stdbool.h>

/* Is `name` one of the `count` names that were given? Of no names: all are. */
bool options_wanted(int count, char *const *names, const char *name);

/* Of a bench that can write a page. What is not given stays as it was. */
struct options_page {
    bool is_long;
    const char *out;            /* the page's directory; NULL: none */
    const char *gnuplot_script; /* for its plot */
};

/* --long, --out DIR, --gnuplot FILE; what follows begins at optind. False: another option. */
bool options_page(int argc, char **argv, struct options_page *ret_options);

#endif
