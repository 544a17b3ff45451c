/* SQLite, as a driver for domus/sql.h (libdomus-sqlite). docs/sql.md is the manual.
 *
 * The url names a file:
 *
 *   sqlite:todo.db           in the directory in which the process is when the database is opened
 *   sqlite:/var/lib/todo.db  and sqlite:///var/lib/todo.db: in any directory
 *   sqlite::memory:          no file: all is gone when the database is closed
 *
 * Bytes of the path other than letters, digits and -._~/:@!$'()*,;=&+ are written as %XX, and so is
 * '%' itself. Parameters follow a '?', with '&' between them, each at most once:
 *
 *   mode=rwc             the default: read and write, and make the file if there is none, with
 *                        access for its owner alone. rw: do not make it. ro: read alone; writes
 *                        fail with -EROFS
 *   synchronous=full     the default: a write that was answered survives a loss of power. normal:
 *                        it survives the end of the process, as by kill -9, but a loss of power may
 *                        take the last ones. The file is whole in both cases
 *   busy_timeout=MS      how long a statement waits for another process that has the file locked,
 *                        0..3600000 ms; the default is 5000. Then it fails with -EAGAIN
 *
 * **Connections.** A database has one connection that writes and connections_max - 1 that read, for
 * the whole process. They run on helper threads (domus/blocking.h), each for one job at a time. A
 * job takes all queries that wait for its connection, up to a bound. Writes that wait are committed
 * together: each can fail alone, and all are answered when the commit is done. With a
 * connections_max of 1 one connection does both. The file is in WAL mode, so it needs a directory
 * that may be written to and a file system of this machine. A database in memory has one
 * connection, which runs on the thread of its actor, so it works in a test kit, too; its time-outs
 * are those of the real clock.
 *
 * On a database with one connection all else waits while a transaction is open, and so do rows that
 * come in pieces and were begun outside of it: nobody sees what is not committed. A fetch that has
 * waited for `wait_ns` fails with -EBUSY, and the rows go on later; so do not fetch such rows in
 * the midst of a transaction of your own. Pieces may show what was committed between them; with
 * more connections all pieces are of the state at their begin.
 *
 * **Waiting.** A database is one actor, and each verb that waits is a conversation of it.
 * `queue_max` counts for those that read, for those that write, and for those of each open
 * transaction. It is at most DOMUS_SQLITE_QUEUE_MAX, and scheduler.conversationsMax (65,536) has to
 * be more than all that may wait together: an actor with so many conversations handles no asks, so
 * nobody could end a transaction that the others wait for.
 *
 * **Differences.** `connect_timeout_ns`, `backoff_min_ns` and `backoff_max_ns` have no effect.
 * A transaction that is not `reads_only` is begun with BEGIN IMMEDIATE, so only one is open at a
 * time, and all other writes wait for it. BEGIN, COMMIT, ROLLBACK, SAVEPOINT, ATTACH, DETACH,
 * temporary tables and PRAGMAs that change a connection are refused with -EACCES, and VACUUM with
 * -EINVAL. Foreign keys are on, extensions cannot be loaded, "..." is never a text. Text parameters
 * have to be UTF-8 without zeros, and a real must not be NaN (-EINVAL). `timeout_ns` counts for
 * each piece of rows. */
#ifndef DOMUS_SQLITE_H
#define DOMUS_SQLITE_H

#include <domus/sql_driver.h>

#ifdef __cplusplus
extern "C" {
#endif

/* greatest value of queue_max with SQLite; more is -EINVAL */
#define DOMUS_SQLITE_QUEUE_MAX 16384u

/* The driver, for domus_sql_options.drivers: its scheme is "sqlite". */
DOMUS_API extern const domus_sql_driver domus_sqlite_driver;

/* Returns the version of the library of SQLite that is used, such as "3.40.1". Thread-safety: any
 * thread. */
DOMUS_API const char *domus_sqlite_version(void);

#ifdef __cplusplus
}
#endif

#endif
