/* An actor, the clerk, that does file operations as it is asked, in a real system or in a test kit;
 * and a directory for the files. */
#ifndef DOMT_FILES_H
#define DOMT_FILES_H

#include "tests/runtime/running.h"
#include "tests/support/tree.h"

#include <domus/testkit.h>

typedef enum domt_deed_kind {
    DOMT_OPEN,
    DOMT_READ,
    DOMT_WRITE,
    DOMT_SYNC, /* syncs; with `flags` the data only */
    DOMT_TRUNCATE,
    DOMT_STAT,
    DOMT_RENAME,
    DOMT_LINK, /* links `file` as the name `to` in `to_file` */
    DOMT_REMOVE,
    DOMT_MAKE_DIRECTORY,
    DOMT_LIST,
    DOMT_LOAD,     /* loads the first of `paths` that opens; reads at most `size` bytes */
    DOMT_LOAD_NOW, /* loads after `position` ms of work in the same turn */
} domt_deed_kind;

/* An order to the clerk: a file operation with its parameters. */
typedef struct domt_deed {
    domt_deed_kind kind;
    domus_file *file;
    domus_file *to_file;
    const char *path;
    const char *to;
    const char *const *paths;
    uint64_t position;
    uint64_t size; /* bytes to read, or the number of bytes at `bytes` */
    const char *bytes;
    uint32_t flags;
    uint32_t mode;
} domt_deed;

/* The result of a file operation. */
typedef struct domt_done {
    int returned; /* a negative errno that the function itself returned */
    int error;    /* the error of the function or of its answer */
    domus_file *file;
    domus_slice bytes;
    domus_file_written written;
    domus_file_status status;
    domus_file_entries entries; /* entries of a listing, whose memory is `bytes` */
    uint32_t index;             /* index of the path that was loaded */
    uint64_t tag;               /* tag that the answer has */
} domt_done;

extern const domus_type domt_deed_type;
extern const domus_behaviour domt_clerk;

/* The system of this test, the clerks on its two threads, and the directory. */
typedef struct domt_files {
    domus_system *system;
    domus_testkit *kit; /* NULL: the system has real threads */
    domus_probe *probe; /* the probe that sends the asks in a kit */
    domus_address clerks[2];
    domt_tree tree;
    domus_file *root;  /* an open handle of the directory */
    uint32_t open_fds; /* descriptors that the process had open before the test */
} domt_files;

extern domt_files domt_files_now;

/* Start with a configuration that domt_config(2) made; stop, and check that no descriptor is left
 * open. */
void domt_files_begin(const domus_config *config, bool in_kit);
void domt_files_end(void);

/* Ask a clerk, and wait for its answer. */
domt_done domt_file_do_at(uint32_t clerk, domt_deed deed);
domt_done domt_file_do(domt_deed deed);

/* Short forms of file operations. Paths are beneath the directory. A failed open returns its
 * negative errno. */
int domt_file_open(const char *path, uint32_t flags, domus_file **ret_file);
domus_file *domt_file_must_open(const char *path, uint32_t flags);
/* Check that these bytes are read, or that so many bytes are written. */
void domt_file_must_read(domus_file *file, uint64_t position, uint32_t size, const char *text);
void domt_file_must_write(domus_file *file, uint64_t position, const char *text);

/* Returns the whole path of a name in the directory, valid until the next call. */
const char *domt_file_path(const char *name);

/* A file without a name: the byte at each position, a descriptor of such a file, and a handle of
 * that descriptor like one from an open. */
char domt_file_byte(uint64_t position);
int domt_file_make(uint64_t size);
domus_file *domt_file_handle(domus_system *system, int fd);

/* Returns how many jobs helper threads have done; 0 in a kit. */
uint64_t domt_helped(void);

/* Returns how many threads of this process have a name that begins with `name`. */
uint32_t domt_threads_named(const char *name);

/* Run `hold` with a test kit, and then with a real system. */
void domt_files_in_both(void (*hold)(void));

#endif
