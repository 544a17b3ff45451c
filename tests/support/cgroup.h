/* Makes a cgroup with a limit for a test, in the cgroups of this machine (v1 or v2), if the test is
 * allowed to. */
#ifndef DOMT_CGROUP_H
#define DOMT_CGROUP_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct domt_cgroup {
    char path[PATH_MAX / 2];
    int version;
    const char *mount; /* directory where the cgroup's hierarchy (version 1 or 2) is mounted */
    /* controller that this test has turned on for the mount's children; NULL: none */
    const char *given;
    char why[256]; /* text for the message of the test: why no cgroup could be made */
} domt_cgroup;

static inline bool domt_cgroup_write_file(const domt_cgroup *cgroup, const char *name,
                                          const char *text)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", cgroup->path, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return written;
}

/* Returns the number behind `key` in the file `name` of the cgroup, or the first number of the file
 * if `key` is ""; 0 if the file has no such number. */
static inline uint64_t domt_cgroup_read_number(const domt_cgroup *cgroup, const char *name,
                                               const char *key)
{
    char path[PATH_MAX], line[256];
    uint64_t value = 0;

    snprintf(path, sizeof path, "%s/%s", cgroup->path, name);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            value = strtoull(line + strlen(key), NULL, 10);
            break;
        }
    }
    if (file != NULL)
        fclose(file);
    return value;
}

/* A setting of a cgroup: the name of its file, and the text to write to the file. A list of
 * settings ends with a row of NULLs. */
typedef struct domt_cgroup_setting {
    const char *file;
    const char *text;
} domt_cgroup_setting;

static inline bool domt_cgroup_write_settings(domt_cgroup *cgroup,
                                              const domt_cgroup_setting *settings)
{
    for (; settings->file != NULL; settings++) {
        if (domt_cgroup_write_file(cgroup, settings->file, settings->text))
            continue;
        snprintf(cgroup->why, sizeof cgroup->why, "%.100s has no %s that can be written",
                 cgroup->path, settings->file);
        return false;
    }
    return true;
}

/* Lock the directory of a mounted cgroup hierarchy, so that no test turns off a controller that
 * another test is about to use. Returns the descriptor that unlocks when it is closed; -1 if there
 * is no such directory. */
static inline int domt_cgroup_lock_mount(const char *mount)
{
    int fd = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0)
        (void)flock(fd, LOCK_EX);
    return fd;
}

/* Returns whether `word` is among the words of the file `name` in the directory `mount`, for
 * instance among the controllers in cgroup.subtree_control. */
static inline bool domt_cgroup_file_has_word(const char *mount, const char *name, const char *word)
{
    char path[PATH_MAX], text[512] = "", *rest = NULL;

    snprintf(path, sizeof path, "%s/%s", mount, name);
    FILE *file = fopen(path, "re");
    if (file != NULL && fgets(text, sizeof text, file) == NULL)
        text[0] = '\0';
    if (file != NULL)
        fclose(file);
    for (char *one = strtok_r(text, " \n", &rest); one != NULL; one = strtok_r(NULL, " \n", &rest))
        if (strcmp(one, word) == 0)
            return true;
    return false;
}

/* Turn a controller on ('+') or off ('-') for the children of a mounted cgroup hierarchy. */
static inline bool domt_cgroup_turn_controller(const char *mount, char sign, const char *controller)
{
    domt_cgroup top = {.path = ""};
    char text[32];

    snprintf(top.path, sizeof top.path, "%s", mount);
    snprintf(text, sizeof text, "%c%s", sign, controller);
    return domt_cgroup_write_file(&top, "cgroup.subtree_control", text);
}

/* Turn off the controller that this test has turned on for the children of the mount, unless
 * another test still has a cgroup with that controller. The caller holds the lock of the mount
 * (domt_cgroup_lock_mount()). */
static inline void domt_cgroup_put_back_controller(domt_cgroup *cgroup)
{
    char begin[64];
    bool is_used = false;
    DIR *mount = cgroup->given != NULL ? opendir(cgroup->mount) : NULL;

    if (mount == NULL)
        return;
    snprintf(begin, sizeof begin, "domt-%s-", cgroup->given);
    for (struct dirent *one; (one = readdir(mount)) != NULL;)
        is_used |= strncmp(one->d_name, begin, strlen(begin)) == 0;
    closedir(mount);
    if (!is_used)
        (void)domt_cgroup_turn_controller(cgroup->mount, '-', cgroup->given);
    cgroup->given = NULL;
}

/* Make the directory of a cgroup and write the settings to its files. The caller holds the lock of
 * the mount (domt_cgroup_lock_mount()). */
