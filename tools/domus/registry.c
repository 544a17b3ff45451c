/* Reads the registry of running programs.
 *
 * A directory is used only if it belongs to the user in its name, and nobody else may write to it.
 * Root also reads the directories of other users, and believes each user only about that user's
 * processes: so nobody can give another user's program an endpoint of their own. */
#include "tools/domus/registry.h"

#include "tools/domus/say.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* most bytes of a file of the registry; longer files are ignored */
#define FILE_MAX (4 * PATH_MAX)

/* The programs that were found in the registry; `each` has PROGRAMS_MAX places. */
typedef struct found {
    program *each;
    size_t count;
} found;

/* --- reading a file --------------------------------------------------------------------------- */

static int get_value_of_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decode the escapes of a text in the registry. Returns its length; -1 if it does not fit, or
 * contains a zero. */
static int decode_escapes_of_text(const char *text, size_t length, char *ret_text, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        char byte = text[i];
        if (byte == '%') {
            if (i + 2 >= length || get_value_of_hex_digit(text[i + 1]) < 0 ||
                get_value_of_hex_digit(text[i + 2]) < 0)
                return -1;
            byte = (char)(get_value_of_hex_digit(text[i + 1]) * 16 +
                          get_value_of_hex_digit(text[i + 2]));
            i += 2;
        }
        if (byte == '\0' || used + 1 >= size)
            return -1;
        ret_text[used++] = byte;
    }
    ret_text[used] = '\0';
    return (int)used;
}

/* Find the line of a registry's file that begins with a word. Returns its text, which ends at the
 * line end; NULL if there is none. */
static const char *find_line_with_word(const char *text, const char *word)
{
    size_t length = strlen(word);

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, length) == 0 && line[length] == ' ')
            return line + length + 1;
    }
    return NULL;
}

static int read_file_as_text(const char *text, const char *word, char *ret_text, size_t size)
{
    const char *at = find_line_with_word(text, word);

    return at != NULL ? decode_escapes_of_text(at, strcspn(at, "\n"), ret_text, size) : -1;
}

/* Read a file in a directory of the registry as text. Returns whether that succeeded. */
static bool read_file_in_directory(int directory, const char *name, char *text, size_t size)
{
    struct stat status;
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return false;
    ssize_t length =
        fstat(fd, &status) == 0 && S_ISREG(status.st_mode) ? read(fd, text, size - 1) : -1;
    (void)close(fd);
    if (length < 0 || (size_t)length == size - 1)
        return false;
    text[length] = '\0';
    return strlen(text) == (size_t)length;
}

/* --- checking processes ----------------------------------------------------------------------- */

/* Returns whether the process `pid` runs, and has begun at `start`. The start is field 22 of its
 * status, and the name before it may contain anything, so fields are counted behind the last
 * parenthesis. */
static bool is_process_running(long pid, uint64_t start)
{
    char path[64], text[1024];

    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH)
        return false;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno != ENOENT;
    ssize_t length = read(fd, text, sizeof text - 1);
    (void)close(fd);
    if (length <= 0)
        return false;
    text[length] = '\0';
    const char *at = strrchr(text, ')');
    if (at != NULL && at[1] == ' ' && (at[2] == 'Z' || at[2] == 'X'))
        return false;
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at != NULL && strtoull(at + 1, NULL, 10) == start;
}

/* Returns whether a process belongs to a user, by its effective user id. */
static bool does_process_belong_to_user(long pid, uid_t user)
{
    char path[64], text[4096];
    char *effective;

    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[length > 0 ? length : 0] = '\0';
    /* the name of the process stands in a line before this one, with line ends escaped */
    const char *line = strstr(text, "\nUid:");
    if (line == NULL)
        return false;
    /* the real user id is read too, because it stands before the effective one */
    (void)strtoul(line + strlen("\nUid:"), &effective, 10);
    return strtoul(effective, NULL, 10) == user;
}

/* --- reading directories ---------------------------------------------------------------------- */

/* Read the registry's file of a process. `owner` is the owner of the directory. Returns whether the
 * file may be removed, because its form is right but its process is gone. */
