/* A bug tracker: the parts that its files share. README.md tells how to try it.
 *
 * A request is handled in these steps. The channel of its connection passes it through the chain
 * (site.c): it gets an id, a line in the log, a limit on its rate, and its user is found. The row
 * for its path calls a handler (issues.c, files.c, people.c, events.c), which asks the database and
 * continues when the rows have come. Nothing blocks, and nothing is locked: a handler runs on the
 * thread of its connection, and everything that connections share is constant, or an actor. */
#ifndef API_H
#define API_H

#include <domus/domus.h>
#include <domus/http_files.h>
#include <domus/http_json.h>
#include <domus/http_user.h>
#include <domus/sql.h>

/* most bytes of the frame that a handler's conversation keeps while it waits */
#define API_FRAME_MAX 512u
#define API_UPLOADS   1u /* number by which the chain knows the route to uploaded files */

/* The section `api` of the configuration, which holds the settings of the bug tracker. */
struct api_settings {
    char database[512]; /* url of the database: "sqlite:tracker.db" or "postgresql://..." */
    /* file with the keys that sign sessions; "": keys are drawn at random for this run */
    char keys[256];
    char pages[256];      /* directory with the files of the page for browsers */
    char uploads[256];    /* directory for uploaded files */
    char access_log[256]; /* file of the access log; "": there is none */
    uint64_t upload_max;  /* most bytes of one uploaded file */
    uint64_t disk;        /* most bytes that all uploaded files may take on the disk */
    uint32_t rate;        /* most requests a second from one address */
    /* number of proxies in front of this service, each of which tells the client's address */
    uint32_t proxies;
    /* connections to the database: for each thread, or for the process with SQLite */
    uint32_t connections;
    bool https; /* whether cookies are only sent over https */
};

/* The settings and the database, which are constant once the program has started. */
extern struct api_settings api_settings;
extern domus_sql api_database;

/* Parts of site.c: the steps by which the schema of the database is made, and the behaviour of the
 * actors that serve the site. */
extern const domus_sql_migration api_migrations[];
extern const domus_behaviour api_site;
int api_set_up_site(domus_system *system); /* Set up the site. Returns 0; a negative errno. */
/* Free the site's memory, after the system has stopped. */
void api_free_site(void);

/* Parts of people.c: the sessions of users, and the handlers that log a user in and out. */
extern const domus_http_user_session api_session;
/* Read the keys of sessions from their file, or draw them. Prints an error; returns 0; a negative
 * errno. */
int api_read_session_keys(void);
domus_http_handler api_login, api_logout;

/* Parts of issues.c: the handlers for the list of issues and for single issues. */
domus_http_handler api_list_issues, api_show_issue, api_create_issue, api_change_issue;

/* Parts of files.c: the directories of the page and of uploads, and the handlers for uploaded
 * files. */
extern struct api_files {
    /* directories of the page and of uploaded files; constant once the program has started */
    domus_http_files pages, uploads;
    domus_budget coming; /* bytes of all uploads that are under way */
} api_files;
int api_open_directories(domus_system *system);
void api_close_directories(void);
domus_http_handler api_add_file, api_serve_uploaded_or_page_file;

/* Parts of events.c: the board of events, and the handler for the stream of events. */
int api_spawn_event_board(domus_system *system);
void api_stop_event_board(domus_system *system, void *none);
domus_http_handler api_begin_stream_of_issue_changes;
/* Tell all open pages that an issue is new or has changed. */
void api_tell_board_that_issue_changed(domus_stack *stack, int64_t issue);

#endif
