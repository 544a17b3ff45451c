/* A bug tracker: the parts that its files share. README.md says how to try it.
 *
 * A request goes this way. The channel of its connection takes it through the chain (site.c): a
 * name for the request, a line of the log, a bound on its rate, who asks. The row of its path calls
 * a handler (issues.c, files.c, people.c, events.c), which asks the database and goes on when the
 * rows are there. Nothing blocks, and nothing is locked: a handler runs on the thread of its
 * connection, and all that connections share is constant, or an actor. */
#ifndef API_H
#define API_H

#include <domus/domus.h>
#include <domus/http_files.h>
#include <domus/http_json.h>
#include <domus/http_user.h>
#include <domus/sql.h>

#define API_FRAME_MAX 512u /* bytes that a request keeps while it waits */
#define API_UPLOADS   1u   /* the number of the route to uploaded files */

/* The section `api` of the configuration. */
struct api_settings {
    char database[512];   /* "sqlite:tracker.db" or "postgresql://..." */
    char keys[256];       /* the file with the keys of sessions; "": drawn for this run */
    char pages[256];      /* the directory of the page */
    char uploads[256];    /* the directory of uploaded files */
    char access_log[256]; /* "": none */
    uint64_t upload_max;  /* bytes of one file */
    uint64_t disk;        /* bytes that all files take of it */
    uint32_t rate;        /* requests of one address a second */
    /* proxies in front of this service, which tell it the address of the client */
    uint32_t proxies;
    uint32_t connections; /* to the database: of each thread, or of the process with SQLite */
    bool https;           /* cookies are sent over https alone */
};

/* Constant once the program has started. */
extern struct api_settings api_settings;
extern domus_sql api_database;

/* site.c */
extern const domus_sql_migration api_migrations[];
extern const domus_behaviour api_site;
int api_site_begin(domus_system *system); /* returns 0; a negative errno */
void api_site_end(void);                  /* the system has stopped */

/* people.c */
extern const domus_http_user_session api_session;
int api_people_begin(void); /* prints what is wrong; returns 0; a negative errno */
domus_http_handler api_login, api_logout;

/* issues.c */
domus_http_handler api_list_issues, api_show_issue, api_create_issue, api_change_issue;

/* files.c */
extern struct api_files {
    domus_http_files pages, uploads; /* constant once the program has started */
    domus_budget coming;             /* bytes of uploads that have not ended */
} api_files;
int api_files_begin(domus_system *system);
void api_files_end(void);
domus_http_handler api_add_file, api_show_file;

/* events.c */
int api_events_begin(domus_system *system);
void api_events_end(domus_system *system, void *none);
domus_http_handler api_stream_events;
void api_tell(domus_stack *stack, int64_t issue); /* all pages: it is new, or has changed */

#endif
