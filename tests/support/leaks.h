/* The memory that LeakSanitizer looks at when a test ends (leaks.c). */
#ifndef DOMT_LEAKS_H
#define DOMT_LEAKS_H

/* Called once, before the first test. Without AddressSanitizer nothing happens. */
void domt_leaks_only_written(void);

#endif
