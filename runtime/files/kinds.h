/* The kinds of operations on files. Some are tried in the ring of a thread first; others are always
 * done by helper threads. */
#ifndef DOMI_RUNTIME_FILES_KINDS_H
#define DOMI_RUNTIME_FILES_KINDS_H

#include "runtime/files/operation.h"

extern const domi_file_verb domi_file_open_verb;
extern const domi_file_verb domi_file_read_verb;
extern const domi_file_verb domi_file_write_verb;

extern const domi_file_verb domi_file_stat_verb;
/* with `flags` 1 only the data are synced, with 0 the status too */
extern const domi_file_verb domi_file_sync_verb;
extern const domi_file_verb domi_file_truncate_verb;
extern const domi_file_verb domi_file_rename_verb;
extern const domi_file_verb domi_file_link_verb; /* links `file` under the name `to` */
extern const domi_file_verb domi_file_remove_verb;
extern const domi_file_verb domi_file_make_directory_verb;
extern const domi_file_verb domi_file_list_verb;
extern const domi_file_verb domi_file_load_verb; /* defined in load.c */

/* A bit of `flags`: this read is of a piece of a file that is being sent. It is allowed while
 * memory is critical, because sending frees memory. No flag of users has this bit. */
#define DOMI_FILE_IS_SENT UINT32_C(0x80000000)

/* Returns the descriptor of a directory; AT_FDCWD (the working directory) if `directory` is
 * NULL. */
int domi_file_directory_fd(const domus_file *directory);

/* Make a page of `size` bytes, into which the operation reads. Returns 0; -EBUSY while memory is
 * critical; -ENOMEM. Called by the thread that runs the house of the actor. */
int domi_file_make_page(domi_file_operation *operation, const domi_manager *manager, uint32_t size);

/* Take the first `size` bytes of the operation's page as a slice. If most of the page is unused,
 * they are copied, so that few bytes do not hold a large page. Any thread. */
domus_slice domi_file_take_page(domi_file_operation *operation, uint32_t size);

#endif
