/* The protocol of Redis, RESP 2 and 3, as a stage (libdomus-resp): for servers and for clients.
 *
 * **A server** decodes commands: arrays of bulk strings, and lines as a person types them. Each is
 * a request of domus_resp_command_type, whose arguments are domus_resp_argument(). Its answer is a
 * message of any type below; the cheap ones stand for the common replies and allocate nothing, and
 * a domus_resp_reply, which a domus_resp_builder makes, holds everything else.
 *
 *     static const domus_pipeline commands = {
 *         .stages = (const domus_pipeline_stage[]){{&domus_resp_stage, NULL}, {0}},
 *     };
 *     static int answer(domus_stack *stack, void *self, const void *payload)
 *     {
 *         const domus_resp_command *command = payload;
 *         if (domus_resp_is(domus_resp_argument(command, 0), "PING"))
 *             return domus_reply(stack, &domus_resp_simple_type, &(domus_resp_simple){"PONG"});
 *         return domus_reply(stack, &domus_resp_error_type, &(domus_resp_error){"ERR unknown"});
 *     }
 *
 * What cannot be RESP gets the error of redis-server ("-ERR Protocol error: ..."), and then the
 * channel is closed. A request that fails gets an error that says why: -ENOMEM becomes "-OOM ...",
 * -EBUSY and -ENOBUFS "-BUSY ...", -EHOSTDOWN "-CLUSTERDOWN ...", -ESTALE "-TRYAGAIN ...", all
 * others
 * "-ERR ...".
 *
 * **A client** (DOMUS_ROLE_CLIENT) asks its channel with a domus_resp_command, and gets a
 * domus_resp_reply, which is read with a domus_resp_reader. An error of the server is such a reply,
 * too. A push of RESP 3 is a notice of domus_resp_push_type. With DOMUS_ROLE_PEER all that comes is
 * such a notice: so a connection of RESP 2 receives what it has subscribed to.
 *
 * **Versions.** A connection begins with RESP 2. The answer to HELLO is a domus_resp_change: the
 * connection speaks its version from that answer on. The row of HELLO must be DOMUS_ALONE, so that
 * the answers before it are sent and the requests behind it know the version; so must that of every
 * command with such an answer (AUTH, CLIENT REPLY, RESET). RESP 2 cannot say everything, and gets
 * the rest as redis-server sends it: a map, a set and a push as an array, a null as a null bulk
 * string, a double, a big number and a verbatim string as bulk strings, a boolean as 1 or 0.
 *
 * Thread-safety: the stage as all stages (domus/stage.h); all functions here may be called by any
 * thread, for a builder or a reader of its own. */
#ifndef DOMUS_RESP_H
#define DOMUS_RESP_H

#include <domus/budget.h>
#include <domus/pipeline.h>

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of domus_resp_stage. NULL: a server with all defaults. A limit of 0 is its default. */
typedef struct domus_resp_options {
    domus_role role;
    uint32_t bulk_max; /* most bytes of one bulk string, 1..DOMUS_SLICE_MAX; 0 means 512 MiB */
    /* most bytes of one command or reply, 65536..DOMUS_SLICE_MAX; 0 means 1 GiB */
    uint32_t message_max;
    uint32_t arguments_max; /* most arguments of one command, 1..INT32_MAX; 0 means 1,048,576 */
    uint32_t inline_max;    /* most bytes of a command that is a line, 1..65535; 0 means 65535 */
    uint32_t nesting_max;   /* most arrays within each other in one reply, 1..32; 0 means 32 */
    /* Bounds for commands of strangers. The peers of a server may begin as strangers: until a
     * domus_resp_change says that the peer is known, these two fields bound its commands instead of
     * arguments_max (except lines) and bulk_max, so that it takes little memory. redis-server has
     * 10 and 16384. 0: no peer begins as a stranger. */
    uint32_t stranger_arguments_max;
    uint32_t stranger_bulk_max;
    /* Budget of a server for the commands that have come in part, or are not answered yet, over all
     * channels whose options have it. A command counts from 16 KiB on while it comes, and if it has
     * more than 4 KiB until it is released, which is when its request has been answered. Beyond the
     * budget the peer gets "-OOM out of memory", and the channel is closed. NULL: each channel may
     * gather message_max. Valid as long as there are commands. */
    domus_budget *budget;
} domus_resp_options;

/* The most arrays that may lie within each other in a reply. */
#define DOMUS_RESP_NESTING_MAX 32u

/* The message stage of RESP. Memory is taken for bytes that have come, never for those that are
 * only announced. */
DOMUS_API extern const domus_stage domus_resp_stage;

