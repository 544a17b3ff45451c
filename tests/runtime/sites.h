/* A site in a test kit: a directory with files of all kinds, and an HTTP service that serves these
 * files. A test with this helper replaces the functions of the C library by which domus reads
 * files, and can let them refuse. */
#ifndef DOMT_SITES_H
#define DOMT_SITES_H

#include "tests/runtime/files.h"
#include "tests/runtime/pipes.h"

#include <domus/http_files.h>

/* size of the file "large.bin" in bytes, each of which is that of domt_file_byte_at() */
#define DOMT_SITE_LARGE 300000u

typedef struct domt_site_type {
    domt_tree tree;
    domus_http_files files;
    domus_testkit *kit;
    /* true: reads that must not wait are refused, as if no file were in the kernel's memory */
    bool reads_wait;
    uint32_t waits; /* number of reads that were refused because of `reads_wait` */
    /* number of next looks at a file that are refused, as if the kernel had to wait for them */
    uint32_t looks_wait;
    bool shrinks;      /* true: the file "a.txt" becomes shorter before each read */
    domus_address far; /* the actor to which domt_site_far_service hands requests */
    char answer[2 * DOMT_SITE_LARGE];
    size_t answer_size;
} domt_site_type;

extern domt_site_type domt_site;

/* Behaviours that serve the site: at once, after a sleep, or by another actor to which the request
 * is handed. */
extern const domus_behaviour domt_site_service, domt_site_late_service, domt_site_far_service;

/* Make the directory of the site, with its files. */
void domt_site_make_directory(void);

/* Make a kit that serves the site. */
void domt_site_open_kit(const domus_config *config, const domus_behaviour *behaviour);

/* Make the directory of the site, and a kit that serves it. */
void domt_site_make_and_open(const domus_config *config, const domus_behaviour *behaviour);

/* End the kit that serves the site; the directory of the site stays. */
void domt_site_close_kit(void);

/* End the kit that serves the site, and remove the directory of the site. */
void domt_site_close_and_remove(void);

/* Returns the whole path of a file of the site, valid until the next call. */
const char *domt_site_whole_path(const char *name);

/* Write a file of the site, and set its time of change, which is the same for all files. */
void domt_site_write_file(const char *name, const char *text);

/* Send a request on a connection of its own, with the header lines in `fields`. Returns the status
 * of the answer; 0: none came. The whole answer is then in domt_site.answer. */
unsigned domt_site_ask(const char *method, const char *target, const char *fields);
unsigned domt_site_get(const char *target, const char *fields);

/* Returns the body of the answer in domt_site.answer. */
const char *domt_site_body_of_answer(void);

/* Send a GET, and check the status and the body of its answer. */
void domt_site_check_get(const char *target, const char *fields, unsigned status, const char *body);

/* Returns whether the last answer's head has this header line. */
bool domt_site_answer_has_line(const char *line);

/* Returns the value of the ETag of the last answer, valid until the next call. */
const char *domt_site_tag_of_answer(void);

#endif
