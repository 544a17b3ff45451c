/* RapidJSON behind a function of C.
 *
 * The reader of RapidJSON works in the text itself (in situ) and allocates nothing; the allocator
 * that it asks for says so. It passes numbers as their digits, because its own conversion overflows
 * an int for exponents that a stranger may send. It recurses for nested values, and
 * domi_json_on_open_of_object_or_array() bounds how deep. The file is compiled without exceptions
 * and run-time types, and needs nothing of the library of C++. Its vector code is switched off: it
 * takes control characters for text, and was not faster (docs/decisions/formats.md). */
#define NDEBUG
/* RapidJSON makes no allocator, because it is given one */
#define RAPIDJSON_NEW(object)    (nullptr)
#define RAPIDJSON_DELETE(object) ((void)(object))
/* An own namespace keeps RapidJSON's names out of the library's symbols. */
#define RAPIDJSON_NAMESPACE_BEGIN                                                                  \
    namespace                                                                                      \
    {                                                                                              \
    namespace rapidjson                                                                            \
    {
#define RAPIDJSON_NAMESPACE_END                                                                    \
    }                                                                                              \
    }

#include "protocols/json/parse.h"

#include <rapidjson/internal/dtoa.h>
#include <rapidjson/reader.h>

#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace
{

/* An encoding for RapidJSON: UTF-8 that was checked before. */
struct checked : rapidjson::UTF8<> {
};

/* Count the first bytes that are not a quote, a backslash or a control character. At the latest the
 * padding ends the count. */
#if defined(__SSE2__)
size_t count_plain(const char *from)
{
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i backslash = _mm_set1_epi8('\\');
    const __m128i control = _mm_set1_epi8(0x1f);

    for (const char *at = from;; at += 16) {
        __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i *>(at));
        __m128i marks =
            _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash));
        __m128i controls = _mm_cmpeq_epi8(_mm_min_epu8(bytes, control), bytes);
        int ends = _mm_movemask_epi8(_mm_or_si128(marks, controls));
        if (ends != 0)
            return static_cast<size_t>(at - from + __builtin_ctz(static_cast<unsigned>(ends)));
    }
}
#elif __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
uint64_t each(uint8_t byte)
{
    return UINT64_C(0x0101010101010101) * byte;
}

/* Returns a word with the highest bit set in the lowest byte that is 0. Higher bytes may be wrong,
 * because a borrow goes upwards. */
uint64_t zeros(uint64_t word)
{
    return (word - each(1)) & ~word & each(0x80);
}

size_t count_plain(const char *from)
{
    for (const char *at = from;; at += 8) {
        uint64_t word;
        std::memcpy(&word, at, sizeof word);
        uint64_t ends = zeros(word ^ each('"')) | zeros(word ^ each('\\')) |
                        ((word - each(0x20)) & ~word & each(0x80));
        if (ends != 0)
            return static_cast<size_t>(at - from + __builtin_ctzll(ends) / 8);
    }
}
#else
size_t count_plain(const char *from)
{
    const char *at = from;

    while (*at != '"' && *at != '\\' && static_cast<unsigned char>(*at) >= 0x20)
        at++;
    return static_cast<size_t>(at - from);
}
#endif

} /* end of the unnamed namespace */

/* RapidJSON calls this for each plain character of a text. It passes all plain characters that
 * follow, several at a time. After an escape the rest of the text moves to the left, so they are
 * also copied. */
template <> struct rapidjson::Transcoder<checked, checked> {
    template <typename From, typename To> static bool Transcode(From &from, To &)
    {
        size_t size = count_plain(from.src_);

        if (from.src_ != from.dst_)
            std::memmove(from.dst_, from.src_, size);
        from.src_ += size;
        from.dst_ += size;
        return true;
    }
    template <typename From, typename To> static bool Validate(From &from, To &to)
    {
        return Transcode(from, to);
    }
};

namespace
{

struct nothing {
    void *Malloc(size_t)
    {
        return nullptr;
    }
    void *Realloc(void *, size_t, size_t)
    {
        return nullptr;
    }
    static void Free(void *)
    {
    }
};

struct handler {
    domi_json_reader *reader;
    rapidjson::GenericInsituStringStream<checked> &stream;