/* --- commands ------------------------------------------------------------------------------- */

#define DOMUS_RESP_SPANS 8u /* most arguments of a command that need no table */

/* A command. It is read by domus_resp_argument(), and made by the stage or by
 * domus_resp_command_make(). */
typedef struct domus_resp_command {
    domus_slice bytes; /* bytes in which the arguments of the command lie */
    /* places of the arguments, of more than DOMUS_RESP_SPANS or of large ones; NULL: `spans` has
     * them */
    const domus_page *table;
    uint32_t count; /* number of the command's arguments, with its name; at least 1 */
    /* RESP version of the connection that brought the command, 2 or 3, for a builder of the
     * answer */
    uint8_t version;
    /* whether a budget counts the command's bytes until its release; false in a copy */
    bool counts;
    uint8_t reserved[2];
    struct {
        uint16_t offset;
        uint16_t size;
    } spans[DOMUS_RESP_SPANS]; /* places of the command's arguments, if `table` is NULL */
} domus_resp_command;

/* The type of commands. Its `release` frees the bytes of a command. */
DOMUS_API extern const domus_type domus_resp_command_type;

/* Returns argument `i` of a command; 0 is its name; the empty slice from `count` on.
 *
 * Ownership: the slice owns nothing, so it is not freed. It is valid as long as the command is, and
 * domus_slice_keep() makes an owner of it. */
static inline domus_slice domus_resp_argument(const domus_resp_command *command, uint32_t i)
{
    domus_slice argument = {NULL, 0, 0};

    if (i >= command->count)
        return argument;
    if (command->table == NULL) {
        if (i >= DOMUS_RESP_SPANS)
            return argument; /* never true; this shows the compiler that `i` lies within `spans` */
        argument.offset = command->bytes.offset + command->spans[i].offset;
        argument.size = command->spans[i].size;
    } else {
        /* a copy of the argument's place, because the bytes of a page need not be aligned */
        uint32_t span[2];
        memcpy(span, command->table->data + (size_t)i * sizeof span, sizeof span);
        argument.offset = command->bytes.offset + span[0];
        argument.size = span[1];
    }
    argument.page = command->bytes.page;
    return argument;
}

/* Returns whether the bytes are this word, whose letters A to Z are given as capitals; the bytes
 * may have small ones. */
static inline bool domus_resp_is(domus_slice bytes, const char *word)
{
    const char *data = domus_slice_data(bytes);
    uint32_t i = 0;

    for (; i < bytes.size && word[i] != '\0'; i++) {
        char c = data[i];
        if (c != word[i] && (c < 'a' || c > 'z' || c - 'a' + 'A' != word[i]))
            return false;
    }
    return i == bytes.size && word[i] == '\0';
}

/* Bytes of an argument, for domus_resp_command_make(). */
typedef struct domus_resp_bytes {
    const void *data;
    size_t size;
} domus_resp_bytes;

/* Make a command of copies of `count` arguments.
 *
 * Ownership: the command owns its bytes; domus_resp_command_type.release(command) frees them, or
 * the message that it is sent in.
 * Returns 0; -EINVAL without arguments; -EMSGSIZE above DOMUS_SLICE_MAX bytes; -ENOMEM. */
DOMUS_API int domus_resp_command_make(const domus_resp_bytes *arguments, uint32_t count,
                                      domus_resp_command *ret_command);

/* --- replies that need no builder --------------------------------------------------------------
 *
 * A domus_slice (domus_slice_type) is a bulk string, too; long ones are sent without a copy. */

/* A bulk string of few bytes, which need no page. */
#define DOMUS_RESP_SHORT_MAX 63u
typedef struct domus_resp_short {
    uint8_t size; /* number of bytes of the string, 0..DOMUS_RESP_SHORT_MAX */
    char bytes[DOMUS_RESP_SHORT_MAX];
} domus_resp_short;

/* An integer as a reply. */
typedef struct domus_resp_integer {
    int64_t value;
} domus_resp_integer;

/* A simple string as a reply, such as "PONG". The text is not copied before it is sent, so it is a
 * constant of the program. */
typedef struct domus_resp_simple {
    const char *text;
} domus_resp_simple;

/* An error as a reply: a word in capitals and a text, such as "ERR no such key". */
typedef struct domus_resp_error {
    char text[128]; /* text of the error, with a zero behind it, unless it fills the array */
} domus_resp_error;

