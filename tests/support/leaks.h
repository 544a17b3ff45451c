/* The memory that LeakSanitizer searches when a test ends (leaks.c). */
#ifndef DOMT_LEAKS_H
#define DOMT_LEAKS_H

/* Let LeakSanitizer search only written pages. Called once, before the first test; without
 * AddressSanitizer it does nothing. */
void domt_leaks_only_written(void);

#endif
