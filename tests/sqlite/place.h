/* Directories in which tests have databases of SQLite. */
#ifndef DOMT_SQLITE_PLACE_H
#define DOMT_SQLITE_PLACE_H

typedef struct domt_place {
    char directory[64];
    char path[80];
    char url[160];
} domt_place;

/* Make a directory, and choose the name of a file in it, which does not exist yet. `parameters` end
 * the url of the database, and begin with '?', or are "". */
void domt_place_make_directory_and_url(domt_place *place, const char *parameters);
void domt_place_remove_directory(const domt_place *place);

#endif
