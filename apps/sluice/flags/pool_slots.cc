#include "flags/pool_slots.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "base/error.h"
#include "base/setting.h"
#include "flags/split_list.h"

namespace sluice::app {

experts::PoolSlots parse_pool_slots(const std::string& text) {
  constexpr std::uint32_t kMost = 65536;
  std::vector<std::uint32_t> numbers;
  for (const std::string& part : split_list(text, Setting::kPools)) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc() || end != part.data() + part.size() || number > kMost) {
      numbers.clear();
      break;
    }
    numbers.push_back(number);
  }
  if (numbers.size() != 4)
    throw Error(ErrorKind::kUsage, "these are not the slots of four pools")
        .in(Setting::kPools)
        .expected("four numbers up to 65536, F,C,S,E, such as 3,4,2,1")
        .found(fmt::format("\"{}\"", text))
        .fix("`sluice plan` shows slots that fit");
  if (numbers == std::vector<std::uint32_t>(4))
    throw Error(ErrorKind::kUsage, "pools without a slot cannot hold an expert")
        .in(Setting::kPools)
        .expected("at least one slot")
        .found(fmt::format("\"{}\"", text))
        .fix("`sluice plan` shows slots that fit");
  return {numbers[0], numbers[1], numbers[2], numbers[3]};
}

}  // namespace sluice::app
