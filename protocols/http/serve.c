/* Serves files (domus/http_files.h).
 *
 * A request for a file has no state but its conversation: the file is loaded at once if the kernel
 * has it in memory, and otherwise after one wait, whose tag leads to the options. The answer is a
 * complete message, or is left to domus_file_answer().
 *
 * An answer opens its file, or asks a helper thread, only when it is its turn: otherwise a client
 * that sends many requests at once and reads nothing would hold a file for each. If a file turns
 * out to be large before its turn, it is closed, and loaded again in its turn. */
#include "protocols/http/coding.h"
#include "protocols/http/fields.h"
#include "protocols/http/file_parts.h"
#include "protocols/http/write.h"

#include <domus/http_condition.h>
#include <domus/http_date.h>
#include <domus/http_files.h>
#include <domus/http_media.h>
#include <domus/http_range.h>

#include <sys/stat.h>

/* bytes of the value of a Cache-Control that the options may give, at most */
#define VALUE_MAX_BYTES 255u
#define WHOLE_DEFAULT   65536u
#define RANGES_DEFAULT  16u
#define NS_OF_SECOND    INT64_C(1000000000)

/* bytes of the tag of a file, at most: three hexadecimal numbers, quotes and dividers */
#define ETAG_ROOM  (3 * 16 + 4 + 1)
#define FIELD_ROOM (512 + VALUE_MAX_BYTES)

/* A file that was found for a request, and the data that its answer shows. */
typedef struct found {
    const domus_http_files *files;
    const domus_http_request *request;
    domus_slice path; /* path of the request that means the file */
    domus_file_loaded *loaded;
    bool is_packed;
    bool has_turn;
    char etag[ETAG_ROOM];
    int64_t modified;     /* time of the file's last change, in s since 1970 */
    uint32_t range_count; /* number of ranges of the file that are sent; 0: the whole file */
    domus_http_range ranges[DOMI_HTTP_RANGES_MOST];
} found;

/* Returns the negative errno with which a request fails when its file cannot be loaded. */
static int errno_of_request_without_its_file(int error)
{
    switch (-error) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case EXDEV:
    case ENAMETOOLONG:
    case EINVAL:
        return -ENOENT;
    case EACCES:
    case EPERM:
        return -EACCES;
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case EBUSY:
    case ENOBUFS:
    case ENOMEM:
    case ESHUTDOWN:
        return -EBUSY;
    case EMSGSIZE:
        return -EINVAL; /* the option `whole_max` of the files exceeds the key files.readMax */
    case ECANCELED:
    case ETIMEDOUT:
        return error;
    default:
        return -EIO;
    }
}

/* --- heads ------------------------------------------------------------------------------------ */

static char *put_hexadecimal_number(char *to, uint64_t number)
{
    static const char digits[] = "0123456789abcdef";
    int shift = 60;

    while (shift > 0 && number >> shift == 0)
        shift -= 4;
    for (; shift >= 0; shift -= 4)
        *to++ = digits[number >> shift & 15];
    return to;
}

static void store_tag_and_time_of_file(found *file)
{
    const domus_file_status *status = &file->loaded->status;
    char *to = file->etag;

    *to++ = '"';
    to = put_hexadecimal_number(to, (uint64_t)status->modified_ns);
    *to++ = '-';
    to = put_hexadecimal_number(to, status->size);
    *to++ = '-';
    to = put_hexadecimal_number(to, status->inode);
    *to++ = '"';
    *to = '\0';
    file->modified = status->modified_ns > 0 ? status->modified_ns / NS_OF_SECOND : 0;
}

/* Returns whether the client has the compressed answer already. The stage compresses answers for
 * clients that accept gzip, and makes the tags of such answers weak (domus/http_gzip.h). */
static bool does_client_have_compressed_answer(const found *file)
{
    if (file->is_packed || !domi_http_does_client_prefer_gzip(file->request->fields))
        return false;
    return domi_http_do_fields_list_weak_tag(file->request->fields, file->etag);
}

static char *put_content_range(char *to, const found *file)
{
    to = DOMI_HTTP_PUT(to, "Content-Range: bytes ");
    to = domi_http_put_decimal_number(to, file->ranges[0].first);
    *to++ = '-';
    to = domi_http_put_decimal_number(to, file->ranges[0].last);
    *to++ = '/';
    to = domi_http_put_decimal_number(to, file->loaded->status.size);
    return DOMI_HTTP_PUT(to, "\r\n");
}

/* Make the fields of an answer with a file. `boundary` divides several ranges; NULL: there are not
 * several. Returns 0; -EINVAL; -ENOMEM. */