static inline bool domt_cgroup_make_directory(domt_cgroup *cgroup,
                                              const domt_cgroup_setting *settings)
{
    if (mkdir(cgroup->path, 0755) != 0) {
        snprintf(cgroup->why, sizeof cgroup->why, "%.100s: %s", cgroup->path, strerror(errno));
        return false;
    }
    if (domt_cgroup_write_settings(cgroup, settings))
        return true;
    rmdir(cgroup->path);
    return false;
}

static inline bool domt_cgroup_try_to_make_in_version(domt_cgroup *cgroup, int version,
                                                      const char *mount, const char *controller,
                                                      const domt_cgroup_setting *settings)
{
    int lock = domt_cgroup_lock_mount(mount);

    *cgroup = (domt_cgroup){.version = version, .mount = mount};
    /* in cgroups of version 2, the parent must first allow its children the controller */
    if (version == 2 && !domt_cgroup_file_has_word(mount, "cgroup.subtree_control", controller) &&
        domt_cgroup_turn_controller(mount, '+', controller))
        cgroup->given = controller;
    snprintf(cgroup->path, sizeof cgroup->path, "%s/domt-%s-%ld", mount, controller,
             (long)getpid());
    bool is_made = domt_cgroup_make_directory(cgroup, settings);
    if (!is_made)
        domt_cgroup_put_back_controller(cgroup);
    if (lock >= 0)
        close(lock);
    return is_made;
}

/* Make a cgroup that may use `limit` bytes of memory. Returns false if no such cgroup can be made;
 * cgroup->why then has the reason. */
static inline bool domt_cgroup_make_with_memory_limit(domt_cgroup *cgroup, uint64_t limit)
{
    char text[32];
    const domt_cgroup_setting first[] = {{"memory.limit_in_bytes", text}, {NULL, NULL}};
    const domt_cgroup_setting second[] = {{"memory.max", text}, {NULL, NULL}};

    snprintf(text, sizeof text, "%llu", (unsigned long long)limit);
    return domt_cgroup_try_to_make_in_version(cgroup, 1, "/sys/fs/cgroup/memory", "memory",
                                              first) ||
           domt_cgroup_try_to_make_in_version(cgroup, 2, "/sys/fs/cgroup", "memory", second) ||
           domt_cgroup_try_to_make_in_version(cgroup, 2, "/sys/fs/cgroup/unified", "memory",
                                              second);
}

/* Make a cgroup that may use half a CPU. Returns false if no such cgroup can be made; cgroup->why
 * then has the reason. */
static inline bool domt_cgroup_make_with_half_a_cpu(domt_cgroup *cgroup)
{
    static const domt_cgroup_setting first[] = {
        {"cpu.cfs_period_us", "100000"}, {"cpu.cfs_quota_us", "50000"}, {NULL, NULL}};
    static const domt_cgroup_setting second[] = {{"cpu.max", "50000 100000"}, {NULL, NULL}};

    return domt_cgroup_try_to_make_in_version(cgroup, 1, "/sys/fs/cgroup/cpu", "cpu", first) ||
           domt_cgroup_try_to_make_in_version(cgroup, 2, "/sys/fs/cgroup", "cpu", second);
}

/* Move the calling process into the cgroup. */
static inline bool domt_cgroup_enter_process(const domt_cgroup *cgroup)
{
    char text[32];

    snprintf(text, sizeof text, "%ld", (long)getpid());
    return domt_cgroup_write_file(cgroup, "cgroup.procs", text);
}

static inline uint64_t domt_cgroup_used_bytes(const domt_cgroup *cgroup)
{
    return domt_cgroup_read_number(
        cgroup, cgroup->version == 1 ? "memory.usage_in_bytes" : "memory.current", "");
}

/* Returns how many processes of the cgroup were killed for lack of memory. */
static inline uint64_t domt_cgroup_count_oom_kills(const domt_cgroup *cgroup)
{
    return domt_cgroup_read_number(
        cgroup, cgroup->version == 1 ? "memory.oom_control" : "memory.events", "oom_kill ");
}

static inline void domt_cgroup_remove(domt_cgroup *cgroup)
{
    int lock = domt_cgroup_lock_mount(cgroup->mount);

    /* All processes of the cgroup have ended and were waited for, but for a moment the kernel may
     * still refuse to remove the cgroup with EBUSY. */
    for (int i = 0; i < 1000 && rmdir(cgroup->path) != 0 && errno == EBUSY; i++)
        usleep(1000);
    domt_cgroup_put_back_controller(cgroup);
    if (lock >= 0)
        close(lock);
}

#endif
