/* A locale whose numbers have a comma in place of the decimal point, for tests which hold that the
 * library writes the same texts in every locale. */
#ifndef DOMT_SUPPORT_COMMA_H
#define DOMT_SUPPORT_COMMA_H

/* Give the program a locale with a decimal comma from now on. The test fails if numbers still have
 * no comma, because then the C library does not understand the written file of the locale. */
void domt_use_locale_with_comma(void);

#endif
