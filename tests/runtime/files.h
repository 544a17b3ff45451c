/* An actor, called the clerk, that does file operations on order of a test, in a real system or in
 * a test kit; and a directory for the files. */
#ifndef DOMT_FILES_H
#define DOMT_FILES_H

#include "tests/runtime/running.h"
#include "tests/support/tree.h"

#include <domus/testkit.h>

typedef enum domt_deed_kind {
    DOMT_OPEN,
    DOMT_READ,
    DOMT_WRITE,
    DOMT_SYNC, /* sync a file; if `flags` is not 0, only its data */
    DOMT_TRUNCATE,
    DOMT_STAT,
    DOMT_RENAME,
    DOMT_LINK, /* link `file` as the name `to` in the directory `to_file` */
    DOMT_REMOVE,
    DOMT_MAKE_DIRECTORY,
    DOMT_LIST,
    /* load the first of `paths` that can be opened; read at most `size` bytes of it */
    DOMT_LOAD,
    /* load as domus_file_load_now() does, after `position` ms of work in the same turn */
    DOMT_LOAD_NOW,
} domt_deed_kind;

/* An order to the clerk: the kind of a file operation, and its parameters. */
typedef struct domt_deed {
    domt_deed_kind kind;
    domus_file *file;
    domus_file *to_file;
    const char *path;
    const char *to;
    const char *const *paths;
    uint64_t position;
    uint64_t size; /* number of bytes to read, or number of bytes at `bytes` */
    const char *bytes;
    uint32_t flags;
    uint32_t mode;
} domt_deed;

/* The answer of the clerk: the result of a file operation. */
typedef struct domt_done {
    /* negative errno that the function of the operation itself has returned; 0: none */
    int returned;
    int error; /* error of the function, or of the answer that came later; 0: none */
    domus_file *file;
    domus_slice bytes;
    domus_file_written written;
    domus_file_status status;
    domus_file_entries entries; /* entries of a listed directory; their memory is `bytes` */
    uint32_t index;             /* index in `paths` of the file that was loaded */
    uint64_t tag;               /* tag of the answer to the clerk */
} domt_done;

extern const domus_type domt_deed_type;
extern const domus_behaviour domt_clerk;

/* The system of the running test, the clerks on its two threads, and the directory for files. */
typedef struct domt_files {
    domus_system *system;
    domus_testkit *kit; /* the test kit of the system; NULL: the system has real threads */
    domus_probe *probe; /* the probe that asks the clerks, if the system is in a kit */
    domus_address clerks[2];
    domt_tree tree;
    domus_file *root;  /* open handle of the test's directory */
    uint32_t open_fds; /* number of descriptors that the process had open before the test */
} domt_files;

extern domt_files domt_files_now;

/* Start a system, in a test kit or with real threads, with two clerks and a directory. If `config`
 * is NULL, the system has the configuration of domt_config_of_threads(2). */
void domt_files_begin(const domus_config *config, bool in_kit);

/* Stop the system of the clerks, and check that no descriptor is left open. */
void domt_files_end(void);

/* Order a file operation from a clerk (domt_file_order(): from the first one), and wait for its
 * result. */
domt_done domt_file_order_from_clerk(uint32_t clerk, domt_deed deed);
domt_done domt_file_order(domt_deed deed);

/* Open a file in the test's directory. The first function returns 0 or the negative errno of the
 * open; the second one fails the test if the open fails. */
int domt_file_open(const char *path, uint32_t flags, domus_file **ret_file);
domus_file *domt_file_must_open(const char *path, uint32_t flags);
/* Read or write a file, and check that exactly the bytes of `text` are read or written. */
void domt_file_must_read(domus_file *file, uint64_t position, uint32_t size, const char *text);
void domt_file_must_write(domus_file *file, uint64_t position, const char *text);

/* Returns the whole path of a file in the test's directory, valid until the next call. */
const char *domt_file_whole_path(const char *name);

/* A file of `size` bytes without a name: domt_file_byte_at() is its byte at a position,
 * domt_file_make_unnamed() returns a descriptor of a new one, and domt_file_handle_of_descriptor()
 * makes a domus_file of a descriptor. */
char domt_file_byte_at(uint64_t position);
int domt_file_make_unnamed(uint64_t size);
domus_file *domt_file_handle_of_descriptor(domus_system *system, int fd);

/* Returns how many jobs the helper threads of the system have done; 0 in a test kit. */
uint64_t domt_count_helper_jobs(void);

/* Returns how many threads of this process have a name that begins with `name`. */
uint32_t domt_count_threads_named(const char *name);

/* Run the test `hold` twice: with a test kit, and with a real system. */
void domt_files_run_in_kit_and_system(void (*hold)(void));

#endif
