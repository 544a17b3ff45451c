/* Writes and reads whole pickled messages: an array of the hash of the type's name, the version,
 * and the payload. */
#include "protocols/cluster/pickle_pack.h"
#include "protocols/cluster/pickle_token.h"

#define PARTS 3u   /* elements of the array that is a pickled message */
#define ROOM  256u /* bytes that an appender is asked for at the begin of a message */

static const domus_pickle_context no_context;

/* The table of a type without a payload; a later version of the type may have fields. */
static const domus_pickle_table no_fields = {.fields = NULL, .count = 0, .size = 0};

static uint32_t bytes_max_of_message(const domus_pickle_context *context)
{
    uint32_t most = context->bytes_max != 0 ? context->bytes_max : DOMUS_PICKLE_BYTES_PRESET;

    return most < DOMUS_SLICE_MAX ? most : DOMUS_SLICE_MAX;
}

/* Write the payload of a message by the functions of its pickler. */
static int write_payload_by_functions(domus_pickle_writer *writer, const domus_pickler *pickler,
                                      const void *payload)
{
    domi_nest_begin_with_one_value_left(&writer->nest);
    int error = pickler->write(writer, payload);
    if (writer->fault.error != 0)
        return writer->fault.error;
    if (error < 0)
        return domi_pickle_fault_record(&writer->fault, error, "its function cannot write it");
    if (!domi_nest_is_no_value_left(&writer->nest))
        return domi_pickle_fault_record(&writer->fault, -EINVAL,
                                        "its function writes fewer values than it has announced");
    return 0;
}

static int write_head_and_payload(domus_pickle_writer *writer, const domus_picklers *picklers,
                                  const domus_pickler *pickler, const void *payload)
{
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);
    int error = msgpack_pack_array(&packer, PARTS);

    if (error == 0)
        error =
            msgpack_pack_fix_uint64(&packer, domi_pickle_hash_of_listed_pickler(picklers, pickler));
    if (error == 0)
        error = msgpack_pack_uint32(&packer, pickler->version);
    if (error != 0)
        return error;
    if (pickler->write != NULL)
        return write_payload_by_functions(writer, pickler, payload);
    return domi_pickle_put_struct(writer, pickler->table != NULL ? pickler->table : &no_fields,
                                  payload);
}

static int refuse_to_pickle_type(const domus_type *type, int error, const char *why, char *text,
                                 size_t size)
{
    domi_pickle_fault fault;

    fault.error = 0;
    (void)domi_pickle_fault_record(&fault, error, "%s", why);
    return domi_pickle_fault_write_as_text(&fault, type->name, text, size);
}

int domus_pickle(const domus_picklers *picklers, const domus_pickle_context *context,
                 const domus_type *type, const void *payload, domus_appender *to, char *error,
                 size_t error_size)
{
    const domus_pickler *pickler = domus_pickler_of_type(picklers, type);
    domus_pickle_writer writer;

    if (to->error != 0)
        return refuse_to_pickle_type(type, to->error, "the appender has an error", error,
                                     error_size);
    if (pickler == NULL)
        return refuse_to_pickle_type(type, -ENOENT, "the type has no pickler", error, error_size);
    uint32_t before = to->size;
    uint32_t most =
        to->size_max != 0 && to->size_max < DOMUS_SLICE_MAX ? to->size_max : DOMUS_SLICE_MAX;
    writer.appender = to;
    writer.context = context != NULL ? context : &no_context;
    writer.left = bytes_max_of_message(writer.context);
    writer.left = writer.left < most - before ? writer.left : most - before;
    writer.fault.error = 0;
    size_t room = writer.left < ROOM ? writer.left : ROOM;
    writer.begin = writer.at = writer.end = domus_append_room(to, room);
    if (writer.begin != NULL)
        writer.end += room;
    else
        (void)domi_pickle_fault_record(&writer.fault, to->error, "no memory");
    if (writer.fault.error == 0 &&
        write_head_and_payload(&writer, picklers, pickler, payload) == 0) {
        domus_append_written(to, (size_t)(writer.at - writer.begin));
        return 0;
    }
    if (to->error == 0)
        to->size = before;
    return domi_pickle_fault_write_as_text(&writer.fault, domi_pickler_name_on_wire(pickler), error,
                                           error_size);
}

int domus_pickle_into(const domus_picklers *picklers, const domus_pickle_context *context,
                      const domus_type *type, const void *payload, void *buffer, size_t size,
                      size_t *ret_size, char *error, size_t error_size)
{
    const domus_pickler *pickler = domus_pickler_of_type(picklers, type);
    domus_pickle_writer writer;

    if (pickler == NULL)
        return refuse_to_pickle_type(type, -ENOENT, "the type has no pickler", error, error_size);
    writer.appender = NULL;
    writer.context = context != NULL ? context : &no_context;
    writer.left = bytes_max_of_message(writer.context);
    writer.begin = writer.at = buffer;
    writer.end = writer.begin + (size < writer.left ? size : writer.left);
    writer.fault.error = 0;
    if (write_head_and_payload(&writer, picklers, pickler, payload) != 0)
        return domi_pickle_fault_write_as_text(&writer.fault, domi_pickler_name_on_wire(pickler),
                                               error, error_size);
    *ret_size = (size_t)(writer.at - writer.begin);
    return 0;
}

static void begin_reading_message(domus_pickle_reader *reader, const domus_pickle_context *context,
                                  domus_slice bytes)
{
    reader->bytes = bytes;
    reader->data = (const unsigned char *)domus_slice_data(bytes);
    reader->at = reader->data;
    reader->end = reader->data + bytes.size;
    reader->context = context != NULL ? context : &no_context;
    reader->memory_left =
        reader->context->memory_max != 0 ? reader->context->memory_max : DOMUS_PICKLE_MEMORY_PRESET;
    reader->fault.error = 0;
}

