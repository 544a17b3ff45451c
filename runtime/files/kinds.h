/* The kinds of operations on files: those that are tried in the ring of a thread first, and those
 * that helper threads always do. */
#ifndef DOMI_RUNTIME_FILES_KINDS_H
#define DOMI_RUNTIME_FILES_KINDS_H

#include "runtime/files/operation.h"

extern const domi_file_verb domi_file_open_verb;
extern const domi_file_verb domi_file_read_verb;
extern const domi_file_verb domi_file_write_verb;

extern const domi_file_verb domi_file_stat_verb;
extern const domi_file_verb domi_file_sync_verb; /* `flags` is 0, or 1 for the data only */
extern const domi_file_verb domi_file_truncate_verb;
extern const domi_file_verb domi_file_rename_verb;
extern const domi_file_verb domi_file_link_verb; /* `file` gets the name `to` */
extern const domi_file_verb domi_file_remove_verb;
extern const domi_file_verb domi_file_make_directory_verb;
extern const domi_file_verb domi_file_list_verb;
extern const domi_file_verb domi_file_load_verb; /* load.c */

/* A bit of `flags`: this read brings a piece of a file that is being sent, which goes on while
 * memory is critical, because it frees some. No flag of users has this bit. */
#define DOMI_FILE_IS_SENT UINT32_C(0x80000000)

/* Returns the descriptor of a directory; NULL: the working directory. */
int domi_file_fd(const domus_file *directory);

/* Make a page of `size` bytes, into which the operation reads. Returns 0; -EBUSY while memory is
 * critical; -ENOMEM. Whoever runs the house of the actor. */
int domi_file_make_page(domi_file_operation *operation, const domi_manager *manager, uint32_t size);

/* Take the first `size` bytes of the page, which the operation has made with `size` of its own. If
 * most of the page is empty they are copied, so that a small file does not hold the memory that a
 * large one would have needed. Any thread. */
domus_slice domi_file_take_page(domi_file_operation *operation, uint32_t size);

#endif
