/* Cases of made-up looks at a program: if `over` is true, the program has a fault just beyond the
 * threshold of a rule of the doctor, else it is just below. Each case names its rule and a part of
 * the advice. */
#ifndef DOMT_CASES_H
#define DOMT_CASES_H

#include "tests/observe/looks.h"

typedef struct domt_case {
    const char *rule; /* name of the doctor's rule; NULL ends the list */
    void (*make)(domt_looks *looks, bool over);
    const char *change;
} domt_case;

extern const domt_case domt_cases_of_time[]; /* cases of time that is shared badly, and of io */
extern const domt_case domt_cases_of_limits[];

#define MAKER_OF_ILL_LOOKS(name) static void name(domt_looks *looks, bool over)
#define AT(name, figure)                                                                           \
    MAKER_OF_ILL_LOOKS(name)                                                                       \
    {                                                                                              \
        figure;                                                                                    \
    }
#define COUNTERS  looks->after.threads[0].counters
#define SETTINGS  looks->after.settings
#define MACHINE   looks->after.machine
#define SECOND_NS UINT64_C(1000000000)

#endif
