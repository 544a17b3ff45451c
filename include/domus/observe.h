/* The observation port: what a running program shows of itself, over HTTP. It is in the library
 * domus-observe, which uses domus-http. docs/observe.md is the manual.
 *
 * A program of domus_main() names it once, and its operator turns it on:
 *
 *     static const domus_program program = {..., .observe = &domus_observe_front};
 *
 *     observe: {listen: "unix:/run/shop.sock"}          # or 127.0.0.1:9100
 *
 * The port has a system of its own, with one thread that is not pinned. So it answers while a
 * thread of the program is stuck, short of memory, or drains, and its viewers take neither time nor
 * connections from those of the program. Without observe.listen there is no thread and no socket,
 * and nothing is spent.
 *
 *   /          for browsers a page that shows live where time goes; for others a list of paths
 *   /live      all counters four times a second, as server-sent events, read only while somebody
 *              looks; the streams end when the program begins to stop
 *   /metrics   counters for Prometheus: OpenMetrics 1.0, or the older text format 0.0.4 for viewers
 *              whose Accept does not name OpenMetrics
 *   /profile   all counters of each thread, of foreign threads, of runners of pools, and the
 *              figures of memory, as JSON; ?histograms=1 or =KIND adds histograms
 *              (domus/histogram.h). POST /profile?level=WORD sets profile.level
 *
 *   /profile?cpu=10s   a CPU profile (domus/cpu_profile.h): &hz=99, &format=folded or svg
 *
 *   /trace     a trace for ui.perfetto.dev (domus/trace.h): ?seconds=2 records for so long, with
 *              the level spans meanwhile; 0, the default, is what was recorded before
 *
 *   /doctor    what is wrong with the program and what to change, in sentences, after looking for
 *              ?seconds=10 (docs/doctor.md); as text, or with &format=json as JSON. With
 *              ?machine=1 /profile has all that the doctor looks at
 *
 *   /actors    what actors do (domus/dump.h), in pages: ?from=0&count=100&behaviour=NAME
 *
 *   /config    every key of the configuration, its value, and where that stands, as JSON. PUT
 *              /config/KEY with the value as the body changes a key that is live, if the key
 *              observe.change allows it
 *
 *   /log       the last lines of the log: ?level=error|warning|info, and with ?follow=1 further
 *              ones as they come; POST /log?level=WORD changes what is logged
 *
 *   /SET       tables that libraries show of themselves (domus/figures.h), as JSON, such as
 *              /cluster of a node (domus/cluster.h): ?from=0&count=2000&table=NAME
 *
 *   /stalls    the last stalls, with the functions in which they were, as JSON (domus/stall.h)
 *
 *   /health    200 as long as the process answers
 *
 *   /ready     200 while the program takes new work; 503 before it has started, and once it stops
 *
 * While the port is open, a file in a directory of the user names it, by which the program `domus`
 * of the command line finds it: $DOMUS_REGISTRY/PID if that is set, else the first of
 * $XDG_RUNTIME_DIR/domus/PID, /run/domus/PID (of root) and /tmp/domus-UID/PID whose directory has
 * the mode 0700 and belongs to the user, or can be made so. Without one the port works all the
 * same.
 *
 * Limits: observe.viewersMax connections, one request of each at a time; heads of 16 KiB, targets
 * of 2 KiB, bodies of 256 bytes; 60 s for an idle viewer, 10 s for one that does not read; three
 * texts of /actors or /stalls are made at a time, and 16 may wait for that (503 beyond); 16 viewers
 * follow the log (503 beyond), and one that reads slowly misses lines, which the text counts; half
 * of the viewers may have streams of /live (503 beyond); if 16 wait for /doctor, further ones begin
 * with the newest look of theirs. There is one trace and one CPU profile at a time (409), none
 * while viewers have DOMUS_OBSERVE_UNREAD_BYTES of their answers to read (503), and they end early
 * when the viewer closes its connection or finishes sending, or the program begins to stop.
 *
 * Traces, CPU profiles and changes are refused with 403 to pages of other sites, of which browsers
 * tell by Origin and Sec-Fetch-Site. */
#ifndef DOMUS_OBSERVE_H
#define DOMUS_OBSERVE_H

#include <domus/front.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most bytes of one page of /actors; 4 KiB for each thread and pool if that is more. */
#define DOMUS_OBSERVE_ACTORS_BYTES (256u * 1024)
/* The number of actors of each thread and pool in one page of /actors: the default, and the
 * most. */
#define DOMUS_OBSERVE_ACTORS_COUNT 100u
#define DOMUS_OBSERVE_ACTORS_MAX   1000u
/* The most viewers that follow /log at a time. */
#define DOMUS_OBSERVE_FOLLOWERS_MAX 16u

/* The number of rows of each table in one page of /SET: the default, and the most. */
#define DOMUS_OBSERVE_ROWS_COUNT 2000u
#define DOMUS_OBSERVE_ROWS_MAX   10000u

/* The most seconds for which /trace records, or /profile takes a CPU profile. */
#define DOMUS_OBSERVE_SECONDS_MAX 60u
/* Seconds for which /doctor looks, if the request names none, and the most viewers for whom it
 * looks at a time; others get the newest of these looks. */
#define DOMUS_OBSERVE_DOCTOR_SECONDS 10u
#define DOMUS_OBSERVE_DOCTORS_MAX    16u
/* The most bytes of a trace of /trace. If it is longer, the older half of its time is left out,
 * again and again until it fits. */
#define DOMUS_OBSERVE_TRACE_BYTES (48u << 20)
/* The most bytes of the text of a CPU profile. */
#define DOMUS_OBSERVE_CPU_BYTES (32u << 20)
/* The most bytes of answers that wait to be read by all viewers together. While there are more, no
 * trace and no CPU profile is made. */
#define DOMUS_OBSERVE_UNREAD_BYTES (8u << 20)

/* The observer of a program (domus/front.h). A process has one such port at a time: another `open`
 * returns -EALREADY. It returns -EADDRINUSE if somebody listens there, and what else
 * domus_system_start() and domus_serve() return.
 *
 * A Unix socket with a path has the mode 0600, the path of one at which nobody listens any more
 * is taken over, and `close` removes it. While `open` runs, files that other threads make have this
 * mode, too. A Unix socket of a name (unix:@NAME) has no mode: every user of the machine may
 * connect. On TCP a request whose Host is no name of loopback gets 421, unless observe.public is
 * set: see domus_http_host_is_loopback() in domus/http.h. */
DOMUS_API extern const domus_observer domus_observe_front;

#ifdef __cplusplus
}
#endif

#endif
