// A preset by which a user or the source names it. A name is looked up where it is put into one of these, and
// nowhere later; one that stands in the source, when it is compiled.
#pragma once

#include <cstddef>
#include <string_view>

#include "experts/device_preset_rows.h"
#include "experts/device_presets.h"
#include "experts/named_policy.h"
#include "experts/preset_rows.h"
#include "experts/presets.h"

namespace sluice::experts {

// A preset for a host alone or for a host with a device, or none.
class NamedPreset {
 public:
  constexpr NamedPreset() = default;
  // A literal: one that names no preset does not compile. An empty name: none.
  template <std::size_t kSize>
  consteval NamedPreset(const char (&name)[kSize]) {
    const std::string_view written = name;
    bool found = written.empty();  // no test of an address: gcc's sanitizers do not take it as a constant
    for (const Preset& row : rows::kPresets) {
      if (row.name != written) continue;
      host_ = &row;
      found = true;
    }
    for (const DevicePreset& row : rows::kDevicePresets) {
      if (row.name != written) continue;
      device_ = &row;
      found = true;
    }
    if (!found) throw "no preset has this name";
  }
  // An empty name: none. Error(kUsage) for an unknown one.
  template <PolicyName Name>
  NamedPreset(const Name& name) : NamedPreset(std::string_view(name)) {}
  NamedPreset(std::string_view name);
  NamedPreset(const Preset& preset) : host_(&preset) {}

  constexpr bool empty() const { return host_ == nullptr && device_ == nullptr; }
  void clear() { *this = {}; }
  // Something else than what there is where nobody names a preset.
  bool is_chosen() const;
  // What the host does: under a preset for a device, and under none, what it usually does.
  const Preset& host() const;
  const DevicePreset* device() const { return device_; }  // null: it is for none
  std::string_view name() const;                          // REQUIRES: not empty()

 private:
  const Preset* host_ = nullptr;
  const DevicePreset* device_ = nullptr;
};

}  // namespace sluice::experts
