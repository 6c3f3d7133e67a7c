#include "setup/token_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/compared_bytes.h"
#include "base/error.h"
#include "base/files/file.h"
#include "engine/plan/memory_plan.h"

namespace sluice::app {

std::vector<tokenizer::TokenId> encode_file(const tokenizer::Tokenizer& tokenizer, const std::string& text,
                                            const std::string& file, tokenizer::AddSpecial add_special,
                                            const CommonFlags& flags) {
  // Words, ranks and ids in progress take up to this many times the text.
  constexpr Bytes kTimes = 32;
  const Bytes budget =
      flags.memory.empty() ? engine::default_budget() : parse_size(flags.memory, Setting::kMemory);
  constexpr Bytes kSmall = 64 * kKiB;  // whether so little fits, the budget's own check says better
  if (text.size() > std::max(kSmall, budget / kTimes)) {
    const ComparedBytes sizes = compared_bytes(budget / kTimes, text.size());
    throw Error(ErrorKind::kBudget, "the text is too large to be tokenized inside the memory budget")
        .in(file)
        .expected(fmt::format("at most {} in a budget of {}", sizes.expected, format_bytes(budget)))
        .found(sizes.found)
        .fix("cut the text, or raise " + Setting::kMemory);
  }
  try {
    return tokenizer.encode(text, add_special);
  } catch (Error& error) {
    throw error.offset() ? error.in(file, *error.offset()) : error.in(file);
  }
}

std::vector<tokenizer::TokenId> parse_token_list(const std::string& text, Setting setting) {
  constexpr std::size_t kShownEntry = 20;  // characters
  std::vector<tokenizer::TokenId> tokens;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string entry = text.substr(begin, comma - begin);
    const char* const end = entry.data() + entry.size();
    tokenizer::TokenId token = 0;
    const auto [next, error] = std::from_chars(entry.data(), end, token);
    if (error != std::errc() || next != end)
      throw Error(ErrorKind::kUsage, fmt::format("entry {} of the list is {}", tokens.size() + 1,
                                                 entry.empty() ? "empty" : "not a token id"))
          .in(setting)
          .expected("numbers with commas between them, such as 1,2,3")
          .found(fmt::format("{} at character {}",
                             entry.empty() ? "nothing" : '"' + entry.substr(0, kShownEntry) + '"', begin + 1))
          .fix("correct the entry");
    tokens.push_back(token);
    begin = comma + 1;
  }
  return tokens;
}

}  // namespace sluice::app
