/* /socket: a WebSocket that is a guest in a room of the chat (examples/rooms), beside those who
 * come by the port for lines. "/socket?room=garden&name=ada": each text of the browser is a line
 * "ada: text" in that room, and each line of the room is a text to the browser.
 *
 * A guest who does not read is dropped, as in the rooms, when `rooms.slowBytes` wait. */
#include "web.h"

#include <domus/http_query.h>
#include <domus/websocket.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 32u
/* most bytes of a text: a line has the name, ": ", the text, and its end */
#define TEXT_MAX_BYTES (ROOMS_LINE_MAX - NAME_MAX_BYTES - 3)

struct web_guest {
    domus_group room;
    size_t name_size;
    char name[NAME_MAX_BYTES];
};

/* --- the handshake ---------------------------------------------------------------------------- */

static const domus_websocket_options options = {.message_max = TEXT_MAX_BYTES};
static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_websocket_stage, &options}, {NULL, NULL}}};
static const domus_websocket_service service = {.pipeline = &pipeline};

/* Returns whether the page that asks for a WebSocket is one of this site. Browsers let every page
 * of every site open a WebSocket, and say where it comes from. Other clients need not. */
static bool is_page_of_this_site(const domus_http_request *request)
{
    domus_slice host = domus_http_host(request), origin;

    if (!domus_http_field(request->fields, "origin", &origin))
        return true;
    const char *text = domus_slice_data(origin);
    const char *colon = origin.size != 0 ? memchr(text, ':', origin.size) : NULL;
    size_t scheme = colon != NULL ? (size_t)(colon - text) : 0;
    return colon != NULL && origin.size == scheme + 3 + host.size && memcmp(colon, "://", 3) == 0 &&
           memcmp(colon + 3, domus_slice_data(host), host.size) == 0;
}

/* Replace bytes of a text that would end a line, or control a terminal, by spaces. */
static void replace_control_characters(char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            text[i] = ' ';
    }
}

/* Read the room and the name of a guest from the query of a request. Returns 0; -ENOENT for another
 * room (404); -EPROTO for a name that is too long or wrong (400). */
static int read_room_and_name_of_guest(domus_stack *stack, domus_slice query,
                                       struct web_guest *guest)
{
    char room[64] = "";
    int64_t size = domus_http_query_value(query, "room", room, sizeof room - 1);

    if (size < 0 && size != -ENOENT)
        return -ENOENT;
    if (size < 0)
        memcpy(room, rooms_settings.rooms[0], sizeof rooms_settings.rooms[0]);
    else
        room[size] = '\0';
    size = domus_http_query_value(query, "name", guest->name, sizeof guest->name);
    if (size < 0 && size != -ENOENT)
        return -EPROTO;
    guest->name_size = size > 0 ? (size_t)size : 0;
    replace_control_characters(guest->name, guest->name_size);
    return rooms_open_group_of_room(stack, room, &guest->room);
}

static int serve_upgrade(domus_stack *stack, void *self, const void *payload)
{
    const domus_http_request *request = payload;
    struct web_visitor *visitor = self;
    domus_websocket_outcome outcome;
    struct web_guest guest = {0};

    if (!is_page_of_this_site(request))
        return web_answer_with_line(stack, 403, "this page is of another site\n");
    int error = read_room_and_name_of_guest(stack, domus_http_query(request), &guest);
    if (error != 0)
        return error;
    struct web_guest *kept = malloc(sizeof *kept);
    if (kept == NULL)
        return -ENOMEM;
    *kept = guest;
    error = domus_group_join(stack, guest.room);
    if (error == 0) {
        error = domus_websocket_accept(stack, request, &service, &outcome);
        if (error == 0 && outcome.status == 101) {
            visitor->guest = kept;
            return 0;
        }
        (void)domus_group_leave(stack, guest.room);
    }
    free(kept);
    /* 503 for the visitor, because the room can take no more members */
    return error == -ENOSPC ? -EBUSY : error;
}

const domus_call web_serve_socket = {serve_upgrade, 0};

void web_free_guest_of_visitor(struct web_visitor *visitor)
{
    free(visitor->guest);
    visitor->guest = NULL;
}

/* --- texts ------------------------------------------------------------------------------------ */

int web_publish_line_of_browser_to_room(domus_stack *stack, void *self, const void *payload)
{
    const domus_websocket_message *message = payload;
    const struct web_guest *guest = ((const struct web_visitor *)self)->guest;
    struct rooms_said said = {0};

    if (message->binary)
        return domus_websocket_close_channel(stack, domus_channel_running(stack),
                                             DOMUS_WEBSOCKET_UNSUPPORTED, "only text");
    if (guest->name_size != 0) {
        memcpy(said.bytes, guest->name, guest->name_size);
        memcpy(said.bytes + guest->name_size, ": ", 2);
        said.size = (uint32_t)guest->name_size + 2;
    }
    memcpy(said.bytes + said.size, domus_slice_data(message->bytes), message->bytes.size);
    replace_control_characters(said.bytes + said.size, message->bytes.size);
    said.size += message->bytes.size;
    said.bytes[said.size++] = '\n';
    /* if a thread has no room for the publication, its guests miss the line */
    (void)domus_publish(stack, guest->room, &rooms_said_type, &said);
    return 0;
}

/* Send a line of the room to a browser as a text. A line that comes while the connection begins or
 * ends is dropped. */
static int send_line_as_websocket_text(domus_stack *stack, domus_channel *channel,
                                       const char *bytes, size_t size)
{
    domus_websocket_message message = {0};
    int error = domus_slice_copy(bytes, size, &message.bytes);

    if (error != 0)
        return error;
    error = domus_channel_send(stack, channel, &domus_websocket_message_type, &message);
    domus_slice_free(message.bytes);
    return error == -EBUSY || error == -EPIPE ? 0 : error;
}

/* Replace the bytes of a line that are not ASCII: a line may be any bytes, and a text of a
 * WebSocket has to be UTF-8. */
static void replace_non_ascii(char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)text[i] > 0x7f)
            text[i] = '?';
    }
}

int web_send_line_to_browser(domus_stack *stack, void *self, const void *payload)
{
    domus_channel *channel = domus_channel_running(stack);
    struct rooms_said said = *(const struct rooms_said *)payload;

    (void)self;
    if (channel == NULL)
        return 0;
    if (domus_channel_queued(channel) > rooms_settings.slow_bytes)
        return -ENOBUFS; /* the browser reads too slowly: this error resets the connection */
    while (said.size != 0 && strchr("\r\n", said.bytes[said.size - 1]) != NULL)
        said.size--;
    int error = send_line_as_websocket_text(stack, channel, said.bytes, said.size);
    if (error != -EILSEQ)
        return error;
    replace_non_ascii(said.bytes, said.size);
    return send_line_as_websocket_text(stack, channel, said.bytes, said.size);
}
