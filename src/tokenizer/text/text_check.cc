#include "tokenizer/text/text_check.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/error.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

constexpr Bytes kMaxTextBytes = 256 * kMiB;
constexpr Bytes kMaxGrownBytes = 512 * kMiB;  // positions inside have 32 bits

}  // namespace

void check_text(std::string_view text) {
  if (text.size() > kMaxTextBytes) {
    throw Error(ErrorKind::kInvalid, "text is too long for the tokenizer")
        .in("text")
        .expected("at most 256 MiB")
        .found(fmt::format("{} bytes", text.size()))
        .fix("cut the text");
  }
  if (const auto bad = find_invalid_utf8(text)) {
    throw Error(ErrorKind::kInvalid, "text is not UTF-8")
        .in("text", *bad)
        .expected("a UTF-8 character")
        .found(fmt::format("byte 0x{:02X}", static_cast<unsigned char>(text[*bad])))
        .fix("convert the text to UTF-8 first");
  }
}

void check_grown(std::size_t bytes) {
  if (bytes > kMaxGrownBytes) {
    throw Error(ErrorKind::kInvalid, "the tokenizer makes the text too large")
        .in("text")
        .expected("at most 512 MiB after normalisation")
        .found(fmt::format("{} bytes or more", bytes))
        .fix("cut the text");
  }
}

bool is_token_id(std::int64_t number, std::size_t rows) {
  return number >= 0 && static_cast<std::uint64_t>(number) < rows;
}

void check_ids(std::span<const TokenId> ids, std::size_t rows, std::string_view where, ErrorKind kind) {
  for (const TokenId id : ids)
    if (!is_token_id(id, rows))
      throw Error(kind, "token id is out of range")
          .in(where)
          .expected(fmt::format("0 to {}", rows - 1))
          .found(fmt::format("{}", id))
          .fix("give ids of this model's tokenizer");
}

}  // namespace sluice::tokenizer
