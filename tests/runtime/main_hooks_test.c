/* config/main_run.c and config/main_reload.c: the hooks of a program are called in their order, and
 * at SIGHUP the program follows a changed configuration as a whole or not at all. Each program is a
 * child process. */
#include <domus/main.h>

#include "tests/runtime/program.h"
#include "tests/runtime/running.h"
#include "tests/support/tree.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct settings {
    uint32_t number;
    char word[16];
};

static const domus_config_key keys[] = {
    {DOMUS_KEY("number", COUNT, struct settings, number, 1, 100, 5)},
    {DOMUS_KEY_TEXT("word", TEXT, struct settings, word, 0, "none")},
    {.path = NULL},
};

static int refuse_13_in_settings(const void *values, char *error, size_t error_size)
{
    const struct settings *own = values;

    if (own->number != 13)
        return 0;
    snprintf(error, error_size, "13 is not wanted");
    return -EINVAL;
}

static const domus_section section = {
    .name = "own", .keys = keys, .size = sizeof(struct settings), .check = refuse_13_in_settings};
static struct settings settings;
static int takes;

static int count_option_taken(const char *value, void *argument, char *error, size_t error_size)
{
    takes++;
    return 0;
}

static const domus_option options[] = {
    {.name = "word", .argument = "WORD", .help = "a word", .key = "own.word"},
    {.name = "take", .help = "count", .take = count_option_taken},
    {.name = NULL},
};

static pthread_t main_thread;

static void print_name_of_hook(const char *hook)
{
    printf("%s%s\n", hook, pthread_equal(main_thread, pthread_self()) ? "" : " elsewhere");
    fflush(stdout);
}

static const domus_behaviour resident = {.name = "resident"};

static int spawn_resident(domus_system *system)
{
    domus_address address;

    return domus_outside_spawn(system, &resident, NULL, &address);
}

static int on_start_print_settings(domus_system *system, void *argument)
{
    main_thread = pthread_self();
    printf("start %u %s takes %d: %d\n", settings.number, settings.word, takes,
           spawn_resident(system));
    fflush(stdout);
    return 0;
}

/* At a reload, print the new values of the program's section, and those that its own struct still
 * has. */
static int on_reload_print_settings(domus_system *system, const void *values, void *argument)
{
    const struct settings *now = values;

    printf("reload %u %s, had %u takes %d\n", now->number, now->word, settings.number, takes);
    print_name_of_hook("reloaded");
    return now->number == 77 ? -EDOM : 0;
}

static void on_stop_print(domus_system *system, void *argument)
{
    print_name_of_hook(spawn_resident(system) == 0 ? "stop" : "stop of nothing");
}

static void on_end_print(domus_system *system, void *argument)
{
    print_name_of_hook(spawn_resident(system) == -ESHUTDOWN ? "end" : "end too soon");
}

static const domus_program hooked = {.name = "hooked",
                                     .start = on_start_print_settings,
                                     .reload = on_reload_print_settings,
                                     .stop = on_stop_print,
                                     .end = on_end_print,
                                     .options = options,
                                     .section = &section,
                                     .settings = &settings};

/* --- order ------------------------------------------------------------------------------------ */

DOMT_TEST(hooks_run_in_order_on_the_main_thread)
{
    domt_program own;

    domt_program_start_and_read(&own, &hooked, (const char *const[]){"--take", NULL}, NULL,
                                "start 5 none takes 1: 0\n");
    ck_assert_int_eq(kill(own.pid, SIGHUP), 0);
    domt_program_read_stdout_until(&own, "reloaded\n");
    domt_program_end_by_signal(&own, SIGTERM, 0);
    ck_assert_str_eq(own.out_text, "start 5 none takes 1: 0\n"
                                   "reload 5 none, had 5 takes 1\nreloaded\nstop\nend\n");
    domt_must_contain(own.err_text, "iterations");
}

static int fail_start_hook(domus_system *system, void *argument)
{
    return -EDOM;
}

DOMT_TEST(failed_start_ends_with_a_line_and_without_other_hooks)
{
    domus_program program = hooked;
    domt_program own;

    program.start = fail_start_hook;
    domt_program_check_exit(&own, &program, 1, NULL);
    domt_must_contain(own.err_text, "hooked: Numerical argument out of domain\n");
    ck_assert_str_eq(own.out_text, "");
}

static int quit_at_start(domus_system *system, void *argument)
{
    main_thread = pthread_self();
    domus_main_quit(7);
    return spawn_resident(system);
}

DOMT_TEST(domus_main_quit_runs_stop_hooks_too)
{
    domus_program program = hooked;
    domt_program own;

    program.start = quit_at_start;
    domt_program_check_exit(&own, &program, 7, NULL);
    ck_assert_str_eq(own.out_text, "stop\nend\n");
}

