/* The kinds of operations on files (domi_file_verb). Some are tried in the ring of a thread first;
 * helper threads always do the others. */
#ifndef DOMI_RUNTIME_FILES_KINDS_H
#define DOMI_RUNTIME_FILES_KINDS_H

#include "runtime/files/operation.h"

extern const domi_file_verb domi_file_open_verb;
extern const domi_file_verb domi_file_read_verb;
extern const domi_file_verb domi_file_write_verb;

extern const domi_file_verb domi_file_stat_verb;
/* syncs a file to the disk; with `flags` 1 only the data, with 0 the status too */
extern const domi_file_verb domi_file_sync_verb;
extern const domi_file_verb domi_file_truncate_verb;
extern const domi_file_verb domi_file_rename_verb;
/* gives an open file (`file`) a further name, `to` */
extern const domi_file_verb domi_file_link_verb;
extern const domi_file_verb domi_file_remove_verb;
extern const domi_file_verb domi_file_make_directory_verb;
extern const domi_file_verb domi_file_list_verb;
extern const domi_file_verb domi_file_load_verb; /* loads a whole file; defined in load.c */

/* A bit of an operation's `flags`: this read is of a piece of a file that is being sent. It is
 * allowed while memory is critical, because sending frees memory. Users cannot set this bit. */
#define DOMI_FILE_IS_SENT UINT32_C(0x80000000)

/* Returns the descriptor of a directory's handle; AT_FDCWD (the working directory) if `directory`
 * is NULL. */
int domi_file_descriptor_of_directory(const domus_file *directory);

/* Make a page of `size` bytes, into which the operation on a file reads. Returns 0; -EBUSY while
 * memory is critical; -ENOMEM. Called by the thread that runs the house of the actor. */
int domi_file_make_page_to_read_into(domi_file_operation *operation, const domi_manager *manager,
                                     uint32_t size);

/* Take the first `size` bytes of the operation's page as a slice. If most of the page is unused,
 * these bytes are copied, so that few bytes do not hold a large page. Any thread. */
domus_slice domi_file_take_bytes_of_page(domi_file_operation *operation, uint32_t size);

#endif
