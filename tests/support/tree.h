/* A directory of files below TMPDIR, which a test gives as the root directory to code that reads
 * /proc and /sys. */
#ifndef DOMT_TREE_H
#define DOMT_TREE_H

#include "tests/support/suite.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct domt_tree {
    char root[PATH_MAX / 2];
} domt_tree;

static inline void domt_tree_make(domt_tree *tree)
{
    const char *directory = getenv("TMPDIR");

    snprintf(tree->root, sizeof tree->root, "%s/domt-tree-XXXXXX",
             directory != NULL ? directory : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(tree->root));
}

/* Write `text` to the file `path` below the root; directories that are missing on the way are
 * made. */
static inline void domt_tree_write(const domt_tree *tree, const char *path, const char *text)
{
    char full[PATH_MAX];

    ck_assert_int_lt(snprintf(full, sizeof full, "%s/%s", tree->root, path), (int)sizeof full);
    for (char *at = full + strlen(tree->root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(full, 0700);
        *at = '/';
    }

    FILE *file = fopen(full, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static inline int domt_tree_remove_entry(const char *path, const struct stat *status, int kind,
                                         struct FTW *place)
{
    return remove(path);
}

static inline void domt_tree_remove_copy(const domt_tree *tree)
{
    nftw(tree->root, domt_tree_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
