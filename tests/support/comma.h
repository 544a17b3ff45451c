/* A locale whose numbers have a comma in place of the point, for tests of texts that are the same
 * in every locale. */
#ifndef DOMT_SUPPORT_COMMA_H
#define DOMT_SUPPORT_COMMA_H

/* Let the program have such a locale from now on. The test fails if its numbers have no comma: then
 * the C library does not understand the file of the locale. */
void domt_use_comma(void);

#endif
