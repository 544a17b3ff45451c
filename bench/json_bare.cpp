/* The reader of RapidJSON with a handler that only counts. */
#define NDEBUG
#define RAPIDJSON_NAMESPACE_BEGIN                                                                  \
    namespace                                                                                      \
    {                                                                                              \
    namespace rapidjson                                                                            \
    {
#define RAPIDJSON_NAMESPACE_END                                                                    \
    }                                                                                              \
    }
#define RAPIDJSON_NEW(object)    (nullptr)
#define RAPIDJSON_DELETE(object) ((void)(object))

#include "bench/json_bare.h"

#include <rapidjson/reader.h>

namespace
{

struct counter : rapidjson::BaseReaderHandler<rapidjson::UTF8<>, counter> {
    uint64_t sum = 1;

    bool Default()
    {
        sum++;
        return true;
    }
    bool String(const char *text, rapidjson::SizeType size, bool)
    {
        sum += static_cast<unsigned char>(text[0]) + size;
        return true;
    }
};

} // namespace

uint64_t bench_json_bare(char *text)
{
    rapidjson::CrtAllocator allocator;
    rapidjson::GenericReader<rapidjson::UTF8<>, rapidjson::UTF8<>> parser(&allocator, 0);
    rapidjson::InsituStringStream stream(text);
    counter on;
    bool fails =
        parser
            .Parse<rapidjson::kParseInsituFlag | rapidjson::kParseNumbersAsStringsFlag>(stream, on)
            .IsError();

    return fails ? 0 : on.sum;
}
