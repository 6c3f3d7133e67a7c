#include "experts/slice_names.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/error.h"

namespace sluice::experts {
namespace {

constexpr std::string_view kLsbMisses[] = {"fetch", "skip", "fetch_if_budget"};          // by value
constexpr std::string_view kInitialSlices[] = {"pcw", "empty", "last-layer", "random"};  // by value

template <class Value, std::size_t n>
Value find(const char* flag, const std::string_view (&names)[n], std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found != std::end(names)) return static_cast<Value>(found - std::begin(names));
  std::string known;
  for (std::string_view one : names) known += (known.empty() ? "" : ", ") + std::string(one);
  throw Error(ErrorKind::kUsage, "unknown name")
      .in(flag)
      .expected("one of " + known)
      .found("\"" + std::string(name) + "\"");
}

}  // namespace

LsbMiss lsb_miss_rule(std::string_view name) { return find<LsbMiss>("--lsb-miss", kLsbMisses, name); }
std::string_view lsb_miss_name(LsbMiss rule) { return kLsbMisses[static_cast<std::size_t>(rule)]; }
InitialSlices initial_slices(std::string_view name) {
  return find<InitialSlices>("--warmup", kInitialSlices, name);
}
std::string_view initial_slices_name(InitialSlices initial) {
  return kInitialSlices[static_cast<std::size_t>(initial)];
}

double usual_rho(PrecisionMode precision) {
  return precision == PrecisionMode::kHigh ? 1 : precision == PrecisionMode::kLow ? 0 : WarmupRules{}.rho;
}

}  // namespace sluice::experts
