/* Directories of tests in which a database lies. */
#ifndef DOMT_SQLITE_PLACE_H
#define DOMT_SQLITE_PLACE_H

typedef struct domt_place {
    char directory[64];
    char path[80];
    char url[160];
} domt_place;

/* Make a directory, and name a file in it that is not there yet. `parameters`: of the url, with the
 * '?', or "". */
void domt_place_make(domt_place *place, const char *parameters);
void domt_place_remove(const domt_place *place);

#endif
