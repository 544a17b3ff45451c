/* Limits the memory in which LeakSanitizer looks for pointers when a test ends
 * (tests/support/leaks.c). */
#ifndef DOMT_LEAKS_H
#define DOMT_LEAKS_H

/* Let LeakSanitizer search only pages that the test has written. It is called once, before the
 * first test; without AddressSanitizer it does nothing. */
void domt_limit_leak_search(void);

#endif