DOMUS_API extern const domus_type domus_resp_short_type;
DOMUS_API extern const domus_type domus_resp_integer_type;
DOMUS_API extern const domus_type domus_resp_simple_type;
DOMUS_API extern const domus_type domus_resp_error_type;
/* a type without payload: the reply "+OK" */
DOMUS_API extern const domus_type domus_resp_ok_type;
/* a type without payload: the reply null */
DOMUS_API extern const domus_type domus_resp_null_type;
/* a type without payload: the reply null, to RESP 2 the null array */
DOMUS_API extern const domus_type domus_resp_null_array_type;

/* Make an error of text as printf(3) makes it, cut off where it does not fit. */
DOMUS_API domus_resp_error domus_resp_error_text(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* --- replies of any kind ---------------------------------------------------------------------- */

/* A reply as its bytes. One reply can be sent to several peers: domus_slice_keep() of `bytes` makes
 * another owner. */
typedef struct domus_resp_reply {
    domus_slice bytes;
    /* number of values in the bytes: 1 in a whole reply; any number in a part of a reply, which is
     * for domus_resp_add_reply() only */
    uint32_t values;
    uint8_t form; /* form of the reply's bytes, a domus_resp_form */
    uint8_t reserved[3];
} domus_resp_reply;

/* How the bytes that a connection of RESP 2 gets differ from the bytes of the reply. */
typedef enum domus_resp_form {
    DOMUS_RESP_EXACT = 0,  /* a connection of RESP 2 gets the same bytes */
    DOMUS_RESP_PUSHED = 1, /* a connection of RESP 2 gets the same bytes, except the first one */
    /* a connection of RESP 2 gets other bytes, which are made when the reply is sent */
    DOMUS_RESP_ONLY_3 = 2,
} domus_resp_form;

/* Types whose payload is a domus_resp_reply. Their `release` frees the bytes. */
DOMUS_API extern const domus_type domus_resp_reply_type;
DOMUS_API extern const domus_type
    domus_resp_push_type; /* the type of a push: a message that came without being asked for */

/* The answers that a connection gets from an answer on, by the words of CLIENT REPLY. */
typedef enum domus_resp_answering {
    DOMUS_RESP_AS_BEFORE = 0,
    DOMUS_RESP_ANSWERS, /* this command is answered, and so are all commands behind it */
    DOMUS_RESP_SILENT,  /* this answer and all later answers are not sent; pushes are sent */
    DOMUS_RESP_SKIPS,   /* this answer and the next one are not sent */
} domus_resp_answering;

/* Whether the peer is known or a stranger (stranger_arguments_max). */
typedef enum domus_resp_peer {
    DOMUS_RESP_PEER_AS_BEFORE = 0,
    DOMUS_RESP_PEER_KNOWN,
    DOMUS_RESP_PEER_STRANGER,
} domus_resp_peer;

/* An answer that changes the connection from itself on: to HELLO, AUTH, CLIENT REPLY, RESET. Its
 * `reply` may be empty if it is not sent. */
typedef struct domus_resp_change {
    domus_resp_reply reply;
    /* version of RESP from this answer on, 2 or 3; 0: as before; others are refused with -EINVAL */
    uint32_t version;
    uint8_t answering; /* which commands are answered from now on, a domus_resp_answering */
    uint8_t peer;      /* whether the peer is known from now on, a domus_resp_peer */
    uint8_t reserved[2];
} domus_resp_change;

DOMUS_API extern const domus_type domus_resp_change_type;

/* A builder of a reply, value by value; an array is followed by its elements, a map by its keys and
 * values by turns. `{0}` builds a reply for all connections; a builder with the `version` of a
 * command builds what the connection of the command gets, which saves work when the reply is sent.
 * All functions return 0; -EMSGSIZE beyond `bytes.size_max`; -ENOMEM; and after an error each
 * returns that error again. */
typedef struct domus_resp_builder {
    /* bytes of the reply that were built; the user sets only `bytes.size_max` */
    domus_appender bytes;
    /* number of values that the reply has when all that were announced are added */
    int64_t values;
    uint8_t version; /* 2: a reply for RESP 2; 0 and 3: for both versions */
    uint8_t form;
    uint8_t reserved[6];
} domus_resp_builder;

/* Add to a reply a line, such as "OK"; or an error, a line that begins with a word in capitals, as
 * printf(3) makes it. Line ends in them become spaces. */
DOMUS_API int domus_resp_add_simple(domus_resp_builder *builder, const char *text);
DOMUS_API int domus_resp_add_error(domus_resp_builder *builder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
DOMUS_API int domus_resp_add_integer(domus_resp_builder *builder, int64_t value);
/* Add a bulk string to a reply: any bytes. */
DOMUS_API int domus_resp_add_bulk(domus_resp_builder *builder, const void *data, size_t size);
DOMUS_API int domus_resp_add_null(domus_resp_builder *builder);
DOMUS_API int domus_resp_add_null_array(domus_resp_builder *builder);
DOMUS_API int domus_resp_add_boolean(domus_resp_builder *builder, bool value);
/* Add a double to a reply, as the shortest text that reads as the same number. */
DOMUS_API int domus_resp_add_double(domus_resp_builder *builder, double value);
/* Add an integer of any size to a reply, as text: an optional sign and digits. Also returns
 * -EINVAL. */
DOMUS_API int domus_resp_add_big_number(domus_resp_builder *builder, const char *digits);
/* Add text for people (a verbatim string) to a reply; `format` is "txt", "mkd", or other three
 * letters. Also returns -EINVAL. */
DOMUS_API int domus_resp_add_verbatim(domus_resp_builder *builder, const char *format,
                                      const void *data, size_t size);
/* Add the head of an array, a set or a push of `count` elements, or of a map of `count` keys with
 * their values, which are added next. */
DOMUS_API int domus_resp_add_array(domus_resp_builder *builder, uint32_t count);
DOMUS_API int domus_resp_add_set(domus_resp_builder *builder, uint32_t count);
DOMUS_API int domus_resp_add_map(domus_resp_builder *builder, uint32_t count);
DOMUS_API int domus_resp_add_push(domus_resp_builder *builder, uint32_t count);
/* Add a copy of the values of another reply, which stays the caller's. So the elements of an array
 * can be built before their count is known, and the answers of several shards become one. */
DOMUS_API int domus_resp_add_reply(domus_resp_builder *builder, const domus_resp_reply *reply);

/* End a builder: its bytes become a reply, and the builder is as new.
 *
 * Ownership: the reply is the caller's: domus_slice_free() of its `bytes`, or a message frees it.
 * Returns 0; the first error of the calls before; -EINVAL when fewer elements were added than
 * announced. With an error nothing is left to free. */
DOMUS_API int domus_resp_end(domus_resp_builder *builder, domus_resp_reply *ret_reply);

/* Throw away the bytes that a builder has built. */
DOMUS_API void domus_resp_drop(domus_resp_builder *builder);

/* --- reading a reply -------------------------------------------------------------------------- */

/* The kinds of values in a reply; each is the byte that such a value begins with. */
typedef enum domus_resp_kind {
    DOMUS_RESP_SIMPLE = '+',
    DOMUS_RESP_ERROR = '-',
    DOMUS_RESP_INTEGER = ':',
    DOMUS_RESP_BULK = '$',
    DOMUS_RESP_ARRAY = '*',
    DOMUS_RESP_NULL = '_', /* null; also the null bulk string and the null array of RESP 2 */
    DOMUS_RESP_BOOLEAN = '#',
    DOMUS_RESP_DOUBLE = ',',
    DOMUS_RESP_BIG_NUMBER = '(',
    DOMUS_RESP_BULK_ERROR = '!',
    DOMUS_RESP_VERBATIM = '=',
    DOMUS_RESP_MAP = '%',
    DOMUS_RESP_SET = '~',
    DOMUS_RESP_PUSH = '>',
    /* attribute: a map that describes the value behind it, and is no element of its own */
    DOMUS_RESP_ATTRIBUTE = '|',
} domus_resp_kind;

/* A value of a reply, as the reader has read it. */
typedef struct domus_resp_value {
    domus_resp_kind kind;
    /* number of values that follow and belong to this value: 6 for a map of 3 keys; else 0 */
    uint32_t count;
    int64_t integer; /* the number of an integer; 1 or 0 for a boolean */
    double number;   /* the number of a double or an integer */
    /* text of the value, if its kind has one, also of a number; it owns nothing, and is valid as
     * long as the reply */
    domus_slice text;
} domus_resp_value;

/* A reader of a reply: {reply.bytes, 0} reads from its start. */
typedef struct domus_resp_reader {
    domus_slice bytes;
    uint32_t at;
} domus_resp_reader;

/* Read the next value. The elements of an array are the values behind it. Returns 1; 0 behind the
 * last one; -EPROTO when the bytes are wrong, which those of a reply that was decoded never are. */
DOMUS_API int domus_resp_read(domus_resp_reader *reader, domus_resp_value *ret_value);

/* Pass over the values that belong to `value`, which was read last. Returns 0; -EPROTO. */
DOMUS_API int domus_resp_skip(domus_resp_reader *reader, const domus_resp_value *value);

#ifdef __cplusplus
}
#endif

#endif
