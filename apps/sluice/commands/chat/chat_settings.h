// What /set changes while a chat goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/session/sampler.h"

namespace sluice::app {

// Whether the model reasons before it answers: as its template has it, told to, told not to; or as its
// template has it, and nobody reads it.
enum class Think { kAuto, kOn, kOff, kHide };
Think think_named(const std::string& where, const std::string& name);  // Error(kUsage)

struct ChatSettings {
  engine::SamplerConfig sampler;      // its seed is not used
  std::optional<std::uint64_t> seed;  // for every answer; empty: each draws another
  std::size_t most_tokens = 0;        // for an answer; 0: as many as the context has room for
  std::vector<std::string> stop;      // texts that end an answer
  Think think = Think::kAuto;
  bool statistics = true;  // the line under an answer
};

// Error(kUsage) for an unknown name and a value that makes no sense; then nothing has changed.
void set_by_name(ChatSettings& settings, const std::string& name, const std::string& value);
// Names and values, as set_by_name() takes them.
std::vector<std::pair<std::string, std::string>> shown_settings(const ChatSettings& settings);

}  // namespace sluice::app
