/* Parts that the files of web share.
 *
 * A request goes this way. The channel (site.c) finds its route, whose file answers it: at once, in
 * pieces, or after it has asked other actors, such as the shards of kv. */
#ifndef WEB_H
#define WEB_H

#include <rooms/rooms.h>

#include <domus/await.h>
#include <domus/domus.h>
#include <domus/http_router.h>

#include <kv/kv.h>

#define WEB_FRAME_MAX 256u /* most bytes of the frame that a conversation of a request has */
#define WEB_BYTES     "application/octet-stream"
#define WEB_JSON      "application/json"
#define WEB_PLAIN     "text/plain; charset=utf-8"

/* The section `web` of the configuration. */
struct web_settings {
    uint64_t body_max_bytes;  /* most bytes of a body that is echoed */
    uint64_t value_max_bytes; /* most bytes of a value that a PUT may store */
    /* most bytes of values that have come in part, of all connections together */
    uint64_t gathered_max_bytes;
    uint64_t tick_ns;    /* time between two events of the clock */
    uint32_t events_max; /* most pages that get events at a time */
    /* most streams that may compress at a time; 0: nothing is compressed */
    uint32_t gzip_streams;
    /* whether a site on loopback refuses hosts of other names (host.c) */
    bool checks_host;
    char root[256];     /* path of the directory of the static files */
    char upstream[256]; /* address of the server behind /proxy/; "": there is none */
    struct kv_settings kv;
    struct rooms_settings rooms;
};

/* The settings and the system of the site, which are constant once the program has started. */
extern struct web_settings web_settings;
extern domus_system *web_system;
extern domus_address web_clock;

/* --- the site --------------------------------------------------------------------------------- */

extern const domus_behaviour web_site;
/* Set up the options of the site from the settings, once. Returns 0; a negative errno. */
int web_set_up_site(void);
void web_free_site(void); /* frees what the site has, when the system has stopped */

/* A visitor: the state of a connection of HTTP. */
struct web_visitor {
    bool gets_events; /* whether the visitor gets events, and counts as a page that does */
    /* the guest that a WebSocket is in its room (socket.c); NULL: the visitor is no guest */
    struct web_guest *guest;
};

/* The functions of the routes. The payload of each is the domus_http_request. */
extern const domus_call web_serve_page, web_serve_json, web_serve_hello, web_serve_echo,
    web_serve_key, web_serve_events, web_serve_static, web_serve_socket, web_serve_proxy;

/* Returns the value of the segment "{name}" in the path of a request (domus_http_route_value()). */
domus_slice web_value_of_path_segment(const domus_http_request *request, const char *name);

/* Returns whether a request names a host by which this site may be reached (host.c). */
bool web_may_request_name_this_host(const domus_channel *channel,
                                    const domus_http_request *request);

/* Answer the request with a status and a line of text, which is a constant of the program. */
int web_answer_with_line(domus_stack *stack, uint16_t status, const char *line);

/* Answer the request with bytes, which no browser takes for another type than `media`. This
 * consumes the body in every case. */
int web_answer_200_with_uncached_body(domus_stack *stack, const char *media, domus_slice body);

/* --- the routes ------------------------------------------------------------------------------- */

/* Make the pool of connections to the server behind /proxy/, once. Returns 0; what
 * domus_outside_pool_open() says. */
int web_open_proxy_pool(domus_system *system);

/* Returns the marks of a request: a request for /proxy/ ends when its visitor ends. */
uint32_t web_proxy_marks_of_request(const void *payload);

/* Set up the budget of /kv/ from the settings, once. */
void web_set_up_keys(void);

/* Open the directory of the static files, once, before the site is served; and close it when the
 * system has stopped. Returns 0; -ENOTDIR; what domus_file_open() says. */
int web_open_files(domus_system *system);
void web_close_files(void);

/* Free the place of a visitor among the pages that get events, or its guest in a room, because its
 * connection or its events have ended. */
void web_free_event_place_of_visitor(struct web_visitor *visitor);
void web_free_guest_of_visitor(struct web_visitor *visitor);

/* Handlers of a WebSocket: for a text of its browser, and for a line of its room. */
domus_handler web_publish_line_of_browser_to_room, web_send_line_to_browser;

/* --- the clock -------------------------------------------------------------------------------- */

extern const domus_behaviour web_clock_behaviour;
/* An ask to the clock for the tick behind the one that the page has seen (0: the next one). It
 * fails with -ESHUTDOWN when the program ends. */
struct web_next {
    uint64_t serial;
};
/* The answer of the clock: a tick, as a server-sent event. */
struct web_tick {
    domus_slice event;
    uint64_t serial;
};
extern const domus_type web_next_type, web_tick_type;
/* a notice to the clock: the program ends, and so do all events */
extern const domus_type web_end_type;

/* Count a request of HTTP. Thread-safety: the threads of the system. */
void web_count_request(void);
/* Returns the number of requests that all threads have counted. Thread-safety: any thread. */
uint64_t web_count_of_requests(void);

/* --- others ----------------------------------------------------------------------------------- */

/* The behaviour of the actors that serve the port `echo`, whose bytes go back. */
extern const domus_behaviour web_echo_port;

#endif