static int make_fields_of_file_answer(const found *file, const char *boundary, bool is_weak,
                                      domus_slice *ret_fields)
{
    const char *cache = file->files->cache_control;
    size_t cache_size = cache != NULL ? strlen(cache) : 0;
    char fields[FIELD_ROOM];
    char *to = DOMI_HTTP_PUT(fields, "ETag: ");

    if (cache_size > VALUE_MAX_BYTES)
        return -EINVAL;
    if (is_weak)
        to = DOMI_HTTP_PUT(to, "W/");
    to = domi_http_put_bytes(to, file->etag, strlen(file->etag));
    to = DOMI_HTTP_PUT(to, "\r\nLast-Modified: ");
    domus_http_date(file->modified, to);
    to = DOMI_HTTP_PUT(to + DOMUS_HTTP_DATE_SIZE, "\r\nAccept-Ranges: bytes\r\n");
    if (cache != NULL) {
        to = DOMI_HTTP_PUT(to, "Cache-Control: ");
        to = domi_http_put_bytes(to, cache, cache_size);
        to = DOMI_HTTP_PUT(to, "\r\n");
    }
    if (file->files->compressed)
        to = DOMI_HTTP_PUT(to, "Vary: Accept-Encoding\r\n");
    if (file->is_packed)
        to = DOMI_HTTP_PUT(to, "Content-Encoding: gzip\r\n");
    if (boundary != NULL) {
        to = DOMI_HTTP_PUT(to, "Content-Type: multipart/byteranges; boundary=");
        to = domi_http_put_bytes(to, boundary, strlen(boundary));
        to = DOMI_HTTP_PUT(to, "\r\n");
    } else if (file->range_count == 1) {
        to = put_content_range(to, file);
    }
    return domus_slice_copy(fields, (size_t)(to - fields), ret_fields);
}

/* Returns the media type of a file by its name, without ".gz" if that only tells its encoding. */
static const char *choose_media_type_of_file(const found *file)
{
    const char *slash = strrchr(file->loaded->path, '/');
    const char *name = slash != NULL ? slash + 1 : file->loaded->path;
    char bare[256];
    size_t size = strlen(name);

    if (!file->is_packed)
        return domus_http_media_of(name);
    size = size - 3 < sizeof bare ? size - 3 : sizeof bare - 1;
    memcpy(bare, name, size);
    bare[size] = '\0';
    return domus_http_media_of(bare);
}

/* --- answers ---------------------------------------------------------------------------------- */

/* Answer with a response about a file. Consumes the response's slices in every case. */
static int reply_with_response_about_file(domus_stack *stack, domus_http_response *response)
{
    int error = domus_reply(stack, &domus_http_response_type, response);

    if (error != 0)
        domus_http_response_type.release(response);
    return error;
}

static int reply_with_status_and_fields(domus_stack *stack, unsigned status, domus_appender *fields)
{
    domus_http_response response = {.status = (uint16_t)status};
    int error = domus_append_end(fields, &response.fields);

    return error != 0 ? error : reply_with_response_about_file(stack, &response);
}

static int refuse_method_of_request(domus_stack *stack)
{
    domus_appender fields = {0};

    (void)domus_http_add(&fields, "Allow", "GET, HEAD");
    return reply_with_status_and_fields(stack, 405, &fields);
}

/* Redirect the client to the same path with a '/' behind it, because the path names a folder. All
 * '/' at the begin of the path but one are removed, because two would name a host. A path that ends
 * with '/' fails, because its index is a folder itself. */
static int redirect_to_folder(domus_stack *stack, const domus_http_request *request)
{
    domus_slice path = domus_http_path(request);
    domus_slice query = domus_http_query(request);
    const char *text = domus_slice_data(path);
    domus_appender fields = {0};

    if (path.size != 0 && text[path.size - 1] == '/')
        return -ENOENT;
    while (path.size > 1 && text[0] == '/' && text[1] == '/') {
        text++;
        path.size--;
    }
    (void)domus_append_text(&fields, "Location: %.*s/%s%.*s\r\n", (int)path.size, text,
                            query.size != 0 ? "?" : "", (int)query.size, domus_slice_data(query));
    return reply_with_status_and_fields(stack, 301, &fields);
}

/* A request for a file that waits until it is the turn of its answer. */
typedef struct waiting {
    const domus_http_files *files;
    domus_slice path;
} waiting;

static void free_path_of_waiting_request(void *payload)
{
    domus_slice_free(((waiting *)payload)->path);
}

static const domus_type waiting_type = {
    .name = "http file in turn", .size = sizeof(waiting), .release = free_path_of_waiting_request};

static domus_resumed load_file_again_in_turn_of_answer;

/* Load the file of a request when it is the turn of its answer. Returns DOMUS_PARKED, or a negative
 * errno. */
