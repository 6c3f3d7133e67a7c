// Any bytes as bodies of all wire formats: the first byte chooses one.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "serve/wire/anthropic/messages_body.h"
#include "serve/wire/openai/chat_body.h"
#include "serve/wire/openai/completion_body.h"
#include "serve/wire/sampling_fields.h"

namespace {

using namespace sluice::serve;

void read_one(std::uint8_t format, std::string_view text) {
  Served served;
  served.context = 64;
  served.vocabulary = 512;
  const BodyValue body = read_body(text);
  SLUICE_CHECK(body_text(parse_body(body_text(body))) == body_text(body), "JSON is not what was written");
  const Fields fields(body, {});
  switch (format % 4) {
    case 0:
      read_chat(fields);
      break;
    case 1:
      read_sampling(fields, served);
      break;
    case 2:
      read_anthropic(fields, served, {});
      break;
    default:
      read_stops(fields, "stop");
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    read_one(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const ApiError& error) {
    SLUICE_CHECK(error.status == 400, error.message);
    SLUICE_CHECK(parse_body(error_json(error, ErrorStyle::kOpenAi, "req")).is_object());
    SLUICE_CHECK(parse_body(error_json(error, ErrorStyle::kAnthropic, "req")).is_object());
  }
  return 0;
}
