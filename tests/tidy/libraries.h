/* The libraries that are installed, and which of them a public header belongs to. */
#ifndef DOMT_TIDY_LIBRARIES_H
#define DOMT_TIDY_LIBRARIES_H

#include <stddef.h>

/* Their names, as "libdomus-http", up to a NULL; libdomus is the first. */
extern const char *const domt_libraries[];

#define DOMT_LIBRARIES_MAX 32

/* Returns the index of the library to which a header belongs, given as "http.h", without its
 * folder. */
size_t domt_library_of(const char *header);

#endif