/* Read the hash and the version, which stand before the payload of a message. */
static int read_hash_and_version(domus_pickle_reader *reader, uint64_t *ret_hash,
                                 uint64_t *ret_version)
{
    const domi_pickle_token *token = &reader->token;
    int error = domi_pickle_token_read_next(reader);

    if (error == 0 && (token->value != DOMUS_PICKLE_ARRAY_HEAD || token->size != PARTS))
        error = domi_pickle_fault_record(&reader->fault, -EBADMSG, "is no pickled message");
    if (error == 0)
        error = domi_pickle_token_read_next(reader);
    if (error == 0 && token->value != DOMUS_PICKLE_UNSIGNED)
        error = domi_pickle_token_refuse_kind(reader, "the hash of a name");
    if (error != 0)
        return error;
    *ret_hash = token->is.number;
    error = domi_pickle_token_read_next(reader);
    if (error == 0 && (token->value != DOMUS_PICKLE_UNSIGNED || token->is.number == 0 ||
                       token->is.number > UINT32_MAX))
        error = domi_pickle_fault_record(&reader->fault, -EBADMSG, "has no version");
    if (error == 0)
        *ret_version = token->is.number;
    return error;
}

int domus_pickled_open(const domus_picklers *picklers, const domus_pickle_context *context,
                       domus_slice bytes, domus_pickled *ret_pickled, char *error,
                       size_t error_size)
{
    const domus_pickler *pickler = NULL;
    domus_pickle_reader reader;
    uint64_t hash = 0;
    uint64_t version = 0;

    begin_reading_message(&reader, context, bytes);
    if (bytes.size > bytes_max_of_message(reader.context))
        (void)domi_pickle_fault_record(&reader.fault, -EMSGSIZE, "has %u bytes, more than %u",
                                       bytes.size, bytes_max_of_message(reader.context));
    else if (read_hash_and_version(&reader, &hash, &version) == 0) {
        pickler = domus_pickler_of_hash(picklers, hash);
        if (pickler == NULL)
            (void)domi_pickle_fault_record(&reader.fault, -ENOENT,
                                           "no pickler has the hash %016llx",
                                           (unsigned long long)hash);
        else if (version < pickler->oldest)
            (void)domi_pickle_fault_record(&reader.fault, -EPROTONOSUPPORT,
                                           "version %u is older than %u, the oldest that is read",
                                           (unsigned)version, pickler->oldest);
    }
    if (reader.fault.error != 0)
        return domi_pickle_fault_write_as_text(
            &reader.fault, pickler != NULL ? domi_pickler_name_on_wire(pickler) : "message", error,
            error_size);
    *ret_pickled = (domus_pickled){.pickler = pickler,
                                   .version = (uint32_t)version,
                                   .at = (uint32_t)(reader.at - reader.data),
                                   .bytes = bytes};
    return 0;
}

/* Read the payload of a message by the functions of its pickler. */
static int read_payload_by_functions(domus_pickle_reader *reader, const domus_pickled *pickled,
                                     void *payload)
{
    domi_nest_begin_with_one_value_left(&reader->nest);
    int error = pickled->pickler->read(reader, payload, pickled->version);
    if (reader->fault.error != 0)
        return reader->fault.error;
    if (error < 0)
        return domi_pickle_fault_record(&reader->fault, error, "its function refuses it");
    if (!domi_nest_is_no_value_left(&reader->nest))
        return domi_pickle_fault_record(&reader->fault, -EBADMSG,
                                        "has values that its function has not read");
    return 0;
}

static int read_payload_of_message(domus_pickle_reader *reader, const domus_pickled *pickled,
                                   void *payload)
{
    const domus_pickler *pickler = pickled->pickler;
    char text[DOMI_PICKLE_FAULT_WHAT] = "is refused";
    int error;

    if (pickler->read != NULL)
        error = read_payload_by_functions(reader, pickled, payload);
    else
        error = domi_pickle_get_struct(reader, pickler->table != NULL ? pickler->table : &no_fields,
                                       payload);
    if (error == 0 && reader->at != reader->end)
        error = domi_pickle_fault_record(&reader->fault, -EBADMSG, "has %llu bytes behind its end",
                                         (unsigned long long)(reader->end - reader->at));
    if (error != 0 || pickler->check == NULL)
        return error;
    error = pickler->check(payload, pickled->version, text, sizeof text);
    return error < 0 ? domi_pickle_fault_record(&reader->fault, error, "%s", text) : 0;
}

int domus_unpickle(const domus_pickled *pickled, const domus_pickle_context *context, void *payload,
                   char *error, size_t error_size)
{
    const domus_pickler *pickler = pickled->pickler;
    const domus_type *type = pickler->type;
    domus_pickle_reader reader;

    begin_reading_message(&reader, context, pickled->bytes);
    reader.at += pickled->at;
    if (type->size != 0)
        memset(payload, 0, type->size);
    if (read_payload_of_message(&reader, pickled, payload) == 0)
        return 0;
    if (pickler->table != NULL)
        domus_pickle_release(pickler->table, payload);
    else if (type->release != NULL)
        type->release(payload);
    if (type->size != 0)
        memset(payload, 0, type->size);
    return domi_pickle_fault_write_as_text(&reader.fault, domi_pickler_name_on_wire(pickler), error,
                                           error_size);
}
