/* The log whose lines are kept, the functions in which actors stay, and the search for these
 * functions in a backtrace (tests/runtime/stalls.h). */
#include "tests/runtime/stalls.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char lines[DOMT_LINES_MAX][DOMUS_LOG_TEXT_MAX + 1];
static uint32_t count;
static const char *_Atomic stays_at;
static atomic_bool goes_on;

void domt_block_log_at_line(const char *part)
{
    atomic_store(&goes_on, false);
    atomic_store(&stays_at, part);
}

void domt_let_stays_and_log_go_on(void)
{
    atomic_store(&goes_on, true);
}

static void keep_log_line(void *context, domus_log_level level, uint32_t thread, const char *text)
{
    const char *part = atomic_load(&stays_at);

    pthread_mutex_lock(&mutex);
    if (count < DOMT_LINES_MAX)
        memcpy(lines[count++], text, strlen(text) + 1);
    pthread_mutex_unlock(&mutex);
    while (part != NULL && strstr(text, part) != NULL && !atomic_load(&goes_on))
        domt_pause_ns(DOMT_MS);
}

domus_system *domt_start_logging_system(const domus_config *config)
{
    const domus_hooks hooks = {.log = keep_log_line};
    domus_system *system = NULL;
    char error[256] = "";

    count = 0;
    ck_assert_msg(domus_system_new_with(config, &hooks, error, sizeof error, &system) == 0, "%s",
                  error);
    ck_assert_msg(domus_system_start(system) == 0, "%s", domus_system_error(system));
    return system;
}

uint32_t domt_count_log_lines(const char *first, const char *second)
{
    uint32_t found = 0;

    pthread_mutex_lock(&mutex);
    for (uint32_t i = 0; i < count; i++)
        found +=
            strstr(lines[i], first) != NULL && (second == NULL || strstr(lines[i], second) != NULL);
    pthread_mutex_unlock(&mutex);
    return found;
}

const char *domt_first_log_line(const char *part)
{
    const char *line = "";

    pthread_mutex_lock(&mutex);
    for (uint32_t i = count; i-- > 0;) {
        if (strstr(lines[i], part) != NULL)
            /* the line can be read without the lock, because kept lines do not change */
            line = lines[i];
    }
    pthread_mutex_unlock(&mutex);
    return line;
}

/* The linker defines the two names that mark the begin and the end of the section. */
#define HERE __attribute__((noinline, section("domt_stays")))
extern const char __start_domt_stays[], __stop_domt_stays[];

#define LONGEST_NS (20000 * DOMT_MS)

static bool is_stay_over(uint64_t began_ns, uint64_t ns, const char *part)
{
    uint64_t stayed_ns = domt_now_ns() - began_ns;
    return stayed_ns >= ns &&
           (part == NULL || stayed_ns > LONGEST_NS || domt_count_log_lines(part, NULL) != 0);
}

HERE void domt_stay_busy(uint64_t ns, const char *part)
{
    uint64_t began_ns = domt_now_ns();
    while (!is_stay_over(began_ns, ns, part))
        continue;
}

HERE void domt_stay_asleep(uint64_t ns, const char *part)
{
    uint64_t began_ns = domt_now_ns();
    while (!is_stay_over(began_ns, ns, part))
        domt_pause_ns(DOMT_MS);
}

bool domt_backtrace_shows_stay(void)
{
    Dl_info info;
    bool found = false;

    ck_assert_int_ne(dladdr(__start_domt_stays, &info), 0);
    const char *slash = strrchr(info.dli_fname, '/');
    const char *module = slash != NULL ? slash + 1 : info.dli_fname;
    pthread_mutex_lock(&mutex);
    for (uint32_t i = 0; i < count; i++) {
        const char *at = strchr(lines[i], '#');
        const char *name = at != NULL ? strstr(at, module) : NULL;
        if (name == NULL || strncmp(name + strlen(module), "+0x", 3) != 0)
            continue;
        const char *address =
            (const char *)info.dli_fbase + strtoul(name + strlen(module) + 1, NULL, 16);
        found = found || (address >= __start_domt_stays && address <= __stop_domt_stays);
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

uint64_t domt_count_ended_stalls(const domus_system *system)
{
    domus_profile profile = domt_profile_of_all_threads(system);
    uint64_t sum = 0;
    for (int i = 0; i < DOMUS_STALL_LENGTHS; i++)
        sum += profile.stall_lengths[i];
    return sum;
}

bool domt_has_thread_named(const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    bool found = false;

    ck_assert_ptr_nonnull(tasks);
    for (const struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
        char path[300];
        char text[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "re");
        if (file == NULL)
            continue;
        if (fgets(text, sizeof text, file) != NULL) {
            text[strcspn(text, "\n")] = '\0';
            found = found || strcmp(text, name) == 0;
        }
        fclose(file);
    }
    closedir(tasks);
    return found;
}
