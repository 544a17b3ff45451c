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

#define WEB_FRAME_MAX 256u /* bytes of the frame of a request */
#define WEB_BYTES     "application/octet-stream"
#define WEB_JSON      "application/json"
#define WEB_PLAIN     "text/plain; charset=utf-8"

/* The section `web` of the configuration. */
struct web_settings {
    uint64_t body_max_bytes;     /* the most bytes of a body that is echoed */
    uint64_t value_max_bytes;    /* the most bytes of a value that is put */
    uint64_t gathered_max_bytes; /* the most bytes of values that have come in part, all together */
    uint64_t tick_ns;            /* between two events */
    uint32_t events_max;         /* pages that get events */
    uint32_t gzip_streams;       /* streams that may compress at a time; 0: nothing is compressed */
    bool checks_host;            /* on loopback, hosts of other names are refused */
    char root[256];              /* the directory of the static files */
    char upstream[256];          /* the server behind /proxy/; "": there is none */
    struct kv_settings kv;
    struct rooms_settings rooms;
};

/* Constant once the program has started. */
extern struct web_settings web_settings;
extern domus_system *web_system;
extern domus_address web_clock;

/* --- the site --------------------------------------------------------------------------------- */

extern const domus_behaviour web_site;
/* Take from the settings what the site needs, once. Returns 0; a negative errno. */
int web_site_begin(void);
void web_site_end(void); /* the system has stopped */

/* The state of a connection. */
struct web_visitor {
    bool gets_events;        /* and counts as a page that does */
    struct web_guest *guest; /* the guest of a WebSocket in its room (socket.c); else NULL */
};

/* The functions of the routes. The payload of each is the domus_http_request. */
extern const domus_call web_serve_page, web_serve_json, web_serve_hello, web_serve_echo,
    web_serve_key, web_serve_events, web_serve_static, web_serve_socket, web_serve_proxy;

/* The segment "{name}" of the path of a request; see domus_http_route_value(). */
domus_slice web_path_value(const domus_http_request *request, const char *name);

/* Whether a request names a host that this site may be reached by (host.c). */
bool web_is_own_host(const domus_channel *channel, const domus_http_request *request);

/* Answer with a status and a line of text, constants of the program. */
int web_say(domus_stack *stack, uint16_t status, const char *line);

/* Answer with bytes that no browser takes for another type than `media`. This consumes the body in
 * every case. */
int web_answer(domus_stack *stack, const char *media, domus_slice body);

/* --- the routes ------------------------------------------------------------------------------- */

/* Make the connections of /proxy/, once. Returns 0; what domus_outside_pool_open() says. */
int web_proxy_begin(domus_system *system);

/* The marks of a request: one for /proxy/ ends with its visitor. */
uint32_t web_proxy_marks(const void *payload);

/* Take from the settings what /kv/ needs, once. */
void web_keys_begin(void);

/* Open the directory of the static files, once, before the site is served; and close it when the
 * system has stopped. Returns 0; -ENOTDIR; what domus_file_open() says. */
int web_files_begin(domus_system *system);
void web_files_end(void);

/* The connection of a visitor has ended, or its events have. */
void web_events_leave(struct web_visitor *visitor);
void web_guest_leave(struct web_visitor *visitor);

/* Take a text of a browser, and a line of its room. */
domus_handler web_take_text, web_hear_line;

/* --- the clock -------------------------------------------------------------------------------- */

extern const domus_behaviour web_clock_behaviour;
/* An ask for the tick behind the one that was seen (0: the next one). It fails with -ESHUTDOWN when
 * the program ends. */
struct web_next {
    uint64_t serial;
};
/* The answer: what happened at a tick, as a server-sent event. */
struct web_tick {
    domus_slice event;
    uint64_t serial;
};
extern const domus_type web_next_type, web_tick_type;
extern const domus_type web_end_type; /* a notice: the program ends, and so do all events */

/* Count a request. Thread-safety: the threads of the system. */
void web_count_request(void);
/* Returns the number of counted requests. Thread-safety: any thread. */
uint64_t web_requests(void);

/* --- others ----------------------------------------------------------------------------------- */

/* The port for bytes that go back. */
extern const domus_behaviour web_echo_port;

#endif