static bool add_program_of_registry_file_if_alive(found *all, int directory, const char *name,
                                                  uid_t owner)
{
    static char text[FILE_MAX];
    program *one = &all->each[all->count];
    char raw[256], *end;

    long pid = strtol(name, &end, 10);
    if (name[0] < '1' || name[0] > '9' || *end != '\0' || pid > INT_MAX ||
        all->count == PROGRAMS_MAX || !read_file_in_directory(directory, name, text, sizeof text))
        return false;
    const char *start = find_line_with_word(text, "start");
    if (strncmp(text, "domus-observe 1\n", 16) != 0 || start == NULL)
        return false;
    if (!is_process_running(pid, strtoull(start, NULL, 10)))
        return true;
    if (owner != geteuid() && !does_process_belong_to_user(pid, owner))
        return false;
    int length = read_file_as_text(text, "program", raw, sizeof raw);
    if (length < 0 || read_file_as_text(text, "endpoint", one->endpoint, sizeof one->endpoint) <= 0)
        return false;
    for (size_t i = 0; i < all->count; i++) {
        if (all->each[i].pid == pid)
            return false;
    }
    one->pid = pid;
    escape_name_to_ascii(raw, (size_t)length, one->name, sizeof one->name);
    all->count++;
    return false;
}

static void add_programs_of_registry_directory(found *all, const char *path, uid_t owner)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return;
    DIR *entries = NULL;
    if (fstat(fd, &status) == 0 && status.st_uid == owner && (status.st_mode & 077) == 0)
        entries = fdopendir(fd);
    if (entries == NULL) {
        (void)close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (add_program_of_registry_file_if_alive(all, fd, entry->d_name, owner) &&
            owner == geteuid())
            (void)unlinkat(fd, entry->d_name, 0);
    }
    (void)closedir(entries);
}

/* Read the registry's directories of other users; `digits` is the number of characters before the
 * UID in their names. */
static void add_programs_of_other_users(found *all, const char *pattern, size_t digits)
{
    glob_t paths;

    if (glob(pattern, GLOB_NOSORT, NULL, &paths) != 0)
        return;
    for (size_t i = 0; i < paths.gl_pathc; i++) {
        char *end;
        unsigned long uid = strtoul(paths.gl_pathv[i] + digits, &end, 10);
        if (*end == '\0' || strcmp(end, "/domus") == 0)
            add_programs_of_registry_directory(all, paths.gl_pathv[i], (uid_t)uid);
    }
    globfree(&paths);
}

static int compare_programs_by_pid(const void *one_, const void *other_)
{
    const program *one = one_, *other = other_;

    return (one->pid > other->pid) - (one->pid < other->pid);
}

/* Read the directories of the registry in which ports write by default. */
static void add_programs_of_default_directories(found *all)
{
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    char path[PATH_MAX];

    if (runtime != NULL && runtime[0] == '/' &&
        snprintf(path, sizeof path, "%s/domus", runtime) < (int)sizeof path)
        add_programs_of_registry_directory(all, path, geteuid());
    snprintf(path, sizeof path, "/tmp/domus-%ld", (long)geteuid());
    add_programs_of_registry_directory(all, path, geteuid());
    if (geteuid() == 0) {
        add_programs_of_registry_directory(all, "/run/domus", 0);
        add_programs_of_other_users(all, "/run/user/[0-9]*/domus", strlen("/run/user/"));
        add_programs_of_other_users(all, "/tmp/domus-[0-9]*", strlen("/tmp/domus-"));
    }
}

size_t registry_list_running_programs(program **ret_programs)
{
    const char *named = secure_getenv("DOMUS_REGISTRY");
    found all = {.each = calloc(PROGRAMS_MAX + 1, sizeof *all.each)};

    *ret_programs = all.each;
    if (all.each == NULL)
        return 0;
    if (named != NULL && named[0] != '\0')
        add_programs_of_registry_directory(&all, named, geteuid());
    else
        add_programs_of_default_directories(&all);
    qsort(all.each, all.count, sizeof *all.each, compare_programs_by_pid);
    return all.count;
}