    /* Returns the offset at which the last token, of `size` bytes, begins. */
    size_t before(size_t size)
    {
        return stream.Tell() - size;
    }
    bool Null()
    {
        return domi_json_on_null_leave_member_absent(reader, before(4));
    }
    bool Bool(bool value)
    {
        return domi_json_on_bool_store_it_in_member(reader, value, before(value ? 4 : 5));
    }
    /* RapidJSON passes numbers as digits, so it never calls these. */
    bool Int(int)
    {
        return false;
    }
    bool Uint(unsigned)
    {
        return false;
    }
    bool Int64(int64_t)
    {
        return false;
    }
    bool Uint64(uint64_t)
    {
        return false;
    }
    bool Double(double)
    {
        return false;
    }
    bool RawNumber(const char *text, rapidjson::SizeType size, bool)
    {
        return domi_json_on_number_store_it_in_member(reader, const_cast<char *>(text), size);
    }
    bool String(const char *text, rapidjson::SizeType size, bool)
    {
        return domi_json_on_text_store_it_in_member(reader, const_cast<char *>(text), size);
    }
    bool Key(const char *text, rapidjson::SizeType size, bool)
    {
        return domi_json_on_key_expect_value_of_row(reader, const_cast<char *>(text), size);
    }
    bool StartObject()
    {
        return domi_json_on_open_of_object_or_array(reader, false, before(1));
    }
    bool EndObject(rapidjson::SizeType)
    {
        return domi_json_on_close_of_object_or_array(reader, before(1));
    }
    bool StartArray()
    {
        return domi_json_on_open_of_object_or_array(reader, true, before(1));
    }
    bool EndArray(rapidjson::SizeType)
    {
        return domi_json_on_close_of_object_or_array(reader, before(1));
    }
};

const char *words_of(rapidjson::ParseErrorCode code)
{
    switch (code) {
    case rapidjson::kParseErrorDocumentEmpty:
        return "there is no value";
    case rapidjson::kParseErrorDocumentRootNotSingular:
        return "there is more behind the value";
    case rapidjson::kParseErrorValueInvalid:
        return "not a value";
    case rapidjson::kParseErrorObjectMissName:
        return "a name in quotes is missing";
    case rapidjson::kParseErrorObjectMissColon:
        return "':' is missing";
    case rapidjson::kParseErrorObjectMissCommaOrCurlyBracket:
        return "',' or '}' is missing";
    case rapidjson::kParseErrorArrayMissCommaOrSquareBracket:
        return "',' or ']' is missing";
    case rapidjson::kParseErrorStringUnicodeEscapeInvalidHex:
        return "\\u without four hexadecimal digits";
    case rapidjson::kParseErrorStringUnicodeSurrogateInvalid:
        return "one half of a surrogate pair";
    case rapidjson::kParseErrorStringEscapeInvalid:
        return "an unknown escape, or a character that has to be escaped";
    case rapidjson::kParseErrorStringMissQuotationMark:
        return "the text has no end";
    case rapidjson::kParseErrorNumberTooBig:
        return "a number beyond all doubles";
    case rapidjson::kParseErrorNumberMissFraction:
        return "no digit behind the point";
    case rapidjson::kParseErrorNumberMissExponent:
        return "no digit in the exponent";
    default:
        return "not JSON";
    }
}

} /* end of the unnamed namespace */

const char *domi_json_parse(domi_json_reader *reader, char *text, size_t size, size_t *ret_offset)
{
    nothing allocator;
    rapidjson::GenericReader<checked, checked, nothing> parser(&allocator, 0);
    rapidjson::GenericInsituStringStream<checked> stream(text);
    handler on = {reader, stream};
    rapidjson::ParseResult result =
        parser.Parse<rapidjson::kParseInsituFlag | rapidjson::kParseNumbersAsStringsFlag>(stream,
                                                                                          on);

    if (result.IsError()) {
        if (result.Code() == rapidjson::kParseErrorTermination)
            return nullptr;
        *ret_offset = result.Offset();
        return words_of(result.Code());
    }
    if (stream.Tell() == size)
        return nullptr;
    *ret_offset = stream.Tell();
    return words_of(rapidjson::kParseErrorDocumentRootNotSingular);
}

size_t domi_json_real_text(double value, char text[DOMI_JSON_REAL_ROOM])
{
    return static_cast<size_t>(rapidjson::internal::dtoa(value, text) - text);
}
