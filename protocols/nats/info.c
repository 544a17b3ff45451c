/* Reads INFO, the JSON that a server sends first, and again when its cluster changes. Unknown
 * fields are ignored; a known field with a wrong type makes the whole INFO invalid. */
#include "protocols/nats/nats.h"

#include <errno.h>
#include <string.h>

#include <jansson.h>

/* Get a text member of INFO; a text that does not fit into `room` bytes is cut. */
static bool get_text_of_info(const json_t *object, const char *key, char *text, size_t room)
{
    const json_t *value = json_object_get(object, key);

    if (value == NULL)
        return true;
    if (!json_is_string(value))
        return false;
    domi_nats_copy_printable(
        text, room,
        (domi_nats_bytes){json_string_value(value), (uint32_t)json_string_length(value)});
    return true;
}

static bool get_flag_of_info(const json_t *object, const char *key, bool *flag)
{
    const json_t *value = json_object_get(object, key);

    if (value != NULL)
        *flag = json_is_true(value);
    return value == NULL || json_is_boolean(value);
}

/* Get a number of 32 bits from INFO; a number that does not fit becomes UINT32_MAX. */
static bool get_number_of_info(const json_t *object, const char *key, uint32_t *number)
{
    const json_t *value = json_object_get(object, key);

    if (value == NULL)
        return true;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    json_int_t whole = json_integer_value(value);
    *number = whole < UINT32_MAX ? (uint32_t)whole : UINT32_MAX;
    return true;
}

static bool get_urls_of_servers(const json_t *object, domus_nats_server_info *info)
{
    const json_t *list = json_object_get(object, "connect_urls");
    const json_t *url;
    size_t i;

    if (list == NULL || json_is_null(list))
        return true;
    if (!json_is_array(list))
        return false;
    json_array_foreach((json_t *)(uintptr_t)list, i, url)
    {
        if (!json_is_string(url))
            return false;
        size_t size = json_string_length(url);
        if (size == 0 || size >= DOMUS_NATS_SERVER_SIZE || info->urls == DOMUS_NATS_SERVERS_MAX)
            continue;
        domi_nats_copy_printable(info->url[info->urls++], DOMUS_NATS_SERVER_SIZE,
                                 (domi_nats_bytes){json_string_value(url), (uint32_t)size});
    }
    return true;
}

static bool get_all_members_of_info(const json_t *object, domus_nats_server_info *info)
{
    return json_is_object(object) &&
           get_text_of_info(object, "server_id", info->server_id, sizeof info->server_id) &&
           get_text_of_info(object, "server_name", info->server_name, sizeof info->server_name) &&
           get_text_of_info(object, "version", info->version, sizeof info->version) &&
           get_text_of_info(object, "nonce", info->nonce, sizeof info->nonce) &&
           get_number_of_info(object, "max_payload", &info->max_payload) &&
           get_number_of_info(object, "client_id", &info->client_id) &&
           get_flag_of_info(object, "headers", &info->headers) &&
           get_flag_of_info(object, "auth_required", &info->auth_required) &&
           get_flag_of_info(object, "tls_required", &info->tls_required) &&
           get_flag_of_info(object, "tls_available", &info->tls_available) &&
           get_flag_of_info(object, "jetstream", &info->jetstream) &&
           get_flag_of_info(object, "ldm", &info->lame_duck) && get_urls_of_servers(object, info);
}

int domus_nats_info_read(const domus_nats_info *info, domus_nats_server_info *ret_info)
{
    json_error_t wrong;
    json_t *object = json_loadb(domus_slice_data(info->json), info->json.size, 0, &wrong);

    if (object == NULL)
        return json_error_code(&wrong) == json_error_out_of_memory ? -ENOMEM : -EPROTO;
    memset(ret_info, 0, sizeof *ret_info);
    int error = get_all_members_of_info(object, ret_info) ? 0 : -EPROTO;
    json_decref(object);
    return error;
}
