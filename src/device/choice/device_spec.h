// What a device is, as a user says it: one that this program plays, or a GPU that is there. Who asks what
// follows from that asks the value, and knows no kinds. docs/devices.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "device/emulated/emulated_spec.h"

namespace sluice::device {

struct CudaSpec {
  unsigned index = 0;                           // as CUDA numbers GPUs
  std::optional<double> link_bytes_per_s = {};  // its link is no faster, each way; empty: no limit
};

class DeviceSpec {
 public:
  DeviceSpec(const EmulatedSpec& spec) : spec_(spec) {}
  DeviceSpec(const CudaSpec& spec) : spec_(spec) {}

  // Who makes or shows the device; null if it is of the other kind.
  const EmulatedSpec* emulated() const { return std::get_if<EmulatedSpec>(&spec_); }
  const CudaSpec* cuda() const { return std::get_if<CudaSpec>(&spec_); }

  std::string_view kind() const;  // "emulated" "cuda", as Device::name()
  // It is played in this process's memory, and its seconds are no speed of this program.
  bool is_played() const { return emulated() != nullptr; }
  // Some work of it takes as long as it takes, though it is played: no time measured with it is valid.
  bool is_unpaced() const;
  // Bytes a second that the link carries at the most, each way, as a clock on the wall sees it. Empty:
  // what it can.
  std::optional<double> link_limit() const;
  // Bytes of weights a second for each token, if the host is slowed down beside it.
  std::optional<double> host_limit() const;
  double dilation() const;   // everything there is slower by this factor
  unsigned threads() const;  // threads of its own pool
  // Stretches of attention that it works on at a time, each of which needs scratch.
  unsigned attention_items() const;
  bool full_duplex() const;  // both directions of the link at once
  // How long these take at the least, as the specification has it; 0 where nothing is said.
  double least_copy_s(Bytes expert) const;
  double least_compute_s(Bytes expert) const;  // on the device, or on a paced host

  // From now on the link is no faster than this, each way.
  void limit_link(double bytes_per_s);

 private:
  std::variant<EmulatedSpec, CudaSpec> spec_;
};

// What a user says of the device of a run: none, whatever is there, or a certain one.
inline constexpr std::string_view kNoDevice = "none", kAnyDevice = "auto";

// "emulated" or "emulated:KEY=VALUE,…" (emulated_spec.h), "cuda", "cuda:1", or, as to_text() writes it,
// "cuda:1,link=25GB/s". Error(kUsage) naming `where` for anything else.
DeviceSpec parse_device_spec(std::string_view text, std::string_view where);

// With all its parts, as parse_device_spec() reads it.
std::string to_text(const DeviceSpec& spec);

}  // namespace sluice::device
