/* A site in a test kit: a directory with files of all kinds, and a service that serves it. In
 * programs with this helper, the library's reads of files call functions of the helper, which may
 * refuse them. */
#ifndef DOMT_SITES_H
#define DOMT_SITES_H

#include "tests/runtime/files.h"
#include "tests/runtime/pipes.h"

#include <domus/http_files.h>

#define DOMT_SITE_LARGE 300000u /* bytes of "large.bin"; each is that of domt_file_byte() */

typedef struct domt_site_type {
    domt_tree tree;
    domus_http_files files;
    domus_testkit *kit;
    bool reads_wait;     /* the kernel has no bytes of files in memory */
    uint32_t waits;      /* number of reads that were refused for that */
    uint32_t looks_wait; /* number of times that the kernel does not know at once what a file is */
    bool shrinks;        /* the file "a.txt" becomes shorter before each read */
    domus_address far;   /* the actor that serves for domt_site_far_service */
    char answer[2 * DOMT_SITE_LARGE];
    size_t answer_size;
} domt_site_type;

extern domt_site_type domt_site;

/* The second sleeps before it serves, and the third lets another actor serve. */
extern const domus_behaviour domt_site_service, domt_site_late_service, domt_site_far_service;

/* Make the directory; serve it; or do both. */
void domt_site_make(void);
void domt_site_open(const domus_config *config, const domus_behaviour *behaviour);
void domt_site_begin(const domus_config *config, const domus_behaviour *behaviour);
void domt_site_close(void);
void domt_site_end(void);

/* Returns the whole path of a name, valid until the next call. */
const char *domt_site_path(const char *name);

/* Write a file, and set its time of change, which is always the same. */
void domt_site_write(const char *name, const char *text);

/* Ask on a connection of its own, with the header lines of `fields`. Returns the status; 0: no
 * answer came. The whole answer is in domt_site.answer. */
unsigned domt_site_ask(const char *method, const char *target, const char *fields);
unsigned domt_site_get(const char *target, const char *fields);

/* Return parts of domt_site.answer: its body; whether its head has a line; the value of its tag. */
const char *domt_site_body(void);

/* Check the answer to a GET. */
void domt_site_gives(const char *target, const char *fields, unsigned status, const char *body);
bool domt_site_says(const char *line);
const char *domt_site_tag(void);

#endif
