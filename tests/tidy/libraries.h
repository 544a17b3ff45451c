/* The libraries that are installed, and which public headers belong to each. */
#ifndef DOMT_TIDY_LIBRARIES_H
#define DOMT_TIDY_LIBRARIES_H

#include <stddef.h>

/* The names of the installed libraries, such as "libdomus-http", up to a NULL; libdomus is the
 * first. */
extern const char *const domt_libraries[];

#define DOMT_LIBRARIES_MAX 32

/* Returns the index in that list of the library to which a public header belongs. The header is
 * given without its folder, as "http.h". */
size_t domt_library_of_header(const char *header);

#endif
