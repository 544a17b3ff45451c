/* A locale whose numbers have a comma in place of the point, for a test of what is the same in
 * every locale. */
#ifndef DOMT_SUPPORT_COMMA_H
#define DOMT_SUPPORT_COMMA_H

#include <stdbool.h>

/* Let the program have such a locale from now on. Returns whether numbers have a comma now: not
 * every C library knows the file of it. */
bool domt_use_comma(void);

#endif
