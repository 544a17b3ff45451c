/* This file reads the command lines of benches with getopt_long(). */
#include "bench/support/options.h"

#include <getopt.h>
#include <stddef.h>
#include <string.h>

bool options_is_name_wanted(int count, char *const *names, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return count == 0;
}

bool options_parse_of_page_bench(int argc, char **argv, struct options_page *ret_options)
{
    static const struct option options[] = {
        {"long", no_argument, NULL, 'l'},
        {"out", required_argument, NULL, 'o'},
        {"gnuplot", required_argument, NULL, 'g'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "lo:g:", options, NULL)) != -1) {
        if (option == 'l')
            ret_options->is_long = true;
        else if (option == 'o')
            ret_options->out = optarg;
        else if (option == 'g')
            ret_options->gnuplot_script = optarg;
        else
            return false;
    }
    return true;
}
