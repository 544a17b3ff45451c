/* A locale whose numbers have a comma in place of the point, for a test of what is the same in
 * every locale. */
#ifndef DOMT_SUPPORT_COMMA_H
#define DOMT_SUPPORT_COMMA_H

/* Let the program have such a locale from now on. The test fails if numbers have no comma then: the
 * C library does not know the file of it. */
void domt_use_comma(void);

#endif