static int await_turn_of_answer(domus_stack *stack, const domus_http_files *files, domus_slice path)
{
    waiting wait = {.files = files};
    int result = domus_slice_keep(path, &wait.path);

    if (result != 0)
        return result;
    result = domus_reply_await_turn(stack, &waiting_type, &wait, load_file_again_in_turn_of_answer);
    if (result < 0)
        domus_slice_free(wait.path);
    return result;
}

/* Returns whether the answer must wait for its turn before it may hold its file open. */
static bool must_answer_wait_for_turn(domus_stack *stack, const found *file)
{
    return file->loaded->file != NULL && file->request->method == DOMUS_HTTP_GET &&
           !file->has_turn && !domus_reply_has_turn(stack);
}

/* Answer with `count` bytes of the file, from `first` on. */
static int send_bytes_of_file(domus_stack *stack, found *file, domus_http_response *response,
                              uint64_t first, uint64_t size)
{
    domus_file_loaded *loaded = file->loaded;

    response->media = choose_media_type_of_file(file);
    response->length = size;
    if (file->request->method == DOMUS_HTTP_HEAD)
        return reply_with_response_about_file(stack, response);
    if (loaded->file == NULL) {
        response->body = loaded->bytes;
        response->body.offset += (uint32_t)first;
        response->body.size = (uint32_t)size;
        loaded->bytes = (domus_slice){NULL, 0, 0};
        return reply_with_response_about_file(stack, response);
    }
    int result =
        domus_file_answer(stack, &domus_http_response_type, response, loaded->file, first, size);
    if (result < 0)
        domus_http_response_type.release(response);
    return result;
}

/* Answer with several ranges of the file, as the parts in `body`. Returns as domus_http_serve(). */
static int send_parts_with_ranges(domus_stack *stack, const found *file, domi_http_byteranges *body)
{
    const domus_file_loaded *loaded = file->loaded;
    domus_http_response response = {.status = 206, .length = body->size};
    int result = make_fields_of_file_answer(file, body->boundary, false, &response.fields);

    if (result == 0 && loaded->file == NULL) {
        result = domi_http_join_ranges_into_body(body, loaded->bytes, &response.body);
        if (result == 0)
            return reply_with_response_about_file(stack, &response);
    } else if (result == 0) {
        result = domus_file_answer_parts(stack, &domus_http_response_type, &response, loaded->file,
                                         body->parts, body->count);
        if (result >= 0)
            body->count = 0; /* the answer owns the parts of the body now */
    }
    if (result < 0)
        domus_http_response_type.release(&response);
    return result;
}

static int send_ranges_of_file(domus_stack *stack, const found *file)
{
    domi_http_byteranges body;
    int result =
        domi_http_make_parts_of_ranges(file->ranges, file->range_count, file->loaded->status.size,
                                       choose_media_type_of_file(file), &body);

    if (result != 0)
        return result;
    result = send_parts_with_ranges(stack, file, &body);
    domi_http_free_byteranges(&body);
    return result;
}

/* Choose the ranges of the file to send. Returns 206, with the ranges stored; 416; or 200, which is
 * also used for too many ranges, and for overlapping ones, whose bytes would be sent twice. */
static unsigned choose_ranges_to_send(found *file, const domus_http_version *version)
{
    uint32_t most = file->files->ranges_max != 0 ? file->files->ranges_max : RANGES_DEFAULT;
    domus_slice value;

    if (!domus_http_field(file->request->fields, "range", &value) ||
        !domus_http_may_range(file->request, version))
        return 200;
    int count = domus_http_read_range(value, file->loaded->status.size, file->ranges, most);
    file->range_count = count > 0 ? (uint32_t)count : 0;
    return count > 0 ? 206 : count == -ERANGE ? 416 : 200;
}

static int answer_unsatisfied_range(domus_stack *stack, uint64_t size)
{
    domus_appender fields = {0};

    (void)domus_http_add_unsatisfied(&fields, size);
    return reply_with_status_and_fields(stack, 416, &fields);
}

static int answer_by_conditions_and_ranges(domus_stack *stack, found *file)
{
    const domus_http_range *range = file->ranges;
    domus_http_response response = {.status = 200};

    store_tag_and_time_of_file(file);
    const domus_http_version version = {file->etag, file->modified, true};
    unsigned status = domus_http_check_conditions(file->request, &version);
    if (status == 0)
        status = choose_ranges_to_send(file, &version);
    if (status == 416)
        return answer_unsatisfied_range(stack, file->loaded->status.size);
    bool has_body = status == 200 || status == 206;
    if (has_body && must_answer_wait_for_turn(stack, file))
        return await_turn_of_answer(stack, file->files, file->path);
    if (status == 206 && file->range_count > 1)
        return send_ranges_of_file(stack, file);
    int error = make_fields_of_file_answer(
        file, NULL, status == 304 && does_client_have_compressed_answer(file), &response.fields);
    if (error != 0)
        return error;
    response.status = (uint16_t)status;
    if (status == 206)
        return send_bytes_of_file(stack, file, &response, range->first,
                                  range->last - range->first + 1);
    return status == 200 ? send_bytes_of_file(stack, file, &response, 0, file->loaded->status.size)
                         : reply_with_response_about_file(stack, &response);
}