/* --- hooks that hang -------------------------------------------------------------------------- */

static void hang_in_stop_hook(domus_system *system, void *argument)
{
    print_name_of_hook("hanging");
    domt_pause_ns(60000 * DOMT_MS);
}

static void check_end_by_second_signal(const domus_program *program)
{
    domt_program own;

    domt_program_start_and_read(&own, program, domt_no_arguments, NULL, "start");
    ck_assert_int_eq(kill(own.pid, SIGTERM), 0);
    domt_program_read_stdout_until(&own, "hanging\n");
    /* SIGUSR1 and SIGHUP are still handled while the program ends */
    ck_assert_int_eq(kill(own.pid, SIGUSR1), 0);
    domt_program_read_stderr_until(&own, "iterations", 1);
    ck_assert_int_eq(kill(own.pid, SIGHUP), 0);
    domt_program_read_stderr_until(&own, "SIGHUP: the program is ending: nothing is changed\n", 1);
    /* a second SIGTERM within a second is ignored */
    ck_assert_int_eq(kill(own.pid, SIGTERM), 0);
    domt_pause_ns(1300 * DOMT_MS);
    domt_program_end_by_signal(&own, SIGTERM, 128 + SIGTERM);
    domt_must_contain(own.err_text, "a second signal: ending at once\n");
    ck_assert_ptr_null(strstr(own.out_text, "reload"));
}

DOMT_TEST(second_signal_ends_a_program_whose_stop_hangs)
{
    domus_program program = hooked;

    program.stop = hang_in_stop_hook;
    check_end_by_second_signal(&program);
    program = hooked;
    program.end = hang_in_stop_hook;
    check_end_by_second_signal(&program);
}

/* --- reload ----------------------------------------------------------------------------------- */

static domt_tree tree;
static char file[PATH_MAX];

static void write_configuration_file(const char *text)
{
    domt_tree_write(&tree, "a.yaml", text);
    snprintf(file, sizeof file, "%s/a.yaml", tree.root);
}

/* Write `text` to a configuration file, start the program with it, and wait until the program
 * prints `says`. */
static void begin_program_with_configuration(domt_program *own, const char *text, const char *says)
{
    domt_tree_make(&tree);
    write_configuration_file(text);
    domt_program_start_and_read(own, &hooked, (const char *const[]){"--config", file, NULL}, NULL,
                                says);
}

static void end_program_by_sigterm(domt_program *own)
{
    domt_program_end_by_signal(own, SIGTERM, 0);
    domt_tree_remove_copy(&tree);
}

static void change_file_and_send_sighup(domt_program *own, const char *text, const char *answer,
                                        int times)
{
    write_configuration_file(text);
    ck_assert_int_eq(kill(own->pid, SIGHUP), 0);
    domt_program_read_stderr_until(own, answer, times);
}

DOMT_TEST(reload_gives_new_values_and_keeps_the_options_over_them)
{
    domt_program own;

    domt_tree_make(&tree);
    write_configuration_file("own: {number: 6, word: six}\n");
    domt_program_start_and_read(
        &own, &hooked,
        (const char *const[]){"--config", file, "--word", "kept", "--set", "names.max=9", NULL},
        NULL, "start 6 kept takes 0: 0\n");
    change_file_and_send_sighup(&own, "own: {number: 7, word: seven}\n",
                                "hooked: SIGHUP: the configuration was read", 1);
    domt_program_read_stdout_until(&own, "reload 7 kept, had 6 takes 0\n");
    change_file_and_send_sighup(&own, "own: {word: x}\n", "was read again\n",
                                2); /* a key that the file no longer has gets its default */
    domt_program_read_stdout_until(&own, "reload 5 kept, had 6 takes 0\n");
    end_program_by_sigterm(&own);
    ck_assert_ptr_null(strstr(own.err_text, "not taken"));
}

DOMT_TEST(broken_file_is_logged_and_changes_nothing)
{
    static const char wrong[] = "hooked: SIGHUP: the configuration is wrong: nothing is changed\n";
    domt_program own;

    begin_program_with_configuration(&own, "own: {number: 6}\n", "start 6");
    change_file_and_send_sighup(&own, "own:\n  word: new\n  number: 101\n", wrong, 1);
    domt_must_contain(own.err_text, "a.yaml:3:11: own.number: must be 1..100, is 101\n");
    change_file_and_send_sighup(&own, "own: {number: 8}\nio: {ringEntries: 7}\n", wrong, 2);
    domt_must_contain(own.err_text, "a.yaml:2:19: io.ringEntries: must be");
    /* the reload is also refused for an error of the section's own check */
    change_file_and_send_sighup(&own, "own: {number: 13}\n", wrong, 3);
    domt_must_contain(own.err_text, "a.yaml:1:1: own: 13 is not wanted\n");
    change_file_and_send_sighup(&own, "own: [\n", wrong, 4);
    domt_must_contain(own.err_text, "not YAML");
    unlink(file);
    ck_assert_int_eq(kill(own.pid, SIGHUP), 0);
    domt_program_read_stderr_until(&own, wrong, 5);
    domt_must_contain(own.err_text, "a.yaml: cannot be read: No such file or directory\n");
    ck_assert_ptr_null(strstr(own.out_text, "reload"));
    change_file_and_send_sighup(&own, "own: {number: 9}\n", "was read again\n", 1);
    domt_program_read_stdout_until(&own, "reload 9 none, had 6");
    end_program_by_sigterm(&own);
}

