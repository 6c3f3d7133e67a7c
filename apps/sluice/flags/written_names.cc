#include "flags/written_names.h"

#include <algorithm>
#include <string_view>

namespace sluice::app {
namespace {

// A value may stand right behind a short flag, and behind a long one and "=".
bool is_short(std::string_view word, std::string_view flag) {
  return word.starts_with(flag) && !word.starts_with("--");
}
bool is_long(std::string_view word, std::string_view flag) { return word.substr(0, word.find('=')) == flag; }

}  // namespace

SettingNames written_names(const std::vector<std::string>& words) {
  const auto end = std::ranges::find(words, "--");
  SettingNames names = setting_names();
  for (SettingName& name : names) {
    const std::size_t comma = name.flags.find(',');
    if (comma == name.flags.npos) continue;
    const std::string_view short_flag = name.flags.substr(0, comma), long_flag = name.flags.substr(comma + 1);
    const bool by_short =
        std::any_of(words.begin(), end, [&](const auto& word) { return is_short(word, short_flag); });
    const bool by_long =
        std::any_of(words.begin(), end, [&](const auto& word) { return is_long(word, long_flag); });
    if (by_short != by_long) name.short_in_text = by_short;
  }
  return names;
}

}  // namespace sluice::app
