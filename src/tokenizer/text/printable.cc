#include "tokenizer/text/printable.h"

namespace sluice::tokenizer {
namespace {

constexpr std::size_t kShownBytes = 80;

}  // namespace

std::string printable(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, kShownBytes)) out += c < ' ' || c > '~' ? '?' : c;
  return out += text.size() > kShownBytes ? "\"..." : "\"";
}

}  // namespace sluice::tokenizer
