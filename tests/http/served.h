/* A service that speaks HTTP, in a test kit, and its peers.
 *
 * The path of a request chooses the answer:
 *
 *   /now       in the same turn with "now"
 *   /sleep/N   N ms later with "slept"
 *   /hang      never
 *   /halt/N    with "halted": after 100 ms the channel is not read for N ms
 *   /bytes     with the number of bytes of its body; if a read fails, so does the request
 *   /read      with the number of bytes of its body; if a read fails, with "read <error>"
 *   /piece     with "piece" when one piece of the body was read
 *   /give/N    in pieces of 1,000 bytes, N bytes together
 *   /up        with 101, and then lines are echoed (domus_line_stage)
 *   /upped     with the same answer as /up, N ms later
 *   /late      by the failure -ETIMEDOUT */
#ifndef DOMT_HTTP_SERVED_H
#define DOMT_HTTP_SERVED_H

#include <domus/domus.h>
#include <domus/http.h>
#include <domus/testkit_net.h>

#define DOMT_SERVED_AT "127.0.0.1:80"
#define DOMT_SERVED_MS UINT64_C(1000000)
#define DOMT_SERVED_S  (1000 * DOMT_SERVED_MS)

/* Counts and errors of the service since the last domt_served_start_kit(). */
typedef struct domt_served {
    uint32_t begun;  /* number of requests that have begun */
    uint32_t closed; /* number of channels that have closed */
    int close_error; /* error of the last channel that closed */
    int read_error;  /* error of the last read of a request's body that failed */
} domt_served;

extern domt_served domt_served_now;

/* Options and behaviours without a Date field in answers; bodies of requests come whole (`whole`),
 * or in pieces (`streams`). */
extern const domus_http_options domt_served_whole, domt_served_streams;
extern const domus_behaviour domt_served_by_whole, domt_served_by_streams;

/* The rows and the on_close handler of the two behaviours, for behaviours with other pipelines. */
extern const domus_on_peer domt_served_rows[];
int domt_served_count_close_and_error(domus_stack *stack, void *self, const void *payload);

/* Write the configuration of these kits: three threads, and the default time-outs of
 * domus/config.h. */
void domt_served_init_config(domus_config *ret_config);

/* Make a kit whose service listens at DOMT_SERVED_AT; `config` NULL means
 * domt_served_init_config(). */
domus_testkit *domt_served_start_kit(const domus_config *config, const domus_behaviour *behaviour,
                                     uint64_t seed);

/* Stop the kit's system, check that everything was freed, and free the kit. */
void domt_served_end_kit(domus_testkit *kit);

/* Connect a peer; let it send text; check that this text, and nothing before it, comes to the peer
 * within 60 s; let time pass, and check that nothing comes. */
domus_peer *domt_served_connect_peer(domus_testkit *kit);
void domt_served_send_text(domus_peer *peer, const char *text);
void domt_served_expect_text(domus_testkit *kit, domus_peer *peer, const char *text);
void domt_served_advance_kit(domus_testkit *kit, uint64_t ns);

/* The text of an answer with this body, without and with "Connection: close". */
#define DOMT_SERVED_OK(size, text)                                                                 \
    "HTTP/1.1 200 OK\r\nContent-Length: " size "\r\nContent-Type: text/plain\r\n\r\n" text
#define DOMT_SERVED_LAST(size, text)                                                               \
    "HTTP/1.1 200 OK\r\nContent-Length: " size                                                     \
    "\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n" text
#define DOMT_SERVED_408                                                                            \
    "HTTP/1.1 408 Request Timeout\r\nContent-Length: 16\r\nConnection: close\r\n"                  \
    "Content-Type: text/plain\r\n\r\nRequest Timeout\n"

#endif
