// Policies by which a user or the source names them: rows of the registry. A name is looked up where it is
// put into one of these, and nowhere later; one that stands in the source, when it is compiled.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/setting.h"
#include "experts/registry.h"
#include "experts/registry_rows.h"
#include "experts/table_lookup.h"

namespace sluice::experts {

template <class Name>
concept PolicyName = std::convertible_to<const Name&, std::string_view>;

// The rows of each kind, and the setting that names one.
template <class Policy>
struct PolicyKind;
template <>
struct PolicyKind<RouterPolicy> {
  static constexpr std::span kRows{rows::kRouters};
  static constexpr Setting kSetting = Setting::kRouter;
};
template <>
struct PolicyKind<CachePolicy> {
  static constexpr std::span kRows{rows::kCaches};
  static constexpr Setting kSetting = Setting::kCache;
};
template <>
struct PolicyKind<PrefetchPolicy> {
  static constexpr std::span kRows{rows::kPrefetches};
  static constexpr Setting kSetting = Setting::kPrefetch;
};
template <>
struct PolicyKind<SchedulerPolicy> {
  static constexpr std::span kRows{rows::kSchedulers};
  static constexpr Setting kSetting = Setting::kScheduler;
};
template <>
struct PolicyKind<PlacementPolicy> {
  static constexpr std::span kRows{rows::kPlacements};
  static constexpr Setting kSetting = Setting::kPlacement;
};

// The row that is named, or none. `Policy`: RouterPolicy, CachePolicy, PrefetchPolicy, SchedulerPolicy or
// PlacementPolicy.
template <class Policy>
class Named {
 public:
  constexpr Named() = default;
  // A literal: one that names no row does not compile. An empty name: none.
  template <std::size_t kSize>
  consteval Named(const char (&name)[kSize]) : row_(written(name)) {}
  // An empty name: none. Error(kUsage) for an unknown one.
  template <PolicyName Name>
  Named(const Name& name) : row_(find(name)) {}
  constexpr Named(const Policy& row) : row_(&row) {}
  constexpr Named(const Policy* row) : row_(row) {}  // null: none

  constexpr bool empty() const { return row_ == nullptr; }
  void clear() { row_ = nullptr; }
  constexpr const Policy* row() const { return row_; }  // null: none
  constexpr const Policy* operator->() const { return row_; }
  constexpr const Policy& operator*() const { return *row_; }  // REQUIRES: not empty()
  constexpr std::string_view name() const { return row_ != nullptr ? row_->name : std::string_view(); }
  // What is named, else `usual`. REQUIRES: that is not empty.
  const Policy& or_usual(Named usual) const {
    SLUICE_CHECK(row_ != nullptr || usual.row_ != nullptr);
    return row_ != nullptr ? *row_ : *usual.row_;
  }
  friend constexpr bool operator==(const Named& a, const Named& b) = default;

 private:
  static consteval const Policy* written(std::string_view name) {
    if (name.empty()) return nullptr;
    for (const Policy& row : PolicyKind<Policy>::kRows)
      if (is_named(row, name)) return &row;
    throw "no policy of this kind has this name";
  }
  static const Policy* find(std::string_view name) {
    using Kind = PolicyKind<Policy>;
    return name.empty() ? nullptr : &find_row(std::span<const Policy>(Kind::kRows), Kind::kSetting, name);
  }
  const Policy* row_ = nullptr;
};

}  // namespace sluice::experts
