#include "experts/named_preset.h"

namespace sluice::experts {

NamedPreset::NamedPreset(std::string_view name) {
  if (name.empty()) return;
  device_ = device_preset_named(name);
  if (device_ == nullptr) host_ = &host_preset(name);
}

bool NamedPreset::is_chosen() const { return device_ != nullptr || !host().usual; }

const Preset& NamedPreset::host() const { return host_ != nullptr ? *host_ : usual_preset(); }

std::string_view NamedPreset::name() const { return device_ != nullptr ? device_->name : host_->name; }

}  // namespace sluice::experts
