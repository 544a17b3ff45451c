/* Forms: bodies of application/x-www-form-urlencoded, as browsers send forms without files.
 *
 *     domus_http_form form;
 *     const char *wrong;
 *     if (!domus_http_is_form(request))
 *         return -EMEDIUMTYPE;                                  415
 *     int error = domus_http_form_read(request->body, NULL, &form, &wrong);
 *     if (error != 0)
 *         return error;                                         400 or 413
 *     int64_t size = domus_http_form_text(&form, "title", title, sizeof title);
 *     error = domus_http_form_number(&form, "count", 1, 100, &count);
 *
 * A form is read once as a whole: its escapes are right, and it keeps to its limits, or it is
 * refused. A later read fails only for the field that is asked for: one that is not there, that is
 * there twice, or that is not of its kind. A field that is there twice is an error, because
 * programs that take the first one and programs that take the last one see two forms.
 *
 * The same functions read a query: domus_http_form_read(domus_http_query(request), ...). A form
 * with files is multipart/form-data (domus/http_upload.h).
 *
 * Thread-safety: any thread. */
#ifndef DOMUS_HTTP_FORM_H
#define DOMUS_HTTP_FORM_H

#include <domus/http.h>
#include <domus/http_query.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A form that was read. It owns nothing, and is valid as long as the body. */
typedef struct domus_http_form {
    domus_slice body;
} domus_http_form;

/* Limits of a form. NULL: all defaults. A limit of 0 is its default. */
typedef struct domus_http_form_limits {
    uint32_t fields_max; /* most fields of a form, or parameters of a query; 0 means 100 */
    uint32_t name_max;   /* most bytes of the name of a field, decoded; 0 means 128 */
    uint32_t value_max;  /* most bytes of the value of a field, decoded; 0 means 64 KiB */
} domus_http_form_limits;

/* Returns whether the Content-Type of a request says that its body is a form
 * (application/x-www-form-urlencoded). */
DOMUS_API bool domus_http_is_form(const domus_http_request *request);

/* Read a form as a whole, and check it.
 *
 * Returns 0; -EPROTO (400) for a '%' without two digits; -EMSGSIZE (413) beyond a limit. With an
 * error `ret_wrong`, if it is not NULL, gets words for it, which are a constant. */
DOMUS_API int domus_http_form_read(domus_slice body, const domus_http_form_limits *limits,
                                   domus_http_form *ret_form, const char **ret_wrong);

/* Read the next field of a form, in the order in which fields were sent; its texts are not decoded
 * (domus_http_decode()). `*at` begins as 0. Returns false behind the last one. */
DOMUS_API bool domus_http_form_next(const domus_http_form *form, uint32_t *at,
                                    domus_http_parameter *ret_field);

/* Write the text of the field `name`, decoded and followed by a zero, to `to`, which has room for
 * `room` bytes with that zero. The text is UTF-8 without a byte 0; line ends are as they were sent,
 * mostly CR LF.
 *
 * Returns the bytes of the text; -ENOENT without such a field; -ENOTUNIQ when there are several;
 * -EMSGSIZE when it does not fit; -EILSEQ when it is no text. */
DOMUS_API int64_t domus_http_form_text(const domus_http_form *form, const char *name, char *to,
                                       size_t room);

/* Read the number that the field `name` holds, in digits with perhaps a '-' before them, without
 * zeros before it, and without spaces. Returns 0; -ENOENT without such a field; -ENOTUNIQ when
 * there are several; -EINVAL when it is no number, also for an empty field; -ERANGE when it is
 * below `least` or above `most`. */
DOMUS_API int domus_http_form_number(const domus_http_form *form, const char *name, int64_t least,
                                     int64_t most, int64_t *ret_number);

/* Read the field of a check box. Browsers send "on" for one that is checked, or the value that the
 * page gives it, and leave out one that is not. "on", "1" and "true" are true; "off", "0" and
 * "false", and a field that is not there, are false. Returns 0; -ENOTUNIQ; -EINVAL for any other
 * value. */
DOMUS_API int domus_http_form_flag(const domus_http_form *form, const char *name, bool *ret_flag);

#ifdef __cplusplus
}
#endif

#endif
