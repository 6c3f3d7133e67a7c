// Policies and presets by which a user names them: rows of the registry. A name is looked up where it is put
// into one of these, and nowhere later.
#pragma once

#include <concepts>
#include <string_view>

namespace sluice::experts {
struct CachePolicy;   // experts/registry.h
struct DevicePreset;  // experts/device_presets.h
struct PlacementPolicy;
struct PrefetchPolicy;
struct Preset;
struct RouterPolicy;
struct SchedulerPolicy;
}  // namespace sluice::experts

namespace sluice::engine {

template <class Name>
concept PolicyName = std::convertible_to<const Name&, std::string_view>;

// The row that is named, or none. `Policy`: one of the policies above.
template <class Policy>
class Named {
 public:
  Named() = default;
  // An empty name: none. Error(kUsage) for an unknown one.
  template <PolicyName Name>
  Named(const Name& name) : row_(find(name)) {}
  Named(const Policy& row) : row_(&row) {}

  bool empty() const { return row_ == nullptr; }
  void clear() { row_ = nullptr; }
  const Policy* row() const { return row_; }  // null: none
  const Policy* operator->() const { return row_; }
  // What is named, else the row of this name. REQUIRES: it is not empty.
  const Policy& or_usual(std::string_view usual) const;
  friend bool operator==(const Named& a, std::string_view name) { return a.row_ == find(name); }

 private:
  static const Policy* find(std::string_view name);
  const Policy* row_ = nullptr;
};

// A preset for a host alone or for a host with a device, or none. Among the latter are those that cannot run.
class NamedPreset {
 public:
  NamedPreset() = default;
  // An empty name: none. Error(kUsage) for an unknown one.
  template <PolicyName Name>
  NamedPreset(const Name& name) : NamedPreset(std::string_view(name)) {}
  NamedPreset(std::string_view name);
  NamedPreset(const experts::Preset& preset) : host_(&preset) {}

  bool empty() const { return host_ == nullptr && device_ == nullptr; }
  void clear() { *this = {}; }
  // Something else than what there is where nobody names a preset.
  bool is_chosen() const;
  // What the host does: under a preset for a device, and under none, what it usually does.
  const experts::Preset& host() const;
  const experts::DevicePreset* device() const { return device_; }  // null: it is for none
  std::string_view name() const;                                   // REQUIRES: not empty()

 private:
  const experts::Preset* host_ = nullptr;
  const experts::DevicePreset* device_ = nullptr;
};

}  // namespace sluice::engine
