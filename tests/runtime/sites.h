/* A site in a test kit: a directory with files of all kinds, and a service that serves it. Programs
 * with this helper make the library's reads of files by functions of it, which may refuse them. */
#ifndef DOMT_SITES_H
#define DOMT_SITES_H

#include "tests/runtime/files.h"
#include "tests/runtime/pipes.h"

#include <domus/http_files.h>

#define DOMT_SITE_LARGE 300000u /* bytes of "large.bin"; each is domt_file_byte() */

typedef struct domt_site_type {
    domt_tree tree;
    domus_http_files files;
    domus_testkit *kit;
    bool reads_wait;     /* the kernel has nothing in memory */
    uint32_t waits;      /* how many reads have heard that */
    uint32_t looks_wait; /* so many times the kernel does not know at once what a file is */
    bool shrinks;        /* the file "a.txt" becomes shorter before each read */
    domus_address far;   /* that actor */
    char answer[2 * DOMT_SITE_LARGE];
    size_t answer_size;
} domt_site_type;

extern domt_site_type domt_site;

/* The second sleeps before it serves, and the third lets another actor serve. */
extern const domus_behaviour domt_site_service, domt_site_late_service, domt_site_far_service;

/* Make the directory, and serve it; each alone, or both. */
void domt_site_make(void);
void domt_site_open(const domus_config *config, const domus_behaviour *behaviour);
void domt_site_begin(const domus_config *config, const domus_behaviour *behaviour);
void domt_site_close(void);
void domt_site_end(void);

/* The whole path of a name, valid until the next call. */
const char *domt_site_path(const char *name);

/* Write a file, whose time of change is always the same. */
void domt_site_write(const char *name, const char *text);

/* Ask on a connection of its own, with lines of `fields`. Returns the status; the whole answer is
 * in domt_site.answer. 0: there is none. */
unsigned domt_site_ask(const char *method, const char *target, const char *fields);
unsigned domt_site_get(const char *target, const char *fields);

/* The body of that answer; whether its head has a line; the value of its tag. */
const char *domt_site_body(void);

/* Hold what a GET is answered. */
void domt_site_gives(const char *target, const char *fields, unsigned status, const char *body);
bool domt_site_says(const char *line);
const char *domt_site_tag(void);

#endif
