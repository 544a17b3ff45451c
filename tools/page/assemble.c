/* Assembles the live page of the observation port during the build
 * (protocols/observe/page/page.cmake):
 *
 *   assemble OUT.c page.html --style FILE... --script FILE...
 *
 * Styles and scripts take the places of marks in the HTML, the own scripts as one function, so that
 * none of their names is global. OUT.c contains the page, the page compressed by gzip, and the
 * policy by which a browser runs only that script and uses only that style. */
#include <nettle/base64.h>
#include <nettle/sha2.h>
#include <zlib.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* size of zlib's largest window; the 16 selects the format of gzip */
#define GZIP_WINDOW (15 + 16)

typedef struct text {
    char *data; /* the text's bytes, with a zero at their end */
    size_t size;
} text;

__attribute__((format(printf, 1, 2), noreturn)) static void
print_message_and_exit(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fputs("assemble: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static void append_bytes_to_text(text *to, const char *data, size_t size)
{
    char *larger = realloc(to->data, to->size + size + 1);

    if (larger == NULL)
        print_message_and_exit("no memory");
    memcpy(larger + to->size, data, size);
    to->data = larger;
    to->size += size;
    larger[to->size] = '\0';
}

static void append_string_to_text(text *to, const char *data)
{
    append_bytes_to_text(to, data, strlen(data));
}

static text read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char part[65536];
    text all = {0};
    size_t size;

    if (file == NULL)
        print_message_and_exit("cannot open %s", path);
    append_string_to_text(&all, "");
    while ((size = fread(part, 1, sizeof part, file)) != 0)
        append_bytes_to_text(&all, part, size);
    if (ferror(file))
        print_message_and_exit("cannot read %s", path);
    fclose(file);
    return all;
}

static bool ends_with(const char *path, const char *end)
{
    size_t size = strlen(path), length = strlen(end);

    return size >= length && strcmp(path + size - length, end) == 0;
}

/* Add a file to the script of the page; a file without ".js", such as a license, is added as a
 * comment. Libraries stay outside of the page's own function. */
static void add_file_to_script(text *script, const char *path, bool *is_own)
{
    text file = read_file(path);
    bool is_code = ends_with(path, ".js"), is_library = ends_with(path, ".min.js");

    if (strstr(file.data, "</script") != NULL || (!is_code && strstr(file.data, "*/") != NULL))
        print_message_and_exit("%s would end its element", path);
    if (is_code && !is_library && !*is_own) {
        append_string_to_text(script, "(() => {\n\"use strict\";\n");
        *is_own = true;
    }
    append_string_to_text(script, is_code ? "" : "/*!\n");
    append_bytes_to_text(script, file.data, file.size);
    append_string_to_text(script, is_code ? "\n" : "*/\n");
    free(file.data);
}

/* Replace a mark in the page by the text that belongs there. */
static void replace_mark_by_text(text *page, const char *mark, const text *by)
{
    char *at = strstr(page->data, mark);
    text made = {0};

    if (at == NULL)
        print_message_and_exit("the page has no %s", mark);
    append_bytes_to_text(&made, page->data, (size_t)(at - page->data));
    append_bytes_to_text(&made, by->data, by->size);
    append_string_to_text(&made, at + strlen(mark));
    free(page->data);
    *page = made;
}

static void write_bytes_as_c_array(FILE *out, const char *name, const unsigned char *bytes,
                                   size_t size)
{
    fprintf(out, "static const unsigned char %s[] = {", name);
    for (size_t i = 0; i < size; i++)
        fprintf(out, "%s%u,", i % 24 == 0 ? "\n    " : "", bytes[i]);
    fputs("\n};\n", out);
}

static void write_gzip_of_page_as_c_array(FILE *out, const text *page)
{
    z_stream stream = {0};

    if (deflateInit2(&stream, 9, Z_DEFLATED, GZIP_WINDOW, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        print_message_and_exit("zlib does not begin");
    uLong room = deflateBound(&stream, page->size);
    unsigned char *packed = malloc(room);
    if (packed == NULL)
        print_message_and_exit("no memory");
    stream.next_in = (unsigned char *)page->data;
    stream.avail_in = (uInt)page->size;
    stream.next_out = packed;
    stream.avail_out = (uInt)room;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        print_message_and_exit("zlib does not end");
    write_bytes_as_c_array(out, "packed", packed, stream.total_out);
    deflateEnd(&stream);
    free(packed);
}

static void write_csp_hash_of_element(FILE *out, const char *directive, const text *element)
{
    unsigned char digest[SHA256_DIGEST_SIZE];
    char encoded[BASE64_ENCODE_RAW_LENGTH(SHA256_DIGEST_SIZE) + 1] = {0};
    struct sha256_ctx hash;

    sha256_init(&hash);
    sha256_update(&hash, element->size, (const unsigned char *)element->data);
    sha256_digest(&hash, sizeof digest, digest);
    base64_encode_raw(encoded, sizeof digest, digest);
    fprintf(out, "    \"; %s 'sha256-%s'\"\n", directive, encoded);
}

static void write_c_file_of_page(const char *path, const text *page, const text *style,
                                 const text *script)
{
    FILE *out = fopen(path, "wb");

    if (out == NULL)
        print_message_and_exit("cannot write %s", path);
    fputs("/* Made by tools/page/assemble.c. */\n"
          "#include \"protocols/observe/pages.h\"\n",
          out);
    write_bytes_as_c_array(out, "plain", (const unsigned char *)page->data, page->size);
    write_gzip_of_page_as_c_array(out, page);
    fputs("const domi_page domi_observe_page = {\n    plain, sizeof plain, packed, sizeof packed,\n"
          "    \"default-src 'none'; connect-src 'self'; img-src data:\"\n",
          out);
    write_csp_hash_of_element(out, "script-src", script);
    write_csp_hash_of_element(out, "style-src", style);
    fputs("    \"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\"};\n", out);
    if (fclose(out) != 0)
        print_message_and_exit("cannot write %s", path);
}

int main(int argc, char **argv)
{
    text style = {0}, script = {0};
    bool are_scripts = false, is_own = false;

    if (argc < 3)
        print_message_and_exit("OUT.c page.html --style FILE... --script FILE...");
    text page = read_file(argv[2]);
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--style") == 0 || strcmp(argv[i], "--script") == 0) {
            are_scripts = argv[i][3] == 'c';
        } else if (are_scripts) {
            add_file_to_script(&script, argv[i], &is_own);
        } else {
            text file = read_file(argv[i]);
            append_bytes_to_text(&style, file.data, file.size);
            free(file.data);
        }
    }
    append_string_to_text(&script, is_own ? "})();\n" : "");
    append_string_to_text(&style, "");
    replace_mark_by_text(&page, "@STYLE@", &style);
    replace_mark_by_text(&page, "@SCRIPT@", &script);
    write_c_file_of_page(argv[1], &page, &style, &script);
    free(page.data);
    free(style.data);
    free(script.data);
    return 0;
}