/* Answer with a file that was loaded, and consume the file. */
static int answer_with_and_release_loaded_file(domus_stack *stack, found *file,
                                               domus_file_loaded *loaded)
{
    file->loaded = loaded;
    file->is_packed =
        loaded->index == 0 && domi_http_may_send_gz_file_to_client(file->files, file->request);
    int result = S_ISDIR(loaded->status.mode) ? redirect_to_folder(stack, file->request)
                                              : answer_by_conditions_and_ranges(stack, file);

    domus_file_loaded_type.release(loaded);
    file->loaded = NULL;
    return result;
}

static int answer_when_file_is_loaded(domus_stack *stack, void *self, const domus_answer *answer)
{
    const domus_http_files *files = (const domus_http_files *)(uintptr_t)answer->tag;
    const domus_http_request *request = domus_asked(stack, &domus_http_request_type);

    (void)self;
    if (answer->error != 0)
        return errno_of_request_without_its_file(answer->error);
    if (request == NULL)
        return -EINVAL;
    found file = {.files = files, .request = request, .has_turn = true};
    domus_file_loaded loaded = *(const domus_file_loaded *)answer->payload;
    int error = domus_take_answer(stack, answer);
    return error != 0 ? error : answer_with_and_release_loaded_file(stack, &file, &loaded);
}

/* Returns how many bytes of the file are read together with its load: 0 if the answer may not need
 * them. */
static uint32_t bytes_to_read_with_load_of_file(const domus_http_files *files,
                                                const domus_http_request *request)
{
    domus_slice value;

    if (request->method == DOMUS_HTTP_HEAD ||
        domus_http_field(request->fields, "if-none-match", &value) ||
        domus_http_field(request->fields, "if-modified-since", &value))
        return 0;
    return files->whole_max != 0 ? files->whole_max : WHOLE_DEFAULT;
}

/* Load the file of a request, at once or after a wait, and answer with it. Returns as
 * domus_http_serve(). */
static int load_file_and_answer(domus_stack *stack, found *file)
{
    const domus_http_files *files = file->files;
    domus_file_loaded loaded;
    domi_http_names tried;
    int error = domi_http_list_names_of_files(files, file->request, file->path, &tried);

    if (error != 0)
        return error;
    uint32_t size_max = bytes_to_read_with_load_of_file(files, file->request);
    error = domus_file_load_now(stack, files->root, tried.list,
                                DOMUS_FILE_BENEATH | DOMUS_FILE_KEPT, size_max, &loaded);
    if (error == 0)
        return answer_with_and_release_loaded_file(stack, file, &loaded);
    if (error != -EAGAIN)
        return errno_of_request_without_its_file(error);
    if (!file->has_turn && !domus_reply_has_turn(stack))
        return await_turn_of_answer(stack, files, file->path);
    int result = domus_file_load(stack, files->root, tried.list, DOMUS_FILE_BENEATH, size_max,
                                 (uintptr_t)files, answer_when_file_is_loaded);
    return result < 0 ? errno_of_request_without_its_file(result) : result;
}

static int load_file_again_in_turn_of_answer(domus_stack *stack, void *self,
                                             const domus_answer *answer)
{
    const domus_http_request *request = domus_asked(stack, &domus_http_request_type);

    (void)self;
    if (answer->error != 0)
        return errno_of_request_without_its_file(answer->error);
    if (request == NULL)
        return -EINVAL;
    const waiting *wait = answer->payload;
    found file = {.files = wait->files, .request = request, .path = wait->path, .has_turn = true};
    return load_file_and_answer(stack, &file);
}

int domus_http_serve(domus_stack *stack, const domus_http_files *files, domus_slice path)
{
    const domus_http_request *request = domus_asked(stack, &domus_http_request_type);

    if (request == NULL)
        return -EINVAL;
    if (request->method != DOMUS_HTTP_GET && request->method != DOMUS_HTTP_HEAD)
        return refuse_method_of_request(stack);
    if (files->root == NULL)
        return -EBUSY;
    if (files->ranges_max > DOMI_HTTP_RANGES_MOST)
        return -EINVAL;
    found file = {.files = files, .request = request, .path = path};
    return load_file_and_answer(stack, &file);
}
