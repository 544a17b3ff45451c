/* The program domus-keys, which knows only the keys of the library. The command `domus config` runs
 * it with --tell (domus/main.h) if the user names no program: so the command uses the library's
 * reader and tables without being linked with it. */
#include <domus/main.h>

#include <errno.h>

static int refuse_to_start_any_program(domus_system *system, void *unused)
{
    (void)system, (void)unused;
    return -EOPNOTSUPP;
}

int main(int argc, char **argv)
{
    static const domus_program program = {.name = "domus-keys",
                                          .start = refuse_to_start_any_program};

    return domus_main(argc, argv, &program);
}