DOMT_TEST(reload_with_a_key_that_counts_at_a_start_changes_nothing)
{
    domt_program own;

    begin_program_with_configuration(&own,
                                     "own: {number: 6}\nnames: {max: 9}\nsystem: {threads: 2}\n"
                                     "listeners: [{name: a, address: '127.0.0.1:1'}]\n",
                                     "start 6");
    change_file_and_send_sighup(
        &own,
        "own: {number: 7}\nnames: {max: 10}\nsystem: {threads: 2}\nprofile: {atExit: false}\n"
        "listeners: [{name: a, address: '127.0.0.1:2'}]\n",
        "hooked: SIGHUP: these keys count at a start: names.max, listeners.a.address: nothing is "
        "changed\n",
        1);
    change_file_and_send_sighup(
        &own,
        "own: {number: 8}\nnames: {max: 9}\nsystem: {threads: 2}\n"
        "listeners: [{name: a, address: '127.0.0.1:1', channel: {linger: 2s}}]\n",
        "was read again\n", 1);
    domt_must_contain(own.err_text,
                      "info: the configuration changes: listeners.a.channel.linger from that of "
                      "the section to 2s\n");
    domt_program_read_stdout_until(&own, "reload 8");
    ck_assert_ptr_null(strstr(own.out_text, "reload 7"));
    end_program_by_sigterm(&own);
    domt_must_contain(own.err_text, "iterations");
}

DOMT_TEST(refusal_of_the_program_is_logged)
{
    domt_program own;

    begin_program_with_configuration(&own, "own: {number: 6}\n", "start 6");
    change_file_and_send_sighup(
        &own, "own: {number: 77}\nprofile: {atExit: false}\n",
        "hooked: SIGHUP: the program refuses the configuration: Numerical argument", 1);
    end_program_by_sigterm(&own);
    ck_assert_ptr_null(strstr(own.err_text, "was read again"));
    /* the profile is printed at the end, so the `atExit: false` of the refused reload is not in use
     */
    domt_must_contain(own.err_text, "iterations");
}

/* --- the table at the end --------------------------------------------------------------------- */

static int quit_twice_in_mount(domus_stack *stack, void *self)
{
    domus_quit(stack);
    domus_quit(stack); /* several calls of domus_quit() count as one */
    return 0;
}

static int spawn_a_quitter(domus_system *system, void *argument)
{
    static const domus_behaviour quitter = {.name = "quitter", .on_mount = quit_twice_in_mount};
    domus_address address;

    main_thread = pthread_self();
    return domus_outside_spawn(system, &quitter, NULL, &address);
}

DOMT_TEST(domus_quit_ends_the_program_in_order)
{
    domus_program program = hooked;
    domt_program own;

    program.start = spawn_a_quitter;
    domt_program_check_exit(&own, &program, 0, NULL);
    ck_assert_str_eq(own.out_text, "stop\nend\n");
    domt_must_contain(own.err_text, "iterations");
}

DOMT_TEST(profile_table_at_the_end_is_optional)
{
    const char *const without[] = {"--set", "profile.atExit=false", NULL};
    domus_program program = hooked;
    domt_program own;

    program.start = quit_at_start;
    domt_program_check_exit(&own, &program, 7, NULL);
    domt_must_contain(own.err_text, "iterations");
    ck_assert_int_eq(domt_program_run(&own, &program, without), 7);
    ck_assert_msg(strncmp(own.err_text, "hooked: pid ", 12) == 0 &&
                      strstr(own.err_text, "\n")[1] == '\0',
                  "the program prints at its end: %s", own.err_text);
}

DOMT_TEST(reload_changes_choice_of_profile_table)
{
    domt_program own;

    begin_program_with_configuration(&own, "{}\n", "start");
    change_file_and_send_sighup(&own, "profile: {atExit: false}\nlog: {flushTimeout: 2s}\n",
                                "was read again\n", 1);
    end_program_by_sigterm(&own);
    domt_must_contain(own.err_text, ", profile.atExit from true to false\n");
    ck_assert_ptr_null(strstr(own.err_text, "iterations"));
}

DOMT_SUITE(60)
