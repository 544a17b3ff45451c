/* Files that commands of domus write (output.h). An existing file that is no regular one, such as a
 * pipe or /dev/null, is written directly. */
#include "tools/domus/output.h"

#include "tools/domus/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void report_output_error(const char *name)
{
    int error = errno;
    char shown[512];

    escape_name_to_ascii(name, strlen(name), shown, sizeof shown);
    say_print_error("%s: %s", shown, strerror(error));
}

bool output_open_temporary_file_or_stdout(output *to, const char *name)
{
    struct stat status;

    *to = (output){.name = name};
    if (strcmp(name, "-") == 0) {
        to->file = stdout;
        return true;
    }
    if (stat(name, &status) == 0 && !S_ISREG(status.st_mode)) {
        to->file = fopen(name, "we");
    } else if (snprintf(to->other, sizeof to->other, "%s.XXXXXX", name) < (int)sizeof to->other) {
        int fd = mkostemp(to->other, O_CLOEXEC);
        if (fd < 0)
            to->other[0] = '\0';
        to->file = fd >= 0 ? fdopen(fd, "w") : NULL;
    } else {
        errno = ENAMETOOLONG;
    }
    if (to->file == NULL)
        report_output_error(name);
    return to->file != NULL;
}

bool output_write_bytes(void *output_, const char *bytes, size_t size)
{
    output *to = output_;

    to->size += size;
    return fwrite(bytes, 1, size, to->file) == size;
}

/* Rename a completely written file to its final name, with the mode that the user's umask gives. */
static bool rename_to_final_name(const output *to)
{
    mode_t mask = umask(0);

    (void)umask(mask);
    return chmod(to->other, 0666 & ~mask) == 0 && rename(to->other, to->name) == 0;
}

bool output_close_and_keep_file_if_whole(output *to, bool is_whole)
{
    bool is_written = ferror(to->file) == 0;

    if (to->file == stdout)
        return fflush(stdout) == 0 && is_whole && is_written;
    is_written = fclose(to->file) == 0 && is_written;
    bool is_there = is_whole && is_written && (to->other[0] == '\0' || rename_to_final_name(to));
    if (is_whole && !is_there)
        report_output_error(to->name);
    if (!is_there && to->other[0] != '\0')
        (void)unlink(to->other);
    return is_there;
}
