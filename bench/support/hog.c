/* This file starts and ends a hog (hog.h). */
#include "bench/support/hog.h"

#include "bench/support/measure.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void use_cpu_until_parent_ends(int cpu, pid_t parent)
{
    volatile unsigned int turns = 0;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent ||
        measure_pin_thread_to_cpu(cpu) != 0)
        _exit(1);
    for (;;)
        turns = turns + 1;
}

pid_t hog_start_on_cpu(int cpu)
{
    pid_t parent = getpid();
    pid_t hog = fork();

    if (hog == 0)
        use_cpu_until_parent_ends(cpu, parent);
    return hog > 0 ? hog : -errno;
}

void hog_stop(pid_t hog)
{
    if (hog <= 0)
        return;
    kill(hog, SIGKILL);
    waitpid(hog, NULL, 0);
}
