/* The program domus-keys, which knows the keys of the library alone. The command `domus config`
 * runs it with --tell (domus/main.h) if the user names no program: so the command has the reader
 * and the tables of the library without being linked with it. */
#include <domus/main.h>

#include <errno.h>

static int refuse(domus_system *system, void *unused)
{
    (void)system, (void)unused;
    return -EOPNOTSUPP;
}

int main(int argc, char **argv)
{
    static const domus_program program = {.name = "domus-keys", .start = refuse};

    return domus_main(argc, argv, &program);
}
